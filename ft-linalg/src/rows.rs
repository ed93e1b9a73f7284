//! A sparse matrix of any shape as rows that are spread over the ranks: what is assembled, read, transposed, permuted and
//! written. A [`DistMatrix`] is made of it for products.

use std::ops::Range;

use ft_checkpoint::{Protect, Redistribute, Redistribution};
use ft_comm::{CommError, Communicator, Op};

use crate::{
    CsrRows, DistMatrix, Global, LinalgError, Partition, Permutation,
    error::{EntryFault, agree},
    partition::{block_len, blocks, weights_of_rows},
    triplets::{self, Triplet, triplet},
};

/// A matrix of `part().n()` rows and `n_cols()` columns, rows spread over the ranks. Constant data.
#[derive(Clone, Debug, Default, PartialEq, Protect)]
pub struct DistRows {
    #[protect(nested)]
    part: Partition,
    #[protect(constant, replicated)]
    n_cols: usize,
    #[protect(nested)]
    rows: CsrRows,
}

impl Redistribute for DistRows {
    fn extent(&self) -> usize {
        self.rows.len()
    }

    fn redistribute(parts: Vec<Self>, moves: &Redistribution<'_>) -> Result<Self, CommError> {
        let n_cols = moves.replicated(parts.iter().map(|part| part.n_cols).collect())?;
        let (parts, rows) = parts.into_iter().map(|rows| (rows.part, rows.rows)).unzip();
        let (part, rows) = (Partition::redistribute(parts, moves)?, CsrRows::redistribute(rows, moves)?);
        Ok(Self { part, n_cols, rows })
    }
}

impl DistRows {
    /// A matrix of `n_cols` columns from this rank's rows. Collective, O(nnz).
    ///
    /// # Errors
    /// On every rank when one rank's rows do not fit the partition or contradict themselves
    /// ([`LinalgError::Length`], [`LinalgError::BadRows`], [`LinalgError::WrongCommunicator`];
    /// [`LinalgError::OtherRank`] on the other ranks); [`LinalgError::NotFinite`]; [`LinalgError::Comm`].
    pub fn new(
        part: Partition,
        n_cols: usize,
        rows: CsrRows,
        comm: &Communicator,
    ) -> Result<Self, LinalgError> {
        let fits = part
            .require(comm)
            .and_then(|()| part.require_len("list of rows", rows.len()))
            .and_then(|()| rows.check(n_cols));
        agree(fits, comm)?;
        EntryFault::agree(rows.fault(Global(part.range().start)), part.n(), n_cols, comm)?;
        Ok(Self { part, n_cols, rows })
    }

    /// A matrix of `n_rows` x `n_cols` from a function that appends the entries of one row, columns in any order;
    /// entries of one place are added in the order in which they were appended. Cut by nonzeros.
    ///
    /// Collective. Every rank first makes an equal number of rows, to know what blocks weigh, and then those rows that
    /// the cut gives to it and that it has not made yet: the function is called again, and has to say the same. Memory is
    /// that of the rows; nothing is sent but an allreduce of a number for each block.
    ///
    /// # Errors
    /// [`LinalgError::OutsideMatrix`], [`LinalgError::NotFinite`], the first by rows, on every rank;
    /// [`LinalgError::Comm`].
    pub fn from_fn(
        n_rows: usize,
        n_cols: usize,
        comm: &Communicator,
        mut row: impl FnMut(usize, &mut Vec<(usize, f64)>),
    ) -> Result<Self, LinalgError> {
        let first = Partition::of(comm, n_rows).range();
        let (made, fault) = make(first.clone(), n_cols, &mut row);
        EntryFault::agree(fault, n_rows, n_cols, comm)?;
        let mut weights = weights_of_rows(n_rows, first.clone());
        for (i, (cols, _)) in made.iter().enumerate() {
            weights[(first.start + i) / block_len(n_rows)] += cols.len() as u64;
        }
        let part = Partition::weighed_together(comm, n_rows, weights)?;
        let range = part.range();
        if range == first {
            return Ok(Self { part, n_cols, rows: made });
        }
        let (start, end) = (range.start.max(first.start), range.end.min(first.end));
        let kept = if start < end { start..end } else { range.start..range.start };
        let (mut rows, _) = make(range.start..kept.start, n_cols, &mut row);
        if !kept.is_empty() {
            rows.append(&made, kept.start - first.start..kept.end - first.start);
        }
        drop(made);
        let (after, _) = make(kept.end..range.end, n_cols, &mut row);
        rows.append(&after, 0..after.len());
        Ok(Self { part, n_cols, rows })
    }

    /// A matrix of `n_rows` x `n_cols` from entries that any rank may have, each place once; cut by nonzeros.
    pub(crate) fn deal(
        n_rows: usize,
        n_cols: usize,
        entries: Vec<Triplet>,
        comm: &Communicator,
    ) -> Result<Self, LinalgError> {
        let part = weigh(n_rows, &entries, comm)?;
        Self::deal_to(part, n_cols, entries, comm)
    }

    /// As [`DistRows::deal`], cut as `part` says. Entries of one place are added in the order of keys, then of values.
    pub(crate) fn deal_to(
        part: Partition,
        n_cols: usize,
        entries: Vec<Triplet>,
        comm: &Communicator,
    ) -> Result<Self, LinalgError> {
        let (row_ptr, sorted) = triplets::by_row(triplets::to_owners(entries, &part, comm)?, &part);
        Ok(Self { rows: triplets::sum(&row_ptr, &sorted), part, n_cols })
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.part.n()
    }

    /// Number of columns.
    pub fn n_cols(&self) -> usize {
        self.n_cols
    }

    /// How rows are spread.
    pub fn part(&self) -> &Partition {
        &self.part
    }

    /// This rank's rows.
    pub fn rows(&self) -> &CsrRows {
        &self.rows
    }

    /// This rank's rows, without the rest.
    pub fn into_rows(self) -> CsrRows {
        self.rows
    }

    /// Stored entries of all ranks. Collective, an allreduce.
    ///
    /// # Errors
    /// [`LinalgError::Comm`].
    pub fn nnz(&self, comm: &Communicator) -> Result<u64, LinalgError> {
        let mut nnz = [self.rows.nnz() as u64];
        comm.allreduce(&mut nnz, Op::Sum)?;
        Ok(nnz[0])
    }

    /// The matrix for products. Collective, as [`DistMatrix::new`].
    ///
    /// # Errors
    /// [`LinalgError::NotSquare`]; as [`DistMatrix::new`].
    pub fn into_matrix(self, comm: &Communicator) -> Result<DistMatrix, LinalgError> {
        self.require_square()?;
        DistMatrix::new(self.part, self.rows, comm)
    }

    /// The rows of a matrix, which are copied. Not collective.
    pub fn of_matrix(a: &DistMatrix) -> Self {
        Self { part: a.part().clone(), n_cols: a.part().n(), rows: a.rows().clone() }
    }

    /// Checks that there are as many columns as rows and returns the number. Not collective.
    ///
    /// # Errors
    /// [`LinalgError::NotSquare`].
    pub fn require_square(&self) -> Result<usize, LinalgError> {
        let (rows, cols) = (self.n_rows(), self.n_cols);
        if rows == cols { Ok(rows) } else { Err(LinalgError::NotSquare { rows, cols }) }
    }

    /// Checks that a(i,j) and a(j,i) are equal up to rounding, for all i and j: they may differ by
    /// 1e-12 of the largest entry of both rows, as entries do that were added up in another order.
    /// A missing entry counts as 0. Collective; cost and memory are those of
    /// [`DistRows::transpose`], twice that if entries differ.
    ///
    /// # Errors
    /// [`LinalgError::NotSquare`], or [`LinalgError::NotSymmetric`] with the first pair, by rows, that differs, on every
    /// rank; [`LinalgError::Comm`].
    pub fn require_symmetric(&self, comm: &Communicator) -> Result<(), LinalgError> {
        self.require_square()?;
        let mirrored = self.transpose(comm)?;
        let mut differs = [u8::from(self.rows != mirrored.rows)];
        comm.allreduce(&mut differs, Op::Max)?;
        if differs == [0] {
            return Ok(());
        }
        // Each entry is compared in its mirror's row, to which it brings the largest entry of its
        // own row.
        let first = self.part.range().start;
        let largest: Vec<f64> = self.rows.iter().map(|(_, vals)| largest_of(vals)).collect();
        let brought = self.entries(|row, col, _| triplet(col, row, 0, largest[row - first]));
        let brought = Self::deal_to(self.part.clone(), self.n_rows(), brought, comm)?;
        let mut worst: Option<[u64; 4]> = None;
        for (i, (mirrors, brought)) in mirrored.rows.iter().zip(brought.rows.iter()).enumerate() {
            let (row, (cols, vals)) = ((first + i) as u64, self.rows.row(i));
            for ((&col, &mirror), &others) in mirrors.0.iter().zip(mirrors.1).zip(brought.1) {
                let value = cols.binary_search(&col).map_or(0.0, |at| vals[at]);
                if is_mirrored(value, mirror, largest[i].max(others)) {
                    continue;
                }
                let (value, mirror) = (value.to_bits(), mirror.to_bits());
                let pair = if row < col { [row, col, value, mirror] } else { [col, row, mirror, value] };
                worst = Some(worst.map_or(pair, |worst| worst.min(pair)));
            }
        }
        let none = [u64::MAX; 4];
        let mut all = vec![0; 4 * comm.size()];
        comm.allgather(&worst.unwrap_or(none), &mut all)?;
        let (all, _) = all.as_chunks::<4>();
        match all.iter().min().filter(|pair| **pair != none) {
            None => Ok(()),
            Some(&[row, col, value, mirrored]) => Err(LinalgError::NotSymmetric {
                row: row as usize,
                col: col as usize,
                value: f64::from_bits(value),
                mirrored: f64::from_bits(mirrored),
            }),
        }
    }

    /// The transpose of these rows, dealt out to the ranks. A square one has the rows cut as this one, another one by nonzeros. Collective; each entry is sent
    /// once as 32 bytes, and memory is 64 bytes an entry while it lasts.
    ///
    /// # Errors
    /// [`LinalgError::Comm`].
    pub fn transpose(&self, comm: &Communicator) -> Result<Self, LinalgError> {
        let entries = self.entries(|row, col, val| triplet(col, row, 0, val));
        if self.n_rows() == self.n_cols {
            return Self::deal_to(self.part.clone(), self.n_rows(), entries, comm);
        }
        Self::deal(self.n_cols, self.n_rows(), entries, comm)
    }

    /// The entries in `rows` and `cols`, which all ranks give alike: row `rows[i]` of this matrix is row `i` of the new
    /// one, and columns likewise, so that the order is theirs. Cut by nonzeros. Collective; each entry that stays is
    /// sent once, and every rank needs 16 bytes for each of the given indices.
    ///
    /// # Errors
    /// [`LinalgError::BadSelection`] with an index that the matrix has not, or that is given twice;
    /// [`LinalgError::Comm`].
    pub fn submatrix(
        &self,
        rows: &[usize],
        cols: &[usize],
        comm: &Communicator,
    ) -> Result<Self, LinalgError> {
        let new_row = Selection::new("row", rows, self.n_rows())?;
        let new_col = Selection::new("column", cols, self.n_cols)?;
        let first = self.part.range().start;
        let mut entries = Vec::new();
        for (i, (row_cols, vals)) in self.rows.iter().enumerate() {
            let Some(row) = new_row.place(first + i) else { continue };
            entries.extend(
                row_cols.iter().zip(vals).filter_map(|(&col, val)| {
                    new_col.place(col as usize).map(|col| triplet(row, col, 0, *val))
                }),
            );
        }
        Self::deal(rows.len(), cols.len(), entries, comm)
    }

    /// `P A Q^T`: row `i` goes to `rows.new_of(i)`, columns likewise. Cut by nonzeros. Collective; each entry is sent once.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when a permutation is of another length; [`LinalgError::Comm`].
    pub fn permuted(
        &self,
        rows: &Permutation,
        cols: &Permutation,
        comm: &Communicator,
    ) -> Result<Self, LinalgError> {
        rows.require_len(self.n_rows())?;
        cols.require_len(self.n_cols)?;
        let entries = self.entries(|row, col, val| triplet(rows.new_of(row), cols.new_of(col), 0, val));
        Self::deal(self.n_rows(), self.n_cols, entries, comm)
    }

    /// The largest distance of an entry from the diagonal; 0 without entries. Collective, an allreduce.
    ///
    /// # Errors
    /// [`LinalgError::Comm`].
    pub fn bandwidth(&self, comm: &Communicator) -> Result<u64, LinalgError> {
        let first = self.part.range().start;
        let distances = self
            .rows
            .iter()
            .enumerate()
            .flat_map(|(i, (cols, _))| cols.iter().map(move |&col| col.abs_diff((first + i) as u64)));
        let mut widest = [distances.max().unwrap_or(0)];
        comm.allreduce(&mut widest, Op::Max)?;
        Ok(widest[0])
    }

    /// What `entry` makes of each row, column and value of this rank.
    fn entries(&self, entry: impl Fn(usize, usize, f64) -> Triplet) -> Vec<Triplet> {
        let first = self.part.range().start;
        let mut entries = Vec::with_capacity(self.rows.nnz());
        for (i, (cols, vals)) in self.rows.iter().enumerate() {
            entries.extend(cols.iter().zip(vals).map(|(&col, &val)| entry(first + i, col as usize, val)));
        }
        entries
    }
}

/// The partition of `n` rows by rows and entries, which may be on any rank. Collective, an allreduce.
pub(crate) fn weigh(n: usize, entries: &[Triplet], comm: &Communicator) -> Result<Partition, LinalgError> {
    let mut weights = if comm.rank() == 0 { weights_of_rows(n, 0..n) } else { vec![0; blocks(n)] };
    let len = block_len(n) as u64;
    entries.iter().for_each(|entry| weights[(entry[0] / len) as usize] += 1);
    Partition::weighed_together(comm, n, weights)
}

/// The rows `range` from a function, and the first entry that cannot be; such entries are left out.
fn make(
    range: Range<usize>,
    n_cols: usize,
    row: &mut impl FnMut(usize, &mut Vec<(usize, f64)>),
) -> (CsrRows, Option<EntryFault>) {
    let (mut rows, mut fault, mut entries) = (CsrRows::with_capacity(range.len(), 0), None, Vec::new());
    for i in range {
        entries.clear();
        row(i, &mut entries);
        if !entries.is_sorted_by(|a, b| a.0 < b.0) {
            entries.sort_by_key(|(col, _)| *col);
        }
        for place in entries.chunk_by(|a, b| a.0 == b.0) {
            let (col, value) = place[1..].iter().fold(place[0], |(col, sum), (_, value)| (col, sum + value));
            let inside = col < n_cols;
            if fault.is_none() && !(inside && value.is_finite()) {
                fault = Some(EntryFault { row: i as u64, col: col as u64, value, inside });
            }
            rows.push(col as u64, value);
        }
        rows.end_row();
    }
    (rows, fault)
}

/// Entries that are each other's mirror may differ by this part of the largest entry of both rows.
const MIRRORED: f64 = 1e-12;

/// Returns `true` if two entries are each other's mirror up to rounding, where `largest` is the
/// largest modulus of an entry of both rows.
pub(crate) fn is_mirrored(value: f64, mirrored: f64, largest: f64) -> bool {
    value == mirrored || (value - mirrored).abs() <= MIRRORED * largest
}

/// Returns the largest modulus of `vals`.
pub(crate) fn largest_of(vals: &[f64]) -> f64 {
    vals.iter().fold(0.0, |most, val| val.abs().max(most))
}

/// Indices that are selected, with their new places, ascending.
struct Selection(Vec<(usize, usize)>);

impl Selection {
    fn new(what: &'static str, indices: &[usize], n: usize) -> Result<Self, LinalgError> {
        let mut places: Vec<_> = indices.iter().enumerate().map(|(new, old)| (*old, new)).collect();
        places.sort_unstable();
        let twice = places.windows(2).find(|pair| pair[0].0 == pair[1].0).map(|pair| pair[0].0);
        match places.last().map(|last| last.0).filter(|last| *last >= n).or(twice) {
            Some(index) => Err(LinalgError::BadSelection { what, index, n }),
            None => Ok(Self(places)),
        }
    }

    fn place(&self, index: usize) -> Option<usize> {
        self.0.binary_search_by_key(&index, |place| place.0).ok().map(|at| self.0[at].1)
    }
}

#[cfg(test)]
mod tests;
