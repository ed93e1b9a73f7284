//! How far from orthogonal a basis is whose vectors are mostly made orthogonal once.
//!
//! Nobody computes `V^T V`. What rounding makes of it is estimated as the vectors come: where `w` has `h` along the basis, and
//! `rest` is left of its norm, the new vector has along each old one
//!
//! ```text
//! v_i^T v   = (eps ||w|| - (E h)_i) / rest          where E = V^T V - I
//! v^T v - 1 = (eps ||w||^2 + h^T E h) / rest^2      as rest^2 = ||w||^2 - h^T h
//! ```
//!
//! The terms with `eps` stand for the rounding of this step, whose sign nobody knows; the others are what earlier ones have grown to.
//!
//! Source: Simon: The Lanczos algorithm with partial reorthogonalization, Mathematics of Computation 42, 1984: a basis that is
//! orthogonal to half of the digits is as good as one to all of them, and what is lost grows by such a recurrence.

use ft_checkpoint::{Protect, Redistribute};

/// An estimate of `V^T V - I`.
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
        let lost_of = |i: usize| factors.iter().enumerate().map(|(j, h)| self.of(i, j) * h).sum::<f64>();
        let lost: Vec<f64> = (0..self.len).map(lost_of).collect();
        let of_norm: f64 = lost.iter().zip(factors).map(|(lost, h)| lost * h).sum();
        let mut column: Vec<f64> = lost.iter().map(|lost| (f64::EPSILON * whole - lost) / rest).collect();
        column.push((f64::EPSILON * whole * whole + of_norm) / (rest * rest));
        // Not a number, where nothing is left, is too much.
        let is_enough = column.iter().all(|lost| lost.abs() <= Self::LOST_MAX);
        if is_enough {
            self.len += 1;
            self.lost.extend(column);
        }
        is_enough
    }

    /// The most that any two vectors have of each other.
    #[cfg(test)]
    pub(super) fn lost(&self) -> f64 {
        self.lost.iter().fold(0.0, |most, lost| lost.abs().max(most))
    }

    fn of(&self, i: usize, j: usize) -> f64 {
        let (row, col) = (i.min(j), i.max(j));
        self.lost[col * (col + 1) / 2 + row]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twice as much is taken as is left, from the last vector: two bits of its norm are lost each time, and come back with one that is made
    /// orthogonal twice.
    #[test]
    fn bits_are_lost_two_by_two_and_come_back() {
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
        assert_eq!(twice, [13, 26, 39, 52]);
        assert!(!basis.push_once(&[0.0; 60], 1.0, 0.0), "nothing is left");
        assert!(!basis.push_once(&[0.0; 60], f64::NAN, f64::NAN), "not a number");
    }
}
