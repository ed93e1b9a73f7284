//! Ranks that are no power of two, folded to one (R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA 19(1), 2005, section 4.5;
//! as MPICH does it).

use std::ops::Range;

use super::{Order, Step};
use crate::rank::Rank;

/// With `p` the largest power of two up to the size, the first `2 (size - p)` ranks are pairs of neighbors: one rank of
/// a pair gives its buffer to the other and then stands aside. The others have an *index* in `0..p`. Neighbors fold, so
/// indices are in the order of what they stand for.
pub(super) struct Fold {
    /// Number of indices: the largest power of two up to the size.
    pub(super) power: usize,
    /// Number of pairs.
    pairs: usize,
    /// The rank that never stands aside; in other pairs it is the odd one.
    root: Option<Rank>,
}

impl Fold {
    pub(super) fn new(size: usize) -> Self {
        let power = 1 << size.ilog2();
        Self { power, pairs: size - power, root: None }
    }

    /// A fold in which `root` has an index. The order of operands is the same for every root.
    pub(super) fn keeping(root: Rank, size: usize) -> Self {
        Self { root: Some(root), ..Self::new(size) }
    }

    /// Rank of an index.
    pub(super) fn rank(&self, index: usize) -> Rank {
        match self.root {
            _ if index >= self.pairs => index + self.pairs,
            Some(root) if root / 2 == index => root,
            _ => 2 * index + 1,
        }
    }

    /// Index of a rank, none for one that stands aside.
    pub(super) fn index(&self, rank: Rank) -> Option<usize> {
        let index = if rank < 2 * self.pairs { rank / 2 } else { rank - self.pairs };
        (self.rank(index) == rank).then_some(index)
    }

    /// Ranks that a range of indices stands for.
    pub(super) fn ranks(&self, indices: Range<usize>) -> Range<Rank> {
        let first = |index: usize| index + index.min(self.pairs);
        first(indices.start)..first(indices.end)
    }

    /// The other rank of the pair of a rank.
    fn partner(&self, rank: Rank) -> Option<Rank> {
        (rank < 2 * self.pairs).then_some(rank ^ 1)
    }

    /// The pairs of values that recursive doubling combines, one after the other; the first rank of a pair, which is the lower one, gets what
    /// becomes of it.
    pub(super) fn order(&self) -> Vec<(Rank, Rank)> {
        // Of a pair that folds the lower rank holds the result, whichever of the two has the index.
        let mut order: Vec<(Rank, Rank)> = (0..self.pairs).map(|pair| (2 * pair, 2 * pair + 1)).collect();
        let first = |index: usize| self.ranks(index..index + 1).start;
        let mut bit = 1;
        while bit < self.power {
            let pairs = (0..self.power).step_by(2 * bit);
            order.extend(pairs.map(|index| (first(index), first(index + bit))));
            bit *= 2;
        }
        order
    }

    /// Steps that fold elements `part` of the buffers.
    pub(super) fn before(&self, rank: Rank, part: Range<usize>) -> Vec<Step> {
        let step = |other| match self.index(rank) {
            None => Step::send(other, part),
            Some(_) => Step::recv_reduce(other, part, Order::of(rank, other)),
        };
        self.partner(rank).map(step).into_iter().collect()
    }

    /// Steps that bring elements `part` to the ranks that stood aside.
    pub(super) fn after(&self, rank: Rank, part: Range<usize>) -> Vec<Step> {
        let step = |other| match self.index(rank) {
            None => Step::recv(other, part),
            Some(_) => Step::send(other, part),
        };
        self.partner(rank).map(step).into_iter().collect()
    }
}
