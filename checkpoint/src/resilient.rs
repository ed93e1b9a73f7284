//! The resilient loop: a program is a state with a collective `init` and a `step`; failures are none of its
//! business.
//!
//! Checkpoint 1 is taken straight after `init`, the next ones every so many steps. When a call reports a
//! failure, in whatever place, the survivors repair the world, all ranks restore the newest whole checkpoint
//! and the steps since then are done again. A replacement comes to the same restore from [`World::init`]; it
//! runs no `init` and reads no input. A failure before checkpoint 1 is committed starts again from `init`.
//! The loop ends with the job: a rank that dies before all ranks have agreed that all is done is repaired too.

use std::error::Error;

use ft_comm::{CommError, Communicator, Membership, World};
use serde::{Deserialize, Serialize};

use crate::checkpointer::{Checkpointer, Restored};
use crate::error::{CheckpointError, ProtectError};
use crate::region::{Field, Part, Protect, Walk};
use crate::scheme::Scheme;
use crate::stats::Stats;

/// The library layer of the communicator on which parity ranks are told what comes next.
const LAYER: u32 = 1;
const CHECKPOINT: u64 = 1;
const FINISH: u64 = 2;

/// Whether the program goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Another step.
    Continue,
    /// The work is done; the same on all ranks.
    Done,
}

/// How a program is protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protection {
    /// Where the redundancy lies.
    pub scheme: Scheme,
    /// Steps from one checkpoint to the next.
    pub every: u64,
}

impl Protection {
    /// As the launcher was told (`--scheme`, `--every`); without it, or with one rank, nothing is protected.
    ///
    /// # Errors
    /// The launcher was told what this version does not know.
    pub fn from_launcher(world: &World) -> Result<Self, CheckpointError> {
        let scheme = world.setting("scheme").unwrap_or("none").parse()?;
        let every = world.setting("every").and_then(|every| every.parse().ok()).unwrap_or(10);
        Ok(Self { scheme, every })
    }
}

/// What runs in the resilient loop. All calls are collective over the ranks that compute; dedicated parity ranks
/// make none of them.
pub trait Program {
    /// What is protected. A replacement starts with the default, which is overwritten.
    type State: Protect + Default;
    /// Errors of the program. One that is returned while a failure is known is taken for its consequence and
    /// repaired; any other ends the job.
    type Error: Error + From<CommError> + 'static;

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

    /// Does step `number`, from 1. After an error the state may be torn; it is restored.
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

/// Why a run did not end well.
#[derive(Debug, thiserror::Error)]
pub enum RunError<E: Error + 'static> {
    /// The program failed.
    #[error(transparent)]
    Program(E),
    /// Protection failed: more was lost than the scheme survives, or the scheme does not fit.
    #[error(transparent)]
    Checkpoint(CheckpointError),
    /// The job was ended elsewhere.
    #[error(transparent)]
    Ended(CommError),
}

/// What a rank hands to the launcher when it is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankReport {
    /// What protection has cost.
    pub stats: Stats,
    /// What [`Program::output`] gave; empty for parity ranks.
    pub output: Vec<u8>,
}

impl RankReport {
    /// Reads the bytes that a rank gave to the launcher; `None` if they are no report.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }
}

/// Runs `program` to its end as one rank of `world`, through failures, and leaves the job together with all
/// other ranks. `None` on dedicated parity ranks.
///
/// # Errors
/// The job has ended everywhere; with its cause.
pub fn run<P: Program>(
    world: World,
    protection: Protection,
    program: &mut P,
) -> Result<Option<P::State>, RunError<P::Error>> {
    let checkpointer = match Checkpointer::new(&world, protection.scheme.clone()) {
        Ok(checkpointer) => checkpointer,
        Err(error) => {
            world.abort(2, error.to_string());
            return Err(RunError::Checkpoint(error));
        }
    };
    let mut session = Session { orders: world.library(LAYER), world, protection, checkpointer, program };
    let mut state = Stepped { step: 0, state: P::State::default() };
    let mut restoring = session.world.membership();
    loop {
        let outcome = if session.world.is_parity() {
            session.serve(&restoring)
        } else {
            session.compute(&mut state, &restoring)
        };
        let problem = match outcome {
            Ok(()) => return Ok((!session.world.is_parity()).then_some(state.state)),
            Err(problem) => problem,
        };
        restoring = session.recover(problem)?;
    }
}

/// The state with the number of steps done, which is restored with it.
struct Stepped<S> {
    step: u64,
    state: S,
}

impl<S: Protect> Protect for Stepped<S> {
    fn walk<W: Walk>(&mut self, part: Part, walk: &mut W) -> Result<(), ProtectError> {
        if part == Part::Variable {
            Field::walk(&mut self.step, walk)?;
        }
        self.state.walk(part, walk)
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

struct Session<'a, P: Program> {
    world: World,
    orders: Communicator,
    protection: Protection,
    checkpointer: Checkpointer,
    program: &'a mut P,
}

impl<P: Program> Session<'_, P> {
    /// Everything from the start or the last repair to the end, on a rank that computes.
    fn compute(
        &mut self,
        state: &mut Stepped<P::State>,
        restoring: &Membership,
    ) -> Result<(), Problem<P::Error>> {
        let reached = state.step;
        let restored = match restoring.generation {
            0 => Restored::Nothing,
            _ => self.checkpointer.restore(&self.world, restoring, state)?,
        };
        match restored {
            Restored::Nothing => {
                state.step = 0;
                state.state = self.program.init(&self.world).map_err(Problem::Program)?;
            }
            Restored::Epoch(_) => {
                self.program.rebuild(&mut state.state, &self.world).map_err(Problem::Program)?;
            }
        }
        if restoring.generation > 0 {
            self.world.resumed(reached.saturating_sub(state.step));
        }
        if !self.checkpointer.has_committed() {
            self.checkpoint(state)?;
        }
        loop {
            let number = state.step + 1;
            self.world.step(number)?;
            let flow = self.program.step(&mut state.state, &self.world, number).map_err(Problem::Program)?;
            state.step = number;
            if flow == Flow::Done {
                break;
            }
            if number.is_multiple_of(self.protection.every) {
                self.checkpoint(state)?;
            }
        }
        let output = self.program.output(&mut state.state, &self.world).map_err(Problem::Program)?;
        self.order(FINISH, state.step)?;
        self.finish(output)
    }

    fn checkpoint(&mut self, state: &mut Stepped<P::State>) -> Result<(), Problem<P::Error>> {
        self.order(CHECKPOINT, state.step)?;
        Ok(self.checkpointer.checkpoint(&self.world, state)?)
    }

    fn finish(&mut self, output: Vec<u8>) -> Result<(), Problem<P::Error>> {
        let report = RankReport { stats: self.checkpointer.stats(), output };
        let bytes = postcard::to_stdvec(&report).expect("a report can be written");
        self.world.finalize(bytes)?;
        // The job has ended well; files that cannot be removed do not change that, and nobody is there to be told.
        let _ = self.checkpointer.remove_files();
        Ok(())
    }

    /// Rank 0 tells the dedicated parity ranks what comes next, and how many steps were done.
    fn order(&self, order: u64, step: u64) -> Result<(), CommError> {
        if self.world.rank() > 0 {
            return Ok(());
        }
        (self.world.size()..self.world.total()).try_for_each(|rank| self.orders.send(&[order, step], rank, 0))
    }

    /// A dedicated parity rank: takes part in restores and checkpoints until the end.
    fn serve(&mut self, restoring: &Membership) -> Result<(), Problem<P::Error>> {
        let mut nothing = ();
        if restoring.generation > 0 {
            self.checkpointer.restore(&self.world, restoring, &mut nothing)?;
            self.world.resumed(0);
        }
        let mut seen = 0;
        loop {
            let mut order = [0; 2];
            self.orders.recv(&mut order, 0, 0)?;
            // Failures that are to strike in a step of the others strike here once that step is over.
            for step in seen + 1..=order[1] {
                self.world.fault_point("step", step, None)?;
            }
            seen = order[1];
            match order[0] {
                CHECKPOINT => self.checkpointer.checkpoint(&self.world, &mut nothing)?,
                _ => return self.finish(Vec::new()),
            }
        }
    }

    /// Repairs after a failure; any other problem ends the job.
    fn recover(&mut self, problem: Problem<P::Error>) -> Result<Membership, RunError<P::Error>> {
        // While the world is interrupted every error is taken for its consequence: what the program makes of the
        // error of a call is its own affair, and an error with another cause comes again.
        match self.world.check() {
            Err(CommError::PeerFailed { .. }) => {
                let report = self.checkpointer.report().map_err(RunError::Checkpoint)?;
                self.world.repair(report).map_err(RunError::Ended)
            }
            Err(ended) => Err(RunError::Ended(ended)),
            Ok(()) => Err(self.give_up(problem)),
        }
    }

    fn give_up(&mut self, problem: Problem<P::Error>) -> RunError<P::Error> {
        match problem {
            Problem::Program(error) => {
                self.world.abort(self.program.status(&error), error.to_string());
                RunError::Program(error)
            }
            Problem::Checkpoint(error) => {
                let beyond = matches!(error, CheckpointError::BeyondTolerance(_));
                self.world.abort(if beyond { 3 } else { 1 }, error.to_string());
                RunError::Checkpoint(error)
            }
        }
    }
}
