//! What is seen of a solver from outside: the norms of its iterations, the time they took, the true residual now and then.
//! The stopping rules that need these are judged here, the same for every solver.

use ft_checkpoint::Protect;
use ft_comm::time::{Clock, Time};
use ft_comm::{Communicator, Op};

use super::{Solution, Solver, Step, System};
use crate::stop::relative;
use crate::{LinalgError, StopReason, Workspace};

/// One who runs a solver. It belongs into the same checkpoint as the solver.
#[derive(Clone, Debug, Default, Protect)]
pub struct Watch {
    /// The norm at the start and after each iteration.
    history: Vec<f64>,
    /// Seconds so far, of the slowest rank.
    seconds: f64,
    /// Why it is over, once it is.
    ended: Option<StopReason>,
    #[protect(derived)]
    clock: Option<Clock>,
}

impl Watch {
    /// One iteration of `solver`, judged. Collective: what the iteration costs; where it is asked for, a reduction for the time
    /// and now and then the true residual.
    ///
    /// # Errors
    /// As [`Solver::step`].
    pub fn step<S: Solver>(
        &mut self,
        solver: &mut S,
        system: &System<'_>,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<Step, LinalgError> {
        if let Some(reason) = self.ended {
            return Ok(Step::Done(reason));
        }
        if self.history.is_empty() {
            self.history.push(solver.progress().residual_norm);
        }
        let clock = *self.clock.get_or_insert_with(Clock::start);
        let before = clock.now();
        let mut step = solver.step(system, comm, work)?;
        let progress = solver.progress();
        if progress.iterations as usize == self.history.len() {
            self.history.push(progress.residual_norm);
        }
        if step == Step::Continue
            && let Some(reason) = self.judge(solver, (clock, before), system, comm, work)?
        {
            solver.settle(system, comm, work)?;
            step = Step::Done(reason);
        }
        if let Step::Done(reason) = step {
            self.ended = Some(reason);
        }
        Ok(step)
    }

    fn judge<S: Solver>(
        &mut self,
        solver: &S,
        (clock, before): (Clock, Time),
        system: &System<'_>,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<Option<StopReason>, LinalgError> {
        let (stop, progress) = (solver.stop(), solver.progress());
        let iterations = progress.iterations;
        if let Some(reason) = stop.judge_history(&self.history) {
            return Ok(Some(reason));
        }
        if stop.true_residual_every > 0 && iterations.is_multiple_of(stop.true_residual_every) {
            let norm = solver.true_norm(system, comm, work)?;
            let reason = stop.judge_truth(iterations, norm, progress.residual_norm, progress.reference_norm);
            if reason.is_some() {
                return Ok(reason);
            }
        }
        if stop.seconds_max < f64::INFINITY {
            // Clocks differ, so all go by the one that says most.
            let mut spent = [clock.now().since(before).as_secs_f64()];
            comm.allreduce(&mut spent, Op::Max)?;
            self.seconds += spent[0];
        }
        Ok(stop.judge_time(iterations, self.seconds))
    }

    /// The norm at the start and after each iteration so far.
    pub fn history(&self) -> &[f64] {
        &self.history
    }

    /// What `solver` has reached once a step has said [`Step::Done`] for `reason`: the residual is
    /// computed from the answer, and may deny that it has converged. Collective: one product and
    /// one reduction, of least squares two products and three reductions, of eigenvalues a product
    /// for each.
    ///
    /// # Errors
    /// As [`Solver::start`].
    pub fn conclude<S: Solver>(
        &self,
        solver: &S,
        reason: StopReason,
        system: &System<'_>,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<Solution, LinalgError> {
        let norm = solver.true_norm(system, comm, work)?;
        let progress = solver.progress();
        Ok(Solution {
            reason: solver.stop().confirm(reason, norm, progress.reference_norm),
            recurred_relative_residual: progress.relative_residual(),
            relative_norm: relative(norm, progress.reference_norm),
            relative_residual: solver.relative_residual(norm, system, comm, work)?,
            history: self.history.clone(),
        })
    }
}
