//! FGMRES(m): GMRES with a preconditioner that may be another one in each iteration, such as a solve of its own.
//!
//! ```text
//! until ||r|| is small:
//!     r = b - A x,  v_1 = r / ||r||
//!     for j = 1..m:
//!         z_j = M_j^-1 v_j,  w = A z_j
//!         v_{j+1} = w made orthogonal to v_1..v_j, and of norm 1; h_j says how
//!         y minimizes || ||r|| e_1 - H y ||, which is the norm of the residual
//!     x = x + Z y
//! ```
//!
//! Costs as GMRES, but that no preconditioner is applied at the end of a cycle, and that the state has `2 m + 2` vectors.
//!
//! Source: Saad: A flexible inner-outer preconditioned GMRES algorithm, SIAM J. Sci. Comput. 14, 1993, algorithm 2.2.

use ft_checkpoint::{Protect, Redistribute};
use ft_comm::Communicator;

use super::arnoldi::Arnoldi;
use super::cycle::{self, Cycle};
use super::{Beginning, Course, GmresOptions, Solver, Step, System, begin, residual_norm};
use crate::{LinalgError, MultiVector, Workspace};

/// FGMRES(m).
#[derive(Clone, Debug, Default, Protect, Redistribute)]
pub struct Fgmres {
    /// The approximation at the start of the cycle, and at the end of it all.
    #[protect(distributed)]
    x: Vec<f64>,
    /// The cycle.
    #[protect(nested, distributed)]
    arnoldi: Arnoldi,
    /// The preconditioned directions.
    #[protect(nested, distributed)]
    z: MultiVector,
    /// Iterations of a cycle.
    #[protect(constant, replicated)]
    restart: usize,
    /// Follows `||r||`.
    #[protect(nested, replicated)]
    course: Course,
}

impl Solver for Fgmres {
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
        let (part, restart) = (system.a.part(), options.restart.max(1));
        let (arnoldi, z) = (Arnoldi::new(part), MultiVector::zeros(part.clone(), 0));
        let mut fgmres = Self { x, arnoldi, z, restart, course };
        if fgmres.course.done().is_none() {
            fgmres.arnoldi.restart(&r, fgmres.course.progress().residual_norm);
        }
        Ok(fgmres)
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
    fn settle(&mut self, _: &System<'_>, _: &Communicator, _: &mut Workspace) -> Result<(), LinalgError> {
        self.z.add_to(&self.arnoldi.factors(), &mut self.x);
        self.z.clear();
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
        self.z.add_to(&self.arnoldi.factors(), &mut x);
        residual_norm(system.a, &x, system.b, comm, work)
    }
}

impl Cycle for Fgmres {
    fn product(
        &mut self,
        w: &mut [f64],
        system: &System<'_>,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        let mut z = work.take(self.x.len());
        system.m.apply(self.arnoldi.last(), &mut z, comm, work)?;
        system.a.apply(&z, w, comm, work)?;
        self.z.push(&z);
        work.give(z);
        Ok(())
    }

    fn parts(&mut self) -> (&mut Arnoldi, usize, &mut Course) {
        (&mut self.arnoldi, self.restart, &mut self.course)
    }
}
