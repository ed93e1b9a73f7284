//! What runs in the loop.

use std::error::Error;

use ft_comm::{CommError, Rank, World};

use crate::checkpointer::RankState;
use crate::region::Protect;

/// Whether the program goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Another step.
    Continue,
    /// The work is done. All ranks return it after the same step; if only some do, the others wait
    /// for them, and the job ends with an error that names ranks and steps. Only with
    /// [`Lines::Log`](crate::Lines::Log) each rank is done after a step of its own.
    Done,
}

/// Which ranks go back to the checkpoint after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestorePolicy {
    /// All of them: for programs whose ranks depend on each other's data, as solvers.
    Global,
    /// Only the replacements; survivors keep their live state, and [`Program::reconcile`] settles the differences:
    /// for bags of tasks.
    LostOnly,
}

/// What runs in the resilient loop. All calls are collective over the ranks that compute; dedicated parity ranks
/// make none of them.
pub trait Program {
    /// What is protected. A replacement starts with the default, which is overwritten.
    type State: Protect + Default;
    /// Errors of the program. One that is returned while a failure is known is taken for its consequence and
    /// repaired; any other ends the job.
    type Error: Error + From<CommError> + 'static;
    /// Which ranks go back to the checkpoint after a failure.
    const RESTORE: RestorePolicy = RestorePolicy::Global;
    /// Whether a rank that was lost can go back alone ([`Recovery::Local`](crate::Recovery::Local)). It does [`Program::rebuild`] without the others then: what they told it is recorded once, in a
    /// call of `rebuild` behind [`Program::init`], and kept with its state. So all that `rebuild` sends and receives has to follow from the constant part of the states. No receive of it may take
    /// messages of several senders or tags, and nothing may be under way when it returns.
    /// Communicators that `rebuild` makes are the same each time, so handles of them that the
    /// others still have go on.
    const ALONE: bool = false;

    /// Makes the state at the start.
    ///
    /// # Errors
    /// Any ends the job, but for failures.
    fn init(&mut self, world: &World) -> Result<Self::State, Self::Error>;

    /// Makes the derived parts of the state again, after a restore.
    ///
    /// # Errors
    /// Any ends the job, but for failures.
    fn rebuild(&mut self, state: &mut Self::State, world: &World) -> Result<(), Self::Error> {
        let _ = (state, world);
        Ok(())
    }

    /// Settles the differences between survivors, which have gone on since the checkpoint, and the ranks `lost`, whose
    /// state is that of the checkpoint; after [`Program::rebuild`], and only with [`RestorePolicy::LostOnly`]. Gives the
    /// number of steps that this rank has to do again, for reports. A failure in it calls for another one.
    ///
    /// # Errors
    /// Any ends the job, but for failures.
    fn reconcile(
        &mut self,
        state: &mut Self::State,
        world: &World,
        lost: &[Rank],
    ) -> Result<u64, Self::Error> {
        let _ = (state, world, lost);
        Ok(0)
    }

    /// Whether the program can go on with fewer ranks when lost ones are not replaced ([`OnFailure::Shrink`](ft_comm::OnFailure::Shrink)); one that
    /// cannot is refused at the start.
    const SHRINKS: bool = false;

    /// Whether [`Program::redistribute`] can also deal a state out over more ranks than it had, some of which have no share: where a
    /// job is resumed with more. One that derives [`Redistribute`](crate::Redistribute) can.
    const GROWS: bool = false;

    /// Deals the state out anew over the ranks that are left; collective. `shares` are the states of a checkpoint that fell to
    /// this rank: its own, and those of lost ranks; all together they are the states of all `before` ranks. The default
    /// is right where all ranks have the same state; for one that derives [`Redistribute`](crate::Redistribute) this is one line.
    /// [`Program::rebuild`] follows. With [`RestorePolicy::LostOnly`] it is called only where a job is resumed with another number of ranks, and [`Program::reconcile`] after it, where all
    /// are lost: else survivors keep their live state, and `reconcile` sees that ranks are missing.
    ///
    /// # Errors
    /// Any ends the job, but for failures.
    fn redistribute(
        &mut self,
        shares: Vec<RankState<Self::State>>,
        before: usize,
        world: &World,
    ) -> Result<Self::State, Self::Error> {
        let _ = (before, world);
        Ok(shares.into_iter().next().map(|share| share.state).unwrap_or_default())
    }

    /// Does step `number`, from 1. After an error the state may be torn; it is restored. With
    /// [`RestorePolicy::LostOnly`] it must be such that the program can go on from it, and the next number is that of
    /// the rank that was furthest.
    ///
    /// # Errors
    /// Any ends the job, but for failures.
    fn step(&mut self, state: &mut Self::State, world: &World, number: u64) -> Result<Flow, Self::Error>;

    /// What this rank reports when the work is done; opaque bytes for the launcher. It may be called again after
    /// a failure.
    ///
    /// # Errors
    /// Any ends the job, but for failures.
    fn output(&mut self, state: &mut Self::State, world: &World) -> Result<Vec<u8>, Self::Error> {
        let _ = (state, world);
        Ok(Vec::new())
    }

    /// Exit status of the job for an error that ends it.
    fn status(&self, error: &Self::Error) -> i32 {
        let _ = error;
        1
    }
}
