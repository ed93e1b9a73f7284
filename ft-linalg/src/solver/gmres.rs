//! GMRES(m) with a preconditioner from the right, for any `A`.
//!
//! ```text
//! until ||r|| is small:
//!     r = b - A x,  v_1 = r / ||r||
//!     for j = 1..m:
//!         w = A M^-1 v_j
//!         v_{j+1} = w made orthogonal to v_1..v_j, and of norm 1; h_j says how
//!         y minimizes || ||r|| e_1 - H y ||, which is the norm of the residual
//!     x = x + M^-1 V y
//! ```
//!
//! One iteration is one product and one reduction, or two where the basis would lose its orthogonality; the `j`-th of a cycle
//! reads the basis twice, or four times: 16 j or 32 j bytes per row. The end of a cycle, and of the solve, is one more product and
//! reduction: the residual from scratch. The state has `m + 2` vectors. A space that ends holds the answer, or the matrix is
//! singular.
//!
//! Sources: Saad, Schultz: GMRES: a generalized minimal residual algorithm for solving nonsymmetric linear systems, SIAM J. Sci.
//! Stat. Comput. 7, 1986; Saad: Iterative Methods for Sparse Linear Systems, 2nd edition, SIAM, 2003, algorithms 6.9 and 9.5.

use ft_checkpoint::{Protect, Redistribute};
use ft_comm::Communicator;

use super::arnoldi::Arnoldi;
use super::cycle::{self, Cycle};
use super::{Beginning, Course, Solver, Step, System, begin, residual_norm};
use crate::precond::Pointwise;
use crate::vector::axpy;
use crate::{LinalgError, StopCriteria, Workspace};

/// What GMRES and FGMRES leave open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GmresOptions {
    /// When to stop.
    pub stop: StopCriteria,
    /// Iterations of a cycle, at least 1: how many vectors the basis may have before it begins anew.
    pub restart: usize,
}

impl Default for GmresOptions {
    /// As PETSc: a restart after 30.
    fn default() -> Self {
        Self { stop: StopCriteria::DEFAULT, restart: 30 }
    }
}

/// GMRES(m).
#[derive(Clone, Debug, Default, Protect, Redistribute)]
pub struct Gmres {
    /// The approximation at the start of the cycle, and at the end of it all.
    #[protect(distributed)]
    x: Vec<f64>,
    /// The cycle.
    #[protect(nested, distributed)]
    arnoldi: Arnoldi,
    /// Iterations of a cycle.
    #[protect(constant, replicated)]
    restart: usize,
    /// Follows `||r||`.
    #[protect(nested, replicated)]
    course: Course,
}

impl Solver for Gmres {
    type Options = GmresOptions;

    /// One product, two reductions.
    fn start(
        options: &GmresOptions,
        system: &System<'_>,
        x: &[f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<Self, LinalgError> {
        let Beginning { x, r, course } = begin(&options.stop, system, x, comm, work)?;
        let mut gmres =
            Self { x, arnoldi: Arnoldi::new(system.a.part()), restart: options.restart.max(1), course };
        if gmres.course.done().is_none() {
            gmres.arnoldi.restart(&r, gmres.course.progress().residual_norm);
        }
        Ok(gmres)
    }

    /// One product, one reduction, rarely two; at the end of a cycle one more of each.
    fn step(
        &mut self,
        system: &System<'_>,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<Step, LinalgError> {
        cycle::step(self, system, comm, work)
    }

    fn x(&self) -> &[f64] {
        &self.x
    }

    fn course(&self) -> &Course {
        &self.course
    }

    /// Ends the cycle.
    fn settle(
        &mut self,
        system: &System<'_>,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        let mut x = std::mem::take(&mut self.x);
        self.correct(&mut x, system, comm, work)?;
        self.x = x;
        self.arnoldi.clear();
        Ok(())
    }

    fn true_norm(
        &self,
        system: &System<'_>,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<f64, LinalgError> {
        let mut x = self.x.clone();
        self.correct(&mut x, system, comm, work)?;
        residual_norm(system.a, &x, system.b, comm, work)
    }
}

impl Cycle for Gmres {
    fn product(
        &mut self,
        w: &mut [f64],
        system: &System<'_>,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        let v = self.arnoldi.last();
        if system.m.pointwise() == Pointwise::Identity {
            return system.a.apply(v, w, comm, work);
        }
        let mut z = work.take(v.len());
        system.m.apply(v, &mut z, comm, work)?;
        system.a.apply(&z, w, comm, work)?;
        work.give(z);
        Ok(())
    }

    fn parts(&mut self) -> (&mut Arnoldi, usize, &mut Course) {
        (&mut self.arnoldi, self.restart, &mut self.course)
    }
}

impl Gmres {
    /// `x = x + M^-1 V y`.
    fn correct(
        &self,
        x: &mut [f64],
        system: &System<'_>,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        if self.arnoldi.len() == 0 {
            return Ok(());
        }
        let (mut sum, mut z) = (work.take(x.len()), work.take(x.len()));
        sum.fill(0.0);
        self.arnoldi.basis().add_to(&self.arnoldi.factors(), &mut sum);
        system.m.apply(&sum, &mut z, comm, work)?;
        axpy(1.0, &z, x);
        work.give(sum);
        work.give(z);
        Ok(())
    }
}
