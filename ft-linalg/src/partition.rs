//! Who owns which row.
//!
//! Rows `0..n` are cut into blocks of equal length, and the blocks are dealt out in contiguous ranges. The length
//! of a block depends on `n` alone, so a block is never split between ranks, whatever their number: that is what
//! makes sums over rows independent of the number of ranks (see [`crate::dot`]). With fewer blocks than ranks
//! some ranks own nothing; every function here and above works with empty ranges.
//!
//! Where the cuts between ranks are is a matter of speed alone, and changes no bit of any answer: an equal number of
//! rows each ([`Partition::new`]), equal weights ([`Partition::weighed`]: matrices are cut so, by their nonzeros), or as
//! the caller says ([`Partition::given`]). Weights of blocks are kept, on every rank, so that the rows can be cut anew
//! when there are fewer ranks ([`Partition::on`]).

use std::ops::Range;
use std::sync::Arc;

use ft_checkpoint::{Field, Protect, ProtectError, Redistribute, Redistribution, Walk};
use ft_comm::{CommError, Communicator, Op, Rank};

use crate::LinalgError;

mod cut;

pub(crate) use cut::by_weight;

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

/// Blocks of `n` rows.
pub fn blocks(n: usize) -> usize {
    n.div_ceil(block_len(n))
}

/// What each block weighs by its rows alone, of the rows `range` of `n`; nonzeros are to be added. A row weighs as much
/// as a nonzero, for its elements of vectors.
pub(crate) fn weights_of_rows(n: usize, range: Range<usize>) -> Vec<u64> {
    let len = block_len(n);
    let rows = |block: usize| {
        let (start, end) = ((block * len).max(range.start), ((block + 1) * len).min(range.end));
        end.saturating_sub(start) as u64
    };
    (0..blocks(n)).map(rows).collect()
}

/// Rows `0..n` dealt out over `size` ranks, seen from one of them.
///
/// A clone shares the cuts: 8 bytes for each rank, and 8 for each block where blocks have weights.
///
/// The default, an empty problem on no rank, only waits to be restored from a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Protect)]
pub struct Partition {
    #[protect(constant, replicated)]
    cuts: Shared,
    #[protect(constant, private)]
    rank: Rank,
}

/// What all ranks know of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Field)]
struct Cuts {
    n: usize,
    /// The first block of each rank, and the number of blocks; empty if there is no rank.
    starts: Vec<usize>,
    /// What each block weighs; empty if all weigh the same.
    weights: Vec<u64>,
}

impl Cuts {
    fn is_sound(&self) -> bool {
        let blocks = blocks(self.n);
        let ends = match &self.starts[..] {
            [] => self.n == 0,
            starts => starts[0] == 0 && starts[starts.len() - 1] == blocks,
        };
        ends && self.starts.is_sorted() && [0, blocks].contains(&self.weights.len())
    }
}

/// The cuts, shared by all that is partitioned alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Shared(Arc<Cuts>);

impl Field for Shared {
    fn blank() -> Self {
        Self::default()
    }

    fn walk<W: Walk>(&mut self, walk: &mut W) -> Result<(), ProtectError> {
        let mut cuts = Cuts::clone(&self.0);
        cuts.walk(walk)?;
        if !cuts.is_sound() {
            return Err(walk.invalid("partition"));
        }
        if cuts != *self.0 {
            self.0 = Arc::new(cuts);
        }
        Ok(())
    }

    fn describe(text: &mut String) {
        Cuts::describe(text);
    }
}

/// The cuts are where `moves` has them, which has to be at borders of blocks. An allgather of a number a rank.
impl Redistribute for Partition {
    fn extent(&self) -> usize {
        self.local_len()
    }

    fn redistribute(parts: Vec<Self>, moves: &Redistribution<'_>) -> Result<Self, CommError> {
        let (old, comm, n) = (moves.replicated_state(parts)?, moves.comm(), moves.len());
        let mut starts = vec![0; comm.size() + 1];
        comm.allgather(&[moves.range().end], &mut starts[1..])?;
        let weights = if old.n() == n { old.cuts.0.weights.clone() } else { vec![] };
        Self::cut_at(n, &starts, weights, comm.rank())
            .map_err(|error| CommError::Count(format!("rows dealt out anew: {error}")))
    }
}

impl Partition {
    /// `n` rows over `size` ranks, seen from `rank`: numbers of blocks differ by one at most. Not collective, O(size).
    ///
    /// # Panics
    /// If `rank >= size`.
    pub fn new(n: usize, size: usize, rank: Rank) -> Self {
        Self::with(n, cut::equally(blocks(n), size), vec![], rank)
    }

    /// `n` rows over the ranks of `comm`, an equal number each. Not collective, O(size).
    pub fn of(comm: &Communicator, n: usize) -> Self {
        Self::new(n, comm.size(), comm.rank())
    }

    /// `n` rows over `size` ranks, seen from `rank`, such that the heaviest rank is as light as it can be; `weights` has
    /// what each block weighs. Of the cuts that are best in this sense it takes those that are nearest to equal
    /// weights. Not collective, O(size log(blocks) log(sum)).
    ///
    /// # Errors
    /// [`LinalgError::Length`] unless there is one weight for each block.
    ///
    /// # Panics
    /// If `rank >= size`.
    pub fn weighed(n: usize, weights: Vec<u64>, size: usize, rank: Rank) -> Result<Self, LinalgError> {
        if weights.len() != blocks(n) {
            let (expected, found) = (blocks(n), weights.len());
            return Err(LinalgError::Length { what: "list of weights", expected, found });
        }
        Ok(Self::with(n, cut::by_weight(&weights, size), weights, rank))
    }

    /// As [`Partition::weighed`] over the ranks of `comm`, where each rank knows a part of what each block weighs.
    /// Collective: an allreduce of a number for each block.
    ///
    /// # Errors
    /// As [`Partition::weighed`]; [`LinalgError::Comm`].
    pub fn weighed_together(
        comm: &Communicator,
        n: usize,
        mut weights: Vec<u64>,
    ) -> Result<Self, LinalgError> {
        comm.allreduce(&mut weights, Op::Sum)?;
        Self::weighed(n, weights, comm.size(), comm.rank())
    }

    /// `n` rows over as many ranks as there are `starts`, the first row of each rank, seen from `rank`. Every start is
    /// 0, `n`, or a multiple of [`block_len`]`(n)`. Not collective, O(size).
    ///
    /// # Errors
    /// [`LinalgError::BadCut`] with the first start that is not.
    ///
    /// # Panics
    /// If there are not more `starts` than `rank`.
    pub fn given(n: usize, starts: &[usize], rank: Rank) -> Result<Self, LinalgError> {
        let with_end: Vec<usize> = starts.iter().copied().chain([n]).collect();
        Self::cut_at(n, &with_end, vec![], rank)
    }

    /// The same rows over other ranks: cut by the same weights, or equally. Not collective, as [`Partition::weighed`].
    ///
    /// # Panics
    /// If `rank >= size`.
    pub fn on(&self, size: usize, rank: Rank) -> Self {
        let Cuts { n, weights, .. } = &*self.cuts.0;
        if weights.is_empty() {
            return Self::new(*n, size, rank);
        }
        Self::with(*n, cut::by_weight(weights, size), weights.clone(), rank)
    }

    /// The rows that stay together if all ranks have an equal number of such blocks ([`Partition::new`]); none if they are cut in another way.
    pub fn unit(&self) -> Option<usize> {
        let Cuts { n, starts, weights } = &*self.cuts.0;
        let is_equal = weights.is_empty() && *starts == cut::equally(blocks(*n), self.size());
        is_equal.then(|| block_len(*n))
    }

    /// How rows get from the ranks of a partition to those of `comm`, fewer of them, cut anew ([`Partition::on`]). The old
    /// ranks `held` have fallen to this rank; `old` is the partition as any of them had it. Collective: three short
    /// collectives; one more where nothing has fallen to some rank.
    ///
    /// # Errors
    /// A failure.
    pub fn moves<'a>(
        comm: &'a Communicator,
        old: Option<&Self>,
        held: Vec<Rank>,
    ) -> Result<Redistribution<'a>, LinalgError> {
        let mut knows = vec![0u8; comm.size()];
        comm.allgather(&[u8::from(old.is_some())], &mut knows)?;
        let old = match (old, knows.iter().position(|knows| *knows != 0)) {
            (_, Some(root)) if knows.contains(&0) => {
                let words = old.map(|old| (old.n(), old.cuts.0.starts.clone(), old.cuts.0.weights.clone()));
                let (n, starts, weights) = comm.bcast_value(words.as_ref(), root)?;
                Self::with(n, starts, weights, 0)
            }
            (Some(old), _) => old.clone(),
            (None, _) => Self::new(0, 1, 0),
        };
        let ranges = |part: &Self| (0..part.size()).map(|rank| part.range_of(rank)).collect();
        let new = old.on(comm.size(), comm.rank());
        Ok(Redistribution::new(comm, held, ranges(&old), ranges(&new))?)
    }

    /// `starts` are rows, with the number of rows at the end.
    fn cut_at(n: usize, starts: &[usize], weights: Vec<u64>, rank: Rank) -> Result<Self, LinalgError> {
        let len = block_len(n);
        let bad = |rank: Rank, what| Err(LinalgError::BadCut { rank, row: starts[rank], what });
        let mut last = 0;
        for (rank, &start) in starts.iter().enumerate() {
            if rank == 0 && start != 0 {
                return bad(rank, "rows start at 0");
            } else if start < last || start > n {
                return bad(rank, "cuts ascend, up to the number of rows");
            } else if start != n && !start.is_multiple_of(len) {
                return bad(rank, "cuts lie at borders of blocks");
            }
            last = start;
        }
        Ok(Self::with(n, starts.iter().map(|start| start.div_ceil(len)).collect(), weights, rank))
    }

    fn with(n: usize, starts: Vec<usize>, weights: Vec<u64>, rank: Rank) -> Self {
        let size = starts.len().saturating_sub(1);
        assert!(rank < size, "rank {rank} of {size}");
        Self { cuts: Shared(Arc::new(Cuts { n, starts, weights })), rank }
    }

    /// Rows in all.
    pub fn n(&self) -> usize {
        self.cuts.0.n
    }

    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.cuts.0.starts.len().saturating_sub(1)
    }

    /// The rank that this partition is seen from.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// What each block weighs; empty if rows were not cut by weights.
    pub fn weights(&self) -> &[u64] {
        &self.cuts.0.weights
    }

    /// Rows per block; the last block may be shorter.
    pub fn block_len(&self) -> usize {
        block_len(self.n())
    }

    /// Blocks in all.
    pub fn blocks(&self) -> usize {
        blocks(self.n())
    }

    /// Blocks of `rank`.
    ///
    /// # Panics
    /// If `rank >= size`.
    pub fn blocks_of(&self, rank: Rank) -> Range<usize> {
        assert!(rank < self.size(), "rank {rank} of {}", self.size());
        self.cuts.0.starts[rank]..self.cuts.0.starts[rank + 1]
    }

    /// Global rows of `rank`.
    ///
    /// # Panics
    /// If `rank >= size`.
    pub fn range_of(&self, rank: Rank) -> Range<usize> {
        let (blocks, n) = (self.blocks_of(rank), self.n());
        (blocks.start * self.block_len()).min(n)..(blocks.end * self.block_len()).min(n)
    }

    /// Global rows of this rank; none on no rank.
    pub fn range(&self) -> Range<usize> {
        if self.size() == 0 { 0..0 } else { self.range_of(self.rank) }
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

    /// What is summed over each of this rank's blocks where nothing is. It takes no memory.
    pub(crate) fn no_sums(&self) -> Vec<()> {
        vec![(); self.local_len().div_ceil(self.block_len())]
    }

    /// The rank that owns `row`. O(log size).
    ///
    /// # Panics
    /// If `row` is not below `n`.
    pub fn owner(&self, row: Global) -> Rank {
        assert!(row.0 < self.n(), "row {} of {}", row.0, self.n());
        let block = row.0 / self.block_len();
        self.cuts.0.starts[1..].partition_point(|&end| end <= block)
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
        if (self.rank, self.size()) == (comm.rank(), comm.size()) {
            return Ok(());
        }
        Err(LinalgError::WrongCommunicator {
            part_rank: self.rank,
            part_size: self.size(),
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
    use ft_checkpoint::{StatePart, load, save};

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
    fn weights_move_cuts_and_not_blocks() {
        let weights = [9, 1, 1, 1, 1, 1, 1, 1];
        let part = Partition::weighed(256, weights.to_vec(), 2, 0).unwrap();
        assert_eq!((part.range_of(0), part.range_of(1)), (0..32, 32..256));
        assert_eq!((part.owner(Global(31)), part.owner(Global(32))), (0, 1));
        assert_eq!(part.on(4, 3).range_of(0), 0..32);
        assert_eq!((part.on(1, 0).range(), part.on(1, 0).weights()), (0..256, &weights[..]));
        let short = Partition::weighed(256, vec![1; 7], 2, 0);
        assert!(matches!(short, Err(LinalgError::Length { expected: 8, found: 7, .. })));
    }

    #[test]
    fn cuts_of_the_caller_lie_at_borders() {
        let part = Partition::given(100, &[0, 0, 96, 100], 1).unwrap();
        let ranges: Vec<_> = (0..4).map(|rank| part.range_of(rank)).collect();
        assert_eq!(ranges, [0..0, 0..96, 96..100, 100..100]);
        assert_eq!([0, 95, 96, 99].map(|row| part.owner(Global(row))), [1, 1, 2, 2]);
        // Only an equal number of blocks each is a rule that others know.
        assert_eq!((part.unit(), Partition::new(100, 4, 1).unit()), (None, Some(32)));
        let weighed = Partition::weighed(100, vec![1, 1, 1, 9], 2, 0).unwrap();
        assert_eq!((weighed.range_of(0), weighed.unit()), (0..96, None));
        for (starts, at, why) in [
            (&[32, 64][..], 0, "rows start at 0"),
            (&[0, 64, 32], 2, "cuts ascend, up to the number of rows"),
            (&[0, 128], 1, "cuts ascend, up to the number of rows"),
            (&[0, 33], 1, "cuts lie at borders of blocks"),
        ] {
            let refused = Partition::given(100, starts, 0).unwrap_err();
            assert!(
                matches!(refused, LinalgError::BadCut { rank, what, .. } if (rank, what) == (at, why)),
                "{starts:?}"
            );
        }
    }

    #[test]
    fn a_checkpoint_has_the_cuts() {
        let mut part = Partition::weighed(100, vec![4, 1, 1, 1], 3, 2).unwrap();
        let mut shard = Vec::new();
        save(&mut part, StatePart::Constant, &mut shard).unwrap();
        let mut other = Partition::default();
        assert_eq!(other.range(), 0..0);
        load(&mut other, StatePart::Constant, &shard).unwrap();
        assert_eq!(other, part);
        // The second cut, after the rows, the number of cuts and the first one.
        shard[24..32].copy_from_slice(&9u64.to_ne_bytes());
        assert!(load(&mut other, StatePart::Constant, &shard).is_err());
    }

    #[test]
    fn closed_up_ranks_cut_by_the_same_weights() {
        let weights = |rank: usize| Partition::weighed(100, vec![4, 1, 1, 1], 3, rank).unwrap();
        // Of three ranks the one in the middle is lost, and fell to the first; or all fell to one.
        for fell in [[Some(0), Some(0), Some(1)], [Some(1), Some(1), Some(1)]] {
            ft_sim::ranks(2, |comm| {
                let held: Vec<Rank> = (0..3).filter(|old| fell[*old] == Some(comm.rank())).collect();
                let parts: Vec<Partition> = held.iter().map(|old| weights(*old)).collect();
                let moves = Partition::moves(comm, parts.first(), held).unwrap();
                let part = Partition::redistribute(parts, &moves).unwrap();
                assert_eq!(part, weights(0).on(2, comm.rank()));
                assert_eq!(part.range(), [0..32, 32..100][comm.rank()]);
            });
        }
        // Cuts within a block cannot be.
        ft_sim::ranks(2, |comm| {
            let (held, part) = (vec![comm.rank()], Partition::of(comm, 100));
            let moves = Redistribution::new(comm, held, vec![0..50, 50..100], vec![0..50, 50..100]).unwrap();
            assert!(matches!(Partition::redistribute(vec![part], &moves), Err(CommError::Count(_))));
        });
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
