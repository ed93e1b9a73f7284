//! A square sparse matrix whose rows are spread over the ranks, and its product with a vector.
//!
//! The product has two parts that a caller sees: the exchange of halo values ([`crate::halo`]), which communicates,
//! and the sums over rows, which do not. Every row is summed one entry after the other in ascending global column,
//! wherever the entry's vector element lives, so `y` has the same bits on any number of ranks.
//!
//! Locally, columns are renumbered to 32 bits: an own column counts from the first own row, a halo column from the
//! first halo value. Rows without halo columns run through one short loop; the others (boundary rows) are three
//! such loops one after the other, halo, own, halo.

use std::ops::Range;

use ft_checkpoint::{Protect, Redistribute, Redistribution};
use ft_comm::{CommError, Communicator};

use crate::{
    CsrRows, DistVector, Global, LinalgError, Partition,
    error::agree,
    halo::{Halo, HaloBuffers, HaloPlan},
    matrix_market::Coordinates,
    partition::{block_len, weights_of_rows},
};

/// A square matrix, rows spread over the ranks. The rows are constant data; the plan is derived from them.
#[derive(Clone, Debug, Default, Protect)]
pub struct DistMatrix {
    #[protect(nested)]
    part: Partition,
    #[protect(nested)]
    rows: CsrRows,
    #[protect(derived)]
    plan: Option<ProductPlan>,
}

/// The rows; [`DistMatrix::rebuild`] is to follow.
impl Redistribute for DistMatrix {
    fn extent(&self) -> usize {
        self.rows.extent()
    }

    fn redistribute(parts: Vec<Self>, moves: &Redistribution<'_>) -> Result<Self, CommError> {
        let (parts, rows) = parts.into_iter().map(|matrix| (matrix.part, matrix.rows)).unzip();
        let (part, rows) = (Partition::redistribute(parts, moves)?, CsrRows::redistribute(rows, moves)?);
        Ok(Self { part, rows, plan: None })
    }
}

/// Everything that is made from the rows by [`DistMatrix::rebuild`] and not checkpointed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProductPlan {
    halo: HaloPlan,
    /// Entries of each row. The product reads these 4 bytes per row rather than the 8 of a row pointer.
    row_nnz: Vec<u32>,
    /// For each entry: local row of an own column, or place of a halo value.
    cols: Vec<u32>,
    /// Rows with halo columns, ascending.
    boundary: Vec<BoundaryRow>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct BoundaryRow {
    row: usize,
    /// Entries of own columns; those before and after are halo columns.
    own: Range<usize>,
}

impl ProductPlan {
    /// Renumbers the columns of `rows` for the halo order of `halo`. Pure, O(nnz log halo).
    ///
    /// # Errors
    /// [`LinalgError::TooLarge`] when this rank has 2^32 or more rows and halo values.
    pub fn new(part: &Partition, rows: &CsrRows, halo: HaloPlan) -> Result<Self, LinalgError> {
        let own = part.range();
        let longest = own.len() + halo.cols().len();
        if u32::try_from(longest).is_err() {
            return Err(LinalgError::TooLarge { what: "local index range", wanted: longest as u128 });
        }
        let mut cols = Vec::with_capacity(rows.nnz());
        let mut boundary = Vec::new();
        for (row, (globals, _)) in rows.iter().enumerate() {
            let first = rows.row_ptr()[row];
            let before = globals.partition_point(|&col| (col as usize) < own.start);
            let after = globals.partition_point(|&col| (col as usize) < own.end);
            if before > 0 || after < globals.len() {
                boundary.push(BoundaryRow { row, own: first + before..first + after });
            }
            cols.extend(globals.iter().enumerate().map(|(k, &col)| {
                if (before..after).contains(&k) {
                    (col - own.start as u64) as u32
                } else {
                    // The halo holds every column that is not own: `needed_columns` collected them.
                    halo.cols().partition_point(|&needed| needed < col) as u32
                }
            }));
        }
        // A row has at most as many entries as there are own and halo columns, so its count fits too.
        let row_nnz = rows.row_ptr().windows(2).map(|pair| (pair[1] - pair[0]) as u32).collect();
        Ok(Self { halo, row_nnz, cols, boundary })
    }

    /// What the exchange before a product sends and receives.
    pub fn halo(&self) -> &HaloPlan {
        &self.halo
    }

    /// Number of rows that need halo values.
    pub fn boundary_rows(&self) -> usize {
        self.boundary.len()
    }

    /// `y = A x` for the local rows `range`; `y` has one element for each of them, `x` is the rank's whole part.
    /// Does not communicate; `2 nnz` flops.
    ///
    /// # Panics
    /// If lengths do not fit the rows and the plan.
    pub fn product(&self, rows: &CsrRows, range: Range<usize>, x: &[f64], halo: Halo<'_>, y: &mut [f64]) {
        assert_eq!(y.len(), range.len(), "length of y");
        assert_eq!(halo.0.len(), self.halo.cols().len(), "halo of another plan");
        let first_boundary = self.boundary.partition_point(|b| b.row < range.start);
        let last_boundary = self.boundary.partition_point(|b| b.row < range.end);
        let (offset, mut next) = (range.start, range.start);
        for boundary in &self.boundary[first_boundary..last_boundary] {
            let row = boundary.row;
            self.interior(rows, next..row, x, &mut y[next - offset..row - offset]);
            let (start, end) = (rows.row_ptr()[row], rows.row_ptr()[row + 1]);
            let sum = self.add(rows, start..boundary.own.start, halo.0, 0.0);
            let sum = self.add(rows, boundary.own.clone(), x, sum);
            y[row - offset] = self.add(rows, boundary.own.end..end, halo.0, sum);
            next = row + 1;
        }
        self.interior(rows, next..range.end, x, &mut y[next - offset..]);
    }

    /// Rows without halo columns.
    fn interior(&self, rows: &CsrRows, range: Range<usize>, x: &[f64], y: &mut [f64]) {
        let entries = rows.row_ptr()[range.start]..rows.row_ptr()[range.end];
        // Cutting rows off the front costs one comparison per row instead of four.
        let (mut cols, mut vals) = (&self.cols[entries.clone()], &rows.vals()[entries]);
        for (y, &nnz) in y.iter_mut().zip(&self.row_nnz[range]) {
            let (row_cols, row_vals);
            (row_cols, cols) = cols.split_at(nnz as usize);
            (row_vals, vals) = vals.split_at(nnz as usize);
            *y = sum_row(row_cols, row_vals, x, 0.0);
        }
    }

    /// `sum` plus the given entries times their elements of `x`.
    fn add(&self, rows: &CsrRows, entries: Range<usize>, x: &[f64], sum: f64) -> f64 {
        sum_row(&self.cols[entries.clone()], &rows.vals()[entries], x, sum)
    }
}

/// `sum` plus each value times its element of `x`, from left to right.
#[inline(always)]
fn sum_row(cols: &[u32], vals: &[f64], x: &[f64], sum: f64) -> f64 {
    cols.iter().zip(vals).fold(sum, |sum, (&col, val)| sum + val * x[col as usize])
}

impl DistMatrix {
    /// A matrix from this rank's rows. Collective; the cost is that of [`HaloPlan::build`].
    ///
    /// # Errors
    /// On every rank when one rank's rows do not fit the partition or contradict themselves
    /// ([`LinalgError::Length`], [`LinalgError::BadRows`], [`LinalgError::TooLarge`]; [`LinalgError::OtherRank`] on
    /// the other ranks); [`LinalgError::Comm`].
    pub fn new(part: Partition, rows: CsrRows, comm: &Communicator) -> Result<Self, LinalgError> {
        let mut matrix = Self { part, rows, plan: None };
        matrix.rebuild(comm)?;
        Ok(matrix)
    }

    /// A matrix from a list of its entries that every rank has, cut by nonzeros. Collective.
    ///
    /// # Errors
    /// As [`DistMatrix::new`], and [`LinalgError::NotSquare`].
    pub fn from_coordinates(entries: &Coordinates, comm: &Communicator) -> Result<Self, LinalgError> {
        let mine = entries.require_square().and_then(|n| {
            let mut weights = weights_of_rows(n, 0..n);
            let len = block_len(n);
            entries.entries().iter().for_each(|entry| weights[entry.row as usize / len] += 1);
            let part = Partition::weighed(n, weights, comm.size(), comm.rank())?;
            let rows = entries.to_rows(part.range())?;
            Ok((part, rows))
        });
        let (part, rows) = agree(mine, comm)?;
        Self::new(part, rows, comm)
    }

    /// Makes the derived part again, after a restore. Collective.
    ///
    /// # Errors
    /// As [`DistMatrix::new`]; the matrix then has no plan.
    pub fn rebuild(&mut self, comm: &Communicator) -> Result<(), LinalgError> {
        self.plan = None;
        let fits = self
            .part
            .require(comm)
            .and_then(|()| self.part.require_len("list of rows", self.rows.len()))
            .and_then(|()| self.rows.check(self.part.n()));
        agree(fits, comm)?;
        let halo = HaloPlan::build(&self.part, &self.rows, comm);
        if let Err(LinalgError::Comm(error)) = halo {
            return Err(error.into());
        }
        let plan = halo.and_then(|halo| ProductPlan::new(&self.part, &self.rows, halo));
        self.plan = Some(agree(plan, comm)?);
        Ok(())
    }

    /// How rows are spread.
    pub fn part(&self) -> &Partition {
        &self.part
    }

    /// This rank's rows.
    pub fn rows(&self) -> &CsrRows {
        &self.rows
    }

    /// The derived part.
    ///
    /// # Errors
    /// [`LinalgError::NotRebuilt`] after a restore without [`DistMatrix::rebuild`].
    pub fn plan(&self) -> Result<&ProductPlan, LinalgError> {
        self.plan.as_ref().ok_or(LinalgError::NotRebuilt)
    }

    /// This rank's diagonal entries, 0 where none is stored.
    pub fn diagonal(&self) -> Vec<f64> {
        self.rows.diagonal(Global(self.part.range().start))
    }

    /// `A x` with exchange and product in one, for code outside of loops. Collective.
    ///
    /// # Errors
    /// [`LinalgError::Comm`], [`LinalgError::NotRebuilt`], [`LinalgError::Length`].
    pub fn multiply(&self, x: &DistVector, comm: &Communicator) -> Result<DistVector, LinalgError> {
        self.part.require_len("vector", x.local().len())?;
        let plan = self.plan()?;
        let mut buffers = HaloBuffers::default();
        let halo = buffers.exchange(plan.halo(), x.local(), comm)?;
        let mut y = DistVector::zeros(self.part.clone());
        plan.product(&self.rows, 0..self.rows.len(), x.local(), halo, y.local_mut());
        Ok(y)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Poisson,
        halo::{by_owner, needed_columns},
    };

    /// `y = A x` as `size` ranks would form it, in one thread.
    fn product_on(size: usize, whole: &CsrRows, x: &[f64]) -> Vec<f64> {
        let part = |rank| Partition::new(x.len(), size, rank);
        let slice = |range: Range<usize>| {
            CsrRows::build(range, 0, |row, cols, vals| {
                cols.extend(whole.row(row).0);
                vals.extend(whole.row(row).1);
            })
        };
        let needed: Vec<_> =
            (0..size).map(|rank| needed_columns(&slice(part(rank).range()), &part(rank))).collect();
        let mut y = Vec::new();
        for rank in 0..size {
            let (part, rows) = (part(rank), slice(part(rank).range()));
            let mut requests = Vec::new();
            for (asker, cols) in needed.iter().enumerate() {
                let wanted = by_owner(cols, &part).into_iter().find(|(owner, _)| *owner == rank);
                requests.extend(wanted.map(|(_, wanted)| (asker, cols[wanted].to_vec())));
            }
            let halo = HaloPlan::assemble(&part, needed[rank].clone(), &requests).unwrap();
            let plan = ProductPlan::new(&part, &rows, halo).unwrap();
            let values: Vec<f64> = needed[rank].iter().map(|&col| x[col as usize]).collect();
            // In two pieces, as a blocked loop would.
            let (own, cut) = (&x[part.range()], rows.len() / 3);
            let mut mine = vec![f64::NAN; rows.len()];
            plan.product(&rows, 0..cut, own, Halo(&values), &mut mine[..cut]);
            plan.product(&rows, cut..rows.len(), own, Halo(&values), &mut mine[cut..]);
            y.extend(mine);
        }
        y
    }

    #[test]
    fn a_matrix_without_its_plan_says_so() {
        let part = Partition::new(4, 1, 0);
        let rows = Poisson::new_2d(2, 2).unwrap().rows(0..4);
        let restored = DistMatrix { part, rows, plan: None };
        assert!(matches!(restored.plan(), Err(LinalgError::NotRebuilt)));
    }

    #[test]
    fn product_has_the_bits_of_the_serial_one_on_any_number_of_ranks() {
        let x: Vec<f64> = (0..630).map(|i| 1.0 / (i as f64 + 0.3)).collect();
        let scattered = CsrRows::build(0..630, 0, |row, cols, vals| {
            for col in (0..630).filter(|col| col * col % 97 == row % 97 || *col == row) {
                cols.push(col as u64);
                vals.push(1.0 / (row + 2 * col + 1) as f64);
            }
        });
        for a in [Poisson::new_3d(9, 7, 10).unwrap().rows(0..630), scattered] {
            let mut y = vec![0.0; 630];
            a.product_serial(&x, &mut y);
            for size in 1..=8 {
                assert_eq!(product_on(size, &a, &x), y, "{size} ranks");
            }
        }
    }
}
