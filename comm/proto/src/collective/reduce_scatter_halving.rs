//! Reduce-scatter by recursive halving, for short vectors and commutative operations (R. Thakur, R. Rabenseifner,
//! W. Gropp, Optimization of collective communication operations in MPICH, IJHPCA 19(1), 2005).

use super::fold::Fold;
use super::{Cost, Order, Step};
use crate::rank::Rank;

/// Elements `starts[r]..starts[r + 1]` of the buffer of rank `r` become the reduction over all ranks; the other elements
/// are unspecified afterwards. Does not keep the order of ranks: those that are far apart meet first, as each is to
/// end with its own part.
///
/// Cost, with `p` the largest power of two up to `size`: `log2 p` rounds, nearly all elements sent and reduced once; one
/// message and reduction of all elements and one message of one part more if `size` is no power of two.
pub fn reduce_scatter_halving(rank: Rank, size: usize, starts: &[usize]) -> Vec<Step> {
    let fold = Fold::new(size);
    let parts = |indices| {
        let ranks = fold.ranks(indices);
        starts[ranks.start]..starts[ranks.end]
    };
    let mut steps = fold.before(rank, starts[0]..starts[size]);
    if let Some(index) = fold.index(rank) {
        let mut bit = fold.power / 2;
        while bit > 0 {
            let other = fold.rank(index ^ bit);
            let kept = index & !(bit - 1);
            let sent = kept ^ bit;
            steps.push(Step::send(other, parts(sent..sent + bit)));
            steps.push(Step::recv_reduce(other, parts(kept..kept + bit), Order::of(rank, other)));
            bit /= 2;
        }
    }
    let aside = rank & !1;
    steps.extend(fold.after(rank, starts[aside]..starts[aside + 1]));
    steps
}

/// Cost of [`reduce_scatter_halving`] of `bytes` bytes in equal parts.
pub fn cost(size: usize, bytes: f64) -> Cost {
    let fold = Fold::new(size);
    let folded = f64::from(!size.is_power_of_two());
    let part = bytes / size as f64;
    // The first indices stand for pairs, so that index 0 gets most.
    let kept = |round: u32| fold.ranks(0..1 << round).len() as f64;
    let halved = part * (0..size.ilog2()).map(kept).sum::<f64>();
    Cost {
        rounds: f64::from(size.ilog2()) + 2.0 * folded,
        bytes: halved + folded * (bytes + part),
        reduced: halved + folded * bytes,
    }
}
