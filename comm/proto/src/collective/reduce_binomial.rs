//! Reduction up a binomial tree (R. Thakur, R. Rabenseifner, W. Gropp, Optimization of collective communication
//! operations in MPICH, IJHPCA 19(1), 2005).

use super::{Cost, Order, Step};
use crate::rank::Rank;

/// The root's buffer becomes the reduction of all buffers of `len` elements; those of other ranks are unspecified
/// afterwards. Keeps the order of ranks.
///
/// The tree ends at rank 0, so that neighbors meet first; another root gets the result from there.
///
/// Cost: `ceil(log2 size)` rounds of `len` elements, one more if the root is not rank 0.
pub fn reduce_binomial(rank: Rank, size: usize, root: Rank, len: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut bit = 1;
    while bit < size && rank & bit == 0 {
        if rank + bit < size {
            steps.push(Step::recv_reduce(rank + bit, 0..len, Order::MineFirst));
        }
        bit *= 2;
    }
    if rank != 0 {
        steps.push(Step::send(rank - bit, 0..len));
    }
    if root != 0 && rank == 0 {
        steps.push(Step::send(root, 0..len));
    }
    if root != 0 && rank == root {
        steps.push(Step::recv(0, 0..len));
    }
    steps
}

/// The pairs of values that the tree combines, one after the other; the first rank of a pair gets what becomes of it.
pub(super) fn order(size: usize) -> Vec<(Rank, Rank)> {
    let bits = (0..usize::BITS).map(|shift| 1 << shift).take_while(|bit| *bit < size);
    let pairs = |bit: usize| (0..size - bit).step_by(2 * bit).map(move |low| (low, low + bit));
    bits.flat_map(pairs).collect()
}

/// Cost of [`reduce_binomial`] of `bytes` bytes to rank 0.
pub fn cost(size: usize, bytes: f64) -> Cost {
    let rounds = f64::from(size.next_power_of_two().ilog2());
    Cost { rounds, bytes: rounds * bytes, reduced: rounds * bytes }
}
