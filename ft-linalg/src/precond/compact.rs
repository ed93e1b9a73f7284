//! Rows with 32-bit columns: what the loops of preconditioners run over.

use std::ops::Range;

use ft_comm::Communicator;

use super::fetch::Fetch;
use crate::parallel::{Cut, elements_of};
use crate::{CsrRows, LinalgError, Workspace};

/// Sparse rows. The order of columns in a row is the order in which they are added up.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Compact {
    row_ptr: Vec<usize>,
    cols: Vec<u32>,
    vals: Vec<f64>,
}

impl Compact {
    /// No rows yet.
    pub(super) fn new(rows: usize, entries: usize) -> Self {
        let mut row_ptr = Vec::with_capacity(rows + 1);
        row_ptr.push(0);
        Self { row_ptr, cols: Vec::with_capacity(entries), vals: Vec::with_capacity(entries) }
    }

    /// Adds an entry to the row under way.
    pub(super) fn push(&mut self, col: u32, val: f64) {
        self.cols.push(col);
        self.vals.push(val);
    }

    /// Ends the row under way.
    pub(super) fn end_row(&mut self) {
        self.row_ptr.push(self.cols.len());
    }

    pub(super) fn len(&self) -> usize {
        self.row_ptr.len() - 1
    }

    pub(super) fn nnz(&self) -> usize {
        self.cols.len()
    }

    #[inline(always)]
    pub(super) fn row(&self, row: usize) -> (&[u32], &[f64]) {
        let entries = self.row_ptr[row]..self.row_ptr[row + 1];
        (&self.cols[entries.clone()], &self.vals[entries])
    }

    pub(super) fn rows(&self) -> impl DoubleEndedIterator<Item = (&[u32], &[f64])> + ExactSizeIterator {
        self.row_ptr.windows(2).map(|pair| (&self.cols[pair[0]..pair[1]], &self.vals[pair[0]..pair[1]]))
    }

    /// The diagonal of a square one, columns ascending; 0 where nothing is stored.
    pub(super) fn diagonal(&self) -> Vec<f64> {
        let entry = |(i, (cols, vals)): (usize, (&[u32], &[f64]))| {
            cols.binary_search(&(i as u32)).map_or(0.0, |at| vals[at])
        };
        self.rows().enumerate().map(entry).collect()
    }

    /// The transpose of a square one, columns of each row *descending*.
    pub(super) fn transposed_descending(&self) -> Self {
        let mut row_ptr = vec![0; self.len() + 1];
        self.cols.iter().for_each(|&col| row_ptr[col as usize + 1] += 1);
        for row in 0..self.len() {
            row_ptr[row + 1] += row_ptr[row];
        }
        let mut next = row_ptr.clone();
        let (mut cols, mut vals) = (vec![0; self.nnz()], vec![0.0; self.nnz()]);
        for (row, (row_cols, row_vals)) in self.rows().enumerate().rev() {
            for (&col, &val) in row_cols.iter().zip(row_vals) {
                let at = &mut next[col as usize];
                (cols[*at], vals[*at]) = (row as u32, val);
                *at += 1;
            }
        }
        Self { row_ptr, cols, vals }
    }
}

/// Rows of a matrix whose columns are spread over the ranks by cuts, and what their product needs of others.
///
/// The product reads an *extended* vector: own elements, between those of lower and of higher ranks, so that a row is
/// one loop in ascending global column, and has the same bits wherever its elements are from.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) rows: Compact,
    pub(super) fetch: Fetch,
}

impl Spread {
    /// Collective, as [`Fetch::new`].
    pub(super) fn new(rows: &CsrRows, cuts: &[usize], comm: &Communicator) -> Result<Self, LinalgError> {
        let own = cuts[comm.rank()] as u64..cuts[comm.rank() + 1] as u64;
        let fetch = Fetch::new(cuts, outside(rows, &own), comm)?;
        let before = fetch.own().start;
        let mut compact = Compact::new(rows.len(), rows.nnz());
        for (cols, vals) in rows.iter() {
            for (&col, &val) in cols.iter().zip(vals) {
                let local = if own.contains(&col) {
                    before + (col - own.start) as usize
                } else {
                    let place = fetch.wanted().partition_point(|&wanted| wanted < col);
                    place + if col < own.start { 0 } else { fetch.own().len() }
                };
                compact.push(local as u32, val);
            }
            compact.end_row();
        }
        Ok(Self { rows: compact, fetch })
    }

    /// An extended vector with `own` in its place, and the elements of others; [`Workspace::give`] takes it back.
    pub(super) fn extended(
        &self,
        own: &[f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<Vec<f64>, LinalgError> {
        let mut extended = work.take(self.fetch.extended_len());
        extended[self.fetch.own()].copy_from_slice(own);
        self.fetch.fill(&mut extended, comm, work)?;
        Ok(extended)
    }

    /// The products of all rows with `extended`, on all threads: `write` gets a range of rows, their part of what is `written`,
    /// and the products.
    pub(super) fn each<C: Cut>(
        &self,
        extended: &[f64],
        written: C,
        write: impl Fn(Range<usize>, C, Products<'_>) + Sync,
    ) {
        let operations = self.rows.nnz() + 2 * self.rows.len();
        elements_of(operations, self.rows.len(), written, |range, written| {
            write(range, written, Products { rows: &self.rows, extended });
        });
    }
}

/// Products of rows with a vector, each formed when it is asked for.
#[derive(Clone, Copy)]
pub(super) struct Products<'a> {
    rows: &'a Compact,
    extended: &'a [f64],
}

impl Products<'_> {
    /// That of a row.
    #[inline(always)]
    pub(super) fn of(self, row: usize) -> f64 {
        let (cols, vals) = self.rows.row(row);
        cols.iter().zip(vals).fold(0.0, |sum, (&col, val)| sum + val * self.extended[col as usize])
    }
}

/// Columns of `rows` outside of `own`: ascending, each once.
pub(super) fn outside(rows: &CsrRows, own: &Range<u64>) -> Vec<u64> {
    let mut cols: Vec<u64> = rows.cols().iter().copied().filter(|col| !own.contains(col)).collect();
    cols.sort_unstable();
    cols.dedup();
    cols
}
