//! Allreduce by recursive doubling, for short vectors (R. Thakur, R. Rabenseifner, W. Gropp, Optimization of collective
//! communication operations in MPICH, IJHPCA 19(1), 2005).

use super::fold::Fold;
use super::{Cost, Order, Step};
use crate::rank::Rank;

/// All buffers of `len` elements become the reduction of all buffers, with the same bits everywhere. Keeps the order of
/// ranks.
///
/// With `p` the largest power of two up to `size`, neighbors fold in pairs to `p` first, and those that stood aside get
/// the result at the end.
///
/// Cost: `log2 p` rounds of `len` elements each way; two messages more if `size` is no power of two.
pub fn allreduce_recursive_doubling(rank: Rank, size: usize, len: usize) -> Vec<Step> {
    let fold = Fold::new(size);
    let mut steps = fold.before(rank, 0..len);
    if let Some(index) = fold.index(rank) {
        let mut bit = 1;
        while bit < fold.power {
            let other = fold.rank(index ^ bit);
            steps.push(Step::send(other, 0..len));
            steps.push(Step::recv_reduce(other, 0..len, Order::of(rank, other)));
            bit *= 2;
        }
    }
    steps.extend(fold.after(rank, 0..len));
    steps
}

/// Cost of [`allreduce_recursive_doubling`] of `bytes` bytes.
pub fn cost(size: usize, bytes: f64) -> Cost {
    let doubling = f64::from(size.ilog2());
    let folded = f64::from(!size.is_power_of_two());
    Cost {
        rounds: doubling + 2.0 * folded,
        bytes: (doubling + 2.0 * folded) * bytes,
        reduced: (doubling + folded) * bytes,
    }
}
