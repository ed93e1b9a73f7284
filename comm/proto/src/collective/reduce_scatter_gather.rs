//! Reduction of long vectors: reduce-scatter by halving, then a gather up a binomial tree (R. Rabenseifner, Optimization
//! of collective reduction operations, ICCS 2004).

use super::fold::Fold;
use super::halving::{Halving, halvings, reduce_scatter};
use super::{Cost, Step};
use crate::rank::Rank;

/// The root's buffer becomes the reduction of all buffers of `len` elements; those of other ranks are unspecified
/// afterwards. Keeps the order of ranks; the order is the same for every root.
///
/// Cost, with `p` the largest power of two up to `size`: `2 log2 p` rounds, `2 len (p - 1) / p` elements sent in turn and
/// half as many reduced; one message and reduction of `len` elements more if `size` is no power of two.
pub fn reduce_scatter_gather(rank: Rank, size: usize, root: Rank, len: usize) -> Vec<Step> {
    let fold = Fold::keeping(root, size);
    let mut steps = fold.before(rank, 0..len);
    let (Some(index), Some(target)) = (fold.index(rank), fold.index(root)) else { return steps };
    let exchanges = halvings(&fold, index, len);
    steps.extend(reduce_scatter(rank, &exchanges));
    for Halving { bit, other, kept, sent } in exchanges.into_iter().rev() {
        // Of the two the one on the root's side goes on with what both have.
        if index & bit != target & bit {
            steps.push(Step::send(other, kept));
            break;
        }
        steps.push(Step::recv(other, sent));
    }
    steps
}

/// Cost of [`reduce_scatter_gather`] of `bytes` bytes.
pub fn cost(size: usize, bytes: f64) -> Cost {
    let power = (1 << size.ilog2()) as f64;
    let folded = f64::from(!size.is_power_of_two());
    let scattered = bytes * (power - 1.0) / power;
    Cost {
        rounds: 2.0 * f64::from(size.ilog2()) + folded,
        bytes: 2.0 * scattered + folded * bytes,
        reduced: scattered + folded * bytes,
    }
}
