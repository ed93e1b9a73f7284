//! Vectors that are halved while distances double: the first half of Rabenseifner's algorithms.

use std::ops::Range;

use super::fold::Fold;
use super::{Order, Step};
use crate::rank::Rank;

/// One exchange: this rank sends one half of what it has, and reduces into the other.
pub(super) struct Halving {
    /// Distance of the two indices, a power of two.
    pub(super) bit: usize,
    /// The other rank.
    pub(super) other: Rank,
    /// Elements that this rank goes on with.
    pub(super) kept: Range<usize>,
    /// Elements that the other rank goes on with.
    pub(super) sent: Range<usize>,
}

/// The exchanges of one index with `len` elements. As neighbors meet first, what a rank holds is the reduction of
/// neighboring ranks, in their order; its block of the result is the one whose number has the bits of the index in
/// reverse.
pub(super) fn halvings(fold: &Fold, index: usize, len: usize) -> Vec<Halving> {
    let element = |block: usize| block * len / fold.power;
    let (mut first, mut blocks, mut bit) = (0, fold.power, 1);
    let mut exchanges = Vec::new();
    while bit < fold.power {
        blocks /= 2;
        let lower = element(first)..element(first + blocks);
        let upper = element(first + blocks)..element(first + 2 * blocks);
        let other = fold.rank(index ^ bit);
        exchanges.push(if index & bit == 0 {
            Halving { bit, other, kept: lower, sent: upper }
        } else {
            first += blocks;
            Halving { bit, other, kept: upper, sent: lower }
        });
        bit *= 2;
    }
    exchanges
}

/// Steps that reduce and scatter: the last part that `rank` keeps is reduced over all ranks then.
pub(super) fn reduce_scatter(rank: Rank, exchanges: &[Halving]) -> impl Iterator<Item = Step> {
    exchanges.iter().flat_map(move |Halving { other, kept, sent, .. }| {
        [Step::send(*other, sent.clone()), Step::recv_reduce(*other, kept.clone(), Order::of(rank, *other))]
    })
}
