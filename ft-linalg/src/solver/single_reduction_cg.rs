//! Conjugate gradients with one reduction per iteration, for many ranks; `A` and `M` symmetric positive definite.
//!
//! ```text
//! r = b - A x,  u = M^-1 r,  w = A u,  gamma = r.u,  alpha = gamma / w.u,  beta = 0
//! until ||r|| is small:
//!     p = u + beta p,  s = w + beta s            s = A p
//!     x = x + alpha p
//!     r = r - alpha s
//!     u = M^-1 r,  w = A u
//!     beta = r.u / gamma,  gamma = r.u
//!     alpha = gamma / (w.u - beta gamma / alpha)
//! ```
//!
//! One product and one reduction of three sums per iteration, against two reductions of [`super::Cg`]; two more vectors (six
//! in the state) and, per row and iteration, 120 bytes besides those of the product. `s` is a recurrence, so residuals drift
//! a little sooner.
//!
//! Source: Chronopoulos, Gear: s-step iterative methods for symmetric linear systems, J. Comput. Appl. Math. 25, 1989,
//! algorithm 3.1 with s = 1.

use ft_checkpoint::{Protect, Redistribute};
use ft_comm::Communicator;

use super::{Beginning, Course, Solver, Step, System, begin, require};
use crate::dot::block_dot;
use crate::parallel::blocks;
use crate::stop::Quantity;
use crate::vector::{axpy, xpby};
use crate::{LinalgError, StopCriteria, Sums, Workspace};

/// Conjugate gradients by Chronopoulos and Gear.
#[derive(Clone, Debug, Default, Protect, Redistribute)]
pub struct SingleReductionCg {
    #[protect(distributed)]
    x: Vec<f64>,
    /// Residual.
    #[protect(distributed)]
    r: Vec<f64>,
    /// Preconditioned residual.
    #[protect(distributed)]
    u: Vec<f64>,
    /// `A u`.
    #[protect(distributed)]
    w: Vec<f64>,
    /// Search direction.
    #[protect(distributed)]
    p: Vec<f64>,
    /// `A p`, by recurrence.
    #[protect(distributed)]
    s: Vec<f64>,
    /// `r . u`.
    #[protect(replicated)]
    gamma: f64,
    #[protect(replicated)]
    alpha: f64,
    #[protect(replicated)]
    beta: f64,
    /// Follows `||r||`.
    #[protect(nested, replicated)]
    course: Course,
}

impl Solver for SingleReductionCg {
    type Options = StopCriteria;

    /// Two products, three reductions.
    fn start(
        stop: &StopCriteria,
        system: &System<'_>,
        x: &[f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<Self, LinalgError> {
        let Beginning { x, r, course } = begin(stop, system, x, comm, work)?;
        let zero = || vec![0.0; r.len()];
        let (u, w, p, s) = (zero(), zero(), zero(), zero());
        let mut cg = Self { x, u, w, p, s, r, course, ..Self::default() };
        if cg.course.done().is_none() {
            let [gamma, curvature, _] = cg.multiply(system, comm, work)?;
            cg.gamma = gamma;
            let _ = cg.scale(gamma, curvature);
        }
        Ok(cg)
    }

    /// One product, one reduction.
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
        let (part, u, w, alpha, beta) = (system.a.part(), &self.u, &self.w, self.alpha, self.beta);
        let directions = (&mut self.p[..], &mut self.s[..]);
        let written = (directions, &mut self.x[..], &mut self.r[..]);
        blocks(part, written, &mut part.no_sums(), |rows, ((p, s), x, r), _| {
            xpby(&u[rows.clone()], beta, p);
            xpby(&w[rows], beta, s);
            axpy(alpha, p, x);
            axpy(-alpha, s, r);
        });
        let [gamma, curvature, rr] = self.multiply(system, comm, work)?;
        self.beta = gamma / self.gamma;
        self.gamma = gamma;
        Ok(match self.course.advance(rr.sqrt()) {
            Step::Continue => {
                self.scale(gamma, curvature - self.beta * gamma / self.alpha).unwrap_or(Step::Continue)
            }
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

impl SingleReductionCg {
    /// `u = M^-1 r`, `w = A u`, then `[r.u, w.u, r.r]`.
    fn multiply(
        &mut self,
        system: &System<'_>,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<[f64; 3], LinalgError> {
        let part = system.a.part();
        system.m.apply(&self.r, &mut self.u, comm, work)?;
        let (r, u) = (&self.r, &self.u);
        let mut sums = vec![Sums::default(); part.blocks_of(part.rank()).len()];
        let sum = |rows: std::ops::Range<usize>, w: &[f64]| {
            let (r, u) = (&r[rows.clone()], &u[rows]);
            [block_dot(r, u), block_dot(w, u), block_dot(r, r), 0.0]
        };
        system.a.apply_and_sum(u, &mut self.w, &sum, &mut sums, comm, work)?;
        work.sum(part, &sums, comm)
    }

    /// `alpha` from `gamma` and `p . A p`.
    fn scale(&mut self, gamma: f64, curvature: f64) -> Option<Step> {
        self.alpha = gamma / curvature;
        let course = &mut self.course;
        course
            .need_positive(Quantity::PreconditionedResidual, gamma)
            .or_else(|| course.need_positive(Quantity::Curvature, curvature))
    }
}
