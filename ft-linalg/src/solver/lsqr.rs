//! LSQR: the least-squares problem `min ||b - A x||` by Golub-Kahan bidiagonalization, with `A` of any shape and rank. In exact
//! arithmetic it is CGLS; on ill-conditioned problems it gets further.
//!
//! ```text
//! beta u = b - A x,  alpha v = A^T u,  w = v,  phi' = beta,  rho' = alpha       (u, v of norm 1)
//! until ||A^T r|| is small:
//!     beta u = A v - alpha u
//!     alpha v = A^T u - beta v
//!     rho = hypot(rho', beta),  c = rho' / rho,  s = beta / rho
//!     theta = s alpha,  rho' = -c alpha,  phi = c phi',  phi' = s phi'
//!     x = x + (phi / rho) w
//!     w = v - (theta / rho) w
//!     ||r|| = phi',  ||A^T r|| = phi' alpha |c|
//! ```
//!
//! The stopping rules look at `||A^T r||`, measured by `||A^T b||`. One product with `A`, one with its transpose and two
//! reductions per iteration; four vectors. No preconditioner is used.
//!
//! Source: Paige, Saunders: LSQR: an algorithm for sparse linear equations and sparse least squares, ACM Trans. Math. Software 8,
//! 1982, section 4.

use ft_checkpoint::{Protect, Redistribute};
use ft_comm::Communicator;

use super::{Course, Solver, Step, System, least_squares, norm2, require};
use crate::vector::{axpy, divide, xpby};
use crate::{LinalgError, Partition, StopCriteria, Workspace};

/// LSQR.
#[derive(Clone, Debug, Default, Protect, Redistribute)]
pub struct Lsqr {
    /// Approximation, spread as the columns.
    #[protect(distributed)]
    x: Vec<f64>,
    #[protect(distributed)]
    v: Vec<f64>,
    /// Direction.
    #[protect(distributed)]
    w: Vec<f64>,
    /// Spread as the rows.
    #[protect(distributed)]
    u: Vec<f64>,
    #[protect(replicated)]
    alpha: f64,
    #[protect(replicated)]
    phi: f64,
    #[protect(replicated)]
    rho: f64,
    /// Follows `||A^T r||`.
    #[protect(nested, replicated)]
    course: Course,
}

impl Lsqr {
    /// `||b - A x||`, as the recurrence carries it.
    pub fn residual_norm(&self) -> f64 {
        self.phi
    }
}

impl Solver for Lsqr {
    type Options = StopCriteria;

    /// One product, two with the transpose, five reductions.
    fn start(
        stop: &StopCriteria,
        system: &System<'_>,
        x: &[f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<Self, LinalgError> {
        let least_squares::Beginning { x, r: mut u, s: mut v, course } =
            least_squares::begin(stop, system, x, comm, work)?;
        let beta = normalize(system.a.part(), &mut u, comm)?;
        if beta > 0.0 {
            divide(&mut v, beta);
        }
        let alpha = normalize(system.a.col_part(), &mut v, comm)?;
        Ok(Self { x, w: v.clone(), v, u, alpha, phi: beta, rho: alpha, course })
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
        let (mut q, mut s) = (work.take(self.u.len()), work.take(self.v.len()));
        system.a.apply(&self.v, &mut q, comm, work)?;
        xpby(&q, -self.alpha, &mut self.u);
        let beta = normalize(system.a.part(), &mut self.u, comm)?;
        system.a.apply_transpose(&self.u, &mut s, comm, work)?;
        xpby(&s, -beta, &mut self.v);
        let alpha = normalize(system.a.col_part(), &mut self.v, comm)?;

        let rho = self.rho.hypot(beta);
        let (cos, sin) = (self.rho / rho, beta / rho);
        axpy(cos * self.phi / rho, &self.w, &mut self.x);
        xpby(&self.v, -sin * alpha / rho, &mut self.w);
        self.phi *= sin;
        (self.rho, self.alpha) = (-cos * alpha, alpha);
        work.give(q);
        work.give(s);
        Ok(self.course.advance(self.phi * alpha * cos.abs()))
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

/// Makes the norm of a vector 1, unless it is 0, and says what it was. Collective.
fn normalize(part: &Partition, vector: &mut [f64], comm: &Communicator) -> Result<f64, LinalgError> {
    let norm = norm2(part, vector, comm)?;
    if norm > 0.0 {
        divide(vector, norm);
    }
    Ok(norm)
}
