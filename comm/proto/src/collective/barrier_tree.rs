//! Barrier up and down a binomial tree: the fewest messages, for more ranks than cores (J. Mellor-Crummey, M. Scott,
//! Algorithms for scalable synchronization on shared-memory multiprocessors, ACM TOCS 9(1), 1991).

use super::{Cost, Step};
use crate::rank::Rank;

/// No rank is done before every rank has begun.
///
/// Cost: `2 ceil(log2 size)` rounds of empty messages; `2 (size - 1)` messages in all.
pub fn barrier_tree(rank: Rank, size: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut children = Vec::new();
    let mut bit = 1;
    while bit < size && rank & bit == 0 {
        if rank + bit < size {
            children.push(rank + bit);
        }
        bit *= 2;
    }
    steps.extend(children.iter().map(|&child| Step::recv(child, 0..0)));
    steps.push(Step::Fence);
    if rank != 0 {
        steps.extend([Step::send(rank - bit, 0..0), Step::recv(rank - bit, 0..0), Step::Fence]);
    }
    steps.extend(children.iter().rev().map(|&child| Step::send(child, 0..0)));
    steps
}

/// Cost of [`barrier_tree`]; `bytes` does not matter.
pub fn cost(size: usize, _bytes: f64) -> Cost {
    Cost { rounds: 2.0 * f64::from(size.next_power_of_two().ilog2()), ..Cost::default() }
}
