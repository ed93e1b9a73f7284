//! Conjugate gradients, with or without a preconditioner, for symmetric positive definite `A`.
//!
//! ```text
//! r = b - A x,  z = M^-1 r,  p = z,  rz = r.z
//! until ||r|| is small:
//!     q = A p
//!     alpha = rz / p.q
//!     x = x + alpha p
//!     r = r - alpha q
//!     z = M^-1 r
//!     beta = r.z / rz,  rz = r.z
//!     p = z + beta p
//! ```
//!
//! Two reductions per iteration: `p.q`, then `r.z` together with `r.r`. The loop runs block by block (the blocks of
//! [`crate::partition`]), so that vectors are still in cache when the next line of the algorithm reads them; per row
//! and iteration, memory sees 72 bytes besides those of the product (without a preconditioner).
//!
//! Sources: Hestenes, Stiefel: Methods of conjugate gradients for solving linear systems, J. Research NBS 49, 1952;
//! Saad: Iterative Methods for Sparse Linear Systems, 2nd edition, SIAM, 2003, algorithm 9.1.

use ft_checkpoint::{Protect, Redistribute};
use ft_comm::Communicator;

use super::{Solver, Step, System, norm2, require, residual_of};
use crate::dot::block_dot;
use crate::precond::Pointwise;
use crate::stop::{Progress, Quantity};
use crate::vector::{axpy, xpby};
use crate::{LinalgError, StopCriteria, StopReason, Sums, Workspace};

/// Conjugate gradients. Vectors are local parts, one element for each own row.
#[derive(Clone, Debug, Default, Protect, Redistribute)]
pub struct Cg {
    /// Approximate solution.
    #[protect(distributed)]
    x: Vec<f64>,
    /// Residual `b - A x`, as the recurrence carries it.
    #[protect(distributed)]
    r: Vec<f64>,
    /// Search direction.
    #[protect(distributed)]
    p: Vec<f64>,
    /// `r . z` of the preconditioned residual `z`.
    #[protect(replicated)]
    rz: f64,
    /// `r . r`.
    #[protect(replicated)]
    rr: f64,
    /// `||b||`.
    #[protect(constant, replicated)]
    b_norm: f64,
    /// Finished iterations.
    #[protect(replicated)]
    iteration: u64,
    /// When to stop.
    #[protect(nested, replicated)]
    stop: StopCriteria,
}

impl Solver for Cg {
    type Options = StopCriteria;

    /// One product, two reductions. With `b = 0` the answer is 0, and the first step says so.
    fn start(
        stop: &StopCriteria,
        system: &System<'_>,
        x: &[f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<Self, LinalgError> {
        require(system, x, comm)?;
        let zero = || vec![0.0; system.b.len()];
        let b_norm = norm2(system.a.part(), system.b, comm)?;
        let mut cg = Self { x: zero(), r: zero(), p: zero(), b_norm, stop: *stop, ..Self::default() };
        if b_norm == 0.0 {
            return Ok(cg);
        }
        cg.x.copy_from_slice(x);
        residual_of(system.a, &cg.x, system.b, &mut cg.r, comm, work)?;
        let mut z = work.take(cg.r.len());
        [cg.rz, cg.rr] = cg.precondition(system, &mut z, comm, work)?;
        cg.p.copy_from_slice(&z);
        work.give(z);
        Ok(cg)
    }

    /// One product, two reductions.
    fn step(
        &mut self,
        system: &System<'_>,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<Step, LinalgError> {
        require(system, &self.x, comm)?;
        if let Some(reason) = self.reason_to_stop() {
            return Ok(Step::Done(reason));
        }
        let part = system.a.part();
        let mut q = work.take(self.p.len());
        let mut sums: Vec<Sums> = vec![Sums::default(); part.blocks_of(part.rank()).len()];

        // q = A p, and p.q
        let p = &self.p;
        let curvature = |rows: std::ops::Range<usize>, q: &[f64]| [block_dot(&p[rows], q), 0.0, 0.0, 0.0];
        system.a.apply_and_sum(p, &mut q, &curvature, &mut sums, comm, work)?;
        let [curvature] = work.sum(part, &sums, comm)?;
        if let Some(reason) = self.not_positive(Quantity::Curvature, curvature) {
            return Ok(Step::Done(reason));
        }
        let alpha = self.rz / curvature;

        // x = x + alpha p, r = r - alpha q, z = M^-1 r, and r.z with r.r
        let pointwise = system.m.pointwise();
        let mut z = work.take(if pointwise == Pointwise::Identity { 0 } else { q.len() });
        for (rows, sums) in part.local_blocks().zip(&mut sums) {
            let r = &mut self.r[rows.clone()];
            axpy(alpha, &self.p[rows.clone()], &mut self.x[rows.clone()]);
            axpy(-alpha, &q[rows.clone()], r);
            let rr = block_dot(r, r);
            let rz = match pointwise {
                Pointwise::Identity => rr,
                Pointwise::Scale(factors) => {
                    let z = &mut z[rows.clone()];
                    z.iter_mut().zip(&*r).zip(&factors[rows]).for_each(|((z, r), factor)| *z = r * factor);
                    block_dot(r, z)
                }
                Pointwise::No => continue,
            };
            *sums = [rz, rr, 0.0, 0.0];
        }
        let [rz, rr] = match pointwise {
            Pointwise::No => self.precondition(system, &mut z, comm, work)?,
            _ => work.sum(part, &sums, comm)?,
        };
        let beta = rz / self.rz;
        (self.rz, self.rr) = (rz, rr);
        self.iteration += 1;

        // p = z + beta p
        xpby(if pointwise == Pointwise::Identity { &self.r } else { &z }, beta, &mut self.p);
        work.give(q);
        work.give(z);
        Ok(self.reason_to_stop().map_or(Step::Continue, Step::Done))
    }

    fn x(&self) -> &[f64] {
        &self.x
    }

    fn progress(&self) -> Progress {
        Progress { iterations: self.iteration, residual_norm: self.rr.sqrt(), reference_norm: self.b_norm }
    }

    fn stop(&self) -> &StopCriteria {
        &self.stop
    }
}

impl Cg {
    /// Judged from the state alone, so that every rank says the same and a restored state says it again.
    fn reason_to_stop(&self) -> Option<StopReason> {
        self.stop
            .judge(self.iteration, self.rr.sqrt(), self.b_norm)
            .or_else(|| self.not_positive(Quantity::PreconditionedResidual, self.rz))
    }

    fn not_positive(&self, quantity: Quantity, value: f64) -> Option<StopReason> {
        let iterations = self.iteration;
        if !value.is_finite() {
            return Some(StopReason::Breakdown { iterations, quantity });
        }
        (value <= 0.0).then_some(StopReason::Indefinite { iterations, quantity, value })
    }

    /// `z = M^-1 r` over all rows, then `[r.z, r.r]`.
    fn precondition(
        &self,
        system: &System<'_>,
        z: &mut [f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<[f64; 2], LinalgError> {
        system.m.apply(&self.r, z, comm, work)?;
        work.dots(system.a.part(), [(&self.r, z), (&self.r, &self.r)], comm)
    }
}
