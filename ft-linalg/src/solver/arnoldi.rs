//! The Arnoldi process, and the small least-squares problem that GMRES solves with it: `min ||norm e_1 - H y||`.
//!
//! ```text
//! v_1 = r / ||r||,  g = ||r|| e_1
//! for each product w = A z:
//!     w = w - V (V^T w), twice where V would lose too much of its orthogonality; h is what was taken off, and ||w|| below it
//!     v_next = w / ||w||
//!     rotate h by the rotations so far, and by a new one that makes its last element 0; rotate g by that
//!     |last element of g| = the norm of the residual
//! y = R^-1 g
//! ```

use ft_checkpoint::{Protect, Redistribute};
use ft_comm::Communicator;

use super::gram_schmidt::{Along, orthogonalize_on};
use super::orthogonality::Orthogonality;
use crate::vector::divide;
use crate::{LinalgError, MultiVector, Partition, Workspace};

#[derive(Clone, Debug, Default, PartialEq, Protect, Redistribute)]
pub(super) struct Arnoldi {
    /// The orthonormal basis.
    #[protect(nested, distributed)]
    basis: MultiVector,
    /// What rounding has made of it.
    #[protect(nested, distributed)]
    orthogonality: Orthogonality,
    /// The triangular matrix, column after column.
    #[protect(replicated)]
    r: Vec<f64>,
    /// Cosine and sine of each rotation.
    #[protect(replicated)]
    rotations: Vec<(f64, f64)>,
    /// The rotated right-hand side.
    #[protect(replicated)]
    g: Vec<f64>,
}

impl Arnoldi {
    /// Without a direction.
    pub(super) fn new(part: &Partition) -> Self {
        Self { basis: MultiVector::zeros(part.clone(), 0), ..Self::default() }
    }

    /// Begins with a residual of this norm.
    pub(super) fn restart(&mut self, residual: &[f64], norm: f64) {
        self.clear();
        self.orthogonality.push_exact();
        self.basis.push(residual);
        divide(self.basis.column_mut(0), norm);
        self.g.push(norm);
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.basis.clear();
        self.orthogonality.clear();
        self.r.clear();
        self.rotations.clear();
        self.g.clear();
    }

    /// The directions so far that are part of the answer.
    pub(super) fn len(&self) -> usize {
        self.rotations.len()
    }

    /// The norm of the residual that it began with: rotations do not change that of the right-hand side.
    pub(super) fn first_norm(&self) -> f64 {
        self.g.iter().fold(0.0, |norm, g| g.hypot(norm))
    }

    pub(super) fn basis(&self) -> &MultiVector {
        &self.basis
    }

    /// The vector to multiply next.
    pub(super) fn last(&self) -> &[f64] {
        self.basis.column(self.basis.columns() - 1)
    }

    /// Takes in the product `w`. Collective. The norm of the residual with one more direction; `None` if that direction is no
    /// use, because the space ends here and holds no answer.
    pub(super) fn extend(
        &mut self,
        w: &mut [f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<Option<f64>, LinalgError> {
        let (mut h, next) = self.push_direction(w, comm, work)?;
        let size = h.iter().fold(next, |size, h| size.max(h.abs()));
        for (at, (c, s)) in self.rotations.iter().enumerate() {
            (h[at], h[at + 1]) = (c * h[at] + s * h[at + 1], c * h[at + 1] - s * h[at]);
        }
        let last = h.len() - 1;
        let diagonal = h[last].hypot(next);
        if diagonal <= 10.0 * f64::EPSILON * size {
            return Ok(None);
        }
        let (c, s) = (h[last] / diagonal, next / diagonal);
        h[last] = diagonal;
        self.r.extend(h);
        let g = self.g[last];
        self.g[last] = c * g;
        self.g.push(-s * g);
        self.rotations.push((c, s));
        Ok(Some((s * g).abs()))
    }

    /// Appends the part of `w` that is orthogonal to the basis, with norm 1, if it is not 0; what `w` has along the basis, and the
    /// norm of that part.
    fn push_direction(
        &mut self,
        w: &mut [f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(Vec<f64>, f64), LinalgError> {
        let along = Along::of(&self.basis, w, comm, work)?;
        let (whole, left) = along.norms();
        if self.orthogonality.push_once(&along.factors, whole, left) {
            self.basis.push_rest(w, &along.factors, left);
            return Ok((along.factors, left));
        }
        let (taken, left) = orthogonalize_on(&self.basis, along, w, comm, work)?;
        if left > 0.0 {
            divide(w, left);
            self.basis.push(w);
            self.orthogonality.push_exact();
        }
        Ok((taken, left))
    }

    /// How much of each direction is in the answer.
    pub(super) fn factors(&self) -> Vec<f64> {
        let mut y = self.g[..self.len()].to_vec();
        for col in (0..y.len()).rev() {
            let r = &self.r[col * (col + 1) / 2..];
            y[col] /= r[col];
            for row in 0..col {
                y[row] -= r[row] * y[col];
            }
        }
        y
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The estimate of what is lost is that of `V^T V` but for a factor, and so less is lost than may be.
    #[test]
    fn what_is_lost_is_what_was_estimated() {
        let near = |row: usize, x: f64, _: f64| x * (1.0 + 0.24 * (row as f64).sin());
        let spread = |row: usize, x: f64, _: f64| x * (1 + row) as f64;
        let flow = |_: usize, x: f64, before: f64| 2.0 * x - 1.9 * before;
        let operators: [fn(usize, f64, f64) -> f64; 3] = [near, spread, flow];
        ft_sim::ranks(1, |comm| {
            let (part, mut work) = (Partition::of(comm, 2000), Workspace::default());
            for (which, operator) in operators.into_iter().enumerate() {
                let mut arnoldi = Arnoldi::new(&part);
                let first: Vec<f64> = part.range().map(|row| (row as f64 * 0.7).cos()).collect();
                let norm = first.iter().map(|x| x * x).sum::<f64>().sqrt();
                arnoldi.restart(&first, norm);
                for _ in 0..50 {
                    let v = arnoldi.last();
                    let product = |row: usize| operator(row, v[row], if row > 0 { v[row - 1] } else { 0.0 });
                    let mut w: Vec<f64> = part.range().map(product).collect();
                    arnoldi.extend(&mut w, comm, &mut work).unwrap().unwrap();
                }
                let (basis, columns) = (arnoldi.basis(), arnoldi.basis().columns());
                let gram = basis.dots(basis, comm).unwrap() - nalgebra::DMatrix::identity(columns, columns);
                let (lost, estimate) = (gram.amax(), arnoldi.orthogonality.lost());
                assert!(lost < 10.0 * estimate && lost < 1e-7, "{which}: {lost:e}, {estimate:e}");
            }
        });
    }
}
