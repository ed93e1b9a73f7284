//! Allreduce up and down a binomial tree: the fewest messages, for more ranks than cores.

use super::{Cost, Step, bcast_binomial, reduce_binomial};
use crate::rank::Rank;

/// All buffers of `len` elements become the reduction of all buffers, with the same bits everywhere. Keeps the order of
/// ranks.
///
/// Cost: `2 ceil(log2 size)` rounds of `len` elements; `2 (size - 1)` messages in all, where recursive doubling has
/// `size log2 size`.
pub fn allreduce_tree(rank: Rank, size: usize, len: usize) -> Vec<Step> {
    let mut steps = reduce_binomial(rank, size, 0, len);
    steps.extend(bcast_binomial(rank, size, 0, len));
    steps
}

/// Cost of [`allreduce_tree`] of `bytes` bytes.
pub fn cost(size: usize, bytes: f64) -> Cost {
    reduce_binomial::cost(size, bytes) + bcast_binomial::cost(size, bytes)
}
