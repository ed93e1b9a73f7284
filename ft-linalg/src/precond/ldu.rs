//! Solves with `M = (1 + L) D (1 + U)`: what incomplete factorizations and symmetric sweeps have in common.
//!
//! ```text
//! y = r - L y                    row by row, downwards
//! z = D^-1 y - U z               row by row, upwards
//! ```
//!
//! Triangles with a unit diagonal keep the division out of the chain from one row to the next, which then is one
//! multiplication and one subtraction. In each row the column that was computed last is read last. Cost: `2 nnz` flops,
//! 12 bytes of memory for each entry. Level scheduling is not worth it: domains are what runs at the same time.

use super::block::Solve;
use super::compact::Compact;

/// The three factors.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ldu {
    /// Strictly lower, columns ascending.
    pub(super) lower: Compact,
    /// Reciprocals of `D`.
    pub(super) reciprocals: Vec<f64>,
    /// Strictly upper, columns descending.
    pub(super) upper: Compact,
}

/// `start` minus the row times `z`. Long rows have four sums; the last entries, which depend on what has just been
/// computed, come last.
#[inline(always)]
fn minus_row((cols, vals): (&[u32], &[f64]), z: &[f64], start: f64) -> f64 {
    let (mut cols, mut vals, mut start) = (cols, vals, start);
    if cols.len() >= 8 {
        let long = (cols.len() - 4) / 4 * 4;
        let (head_cols, tail_cols) = cols.split_at(long);
        let (head_vals, tail_vals) = vals.split_at(long);
        let mut sums = [0.0; 4];
        let ((head_cols, _), (head_vals, _)) = (head_cols.as_chunks::<4>(), head_vals.as_chunks::<4>());
        for (cols, vals) in head_cols.iter().zip(head_vals) {
            for lane in 0..4 {
                sums[lane] += vals[lane] * z[cols[lane] as usize];
            }
        }
        start -= (sums[0] + sums[2]) + (sums[1] + sums[3]);
        (cols, vals) = (tail_cols, tail_vals);
    }
    cols.iter().zip(vals).fold(start, |sum, (&col, val)| sum - val * z[col as usize])
}

impl Solve for Ldu {
    fn solve(&self, r: &[f64], z: &mut [f64]) {
        for (i, row) in self.lower.rows().enumerate() {
            z[i] = minus_row(row, z, r[i]);
        }
        for ((i, row), reciprocal) in self.upper.rows().enumerate().zip(&self.reciprocals).rev() {
            z[i] = minus_row(row, z, z[i] * reciprocal);
        }
    }

    /// `M^T = (1 + U^T) D (1 + L^T)`, by columns.
    fn solve_transpose(&self, r: &[f64], z: &mut [f64]) {
        z.copy_from_slice(r);
        let spread = |z: &mut [f64], (cols, vals): (&[u32], &[f64]), value: f64| {
            cols.iter().zip(vals).for_each(|(&col, val)| z[col as usize] -= val * value);
        };
        for (i, row) in self.upper.rows().enumerate() {
            let value = z[i];
            spread(z, row, value);
        }
        z.iter_mut().zip(&self.reciprocals).for_each(|(z, reciprocal)| *z *= reciprocal);
        for (i, row) in self.lower.rows().enumerate().rev() {
            let value = z[i];
            spread(z, row, value);
        }
    }
}
