//! Richardson's iteration, for any `A` that `M` is near enough to. With [`crate::Jacobi`] it is the Jacobi iteration, with a
//! preconditioner of SSOR that of SSOR.
//!
//! ```text
//! r = b - A x
//! until ||r|| is small:
//!     x = x + omega M^-1 r
//!     r = b - A x
//! ```
//!
//! One product and one reduction per iteration, two vectors, 72 bytes per row and iteration besides those of the product. The
//! residual is always the true one. It converges if all eigenvalues of `1 - omega M^-1 A` are below 1.
//!
//! Sources: Richardson: The approximate arithmetical solution by finite differences of physical problems involving differential
//! equations, Phil. Trans. R. Soc. A 210, 1911; Saad: Iterative Methods for Sparse Linear Systems, 2nd edition, SIAM, 2003,
//! section 4.2.

use ft_checkpoint::{Protect, Redistribute};
use ft_comm::Communicator;

use super::{Beginning, Course, Solver, Step, System, begin, require};
use crate::dot::block_dot;
use crate::parallel::blocks;
use crate::vector::axpy;
use crate::{LinalgError, StopCriteria, Sums, Workspace};

/// What Richardson's iteration leaves open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RichardsonOptions {
    /// When to stop.
    pub stop: StopCriteria,
    /// How much of each correction is added.
    pub omega: f64,
}

impl Default for RichardsonOptions {
    /// All of it.
    fn default() -> Self {
        Self { stop: StopCriteria::DEFAULT, omega: 1.0 }
    }
}

/// Richardson's iteration.
#[derive(Clone, Debug, Default, Protect, Redistribute)]
pub struct Richardson {
    #[protect(distributed)]
    x: Vec<f64>,
    /// Residual.
    #[protect(distributed)]
    r: Vec<f64>,
    #[protect(constant, replicated)]
    omega: f64,
    /// Follows `||r||`.
    #[protect(nested, replicated)]
    course: Course,
}

impl Solver for Richardson {
    type Options = RichardsonOptions;

    /// One product, two reductions.
    fn start(
        options: &RichardsonOptions,
        system: &System<'_>,
        x: &[f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<Self, LinalgError> {
        let Beginning { x, r, course } = begin(&options.stop, system, x, comm, work)?;
        Ok(Self { x, r, omega: options.omega, course })
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
        let (part, b) = (system.a.part(), system.b);
        let mut z = work.take(b.len());
        system.m.apply(&self.r, &mut z, comm, work)?;
        axpy(self.omega, &z, &mut self.x);
        let mut sums = vec![Sums::default(); part.blocks_of(part.rank()).len()];
        system.a.apply(&self.x, &mut self.r, comm, work)?;
        blocks(part, &mut self.r[..], &mut sums, |rows, r, sums| {
            r.iter_mut().zip(&b[rows]).for_each(|(r, b)| *r = b - *r);
            *sums = [block_dot(r, r), 0.0, 0.0, 0.0];
        });
        let [rr] = work.sum(part, &sums, comm)?;
        work.give(z);
        Ok(self.course.advance(rr.sqrt()))
    }

    fn x(&self) -> &[f64] {
        &self.x
    }

    fn course(&self) -> &Course {
        &self.course
    }
}
