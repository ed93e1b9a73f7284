//! A smooth curve through measurements: as few changes from point to point as possible, as close to the measured values
//! as possible. More rows than columns, of full rank; solution and residual are known.

use std::ops::Range;

use crate::{CsrRows, LinalgError};

/// `[1; w D]` with the differences `D` of neighbors: `2 n - 1` rows, `n` columns. Condition number up to
/// `sqrt(1 + 4 w^2)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeastSquares {
    n: usize,
    weight: f64,
}

impl LeastSquares {
    /// For `n` points, `weight` on smoothness.
    ///
    /// # Errors
    /// [`LinalgError::TooLarge`] above 2^40 points.
    pub fn new(n: usize, weight: f64) -> Result<Self, LinalgError> {
        if n > 1 << 40 {
            return Err(LinalgError::TooLarge { what: "grid", wanted: n as u128 });
        }
        Ok(Self { n, weight })
    }

    /// Rows of the matrix.
    pub fn n_rows(&self) -> usize {
        (2 * self.n).saturating_sub(1)
    }

    /// Columns of the matrix.
    pub fn n_cols(&self) -> usize {
        self.n
    }

    /// The rows of `range`. O(range) time and memory.
    ///
    /// # Panics
    /// If `range` does not lie within `0..n_rows`.
    pub fn rows(&self, range: Range<usize>) -> CsrRows {
        assert!(range.end <= self.n_rows(), "rows {range:?} of {}", self.n_rows());
        CsrRows::build(range, 2, |row, cols, vals| match row.checked_sub(self.n) {
            None => {
                cols.push(row as u64);
                vals.push(1.0);
            }
            Some(row) => {
                cols.extend([row as u64, row as u64 + 1]);
                vals.extend([-self.weight, self.weight]);
            }
        })
    }

    /// Element `col` of the solution of the system with [`LeastSquares::rhs`].
    pub fn solution(&self, col: usize) -> f64 {
        (col as f64 * 0.1).sin()
    }

    /// Element `row` of the residual at the solution, which no change of that can lessen: the transpose of the matrix
    /// makes 0 of it.
    pub fn residual(&self, row: usize) -> f64 {
        let rough = |k: usize| if k + 1 < self.n { (k as f64 * 0.7).cos() } else { 0.0 };
        match row.checked_sub(self.n) {
            Some(k) => rough(k),
            // What D^T makes of the rough part, turned round.
            None => self.weight * (rough(row) - if row > 0 { rough(row - 1) } else { 0.0 }),
        }
    }

    /// Element `row` of the right-hand side.
    pub fn rhs(&self, row: usize) -> f64 {
        let image = match row.checked_sub(self.n) {
            Some(k) => self.weight * (self.solution(k + 1) - self.solution(k)),
            None => self.solution(row),
        };
        image + self.residual(row)
    }
}
