//! Rows of a grid with constant coefficients, not stored: whole lines at a time, as the rows of a run that have equal
//! values.

use std::sync::Arc;

use super::runs;

/// What the points of a grid are coupled to.
#[derive(Debug)]
pub(crate) struct Couplings {
    /// Points in each direction; the first varies fastest in the number of a point.
    pub(crate) points: [usize; 3],
    /// For each set of sides with further points, as [`Couplings::inside`] numbers them: offsets to points, ascending, and
    /// coefficients.
    pub(crate) lists: Vec<(Vec<i64>, Vec<f64>)>,
}

impl Couplings {
    /// One bit for each side of point `at` on which there is a further point.
    pub(crate) fn inside(&self, at: [usize; 3]) -> usize {
        (0..3).fold(0, |bits, d| {
            bits | usize::from(at[d] > 0) << (2 * d) | usize::from(at[d] + 1 < self.points[d]) << (2 * d + 1)
        })
    }
}

/// Consecutive rows of a grid.
#[derive(Clone, Debug)]
pub(crate) struct StencilRows {
    pub(crate) couplings: Arc<Couplings>,
    /// Number of the first point.
    pub(crate) first: usize,
    /// Place of an element in the vector that is read, minus the number of its point.
    pub(crate) base: i64,
}

impl StencilRows {
    /// `y = A x`.
    pub(super) fn product(&self, x: &[f64], y: &mut [f64]) {
        let [nx, ny, _] = self.couplings.points;
        let (mut row, mut rest) = (self.first, y);
        while !rest.is_empty() {
            let at = [row % nx, row / nx % ny, row / (nx * ny)];
            // All points of a line but the first and the last have the same neighbors.
            let alike = if at[0] == 0 { 1 } else { (nx - 1 - at[0]).max(1) };
            let y;
            (y, rest) = rest.split_at_mut(alike.min(rest.len()));
            let (offsets, coefficients) = &self.couplings.lists[self.couplings.inside(at)];
            runs::equal_rows((row as i64 + self.base) as usize, offsets, coefficients, x, y);
            row += y.len();
        }
    }
}
