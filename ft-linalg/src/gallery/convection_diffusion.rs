//! Heat that is carried along: `-laplace u + Pe w . grad u` on the unit square or cube with zero boundary values, by
//! central differences for what diffuses and upwind ones for what flows. Not symmetric; an M-matrix, whatever `Pe`.

use std::ops::Range;

use super::grid::Grid;
use crate::{CsrRows, LinalgError};

/// The flow, before it is multiplied by the Peclet number: oblique, so that no direction is without.
const WIND: [f64; 3] = [1.0, 0.5, 0.25];

/// Convection and diffusion on a grid. Rows are not scaled with the mesh width: one direction of diffusion is (-1, 2, -1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConvectionDiffusion {
    grid: Grid,
    /// Entries of the neighbors below and above in each direction.
    sides: [[f64; 2]; 3],
    diagonal: f64,
}

impl ConvectionDiffusion {
    /// On `nx * ny` inner points; `peclet` is how much faster flow is than diffusion, over the whole square.
    ///
    /// # Errors
    /// [`LinalgError::TooLarge`] above 2^40 points.
    pub fn new_2d(nx: usize, ny: usize, peclet: f64) -> Result<Self, LinalgError> {
        Self::new([nx, ny, 1], 2, peclet)
    }

    /// On `nx * ny * nz` inner points.
    ///
    /// # Errors
    /// [`LinalgError::TooLarge`] above 2^40 points.
    pub fn new_3d(nx: usize, ny: usize, nz: usize, peclet: f64) -> Result<Self, LinalgError> {
        Self::new([nx, ny, nz], 3, peclet)
    }

    fn new(shape: [usize; 3], dimensions: usize, peclet: f64) -> Result<Self, LinalgError> {
        // What flows in comes from below where the wind blows upwards.
        let side = |d: usize| {
            let flow = peclet * WIND[d] / (shape[d] as f64 + 1.0);
            [-1.0 - flow.max(0.0), -1.0 + flow.min(0.0)]
        };
        let sides = std::array::from_fn(side);
        let diagonal = sides[..dimensions].iter().map(|[below, above]| -(below + above)).sum();
        Ok(Self { grid: Grid::new(shape)?, sides, diagonal })
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
        self.grid.seven(range, self.sides, |_| self.diagonal)
    }
}
