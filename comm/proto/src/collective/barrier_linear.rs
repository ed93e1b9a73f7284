//! Barrier by one rank that hears from all and tells all: each of the others waits once, so with more ranks than cores each is given a core the
//! fewest times.

use super::{Cost, Step};
use crate::rank::Rank;

/// No rank is done before every rank has begun.
///
/// Cost: `2 (size - 1)` empty messages one after another at rank 0, one each way for the others.
pub fn barrier_linear(rank: Rank, size: usize) -> Vec<Step> {
    if rank != 0 {
        return vec![Step::send(0, 0..0), Step::recv(0, 0..0)];
    }
    let heard = (1..size).map(|from| Step::recv(from, 0..0));
    let told = (1..size).map(|to| Step::send(to, 0..0));
    heard.chain([Step::Fence]).chain(told).collect()
}

/// Cost of [`barrier_linear`]; `bytes` does not matter.
pub fn cost(size: usize, _bytes: f64) -> Cost {
    Cost { rounds: 2.0 * (size - 1) as f64, ..Cost::default() }
}
