//! Compressed sparse rows with global columns: how a rank's part of a matrix is built, checked and checkpointed.
//!
//! Products do not run on this form but on the renumbered one of [`crate::matrix`], which shares its row pointers
//! and values.

use std::ops::Range;

use ft_checkpoint::{Protect, Redistribute, Redistribution};
use ft_comm::CommError;
use nalgebra::DMatrix;

use crate::{Global, LinalgError, error::EntryFault, parallel};

/// Consecutive rows of a sparse matrix. Columns are global and strictly ascending within a row.
///
/// Entry `k` of row `i` is at `row_ptr[i] + k`. Stored entries may be zero.
#[derive(Clone, Debug, Default, PartialEq, Protect)]
pub struct CsrRows {
    #[protect(constant, private)]
    row_ptr: Vec<usize>,
    #[protect(constant, distributed)]
    cols: Vec<u64>,
    #[protect(constant, distributed)]
    vals: Vec<f64>,
}

impl CsrRows {
    /// Rows from their three arrays, for a matrix of `n_cols` columns. Not collective, O(nnz).
    ///
    /// # Errors
    /// [`LinalgError::BadRows`] unless `row_ptr` starts at 0, never falls and ends at the length of `cols` and of
    /// `vals`, and columns ascend strictly and are below `n_cols`.
    pub fn new(
        row_ptr: Vec<usize>,
        cols: Vec<u64>,
        vals: Vec<f64>,
        n_cols: usize,
    ) -> Result<Self, LinalgError> {
        let rows = Self { row_ptr, cols, vals };
        rows.check(n_cols)?;
        Ok(rows)
    }

    /// The conditions of [`CsrRows::new`]; also run on rows that come out of a checkpoint.
    pub(crate) fn check(&self, n_cols: usize) -> Result<(), LinalgError> {
        let bad = |row, what| Err(LinalgError::BadRows { row, what });
        if self.row_ptr.first() != Some(&0) {
            return bad(0, "row pointers do not start at 0");
        }
        if self.cols.len() != self.vals.len() || self.row_ptr.last() != Some(&self.cols.len()) {
            return bad(self.len(), "row pointers, columns and values differ in length");
        }
        // Falling pointers come first: `iter` below relies on it.
        if let Some(row) = self.row_ptr.windows(2).position(|pair| pair[0] > pair[1]) {
            return bad(row, "row pointer falls");
        }
        for (row, (cols, _)) in self.iter().enumerate() {
            if cols.windows(2).any(|pair| pair[0] >= pair[1]) {
                return bad(row, "columns do not ascend");
            }
            if cols.last().is_some_and(|&col| col >= n_cols as u64) {
                return bad(row, "column is outside the matrix");
            }
        }
        Ok(())
    }

    /// Rows from a function that appends the entries of one global row, columns ascending. For generators.
    /// Memory is set aside for `row_nnz` entries per row.
    pub(crate) fn build(
        range: Range<usize>,
        row_nnz: usize,
        mut row: impl FnMut(usize, &mut Vec<u64>, &mut Vec<f64>),
    ) -> Self {
        let mut rows = Self::with_capacity(range.len(), range.len() * row_nnz);
        for i in range {
            row(i, &mut rows.cols, &mut rows.vals);
            rows.end_row();
        }
        rows
    }

    /// So many rows, of which `piece` makes ranges on all threads; they take `operations` on elements together.
    pub(crate) fn in_pieces(
        len: usize,
        operations: usize,
        piece: impl Fn(Range<usize>) -> Self + Sync,
    ) -> Self {
        if !parallel::is_shared(operations) {
            return piece(0..len);
        }
        let count = parallel::pieces(len.max(1));
        let ranges = (0..count).map(|at| len * at / count..len * (at + 1) / count).collect();
        let pieces = parallel::map(operations, ranges, piece);
        let mut rows = Self::with_capacity(len, pieces.iter().map(Self::nnz).sum());
        pieces.iter().for_each(|piece| rows.append(piece, 0..piece.len()));
        rows
    }

    /// No rows yet; memory is set aside for so many, and so many entries. For [`CsrRows::push`].
    pub(crate) fn with_capacity(rows: usize, entries: usize) -> Self {
        let mut row_ptr = Vec::with_capacity(rows + 1);
        row_ptr.push(0);
        Self { row_ptr, cols: Vec::with_capacity(entries), vals: Vec::with_capacity(entries) }
    }

    /// Appends an entry to the row that [`CsrRows::end_row`] will end; columns ascend.
    pub(crate) fn push(&mut self, col: u64, val: f64) {
        self.cols.push(col);
        self.vals.push(val);
    }

    /// Ends a row.
    pub(crate) fn end_row(&mut self) {
        self.row_ptr.push(self.cols.len());
    }

    /// Appends the rows `range` of `other`.
    pub(crate) fn append(&mut self, other: &Self, range: Range<usize>) {
        for row in range {
            let (cols, vals) = other.row(row);
            self.cols.extend(cols);
            self.vals.extend(vals);
            self.end_row();
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.row_ptr.len().saturating_sub(1)
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of stored entries.
    pub fn nnz(&self) -> usize {
        self.cols.len()
    }

    /// Start of each row among the entries, and the end of the last one: `len() + 1` elements.
    pub fn row_ptr(&self) -> &[usize] {
        &self.row_ptr
    }

    /// Global columns of all entries, row by row.
    pub fn cols(&self) -> &[u64] {
        &self.cols
    }

    /// Values of all entries, row by row.
    pub fn vals(&self) -> &[f64] {
        &self.vals
    }

    /// Columns and values of row `i`.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, i: usize) -> (&[u64], &[f64]) {
        let entries = self.row_ptr[i]..self.row_ptr[i + 1];
        (&self.cols[entries.clone()], &self.vals[entries])
    }

    /// Columns and values row by row.
    pub fn iter(&self) -> impl Iterator<Item = (&[u64], &[f64])> {
        (0..self.len()).map(|i| self.row(i))
    }

    /// Diagonal entries of the rows, the first of which is global row `first`; 0 where none is stored.
    pub fn diagonal(&self, first: Global) -> Vec<f64> {
        let entry = |(i, (cols, vals)): (usize, (&[u64], &[f64]))| {
            cols.binary_search(&((first.0 + i) as u64)).map_or(0.0, |k| vals[k])
        };
        self.iter().enumerate().map(entry).collect()
    }

    /// The first entry that is no finite number. The rows are those of `first` and after it.
    pub(crate) fn fault(&self, first: Global) -> Option<EntryFault> {
        let entry = self.vals.iter().position(|val| !val.is_finite())?;
        let row = self.row_ptr.partition_point(|&start| start <= entry) - 1;
        let (row, col) = ((first.0 + row) as u64, self.cols[entry]);
        Some(EntryFault { row, col, value: self.vals[entry], inside: true })
    }

    /// All rows with all `n_cols` columns, for small matrices.
    pub fn to_dense(&self, n_cols: usize) -> DMatrix<f64> {
        let mut dense = DMatrix::zeros(self.len(), n_cols);
        for (row, (cols, vals)) in self.iter().enumerate() {
            cols.iter().zip(vals).for_each(|(&col, val)| dense[(row, col as usize)] = *val);
        }
        dense
    }

    /// `y = A x` with all of `x` at hand: the serial reference for [`crate::matrix`]. Never tuned.
    ///
    /// # Panics
    /// If `y` does not have one element per row, or `x` is shorter than a column index says.
    pub fn product_serial(&self, x: &[f64], y: &mut [f64]) {
        assert_eq!(y.len(), self.len());
        for (y, (cols, vals)) in y.iter_mut().zip(self.iter()) {
            *y = cols.iter().zip(vals).fold(0.0, |sum, (&col, val)| sum + val * x[col as usize]);
        }
    }
}

/// Any number of entries a row: rows move with all of theirs.
impl Redistribute for CsrRows {
    fn extent(&self) -> usize {
        self.len()
    }

    fn redistribute(parts: Vec<Self>, moves: &Redistribution<'_>) -> Result<Self, CommError> {
        let lengths = |rows: &Self| rows.row_ptr.windows(2).map(|pair| (pair[1] - pair[0]) as u64).collect();
        let lengths: Vec<Vec<u64>> = parts.iter().map(lengths).collect();
        let lengths = moves.run(&lengths.iter().map(|part| &part[..]).collect::<Vec<_>>(), 1)?;
        let mut row_ptr = vec![0];
        lengths.iter().for_each(|length| row_ptr.push(row_ptr[row_ptr.len() - 1] + *length as usize));
        let offsets: Vec<Vec<usize>> = parts.iter().map(|rows| rows.row_ptr.clone()).collect();
        let (cols, vals): (Vec<&[u64]>, Vec<&[f64]>) =
            parts.iter().map(|rows| (&rows.cols[..], &rows.vals[..])).unzip();
        let cols = moves.run_ragged(&cols, &offsets, &row_ptr)?;
        let vals = moves.run_ragged(&vals, &offsets, &row_ptr)?;
        Ok(Self { row_ptr, cols, vals })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_three_by_three_by_hand() {
        // [ 2 -1  0 ]
        // [-1  2 -1 ]
        // [ 0 -1  2 ]
        let vals = vec![2.0, -1.0, -1.0, 2.0, -1.0, -1.0, 2.0];
        let a = CsrRows::new(vec![0, 2, 5, 7], vec![0, 1, 0, 1, 2, 1, 2], vals, 3).unwrap();
        let mut y = [0.0; 3];
        a.product_serial(&[1.0, 2.0, 3.0], &mut y);
        assert_eq!(y, [0.0, 0.0, 4.0]);
        assert_eq!(a.diagonal(Global(0)), [2.0; 3]);
        assert_eq!(a.row(1), (&[0, 1, 2][..], &[-1.0, 2.0, -1.0][..]));
    }

    #[test]
    fn contradictions_are_named() {
        let what = |row_ptr: &[usize], cols: &[u64]| match CsrRows::new(
            row_ptr.to_vec(),
            cols.to_vec(),
            vec![1.0; cols.len()],
            3,
        ) {
            Err(LinalgError::BadRows { row, what }) => (row, what),
            other => panic!("{other:?}"),
        };
        assert_eq!(what(&[], &[]), (0, "row pointers do not start at 0"));
        assert_eq!(what(&[0, 1], &[0, 1]), (1, "row pointers, columns and values differ in length"));
        assert_eq!(what(&[0, 2, 1], &[0]), (1, "row pointer falls"));
        assert_eq!(what(&[0, 1, 3], &[0, 1, 1]), (1, "columns do not ascend"));
        assert_eq!(what(&[0, 1], &[3]), (0, "column is outside the matrix"));
    }
}
