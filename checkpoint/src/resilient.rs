//! The resilient loop: a program is a state with a collective `init` and a `step`; failures are none of its
//! business.
//!
//! Checkpoint 1 is taken straight after `init`, the next ones every so many steps. When a call reports a
//! failure, in whatever place, the survivors repair the world, all ranks restore the newest whole checkpoint
//! and the steps since then are done again. A replacement comes to the same restore from [`World::init`]; it
//! runs no `init` and reads no input. A failure before checkpoint 1 is committed starts again from `init`.
//! The loop ends with the job: a rank that dies before all ranks have agreed that all is done is repaired too.
//!
//! A [`Job`] has several such programs, one after the other; [`run`] is one of them alone.
//!
//! With an interval in seconds, or one that follows what is measured, rank 0 counts out the steps and says the next one with
//! each checkpoint, with all that it has learned; so all take the same, and no death makes the job forget. The state after any
//! step does not depend on it.

use std::convert::Infallible;
use std::error::Error;

use ft_comm::{CommError, World};

use crate::error::CheckpointError;
use crate::protection::Protection;

mod alone;
mod dealing;
mod finished;
mod job;
mod kept;
mod levels;
mod lines;
mod pacing;
mod parity;
mod program;
mod report;
mod resuming;
mod section;
mod setup;

pub use finished::Finished;
pub use job::Job;
pub(crate) use kept::steps_of;
pub use program::{Flow, Program, RestorePolicy};
pub use report::RankReport;

/// What ranks do, for the timeline of the job.
pub mod activity {
    /// Steps of the program.
    pub const COMPUTING: &str = "computing";
    /// A checkpoint.
    pub const CHECKPOINT: &str = "checkpoint";
    /// For others.
    pub const WAITING: &str = "waiting";
    /// A restore after a failure.
    pub const REBUILDING: &str = "rebuilding";
}

/// Why a run did not end well; without `E` where no program of the user is involved.
#[derive(Debug, thiserror::Error)]
pub enum RunError<E: Error + 'static = Infallible> {
    /// The program failed.
    #[error(transparent)]
    Program(E),
    /// Protection failed: more was lost than the scheme survives, or the scheme does not fit.
    #[error(transparent)]
    Checkpoint(CheckpointError),
    /// The job was ended elsewhere.
    #[error(transparent)]
    Ended(CommError),
    /// The run was a trial of `ftrun advise`, which has seen enough. There is no answer.
    #[error("the trial is over: this run was measured and did not go to its end")]
    Trial,
}

impl RunError {
    /// The same, where a program could have failed.
    fn of_program<E: Error>(self) -> RunError<E> {
        match self {
            Self::Program(never) => match never {},
            Self::Checkpoint(error) => RunError::Checkpoint(error),
            Self::Ended(error) => RunError::Ended(error),
            Self::Trial => RunError::Trial,
        }
    }
}

/// Runs `program` to its end as one rank of `world`, through failures, and leaves the job together with all
/// other ranks: a [`Job`] with this program alone. Returns the last state with the rank that this
/// process has then; `None` on dedicated parity ranks.
///
/// # Errors
/// The job has ended everywhere; with its cause.
pub fn run<P: Program>(
    world: World,
    protection: Protection,
    program: &mut P,
) -> Result<Option<Finished<P::State>>, RunError<P::Error>> {
    match Job::start(world, protection).map_err(RunError::of_program)? {
        Some(job) => job.last(program).map(Some),
        None => Ok(None),
    }
}

/// What stopped an attempt.
enum Problem<E> {
    Program(E),
    Checkpoint(CheckpointError),
}

impl<E> From<CheckpointError> for Problem<E> {
    fn from(error: CheckpointError) -> Self {
        Self::Checkpoint(error)
    }
}

impl<E> From<CommError> for Problem<E> {
    fn from(error: CommError) -> Self {
        Self::Checkpoint(error.into())
    }
}
