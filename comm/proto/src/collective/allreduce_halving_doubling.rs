//! Allreduce of long vectors: reduce-scatter by halving, allgather by doubling (R. Rabenseifner, Optimization of
//! collective reduction operations, ICCS 2004).

use super::fold::Fold;
use super::halving::{Halving, halvings, reduce_scatter};
use super::{Cost, Step};
use crate::rank::Rank;

/// All buffers of `len` elements become the reduction of all buffers, with the same bits everywhere. Keeps the order of
/// ranks.
///
/// Cost, with `p` the largest power of two up to `size`: `2 log2 p` rounds, `2 len (p - 1) / p` elements each way and half
/// as many reduced; two messages and one reduction of `len` elements more if `size` is no power of two.
pub fn allreduce_halving_doubling(rank: Rank, size: usize, len: usize) -> Vec<Step> {
    let fold = Fold::new(size);
    let mut steps = fold.before(rank, 0..len);
    if let Some(index) = fold.index(rank) {
        let exchanges = halvings(&fold, index, len);
        steps.extend(reduce_scatter(rank, &exchanges));
        for Halving { other, kept, sent, .. } in exchanges.into_iter().rev() {
            steps.extend([Step::send(other, kept), Step::recv(other, sent)]);
        }
    }
    steps.extend(fold.after(rank, 0..len));
    steps
}

/// Cost of [`allreduce_halving_doubling`] of `bytes` bytes.
pub fn cost(size: usize, bytes: f64) -> Cost {
    let power = (1 << size.ilog2()) as f64;
    let folded = f64::from(!size.is_power_of_two());
    let scattered = bytes * (power - 1.0) / power;
    Cost {
        rounds: 2.0 * (f64::from(size.ilog2()) + folded),
        bytes: 2.0 * (scattered + folded * bytes),
        reduced: scattered + folded * bytes,
    }
}
