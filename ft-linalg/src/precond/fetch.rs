//! What a rank needs of others: elements of vectors at each use, rows of a matrix once.
//!
//! Rows are spread in ascending ranges, given by where each rank's begin (*cuts*). The plan is made once, collectively.

use std::ops::Range;

use ft_comm::{Communicator, Part, Rank, Tag};

use crate::{CsrRows, LinalgError, Workspace};

const TAG: Tag = 0x4c41_0011;

/// Which rows come from whom, and which go to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fetch {
    /// Own rows that others want, as local indices, by rank.
    given: Vec<u32>,
    /// Rows that this one wants; owners ascend.
    wanted: Vec<u64>,
    /// Messages out of `given` and into `wanted`.
    sends: Vec<Part>,
    recvs: Vec<Part>,
    /// How many of `wanted` are of lower ranks.
    before: usize,
    own: usize,
}

fn message(peer: Rank, range: Range<usize>) -> Part {
    Part { peer, tag: TAG, range }
}

impl Fetch {
    /// A plan by which this rank gets `wanted`, rows of others whose owners ascend. Collective: an allgather of `size`
    /// numbers per rank, one message for each pair that exchanges something.
    pub(super) fn new(cuts: &[usize], wanted: Vec<u64>, comm: &Communicator) -> Result<Self, LinalgError> {
        let (rank, size, n) = (comm.rank(), comm.size(), cuts[comm.size()]);
        if u32::try_from(n).is_err() {
            return Err(LinalgError::TooLarge { what: "matrix for this preconditioner", wanted: n as u128 });
        }
        let owner = |row: u64| cuts.partition_point(|&cut| cut as u64 <= row) - 1;
        let mut mine = vec![0u64; size];
        wanted.iter().for_each(|&row| mine[owner(row)] += 1);
        let mut counts = vec![0u64; size * size];
        comm.allgather(&mine, &mut counts)?;
        let messages = |count: &dyn Fn(Rank) -> u64| {
            let mut end = 0;
            let with = |peer: Rank| {
                let start = end;
                end += count(peer) as usize;
                (start < end).then(|| message(peer, start..end))
            };
            (0..size).filter_map(with).collect::<Vec<Part>>()
        };
        let recvs = messages(&|peer| mine[peer]);
        let sends = messages(&|peer| counts[peer * size + rank]);
        let mut asked = vec![0u64; sends.last().map_or(0, |part| part.range.end)];
        comm.exchange(&wanted, &recvs, &mut asked, &sends)?;
        let given = asked.iter().map(|row| (row - cuts[rank] as u64) as u32).collect();
        let before = mine[..rank].iter().sum::<u64>() as usize;
        Ok(Self { given, wanted, sends, recvs, before, own: cuts[rank + 1] - cuts[rank] })
    }

    /// The rows that come.
    pub(super) fn wanted(&self) -> &[u64] {
        &self.wanted
    }

    /// Own rows and those that come.
    pub(super) fn extended_len(&self) -> usize {
        self.own + self.wanted.len()
    }

    /// Where own rows lie between those of lower ranks and those of higher ones.
    pub(super) fn own(&self) -> Range<usize> {
        self.before..self.before + self.own
    }

    /// Fills an extended vector, in which own elements are at [`Fetch::own`], with those of others.
    pub(super) fn fill(
        &self,
        extended: &mut [f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        if self.sends.is_empty() && self.recvs.is_empty() {
            return Ok(());
        }
        let mut packed = work.take(self.given.len());
        let own = &extended[self.own()];
        packed.iter_mut().zip(&self.given).for_each(|(to, &row)| *to = own[row as usize]);
        let recvs: Vec<Part> = self.recvs.iter().map(|part| self.extended(part)).collect();
        comm.exchange(&packed, &self.sends, extended, &recvs)?;
        work.give(packed);
        Ok(())
    }

    fn extended(&self, part: &Part) -> Part {
        let shift = if part.range.start < self.before { 0 } else { self.own };
        message(part.peer, part.range.start + shift..part.range.end + shift)
    }

    /// The way back: elements of `extended` that came from others go there, and are added to `sums`, ranks ascending, with
    /// this rank's own turn, `own`, at its place among them. Collective.
    pub(super) fn give_back(
        &self,
        extended: &[f64],
        sums: &mut [f64],
        own: impl FnOnce(&mut [f64]),
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        let mut back = work.take(self.given.len());
        let sends: Vec<Part> = self.recvs.iter().map(|part| self.extended(part)).collect();
        comm.exchange(extended, &sends, &mut back, &self.sends)?;
        let lower = self.sends.iter().filter(|part| part.peer < comm.rank()).map(|part| part.range.len());
        let lower: usize = lower.sum();
        let rows = || self.given.iter().map(|&row| row as usize).zip(&back);
        rows().take(lower).for_each(|(row, value)| sums[row] += value);
        own(sums);
        rows().skip(lower).for_each(|(row, value)| sums[row] += value);
        work.give(back);
        Ok(())
    }

    /// The wanted rows of a matrix of which `rows` are this rank's. Collective: three messages for each pair.
    pub(super) fn rows(&self, rows: &CsrRows, comm: &Communicator) -> Result<CsrRows, LinalgError> {
        let given = || self.given.iter().map(|&row| rows.row(row as usize));
        let lengths: Vec<u64> = given().map(|(cols, _)| cols.len() as u64).collect();
        let mut row_lengths = vec![0u64; self.wanted.len()];
        comm.exchange(&lengths, &self.sends, &mut row_lengths, &self.recvs)?;
        let ends = |lengths: &[u64]| {
            let sum = |end: &mut usize, length: &u64| {
                *end += *length as usize;
                Some(*end)
            };
            std::iter::once(0).chain(lengths.iter().scan(0, sum)).collect::<Vec<usize>>()
        };
        let entries = |parts: &[Part], ends: &[usize]| {
            let entries = |part: &Part| message(part.peer, ends[part.range.start]..ends[part.range.end]);
            // A row may be empty; so may be all rows of a message, which then is none.
            parts.iter().map(entries).filter(|part| !part.range.is_empty()).collect::<Vec<Part>>()
        };
        let row_ptr = ends(&row_lengths);
        let (sends, recvs) = (entries(&self.sends, &ends(&lengths)), entries(&self.recvs, &row_ptr));
        let nnz = row_ptr[row_ptr.len() - 1];
        let (mut cols, mut vals) = (vec![0u64; nnz], vec![0f64; nnz]);
        let given_cols: Vec<u64> = given().flat_map(|(cols, _)| cols).copied().collect();
        comm.exchange(&given_cols, &sends, &mut cols, &recvs)?;
        let given_vals: Vec<f64> = given().flat_map(|(_, vals)| vals).copied().collect();
        comm.exchange(&given_vals, &sends, &mut vals, &recvs)?;
        CsrRows::new(row_ptr, cols, vals, usize::MAX)
    }
}
