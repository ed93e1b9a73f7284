//! Barrier by dissemination (D. Hensgen, R. Finkel, U. Manber, Two algorithms for barrier synchronization, IJPP 17(1),
//! 1988).

use super::{Cost, Step};
use crate::rank::Rank;

/// No rank is done before every rank has begun.
///
/// Cost: `ceil(log2 size)` rounds of one empty message each way; `size` messages a round in all.
pub fn barrier_dissemination(rank: Rank, size: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut distance = 1;
    while distance < size {
        steps.push(Step::send((rank + distance) % size, 0..0));
        steps.push(Step::recv((rank + size - distance) % size, 0..0));
        // Empty messages touch no memory that the next round would have to wait for.
        steps.push(Step::Fence);
        distance *= 2;
    }
    steps
}

/// Cost of [`barrier_dissemination`]; `bytes` does not matter.
pub fn cost(size: usize, _bytes: f64) -> Cost {
    Cost { rounds: f64::from(size.next_power_of_two().ilog2()), ..Cost::default() }
}
