//! The matrix of HPCG: 26 on the diagonal, -1 for each of the up to 26 points around.
//!
//! Source: Dongarra, Heroux, Luszczek: HPCG benchmark, Tech. Rep. UT-EECS-15-736, 2015.

use std::ops::Range;

use super::grid::Grid;
use crate::{CsrRows, LinalgError};

/// The 27-point Laplacian on a grid of `nx * ny * nz` points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Laplacian27 {
    grid: Grid,
}

impl Laplacian27 {
    /// On `nx * ny * nz` points.
    ///
    /// # Errors
    /// [`LinalgError::TooLarge`] above 2^40 points.
    pub fn new(nx: usize, ny: usize, nz: usize) -> Result<Self, LinalgError> {
        Ok(Self { grid: Grid::new([nx, ny, nz])? })
    }

    pub(crate) fn points(&self) -> [usize; 3] {
        self.grid.shape()
    }

    /// Rows of the matrix.
    pub fn n(&self) -> usize {
        self.grid.n()
    }

    /// The rows of `range`. O(range) time and memory.
    ///
    /// # Panics
    /// If `range` does not lie within `0..n`.
    pub fn rows(&self, range: Range<usize>) -> CsrRows {
        assert!(range.end <= self.n(), "rows {range:?} of {}", self.n());
        CsrRows::build(range, 27, |row, cols, vals| {
            for col in self.grid.around(row) {
                cols.push(col as u64);
                vals.push(if col == row { 26.0 } else { -1.0 });
            }
        })
    }

    /// Element `row` of the right-hand side whose solution is all ones.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn rhs(&self, row: usize) -> f64 {
        assert!(row < self.n(), "row {row} of {}", self.n());
        27.0 - self.grid.around(row).count() as f64
    }
}
