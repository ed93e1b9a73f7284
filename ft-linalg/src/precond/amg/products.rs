//! Products of sparse matrices, each row by whoever owns it, summed in the order of its factor's columns.

use ft_comm::{Communicator, Part, Tag};

use crate::{CsrRows, LinalgError};

/// What an entry of the first factor takes, about, in operations on elements.
const OPERATIONS: usize = 10;

const TAG: Tag = 0x4c41_0012;

/// One row under way: sums by column.
struct Row {
    /// Where each column is among `entries`.
    place: Vec<u32>,
    entries: Vec<(u64, f64)>,
}

impl Row {
    const NOWHERE: u32 = u32::MAX;

    fn new(columns: usize) -> Self {
        Self { place: vec![Self::NOWHERE; columns], entries: Vec::new() }
    }

    #[inline(always)]
    fn add(&mut self, col: u64, val: f64) {
        let place = &mut self.place[col as usize];
        if *place == Self::NOWHERE {
            *place = self.entries.len() as u32;
            self.entries.push((col, val));
        } else {
            self.entries[*place as usize].1 += val;
        }
    }

    /// Moves the row out, columns ascending.
    fn finish(&mut self, cols: &mut Vec<u64>, vals: &mut Vec<f64>) {
        self.entries.sort_unstable_by_key(|&(col, _)| col);
        for (col, val) in self.entries.drain(..) {
            self.place[col as usize] = Self::NOWHERE;
            cols.push(col);
            vals.push(val);
        }
    }
}

/// Rows of a factor: those from a global row on, and those fetched from others with their ascending numbers.
#[derive(Clone, Copy)]
struct Factor<'a> {
    first: u64,
    own: &'a CsrRows,
    others: (&'a [u64], &'a CsrRows),
}

impl<'a> Factor<'a> {
    fn row(&self, row: u64) -> (&'a [u64], &'a [f64]) {
        match row.checked_sub(self.first).filter(|at| *at < self.own.len() as u64) {
            Some(at) => self.own.row(at as usize),
            None => self.others.1.row(self.others.0.partition_point(|&other| other < row)),
        }
    }

    /// Adds `scale` times a row of `a` times this to `sum`.
    fn add(&self, (cols, vals): (&[u64], &[f64]), scale: f64, sum: &mut Row) {
        for (&col, val) in cols.iter().zip(vals) {
            let (cols, vals) = self.row(col);
            let scaled = scale * val;
            cols.iter().zip(vals).for_each(|(&col, val)| sum.add(col, scaled * val));
        }
    }
}

/// `A B`, of which `own` and `others` have the rows; `B` has `columns` columns.
pub(super) fn product(
    a: &CsrRows,
    (first, own): (usize, &CsrRows),
    others: (&[u64], &CsrRows),
    columns: usize,
) -> CsrRows {
    let b = Factor { first: first as u64, own, others };
    CsrRows::in_pieces(a.len(), OPERATIONS * a.nnz(), |rows| {
        let mut sum = Row::new(columns);
        CsrRows::build(rows, 0, |i, cols, vals| {
            b.add(a.row(i), 1.0, &mut sum);
            sum.finish(cols, vals);
        })
    })
}

/// `T - scale D A T`, with the diagonal matrix `D`. `T` is as square in its blocks as `A` is: `first` is the first row of both.
pub(super) fn scaled_difference(
    t: &CsrRows,
    scale: f64,
    d: &[f64],
    a: &CsrRows,
    first: usize,
    others: (&[u64], &CsrRows),
    columns: usize,
) -> CsrRows {
    let factor = Factor { first: first as u64, own: t, others };
    CsrRows::in_pieces(a.len(), OPERATIONS * a.nnz(), |rows| {
        let mut sum = Row::new(columns);
        CsrRows::build(rows, 0, |i, cols, vals| {
            let (t_cols, t_vals) = t.row(i);
            t_cols.iter().zip(t_vals).for_each(|(&col, val)| sum.add(col, *val));
            factor.add(a.row(i), -scale * d[i], &mut sum);
            sum.finish(cols, vals);
        })
    })
}

/// The transpose: entries go to the owners of their columns, given by cuts. `rows` begin at global row `first`. Collective.
pub(super) fn transposed(
    rows: &CsrRows,
    first: usize,
    cuts: &[usize],
    comm: &Communicator,
) -> Result<CsrRows, LinalgError> {
    let (rank, size) = (comm.rank(), comm.size());
    // Entries by owner, as column, row and the bits of the value.
    let mut by_owner: Vec<Vec<u64>> = vec![Vec::new(); size];
    for (row, (cols, vals)) in rows.iter().enumerate() {
        for (&col, val) in cols.iter().zip(vals) {
            let own = (cuts[rank] as u64..cuts[rank + 1] as u64).contains(&col);
            let owner = if own { rank } else { cuts.partition_point(|&cut| cut as u64 <= col) - 1 };
            by_owner[owner].extend([col, (first + row) as u64, val.to_bits()]);
        }
    }
    let mine: Vec<u64> = by_owner.iter().map(|entries| entries.len() as u64).collect();
    let mut counts = vec![0u64; size * size];
    comm.allgather(&mine, &mut counts)?;
    let messages = |count: &dyn Fn(usize) -> u64| {
        let mut end = 0;
        let mut messages = Vec::new();
        for peer in (0..size).filter(|&peer| peer != rank && count(peer) > 0) {
            messages.push(Part { peer, tag: TAG, range: end..end + count(peer) as usize });
            end += count(peer) as usize;
        }
        (messages, end)
    };
    let ((sends, _), (recvs, incoming)) =
        (messages(&|peer| mine[peer]), messages(&|peer| counts[peer * size + rank]));
    let own = std::mem::take(&mut by_owner[rank]);
    let (out, mut incoming) = (by_owner.concat(), vec![0u64; incoming]);
    comm.exchange(&out, &sends, &mut incoming, &recvs)?;

    // In the order of ranks, which is that of rows.
    let lower = recvs.iter().filter(|part| part.peer < rank).map(|part| part.range.len()).sum();
    let (lower, higher) = incoming.split_at(lower);
    let entries = || [lower, &own[..], higher].into_iter().flat_map(|part| part.as_chunks::<3>().0);
    let start = cuts[rank];
    let mut row_ptr = vec![0usize; cuts[rank + 1] - start + 1];
    entries().for_each(|[col, ..]| row_ptr[*col as usize - start + 1] += 1);
    for row in 1..row_ptr.len() {
        row_ptr[row] += row_ptr[row - 1];
    }
    let (mut next, nnz) = (row_ptr.clone(), row_ptr[row_ptr.len() - 1]);
    let (mut cols, mut vals) = (vec![0u64; nnz], vec![0.0; nnz]);
    for [col, row, bits] in entries() {
        let at = &mut next[*col as usize - start];
        (cols[*at], vals[*at]) = (*row, f64::from_bits(*bits));
        *at += 1;
    }
    CsrRows::new(row_ptr, cols, vals, usize::MAX)
}
