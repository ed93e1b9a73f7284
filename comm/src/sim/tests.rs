//! Fault-free jobs over the simulated network.

use super::*;
use crate::plain::Op;

#[test]
fn allreduce_of_every_rank() {
    for size in 1..=9 {
        let sums = ranks(size, |comm| {
            let mut sum = [comm.rank() as u64 + 1];
            comm.allreduce(&mut sum, Op::Sum).unwrap();
            sum[0]
        });
        assert_eq!(sums, vec![(1..=size as u64).sum::<u64>(); size]);
    }
}
