//! The cycles of GMRES and FGMRES.
//!
//! A cycle ends when its basis is full, or when the recurrence says that it is over. The residual is then computed from the answer,
//! for two reasons: the next cycle begins with it, and a basis that rounding has made less orthogonal may promise an answer that is
//! none. Where it did, a new cycle goes on; where that did not help, the solve has drifted.

use ft_comm::Communicator;

use super::arnoldi::Arnoldi;
use super::{Course, Solver, Step, System, require, residual_of};
use crate::stop::Quantity;
use crate::{LinalgError, StopReason, Workspace};

/// What a cycle needs of a method.
pub(super) trait Cycle: Solver {
    /// `w = A M^-1 v` with the last direction `v`. Collective.
    fn product(
        &mut self,
        w: &mut [f64],
        system: &System<'_>,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError>;

    /// The directions; how many of them make a cycle; how it goes.
    fn parts(&mut self) -> (&mut Arnoldi, usize, &mut Course);
}

/// One product, one reduction or two; at the end of a cycle one more of each.
pub(super) fn step<S: Cycle>(
    solver: &mut S,
    system: &System<'_>,
    comm: &Communicator,
    work: &mut Workspace,
) -> Result<Step, LinalgError> {
    require(system, solver.x(), comm)?;
    if let Some(done) = solver.course().done() {
        return Ok(done);
    }
    let mut w = work.take(system.b.len());
    solver.product(&mut w, system, comm, work)?;
    let (arnoldi, restart, course) = solver.parts();
    let step = match arnoldi.extend(&mut w, comm, work)? {
        Some(norm) => course.advance(norm),
        None => {
            let iterations = course.progress().iterations;
            course.end(StopReason::Vanished { iterations, quantity: Quantity::Pivot })
        }
    };
    if step == Step::Continue && arnoldi.len() < restart {
        work.give(w);
        return Ok(step);
    }
    let before = arnoldi.first_norm();
    solver.settle(system, comm, work)?;
    residual_of(system.a, solver.x(), system.b, &mut w, comm, work)?;
    let [rr] = work.dots(system.a.part(), [(&w, &w)], comm)?;
    let (arnoldi, _, course) = solver.parts();
    let step = course.verify(rr.sqrt(), before);
    if step == Step::Continue {
        arnoldi.restart(&w, rr.sqrt());
    }
    work.give(w);
    Ok(step)
}
