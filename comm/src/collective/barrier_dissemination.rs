//! Dissemination barrier (Hensgen, Finkel, Manber, IJPP 17(1), 1988).

use super::Step;
use crate::rank::Rank;

/// No rank is done before every rank has begun.
///
/// Cost per rank: `ceil(log2 size)` rounds of one empty message each way.
pub fn barrier_dissemination(rank: Rank, size: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut distance = 1;
    while distance < size {
        steps.push(Step::send((rank + distance) % size, 0..0));
        steps.push(Step::recv((rank + size - distance) % size, 0..0));
        distance *= 2;
    }
    steps
}
