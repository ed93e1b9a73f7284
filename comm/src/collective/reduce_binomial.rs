//! Reduction up a binomial tree.

use super::{Order, Step};
use crate::rank::Rank;

/// The root's buffer becomes the reduction of all buffers; those of other ranks are unspecified afterwards.
///
/// Cost: `ceil(log2 size)` rounds; every rank but the root sends `len` elements once.
pub fn reduce_binomial(rank: Rank, size: usize, root: Rank, len: usize) -> Vec<Step> {
    let real = |relative: usize| (relative + root) % size;
    let relative = (rank + size - root) % size;
    let mut steps = Vec::new();
    let mut bit = 1;
    while bit < size {
        if relative & bit != 0 {
            steps.push(Step::send(real(relative - bit), 0..len));
            break;
        }
        if relative + bit < size {
            steps.push(Step::recv_reduce(real(relative + bit), 0..len, Order::MineFirst));
        }
        bit *= 2;
    }
    steps
}
