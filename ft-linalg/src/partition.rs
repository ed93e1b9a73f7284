//! Who owns which row.
//!
//! Rows `0..n` are cut into blocks of equal length, and the blocks are dealt out in contiguous ranges. The length
//! of a block depends on `n` alone, so a block is never split between ranks, whatever their number: that is what
//! makes sums over rows independent of the number of ranks (see [`crate::dot`]). With fewer blocks than ranks
//! some ranks own nothing; every function here and above works with empty ranges.

use std::ops::Range;

use ft_checkpoint::Protect;
use ft_comm::{Communicator, Rank};

use crate::LinalgError;

/// Index of a row or column in the whole matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Global(pub usize);

/// Index of a row among those that a rank owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Local(pub usize);

/// Shortest and longest block.
const BLOCK_LEN_MIN: usize = 32;
const BLOCK_LEN_MAX: usize = 4096;

/// Rows per block for a matrix of `n` rows: the largest power of two up to `n / 64`, at least 32 and at most 4096.
///
/// 64 to 128 blocks keep the load even over a few dozen ranks; 4096 rows of the five vectors of a CG iteration
/// still fit into a second-level cache.
pub fn block_len(n: usize) -> usize {
    let wanted = (n / 64).max(1);
    (1 << wanted.ilog2()).clamp(BLOCK_LEN_MIN, BLOCK_LEN_MAX)
}

/// Rows `0..n` dealt out over `size` ranks, seen from one of them.
///
/// The default, an empty problem on no rank, only waits to be restored from a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Protect)]
pub struct Partition {
    #[protect(constant)]
    n: usize,
    #[protect(constant)]
    size: usize,
    #[protect(constant)]
    rank: Rank,
}

impl Partition {
    /// `n` rows over `size` ranks, seen from `rank`. Not collective, O(1).
    ///
    /// # Panics
    /// If `rank >= size`.
    pub fn new(n: usize, size: usize, rank: Rank) -> Self {
        assert!(rank < size, "rank {rank} of {size}");
        Self { n, size, rank }
    }

    /// `n` rows over the ranks of `comm`. Not collective, O(1).
    pub fn of(comm: &Communicator, n: usize) -> Self {
        Self::new(n, comm.size(), comm.rank())
    }

    /// Rows in all.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The rank that this partition is seen from.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// Rows per block; the last block may be shorter.
    pub fn block_len(&self) -> usize {
        block_len(self.n)
    }

    /// Blocks in all.
    pub fn blocks(&self) -> usize {
        self.n.div_ceil(self.block_len())
    }

    /// Blocks of `rank`. Counts of two ranks differ by at most one.
    ///
    /// # Panics
    /// If `rank >= size`.
    pub fn blocks_of(&self, rank: Rank) -> Range<usize> {
        assert!(rank < self.size, "rank {rank} of {}", self.size);
        let cut = |rank: usize| (rank as u128 * self.blocks() as u128 / self.size as u128) as usize;
        cut(rank)..cut(rank + 1)
    }

    /// Global rows of `rank`.
    ///
    /// # Panics
    /// If `rank >= size`.
    pub fn range_of(&self, rank: Rank) -> Range<usize> {
        let blocks = self.blocks_of(rank);
        (blocks.start * self.block_len()).min(self.n)..(blocks.end * self.block_len()).min(self.n)
    }

    /// Global rows of this rank.
    pub fn range(&self) -> Range<usize> {
        self.range_of(self.rank)
    }

    /// Number of rows of this rank.
    pub fn local_len(&self) -> usize {
        self.range().len()
    }

    /// Local row ranges of this rank's blocks, in order.
    pub fn local_blocks(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let (len, rows) = (self.block_len(), self.local_len());
        (0..rows).step_by(len).map(move |start| start..(start + len).min(rows))
    }

    /// The rank that owns `row`. O(1).
    ///
    /// # Panics
    /// If `row` is not below `n`.
    pub fn owner(&self, row: Global) -> Rank {
        assert!(row.0 < self.n, "row {} of {}", row.0, self.n);
        // Rank r starts at block floor(r blocks / size); the owner is the last rank that starts at or before it.
        let block = row.0 / self.block_len();
        (((block + 1) as u128 * self.size as u128).div_ceil(self.blocks() as u128) - 1) as usize
    }

    /// Local index of `row` if this rank owns it.
    pub fn to_local(&self, row: Global) -> Option<Local> {
        let range = self.range();
        range.contains(&row.0).then(|| Local(row.0 - range.start))
    }

    /// Global index of this rank's row `row`.
    ///
    /// # Panics
    /// If this rank has no such row.
    pub fn to_global(&self, row: Local) -> Global {
        let range = self.range();
        assert!(row.0 < range.len(), "local row {} of {}", row.0, range.len());
        Global(range.start + row.0)
    }

    /// Checks that `comm` has the rank and size of this partition.
    pub(crate) fn require(&self, comm: &Communicator) -> Result<(), LinalgError> {
        if (self.rank, self.size) == (comm.rank(), comm.size()) {
            return Ok(());
        }
        Err(LinalgError::WrongCommunicator {
            part_rank: self.rank,
            part_size: self.size,
            rank: comm.rank(),
            size: comm.size(),
        })
    }

    /// Checks that `values` has one element for each row of this rank.
    pub(crate) fn require_len(&self, what: &'static str, found: usize) -> Result<(), LinalgError> {
        let expected = self.local_len();
        if found == expected { Ok(()) } else { Err(LinalgError::Length { what, expected, found }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_len_is_a_power_of_two_near_a_64th() {
        for (n, len) in [
            (0, 32),
            (1, 32),
            (2047, 32),
            (4095, 32),
            (4096, 64),
            (4884, 64),
            (262_144, 4096),
            (1 << 40, 4096),
        ] {
            assert_eq!(block_len(n), len, "n = {n}");
        }
    }

    #[test]
    fn every_row_has_one_owner_and_cuts_lie_on_block_borders() {
        for n in (0..200).chain([494, 4884, 5000, 20_000]) {
            for size in 1..=9 {
                let part = Partition::new(n, size, 0);
                let mut next = 0;
                for rank in 0..size {
                    let range = part.range_of(rank);
                    assert_eq!(range.start, next);
                    assert!(range.start.is_multiple_of(part.block_len()) || range.start == n);
                    for row in range.clone() {
                        assert_eq!(part.owner(Global(row)), rank, "n = {n}, size = {size}, row = {row}");
                    }
                    next = range.end;
                }
                assert_eq!(next, n);
            }
        }
    }

    #[test]
    fn few_rows_leave_ranks_empty() {
        let part = Partition::new(40, 4, 1);
        let ranges: Vec<_> = (0..4).map(|rank| part.range_of(rank)).collect();
        assert_eq!(ranges, [0..0, 0..32, 32..32, 32..40]);
        assert!(part.local_blocks().eq(std::iter::once(0..32)));
    }

    #[test]
    fn indices_cross_both_ways() {
        let part = Partition::new(100, 2, 1);
        assert_eq!(part.range(), 64..100);
        assert_eq!(part.to_local(Global(64)), Some(Local(0)));
        assert_eq!(part.to_local(Global(63)), None);
        assert_eq!(part.to_global(Local(35)), Global(99));
    }
}
