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

use std::ops::Range;

use ft_checkpoint::{Protect, Redistribute};
use ft_comm::Communicator;

use super::{Beginning, Course, Solver, Step, System, begin, require};
use crate::dot::block_dot;
use crate::parallel::blocks;
use crate::precond::Pointwise;
use crate::stop::Quantity;
use crate::vector::{axpy, xpby};
use crate::{LinalgError, StopCriteria, Sums, Workspace};

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
    /// Follows `||r||`.
    #[protect(nested, replicated)]
    course: Course,
}

impl Solver for Cg {
    type Options = StopCriteria;

    /// One product, three reductions. With `b = 0` the answer is 0, and the first step says so.
    fn start(
        stop: &StopCriteria,
        system: &System<'_>,
        x: &[f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<Self, LinalgError> {
        let Beginning { x, r, course } = begin(stop, system, x, comm, work)?;
        let mut cg = Self { p: vec![0.0; r.len()], x, r, rz: 0.0, course };
        if cg.course.done().is_none() {
            let mut z = work.take(cg.r.len());
            [cg.rz, _] = cg.precondition(system, &mut z, comm, work)?;
            cg.p.copy_from_slice(&z);
            work.give(z);
            let _ = cg.course.need_positive(Quantity::PreconditionedResidual, cg.rz);
        }
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
        if let Some(done) = self.course.done() {
            return Ok(done);
        }
        let part = system.a.part();
        let mut q = work.take(self.p.len());
        let mut sums: Vec<Sums> = vec![Sums::default(); part.blocks_of(part.rank()).len()];

        // q = A p, and p.q
        let p = &self.p;
        let curvature = |rows: Range<usize>, q: &[f64]| [block_dot(&p[rows], q), 0.0, 0.0, 0.0];
        system.a.apply_and_sum(p, &mut q, &curvature, &mut sums, comm, work)?;
        let [curvature] = work.sum(part, &sums, comm)?;
        if let Some(done) = self.course.need_positive(Quantity::Curvature, curvature) {
            return Ok(done);
        }
        let alpha = self.rz / curvature;

        // x = x + alpha p, r = r - alpha q, z = M^-1 r, and r.z with r.r
        let pointwise = system.m.pointwise();
        let mut z = work.take(if pointwise == Pointwise::Identity { 0 } else { q.len() });
        let p = &self.p;
        let advance = |rows: &Range<usize>, x: &mut [f64], r: &mut [f64]| {
            axpy(alpha, &p[rows.clone()], x);
            axpy(-alpha, &q[rows.clone()], r);
        };
        let (x, r) = (&mut self.x[..], &mut self.r[..]);
        match pointwise {
            Pointwise::Identity => blocks(part, (x, r), &mut sums, |rows, (x, r), sums| {
                advance(&rows, x, r);
                let rr = block_dot(r, r);
                *sums = [rr, rr, 0.0, 0.0];
            }),
            Pointwise::Scale(factors) => {
                blocks(part, (x, r, &mut z[..]), &mut sums, |rows, (x, r, z), sums| {
                    advance(&rows, x, r);
                    z.iter_mut().zip(&*r).zip(&factors[rows]).for_each(|((z, r), factor)| *z = r * factor);
                    *sums = [block_dot(r, z), block_dot(r, r), 0.0, 0.0];
                })
            }
            Pointwise::No => blocks(part, (x, r), &mut sums, |rows, (x, r), _| advance(&rows, x, r)),
        }
        let [rz, rr] = match pointwise {
            Pointwise::No => self.precondition(system, &mut z, comm, work)?,
            _ => work.sum(part, &sums, comm)?,
        };
        let beta = rz / self.rz;
        self.rz = rz;

        // p = z + beta p
        xpby(if pointwise == Pointwise::Identity { &self.r } else { &z }, beta, &mut self.p);
        work.give(q);
        work.give(z);
        Ok(match self.course.advance(rr.sqrt()) {
            Step::Continue => {
                self.course.need_positive(Quantity::PreconditionedResidual, rz).unwrap_or(Step::Continue)
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

impl Cg {
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
