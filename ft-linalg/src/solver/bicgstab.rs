//! BiCGSTAB with a preconditioner from the right, for any `A`.
//!
//! ```text
//! r = b - A x,  r* = r,  rho = r*.r,  p = r
//! until ||r|| is small:
//!     y = M^-1 p,  v = A y
//!     alpha = rho / r*.v
//!     s = r - alpha v
//!     z = M^-1 s,  t = A z
//!     omega = t.s / t.t
//!     x = x + alpha y + omega z
//!     r = s - omega t
//!     beta = (r*.r / rho) (alpha / omega),  rho = r*.r
//!     p = r + beta (p - omega v)
//! ```
//!
//! Two products and three reductions per iteration, four vectors in the state, 184 bytes per row and iteration besides those
//! of the products. The residual does not fall steadily.
//!
//! Source: van der Vorst: Bi-CGSTAB: a fast and smoothly converging variant of Bi-CG for the solution of nonsymmetric linear
//! systems, SIAM J. Sci. Stat. Comput. 13, 1992.

use ft_checkpoint::{Protect, Redistribute};
use ft_comm::Communicator;

use super::{Beginning, Course, Solver, Step, System, begin, require};
use crate::dot::block_dot;
use crate::parallel::{blocks, elements};
use crate::stop::Quantity;
use crate::vector::axpy;
use crate::{LinalgError, StopCriteria, Sums, Workspace};

/// BiCGSTAB.
#[derive(Clone, Debug, Default, Protect, Redistribute)]
pub struct Bicgstab {
    #[protect(distributed)]
    x: Vec<f64>,
    /// Residual.
    #[protect(distributed)]
    r: Vec<f64>,
    /// Shadow residual `r*`.
    #[protect(constant, distributed)]
    shadow: Vec<f64>,
    /// Direction.
    #[protect(distributed)]
    p: Vec<f64>,
    /// `r* . r`.
    #[protect(replicated)]
    rho: f64,
    /// Follows `||r||`.
    #[protect(nested, replicated)]
    course: Course,
}

impl Solver for Bicgstab {
    type Options = StopCriteria;

    /// One product, two reductions.
    fn start(
        stop: &StopCriteria,
        system: &System<'_>,
        x: &[f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<Self, LinalgError> {
        let Beginning { x, r, course } = begin(stop, system, x, comm, work)?;
        let rho = course.progress().residual_norm.powi(2);
        Ok(Self { x, shadow: r.clone(), p: r.clone(), r, rho, course })
    }

    /// Two products, three reductions.
    fn step(
        &mut self,
        system: &System<'_>,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<Step, LinalgError> {
        require(system, &self.x, comm)?;
        if let Some(done) = self.course.done() {
            return Ok(done);
        }
        let (part, len) = (system.a.part(), self.x.len());
        let [mut y, mut v, mut z, mut t] = [(); 4].map(|()| work.take(len));
        let mut sums = vec![Sums::default(); part.blocks_of(part.rank()).len()];

        system.m.apply(&self.p, &mut y, comm, work)?;
        let shadow = &self.shadow;
        let sum = |rows: std::ops::Range<usize>, v: &[f64]| [block_dot(&shadow[rows], v), 0.0, 0.0, 0.0];
        system.a.apply_and_sum(&y, &mut v, &sum, &mut sums, comm, work)?;
        let [curvature] = work.sum(part, &sums, comm)?;
        if let Some(done) = self.course.need_nonzero(Quantity::ShadowCurvature, curvature) {
            return Ok(done);
        }
        let alpha = self.rho / curvature;

        // s, in the place of r
        axpy(-alpha, &v, &mut self.r);
        system.m.apply(&self.r, &mut z, comm, work)?;
        let s = &self.r;
        let sum = |rows: std::ops::Range<usize>, t: &[f64]| {
            let s = &s[rows];
            [block_dot(t, s), block_dot(t, t), block_dot(s, s), 0.0]
        };
        system.a.apply_and_sum(&z, &mut t, &sum, &mut sums, comm, work)?;
        let [ts, tt, ss] = work.sum(part, &sums, comm)?;
        axpy(alpha, &y, &mut self.x);
        if ss == 0.0 {
            // Half of the iteration was enough.
            return Ok(self.course.advance(0.0));
        }
        let omega = ts / tt;
        if let Some(done) = self.course.need_nonzero(Quantity::Smoothing, if tt > 0.0 { omega } else { tt }) {
            return Ok(done);
        }

        let shadow = &self.shadow;
        blocks(part, (&mut self.x[..], &mut self.r[..]), &mut sums, |rows, (x, r), sums| {
            axpy(omega, &z[rows.clone()], x);
            axpy(-omega, &t[rows.clone()], r);
            *sums = [block_dot(&shadow[rows], r), block_dot(r, r), 0.0, 0.0];
        });
        let [rho, rr] = work.sum(part, &sums, comm)?;
        let beta = rho / self.rho * (alpha / omega);
        self.rho = rho;
        let r = &self.r;
        elements(len, &mut self.p[..], |rows, p| {
            for ((p, r), v) in p.iter_mut().zip(&r[rows.clone()]).zip(&v[rows]) {
                *p = r + beta * (*p - omega * v);
            }
        });
        [y, v, z, t].into_iter().for_each(|vector| work.give(vector));
        Ok(match self.course.advance(rr.sqrt()) {
            Step::Continue => self.course.need_nonzero(Quantity::Shadow, rho).unwrap_or(Step::Continue),
            done => done,
        })
    }

    fn x(&self) -> &[f64] {
        &self.x
    }

    fn course(&self) -> &Course {
        &self.course
    }
}
