//! Parts of ranks on a binomial tree: what gather and scatter have in common.

use std::ops::Range;

use crate::rank::Rank;

/// A binomial tree over ranks counted from the root, cyclic: position `p` is rank `(root + p) % size`. The subtree
/// of a position that is a multiple of `bit` are the `bit` positions from it upwards, as far as there are any.
pub(super) struct TreeParts<'a> {
    size: usize,
    root: Rank,
    starts: &'a [usize],
}

impl<'a> TreeParts<'a> {
    /// Rank `r` has the elements `starts[r]..starts[r + 1]`.
    pub(super) fn new(size: usize, root: Rank, starts: &'a [usize]) -> Self {
        Self { size, root, starts }
    }

    /// Rank at a position.
    pub(super) fn rank(&self, position: usize) -> Rank {
        (self.root + position) % self.size
    }

    /// Position of a rank.
    pub(super) fn position(&self, rank: Rank) -> usize {
        (rank + self.size - self.root) % self.size
    }

    /// The positions below `position`, itself included, and its parent; the root has none.
    pub(super) fn subtree(&self, position: usize) -> (Range<usize>, Option<usize>) {
        if position == 0 {
            return (0..self.size, None);
        }
        let bit = 1 << position.trailing_zeros();
        (position..self.size.min(position + bit), Some(position - bit))
    }

    /// The subtrees of the children of `position`, the smallest first.
    pub(super) fn children(&self, position: usize) -> Vec<Range<usize>> {
        let (own, _) = self.subtree(position);
        let bits = (0..usize::BITS).map(|shift| 1 << shift);
        let firsts = bits.map(|bit: usize| position + bit).take_while(|first| *first < own.end);
        firsts.map(|first| self.subtree(first).0).collect()
    }

    /// Elements of all ranks at these positions.
    pub(super) fn len(&self, positions: Range<usize>) -> usize {
        self.places(positions).map(|place| place.len()).sum()
    }

    /// Where the elements of these positions are among those of all ranks: one range, or two where the ranks go
    /// round the end.
    pub(super) fn places(&self, positions: Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
        let end = self.size - self.root;
        let plain = positions.start.min(end)..positions.end.min(end);
        let round = positions.start.max(end)..positions.end.max(end);
        let first = (!plain.is_empty())
            .then(|| self.starts[self.root + plain.start]..self.starts[self.root + plain.end]);
        let second =
            (!round.is_empty()).then(|| self.starts[round.start - end]..self.starts[round.end - end]);
        first.into_iter().chain(second)
    }
}
