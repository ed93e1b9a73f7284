//! Inclusive scan by recursive doubling (W. D. Hillis, G. L. Steele, Data parallel algorithms, CACM 29(12), 1986).

use super::{Cost, Order, Step};
use crate::rank::Rank;

/// The buffer of rank `r` becomes the reduction of the buffers of ranks `0..=r`, of `len` elements. Keeps the order of
/// ranks.
///
/// Before the round of distance `d` a rank has the reduction of the `d` ranks up to itself.
///
/// Cost: `ceil(log2 size)` rounds of `len` elements each way.
pub fn scan_recursive_doubling(rank: Rank, size: usize, len: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut distance = 1;
    while distance < size {
        if rank + distance < size {
            steps.push(Step::send(rank + distance, 0..len));
        }
        if rank >= distance {
            steps.push(Step::recv_reduce(rank - distance, 0..len, Order::OtherFirst));
        }
        distance *= 2;
    }
    steps
}

/// Cost of [`scan_recursive_doubling`] of `bytes` bytes.
pub fn cost(size: usize, bytes: f64) -> Cost {
    let rounds = f64::from(size.next_power_of_two().ilog2());
    Cost { rounds, bytes: rounds * bytes, reduced: rounds * bytes }
}
