//! Grids of points, numbered `(k ny + j) nx + i`, and stencils on them.

use std::ops::Range;

use crate::{CsrRows, LinalgError};

/// A grid of `shape[0] * shape[1] * shape[2]` points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    shape: [usize; 3],
}

impl Grid {
    /// # Errors
    /// [`LinalgError::TooLarge`] above 2^40 points.
    pub(super) fn new(shape: [usize; 3]) -> Result<Self, LinalgError> {
        let wanted = shape.into_iter().fold(1, |n: u128, k| n.saturating_mul(k as u128));
        if wanted <= 1 << 40 {
            Ok(Self { shape })
        } else {
            Err(LinalgError::TooLarge { what: "grid", wanted })
        }
    }

    pub(super) fn n(&self) -> usize {
        self.shape.iter().product()
    }

    pub(super) fn shape(&self) -> [usize; 3] {
        self.shape
    }

    /// Where point `row` is.
    pub(super) fn point(&self, row: usize) -> [usize; 3] {
        let [nx, ny, _] = self.shape;
        [row % nx, row / nx % ny, row / (nx * ny)]
    }

    /// Points at a distance of at most 1 in each direction, ascending, with the point itself.
    pub(super) fn around(&self, row: usize) -> impl Iterator<Item = usize> + use<> {
        let ([nx, ny, nz], [i, j, k]) = (self.shape, self.point(row));
        let near = |at: usize, n: usize| at.saturating_sub(1)..(at + 2).min(n);
        near(k, nz)
            .flat_map(move |k| near(j, ny).flat_map(move |j| near(i, nx).map(move |i| (k * ny + j) * nx + i)))
    }

    /// Rows of a stencil of at most seven points: `sides[d]` are the entries of the neighbors below and above in
    /// direction `d`; the diagonal follows from the number of neighbors.
    ///
    /// # Panics
    /// If `range` does not lie within `0..n`.
    pub(super) fn seven(
        &self,
        range: Range<usize>,
        sides: [[f64; 2]; 3],
        diagonal: impl Fn(usize) -> f64,
    ) -> CsrRows {
        assert!(range.end <= self.n(), "rows {range:?} of {}", self.n());
        let strides = [1, self.shape[0], self.shape[0] * self.shape[1]];
        CsrRows::build(range, 7, |row, cols, vals| {
            let at = self.point(row);
            let below = (0..3).rev().filter(|&d| at[d] > 0).map(|d| (row - strides[d], sides[d][0]));
            let above =
                (0..3).filter(|&d| at[d] + 1 < self.shape[d]).map(|d| (row + strides[d], sides[d][1]));
            let neighbors = below.clone().count() + above.clone().count();
            for (col, val) in below.chain([(row, diagonal(neighbors))]).chain(above) {
                cols.push(col as u64);
                vals.push(val);
            }
        })
    }
}
