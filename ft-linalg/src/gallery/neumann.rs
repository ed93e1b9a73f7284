//! The Poisson problem without boundary values: what flows out of a point flows into its neighbors. Constants are in the
//! kernel, so a right-hand side has a solution only if its elements add up to 0, and then many.

use std::f64::consts::PI;
use std::ops::Range;

use super::grid::Grid;
use crate::{CsrRows, LinalgError};

/// The Laplacian of a grid as a graph: symmetric, positive semidefinite, singular.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeumannPoisson {
    grid: Grid,
}

impl NeumannPoisson {
    /// On `nx * ny * nz` points; `nz` is 1 in the plane.
    ///
    /// # Errors
    /// [`LinalgError::TooLarge`] above 2^40 points.
    pub fn new(nx: usize, ny: usize, nz: usize) -> Result<Self, LinalgError> {
        Ok(Self { grid: Grid::new([nx, ny, nz])? })
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
        self.grid.seven(range, [[-1.0; 2]; 3], |neighbors| neighbors as f64)
    }

    /// The eigenvalue of an eigenvector: `modes` has its half waves in each direction, from 0 up to below the points there.
    /// It is 0 if there are none, for the constants.
    pub fn eigenvalue(&self, modes: [usize; 3]) -> f64 {
        let one = |d: usize| 2.0 - 2.0 * (PI * modes[d] as f64 / self.grid.shape()[d] as f64).cos();
        (0..3).map(one).sum()
    }

    /// Element `row` of that eigenvector, not normalized. A system with it on the right has the solution with all elements
    /// divided by the eigenvalue, and any constant may be added.
    pub fn eigenvector(&self, modes: [usize; 3], row: usize) -> f64 {
        let (at, shape) = (self.grid.point(row), self.grid.shape());
        let one = |d: usize| (PI * modes[d] as f64 * (at[d] as f64 + 0.5) / shape[d] as f64).cos();
        (0..3).map(one).product()
    }
}
