//! The Poisson problem with a multiple of 1 taken off, as in the Helmholtz equation: symmetric, and indefinite where the
//! shift is above the lowest eigenvalue.

use std::f64::consts::PI;
use std::ops::Range;

use super::grid::Grid;
use crate::{CsrRows, LinalgError};

/// `A - shift`, with `A` as in [`crate::Poisson`], on a grid of inner points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShiftedPoisson {
    grid: Grid,
    dimensions: usize,
    shift: f64,
}

impl ShiftedPoisson {
    /// On `nx * ny` points; eigenvalues before the shift are between 0 and 8.
    ///
    /// # Errors
    /// [`LinalgError::TooLarge`] above 2^40 points.
    pub fn new_2d(nx: usize, ny: usize, shift: f64) -> Result<Self, LinalgError> {
        Ok(Self { grid: Grid::new([nx, ny, 1])?, dimensions: 2, shift })
    }

    /// On `nx * ny * nz` points; eigenvalues before the shift are between 0 and 12.
    ///
    /// # Errors
    /// [`LinalgError::TooLarge`] above 2^40 points.
    pub fn new_3d(nx: usize, ny: usize, nz: usize, shift: f64) -> Result<Self, LinalgError> {
        Ok(Self { grid: Grid::new([nx, ny, nz])?, dimensions: 3, shift })
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
        let diagonal = 2.0 * self.dimensions as f64 - self.shift;
        self.grid.seven(range, [[-1.0; 2]; 3], |_| diagonal)
    }

    /// The eigenvalue of an eigenvector: `modes` has its half waves in each direction, from 1 up to the points there.
    pub fn eigenvalue(&self, modes: [usize; 3]) -> f64 {
        let one = |d: usize| 2.0 - 2.0 * (PI * modes[d] as f64 / (self.grid.shape()[d] as f64 + 1.0)).cos();
        (0..self.dimensions).map(one).sum::<f64>() - self.shift
    }

    /// Element `row` of that eigenvector, not normalized.
    pub fn eigenvector(&self, modes: [usize; 3], row: usize) -> f64 {
        let (at, shape) = (self.grid.point(row), self.grid.shape());
        let one = |d: usize| (PI * (modes[d] * (at[d] + 1)) as f64 / (shape[d] as f64 + 1.0)).sin();
        (0..self.dimensions).map(one).product()
    }
}
