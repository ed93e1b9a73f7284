//! How far from orthogonal a basis is whose vectors are mostly made orthogonal once.
//!
//! Nobody computes `V^T V`. What rounding makes of it is bounded as the vectors come: where `w` has `h` along the basis, and `rest`
//! is left of its norm, the new vector has along each old one
//!
//! ```text
//! |v_i^T v| <= (sum_j |v_i^T v_j - (i = j)| |h_j| + eps ||w||) / rest
//! ```
//!
//! Source: Simon: The Lanczos algorithm with partial reorthogonalization, Mathematics of Computation 42, 1984: a basis that is
//! orthogonal to half of the digits is as good as one to all of them, and once this is lost two vectors in a row are repaired.

use ft_checkpoint::{Protect, Redistribute};

/// Bounds of `V^T V - I`.
#[derive(Clone, Debug, Default, PartialEq, Protect, Redistribute)]
pub(super) struct Orthogonality {
    /// The upper triangle, column after column.
    #[protect(replicated)]
    lost: Vec<f64>,
    /// Columns.
    #[protect(replicated)]
    len: usize,
}

impl Orthogonality {
    /// What may be lost: the root of the precision.
    const LOST_MAX: f64 = 1.5e-8;

    /// Another basis begins.
    pub(super) fn clear(&mut self) {
        self.lost.clear();
        self.len = 0;
    }

    /// A vector that has been made orthogonal as well as can be.
    pub(super) fn push_exact(&mut self) {
        self.len += 1;
        self.lost.resize(self.lost.len() + self.len, f64::EPSILON);
    }

    /// A vector of which `factors` are taken once, after which `rest` of its norm `whole` is left, as the difference of their
    /// squares: false, and nothing, if too much would be lost.
    pub(super) fn push_once(&mut self, factors: &[f64], whole: f64, rest: f64) -> bool {
        let rounding = f64::EPSILON * whole;
        let along = |i: usize| {
            let lost = factors.iter().enumerate().map(|(j, h)| self.of(i, j) * h.abs());
            (lost.sum::<f64>() + rounding) / rest
        };
        let mut column: Vec<f64> = (0..self.len).map(along).collect();
        column.push(f64::EPSILON * (whole / rest).powi(2));
        // Not a number, where nothing is left, is too much.
        let is_enough = column.iter().all(|lost| *lost <= Self::LOST_MAX);
        if is_enough {
            self.len += 1;
            self.lost.extend(column);
        }
        is_enough
    }

    fn of(&self, i: usize, j: usize) -> f64 {
        let (row, col) = (i.min(j), i.max(j));
        self.lost[col * (col + 1) / 2 + row]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twice as much is taken as is left, from the last vector: a bit is lost each time, and the bits come back with one that is made
    /// orthogonal twice.
    #[test]
    fn bits_are_lost_one_by_one_and_come_back() {
        let mut basis = Orthogonality::default();
        basis.push_exact();
        let mut twice = Vec::new();
        for at in 1..60 {
            let mut factors = vec![0.0; at];
            factors[at - 1] = 2.0;
            if !basis.push_once(&factors, 5f64.sqrt(), 1.0) {
                twice.push(at);
                basis.push_exact();
            }
        }
        assert_eq!(twice, [25, 50]);
        assert!(!basis.push_once(&[0.0; 60], 1.0, 0.0), "nothing is left");
        assert!(!basis.push_once(&[0.0; 60], f64::NAN, f64::NAN), "not a number");
    }
}
