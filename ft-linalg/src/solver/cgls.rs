//! CGLS: conjugate gradients for the least-squares problem `min ||b - A x||`, with `A` of any shape and rank. Of all solutions
//! it finds, from `x = 0`, the shortest.
//!
//! ```text
//! r = b - A x,  s = A^T r,  p = s,  gamma = s.s
//! until ||s|| is small:
//!     q = A p
//!     alpha = gamma / q.q
//!     x = x + alpha p
//!     r = r - alpha q
//!     s = A^T r
//!     beta = s.s / gamma,  gamma = s.s
//!     p = s + beta p
//! ```
//!
//! The stopping rules look at `||A^T r||`, which is 0 at a solution, measured by `||A^T b||`. One product with `A`, one with its
//! transpose and two reductions per iteration; three vectors. No preconditioner is used.
//!
//! Sources: Hestenes, Stiefel: Methods of conjugate gradients for solving linear systems, J. Research NBS 49, 1952, section 10;
//! Bjorck: Numerical Methods for Least Squares Problems, SIAM, 1996, algorithm 7.4.1.

use ft_checkpoint::{Protect, Redistribute};
use ft_comm::Communicator;

use super::{Course, Solver, Step, System, least_squares, require};
use crate::stop::Quantity;
use crate::vector::{axpy, xpby};
use crate::{LinalgError, StopCriteria, Workspace};

/// CGLS.
#[derive(Clone, Debug, Default, Protect, Redistribute)]
pub struct Cgls {
    /// Approximation, spread as the columns.
    #[protect(distributed)]
    x: Vec<f64>,
    /// Direction, spread as the columns.
    #[protect(distributed)]
    p: Vec<f64>,
    /// Residual, spread as the rows.
    #[protect(distributed)]
    r: Vec<f64>,
    /// `||A^T r||^2`.
    #[protect(replicated)]
    gamma: f64,
    /// Follows `||A^T r||`.
    #[protect(nested, replicated)]
    course: Course,
}

impl Solver for Cgls {
    type Options = StopCriteria;

    /// One product, two with the transpose, three reductions.
    fn start(
        stop: &StopCriteria,
        system: &System<'_>,
        x: &[f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<Self, LinalgError> {
        let least_squares::Beginning { x, r, s: p, course } =
            least_squares::begin(stop, system, x, comm, work)?;
        let gamma = course.progress().residual_norm.powi(2);
        Ok(Self { x, p, r, gamma, course })
    }

    /// Two products, two reductions.
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
        let (mut q, mut s) = (work.take(self.r.len()), work.take(self.x.len()));
        system.a.apply(&self.p, &mut q, comm, work)?;
        let [qq] = work.dots(system.a.part(), [(&q, &q)], comm)?;
        if let Some(done) = self.course.need_nonzero(Quantity::Curvature, qq) {
            return Ok(done);
        }
        let alpha = self.gamma / qq;
        axpy(alpha, &self.p, &mut self.x);
        axpy(-alpha, &q, &mut self.r);
        system.a.apply_transpose(&self.r, &mut s, comm, work)?;
        let [gamma] = work.dots(system.a.col_part(), [(&s, &s)], comm)?;
        xpby(&s, gamma / self.gamma, &mut self.p);
        self.gamma = gamma;
        work.give(q);
        work.give(s);
        Ok(self.course.advance(gamma.sqrt()))
    }

    fn x(&self) -> &[f64] {
        &self.x
    }

    fn course(&self) -> &Course {
        &self.course
    }

    /// `||A^T (b - A x)||`.
    fn true_norm(
        &self,
        system: &System<'_>,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<f64, LinalgError> {
        least_squares::norm(system, &self.x, comm, work)
    }

    fn relative_residual(
        &self,
        _: f64,
        system: &System<'_>,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<f64, LinalgError> {
        least_squares::relative_residual(system, &self.x, comm, work)
    }
}
