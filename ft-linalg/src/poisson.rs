//! Model problems: the Laplacian on a grid with zero boundary values, by the 5-point and 7-point stencils.
//!
//! Grid point `(i, j, k)` is row `(k ny + j) nx + i`. The matrix is symmetric positive definite; it is not scaled
//! with the mesh width: 4 (or 6) on the diagonal, -1 for each neighbor. Each rank makes its own rows, nothing is
//! communicated.

use std::ops::Range;

use crate::{CsrRows, LinalgError};

/// A grid of `nx * ny * nz` inner points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Poisson {
    nx: usize,
    ny: usize,
    nz: usize,
    diagonal: u8,
}

impl Poisson {
    /// 5-point stencil on `nx * ny` points.
    ///
    /// # Errors
    /// [`LinalgError::TooLarge`] above 2^40 points.
    pub fn new_2d(nx: usize, ny: usize) -> Result<Self, LinalgError> {
        Self { nx, ny, nz: 1, diagonal: 4 }.checked()
    }

    /// 7-point stencil on `nx * ny * nz` points.
    ///
    /// # Errors
    /// [`LinalgError::TooLarge`] above 2^40 points.
    pub fn new_3d(nx: usize, ny: usize, nz: usize) -> Result<Self, LinalgError> {
        Self { nx, ny, nz, diagonal: 6 }.checked()
    }

    fn checked(self) -> Result<Self, LinalgError> {
        let wanted =
            [self.nx, self.ny, self.nz].into_iter().fold(1, |n: u128, k| n.saturating_mul(k as u128));
        if wanted <= 1 << 40 { Ok(self) } else { Err(LinalgError::TooLarge { what: "grid", wanted }) }
    }

    pub(crate) fn points(&self) -> [usize; 3] {
        [self.nx, self.ny, self.nz]
    }

    pub(crate) fn diagonal(&self) -> f64 {
        self.diagonal.into()
    }

    /// Rows of the matrix, one for each point.
    pub fn n(&self) -> usize {
        self.nx * self.ny * self.nz
    }

    /// The rows of `range`. O(range) time and memory, at most 7 entries per row.
    ///
    /// # Panics
    /// If `range` does not lie within `0..n`.
    pub fn rows(&self, range: Range<usize>) -> CsrRows {
        assert!(range.end <= self.n(), "rows {range:?} of {}", self.n());
        let (nx, ny, nz) = (self.nx, self.ny, self.nz);
        CsrRows::build(range, usize::from(self.diagonal) + 1, |row, cols, vals| {
            let (i, j, k) = (row % nx, row / nx % ny, row / (nx * ny));
            let entries = [
                (k > 0, row.wrapping_sub(nx * ny), -1.0),
                (j > 0, row.wrapping_sub(nx), -1.0),
                (i > 0, row.wrapping_sub(1), -1.0),
                (true, row, f64::from(self.diagonal)),
                (i + 1 < nx, row + 1, -1.0),
                (j + 1 < ny, row + nx, -1.0),
                (k + 1 < nz, row + nx * ny, -1.0),
            ];
            for (_, col, val) in entries.into_iter().filter(|(inside, ..)| *inside) {
                cols.push(col as u64);
                vals.push(val);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_by_two_by_hand() {
        let a = Poisson::new_2d(2, 2).unwrap().rows(0..4);
        let dense: Vec<Vec<f64>> = a
            .iter()
            .map(|(cols, vals)| {
                let mut row = vec![0.0; 4];
                cols.iter().zip(vals).for_each(|(&col, &val)| row[col as usize] = val);
                row
            })
            .collect();
        assert_eq!(
            dense,
            [[4.0, -1.0, -1.0, 0.0], [-1.0, 4.0, 0.0, -1.0], [-1.0, 0.0, 4.0, -1.0], [0.0, -1.0, -1.0, 4.0]]
        );
    }

    #[test]
    fn counts_of_the_published_size() {
        // n and nnz of the 7-point problem: 7 m^3 - 6 m^2.
        let grid = Poisson::new_3d(16, 16, 16).unwrap();
        assert_eq!(grid.n(), 4096);
        assert_eq!(grid.rows(0..4096).nnz(), 7 * 4096 - 6 * 256);
    }

    #[test]
    fn ranges_are_slices_of_the_whole() {
        let grid = Poisson::new_3d(3, 4, 5).unwrap();
        let whole = grid.rows(0..60);
        let part = grid.rows(17..43);
        assert!(part.check(60).is_ok());
        for i in 0..part.len() {
            assert_eq!(part.row(i), whole.row(17 + i));
        }
    }

    #[test]
    fn too_large_is_an_error() {
        let error = Poisson::new_3d(usize::MAX, usize::MAX, 2).unwrap_err();
        assert!(matches!(error, LinalgError::TooLarge { .. }));
        assert_eq!(Poisson::new_2d(0, 5).unwrap().rows(0..0).len(), 0);
    }
}
