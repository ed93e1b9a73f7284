//! Ranks that are no power of two, folded to one (R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA 19(1), 2005, section 4.5;
//! as MPICH does it).

use std::ops::Range;

use super::{Order, Step};
use crate::rank::Rank;

/// With `p` the largest power of two up to the size, the first `2 (size - p)` ranks are pairs of neighbours: the even
/// rank of a pair gives its buffer to the odd one and then stands aside. The others have an *index* in `0..p`. Neighbours
/// fold, so indices are in the order of what they stand for.
pub(super) struct Fold {
    /// Number of indices: the largest power of two up to the size.
    pub(super) power: usize,
    /// Number of pairs.
    pairs: usize,
}

impl Fold {
    pub(super) fn new(size: usize) -> Self {
        let power = 1 << size.ilog2();
        Self { power, pairs: size - power }
    }

    /// Index of a rank, none for one that stands aside.
    pub(super) fn index(&self, rank: Rank) -> Option<usize> {
        match rank {
            rank if rank >= 2 * self.pairs => Some(rank - self.pairs),
            rank => (rank % 2 == 1).then_some(rank / 2),
        }
    }

    /// Rank of an index.
    pub(super) fn rank(&self, index: usize) -> Rank {
        if index < self.pairs { 2 * index + 1 } else { index + self.pairs }
    }

    /// Ranks that an index range stands for.
    pub(super) fn ranks(&self, indices: Range<usize>) -> Range<Rank> {
        let first = |index: usize| index + index.min(self.pairs);
        first(indices.start)..first(indices.end)
    }

    /// Partner of a rank in its pair.
    fn partner(&self, rank: Rank) -> Option<Rank> {
        (rank < 2 * self.pairs).then_some(rank ^ 1)
    }

    /// Steps that fold elements `part` of the buffer of the even rank into that of the odd one.
    pub(super) fn before(&self, rank: Rank, part: Range<usize>) -> Vec<Step> {
        let step = |other| match self.index(rank) {
            None => Step::send(other, part),
            Some(_) => Step::recv_reduce(other, part, Order::OtherFirst),
        };
        self.partner(rank).map(step).into_iter().collect()
    }

    /// Steps that bring elements `part` of the buffer of the odd rank to the even one.
    pub(super) fn after(&self, rank: Rank, part: Range<usize>) -> Vec<Step> {
        let step = |other| match self.index(rank) {
            None => Step::recv(other, part),
            Some(_) => Step::send(other, part),
        };
        self.partner(rank).map(step).into_iter().collect()
    }
}
