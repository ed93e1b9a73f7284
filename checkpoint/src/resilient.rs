//! The resilient loop: a program is a state with a collective `init` and a `step`; failures are none of its
//! business.
//!
//! Checkpoint 1 is taken straight after `init`, the next ones every so many steps. When a call reports a
//! failure, in whatever place, the survivors repair the world, all ranks restore the newest whole checkpoint
//! and the steps since then are done again. A replacement comes to the same restore from [`World::init`]; it
//! runs no `init` and reads no input. A failure before checkpoint 1 is committed starts again from `init`.
//! The loop ends with the job: a rank that dies before all ranks have agreed that all is done is repaired too.
//!
//! With an interval in seconds, or one that follows what is measured, rank 0 counts out the steps and says the next one with
//! each checkpoint, with all that it has learned; so all take the same, and no death makes the job forget. The state after any
//! step does not depend on it.

use std::error::Error;

use ft_comm::time::{Clock, Time};
use ft_comm::{CommError, Communicator, Membership, OnFailure, Rank, World};
use serde::{Deserialize, Serialize};

use crate::checkpointer::{Checkpointer, Restored, Share};
use crate::error::{CheckpointError, ProtectError};
use crate::pace::{Interval, IntervalReport, Pace};
use crate::protection::{Checkpoints, Protection};
use crate::region::{Field, Part, Protect, Walk};
use crate::scheme::Scheme;
use crate::settings::LoopSettings;
use crate::stats::Stats;
use crate::trial::Trial;

/// The library layer of the communicator on which parity ranks are told what comes next.
const LAYER: u32 = 1;
const CHECKPOINT: u64 = 1;
const FINISH: u64 = 2;
/// Tag of the word of rank 0 on how many steps it is to the next checkpoint, and why.
const PACE: u32 = 1;

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

/// Whether the program goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Another step.
    Continue,
    /// The work is done; the same on all ranks.
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

    /// Whether the program can go on with fewer ranks when lost ones are not replaced ([`OnFailure::Shrink`]); one that
    /// cannot is refused at the start.
    const SHRINKS: bool = false;

    /// Deals the state out anew over the ranks that are left; collective. `shares` are the states of a checkpoint that fell to
    /// this rank: its own, and those of lost ranks; all together they are the states of all `before` ranks. The default
    /// is right where all ranks have the same state; for one that derives [`Redistribute`](crate::Redistribute) this is one line.
    /// [`Program::rebuild`] follows. With [`RestorePolicy::LostOnly`] it is not called: survivors keep their live state, and [`Program::reconcile`] sees that ranks are missing.
    ///
    /// # Errors
    /// Any ends the job, but for failures.
    fn redistribute(
        &mut self,
        shares: Vec<Share<Self::State>>,
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
    /// The run was a trial of `ftrun advise`, which has seen enough. There is no answer.
    #[error("the trial is over: this run was measured and did not go to its end")]
    Trial,
}

/// What a rank hands to the launcher when it is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankReport {
    /// What protection has cost.
    pub stats: Stats,
    /// What [`Program::output`] gave; empty for parity ranks, and after a trial.
    pub output: Vec<u8>,
    /// The interval of the loop; none without one, and for parity ranks.
    pub interval: Option<IntervalReport>,
}

impl RankReport {
    /// Reads the bytes that a rank gave to the launcher; `None` if they are no report.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }

    /// The bytes to give to [`World::finalize`].
    pub fn to_bytes(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("a report can be written")
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
    let told = LoopSettings::from_launcher(&world).map_err(CheckpointError::from);
    let ready = told.and_then(|told| Ok((checkpointer::<P>(&world, &protection)?, told.trial)));
    let (checkpointer, trial) = match ready {
        Ok(ready) => ready,
        Err(error) => {
            world.abort(2, error.to_string());
            return Err(RunError::Checkpoint(error));
        }
    };
    let mut session = Session {
        orders: world.library(LAYER),
        world,
        protection,
        checkpointer,
        program,
        live: false,
        reached: 0,
        trial,
        over: false,
        pace: Pace::default(),
        due: 0,
        clock: Clock::start(),
        counted: Time(0),
        last: (0, Time(0)),
    };
    let mut state = Stepped { step: 0, state: P::State::default() };
    let mut restoring = session.world.membership();
    loop {
        let outcome = if session.world.is_parity() {
            session.serve(&restoring)
        } else {
            session.compute(&mut state, &restoring)
        };
        let problem = match outcome {
            Ok(()) if session.over => return Err(RunError::Trial),
            Ok(()) => return Ok((!session.world.is_parity()).then_some(state.state)),
            Err(problem) => problem,
        };
        restoring = session.recover(problem)?;
    }
}

/// What takes the checkpoints of a program.
fn checkpointer<P: Program>(world: &World, protection: &Protection) -> Result<Checkpointer, CheckpointError> {
    if let Some(text) = refusal::<P>(world, protection) {
        return Err(CheckpointError::Unfit(text));
    }
    let mut checkpointer = Checkpointer::new(world, protection.scheme.clone())?;
    checkpointer.set_throttle(protection.throttle);
    checkpointer.set_scrub(protection.scrub);
    checkpointer.set_memory_limit(protection.memory);
    Ok(checkpointer)
}

/// Why the program cannot run with the repair mode of the job.
fn refusal<P: Program>(world: &World, protection: &Protection) -> Option<String> {
    match world.repair_mode() {
        OnFailure::Rebuild | OnFailure::Abort => None,
        OnFailure::Blank => {
            Some("the resilient loop knows no holes; `--on-failure shrink` goes on with fewer ranks".into())
        }
        OnFailure::Shrink if !P::SHRINKS => Some("this program cannot go on with fewer ranks".into()),
        OnFailure::Shrink if world.total() > world.size() => {
            Some("`--on-failure shrink` is not possible with dedicated parity ranks".into())
        }
        OnFailure::Shrink if matches!(protection.scheme, Scheme::Disk { .. }) => {
            Some("`--on-failure shrink` is not possible with checkpoints on disk".into())
        }
        OnFailure::Shrink => None,
    }
}

/// The state with the number of steps done, which is restored with it.
#[derive(Default)]
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

    fn describe(text: &mut String) {
        S::describe(text);
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
    /// The state is that of a program under way, not one to be restored.
    live: bool,
    /// The last step that was done before the failures which are not yet survived: a restore that one of them cuts short may
    /// have taken the state back already.
    reached: u64,
    trial: Trial,
    /// The trial is.
    over: bool,
    /// The step after which the next checkpoint is due, unless it is counted from the first step.
    due: u64,
    pace: Pace,
    clock: Clock,
    /// Until when time has been counted.
    counted: Time,
    /// The step of the last checkpoint or restore, and when that was over.
    last: (u64, Time),
}

impl<P: Program> Session<'_, P> {
    /// Everything from the start or the last repair to the end, on a rank that computes.
    fn compute(
        &mut self,
        state: &mut Stepped<P::State>,
        restoring: &Membership,
    ) -> Result<(), Problem<P::Error>> {
        self.reached = self.reached.max(state.step);
        self.over = false;
        let steps_lost = self.begin(state, restoring)?;
        self.live = true;
        if restoring.generation > 0 {
            self.recall()?;
        }
        // What was laid out anew is protected before anybody works.
        let anew = self.checkpointer.is_bare() && restoring.generation > 0;
        if anew {
            self.checkpoint(state)?;
        }
        if restoring.generation > 0 {
            self.world.resumed(steps_lost);
        }
        self.reached = 0;
        self.world.activity(activity::COMPUTING);
        match self.checkpointer.has_committed() {
            _ if anew => {}
            true => self.count_out(state.step),
            false => self.checkpoint(state)?,
        }
        let mut output = Vec::new();
        while !self.over {
            let number = state.step + 1;
            self.world.step(number)?;
            let flow = self.program.step(&mut state.state, &self.world, number).map_err(Problem::Program)?;
            state.step = number;
            if flow == Flow::Done {
                self.world.activity(activity::WAITING);
                output = self.program.output(&mut state.state, &self.world).map_err(Problem::Program)?;
                break;
            }
            self.checkpointer.progress(&self.world)?;
            let due = match self.protection.interval {
                Interval::Steps(steps) => number.is_multiple_of(steps),
                Interval::Seconds(_) | Interval::Auto { .. } => number >= self.due,
            };
            if due {
                self.checkpoint(state)?;
            }
        }
        self.checkpointer.wait(&self.world)?;
        self.order(FINISH, state.step)?;
        self.finish(output, Some(state.step))
    }

    /// Makes or restores the state; gives the number of steps to be done again.
    fn begin(
        &mut self,
        state: &mut Stepped<P::State>,
        restoring: &Membership,
    ) -> Result<u64, Problem<P::Error>> {
        let reached = self.reached;
        if restoring.generation > 0 && self.world.repair_mode() == OnFailure::Shrink {
            self.checkpointer.follow(restoring);
            if self.checkpointer.has_empty_homes() {
                self.world.activity(activity::REBUILDING);
                return self.close_up(state, restoring);
            }
        }
        let keeps = P::RESTORE == RestorePolicy::LostOnly && self.live;
        let restored = match restoring.generation {
            0 => Restored::Nothing,
            _ => {
                self.world.activity(activity::REBUILDING);
                self.checkpointer.restore(&self.world, restoring, (!keeps).then_some(&mut *state))?
            }
        };
        if restored == Restored::Nothing {
            state.step = 0;
            state.state = self.program.init(&self.world).map_err(Problem::Program)?;
            return Ok(reached);
        }
        self.program.rebuild(&mut state.state, &self.world).map_err(Problem::Program)?;
        if P::RESTORE == RestorePolicy::Global {
            return Ok(reached.saturating_sub(state.step));
        }
        let lost = self.settle(state, keeps)?;
        self.program.reconcile(&mut state.state, &self.world, &lost).map_err(Problem::Program)
    }

    /// All ranks go on with the step of the one that is furthest; gives those that have not kept their state.
    fn settle(&self, state: &mut Stepped<P::State>, keeps: bool) -> Result<Vec<Rank>, CommError> {
        let mut all = vec![0; 2 * self.world.size()];
        self.world.comm().allgather(&[u64::from(!keeps), state.step], &mut all)?;
        state.step = all.iter().skip(1).step_by(2).copied().max().unwrap_or(0);
        Ok((0..self.world.size()).filter(|rank| all[2 * rank] == 1).collect())
    }

    /// Ranks are missing and nobody takes their place: the others share their state, or do without. Gives the number of
    /// steps to be done again.
    fn close_up(
        &mut self,
        state: &mut Stepped<P::State>,
        restoring: &Membership,
    ) -> Result<u64, Problem<P::Error>> {
        let reached = self.reached;
        let mut steps_lost = reached;
        let goes_on = if P::RESTORE == RestorePolicy::LostOnly {
            self.checkpointer.pass_over(restoring)?;
            // Somebody who never began has nothing to go on with, and then nobody has got far.
            let goes_on = self.settle(state, self.live)?.is_empty();
            if goes_on {
                self.program.rebuild(&mut state.state, &self.world).map_err(Problem::Program)?;
                let again = self.program.reconcile(&mut state.state, &self.world, &[]);
                steps_lost = again.map_err(Problem::Program)?;
            }
            goes_on
        } else {
            let before = self.checkpointer.ranks_before();
            let shares = self.checkpointer.gather::<Stepped<P::State>>(&self.world, restoring)?;
            if let Some(shares) = shares {
                state.step = shares.first().map_or(0, |share| share.state.step);
                steps_lost = reached.saturating_sub(state.step);
                let inner =
                    |share: Share<Stepped<P::State>>| Share { rank: share.rank, state: share.state.state };
                let shares = shares.into_iter().map(inner).collect();
                let dealt = self.program.redistribute(shares, before, &self.world);
                state.state = dealt.map_err(Problem::Program)?;
                self.program.rebuild(&mut state.state, &self.world).map_err(Problem::Program)?;
                true
            } else {
                false
            }
        };
        if !goes_on {
            state.step = 0;
            state.state = self.program.init(&self.world).map_err(Problem::Program)?;
        }
        self.checkpointer.lay_out_anew(&self.world)?;
        Ok(steps_lost)
    }

    fn checkpoint(&mut self, state: &mut Stepped<P::State>) -> Result<(), Problem<P::Error>> {
        let (before, since) = self.last;
        let begun = self.clock.now();
        self.world.activity(activity::CHECKPOINT);
        self.order(CHECKPOINT, state.step)?;
        self.checkpointer.begin(&self.world, state)?;
        // Nothing is committed before the first one, nor of what ranks have after they have closed up.
        if self.protection.checkpoints == Checkpoints::Blocking || self.checkpointer.is_bare() {
            self.checkpointer.wait(&self.world)?;
        }
        self.world.activity(activity::COMPUTING);
        self.pace.step(state.step.saturating_sub(before), begun.since(since).as_secs_f64());
        self.pace.checkpoint(self.clock.now().since(begun).as_secs_f64());
        self.count_time();
        self.count_out(state.step);
        Ok(self.agree_pace(state.step)?)
    }

    /// Counts out the steps from `step` to the next checkpoint. It depends on the pace only.
    fn count_out(&mut self, step: u64) {
        self.due = step + self.pace.next(self.protection.interval);
        self.last = (step, self.clock.now());
    }

    fn count_time(&mut self) {
        let now = self.clock.now();
        self.pace.elapse(now.since(self.counted).as_secs_f64());
        self.counted = now;
    }

    /// Whether what is learned of steps, checkpoints and failures decides when the next checkpoint is taken.
    fn is_paced(&self) -> bool {
        !matches!(self.protection.interval, Interval::Steps(_))
    }

    /// Rank 0 tells the others what it has learned, how many steps it is to the next checkpoint, and whether a trial is over.
    fn agree_pace(&mut self, step: u64) -> Result<(), CommError> {
        if !self.is_paced() && !self.trial.is_wanted() {
            return Ok(());
        }
        self.over = self.trial.is_over(self.pace.elapsed(), step);
        let mut word = [0; Pace::WORDS + 2];
        let (flags, pace) = word.split_at_mut(2);
        flags.copy_from_slice(&[self.due, u64::from(self.over)]);
        pace.copy_from_slice(&self.pace.to_words());
        if self.world.rank() == 0 {
            return (1..self.world.size()).try_for_each(|rank| self.orders.send(&word, rank, PACE));
        }
        self.orders.recv(&mut word, 0, PACE)?;
        let [due, over, pace @ ..] = word;
        (self.due, self.over, self.pace) = (due, over != 0, Pace::from_words(pace));
        Ok(())
    }

    /// After a repair everybody goes on with what the one knows that has been there longest: rank 0 may be a new one. All
    /// count out the same steps from it, by the same arithmetic.
    fn recall(&mut self) -> Result<(), CommError> {
        if !self.is_paced() {
            return Ok(());
        }
        self.count_time();
        let mut all = vec![0; Pace::WORDS * self.world.size()];
        self.world.comm().allgather(&self.pace.to_words(), &mut all)?;
        let (all, _) = all.as_chunks();
        self.pace = Pace::longest(all.iter().copied().map(Pace::from_words));
        Ok(())
    }

    /// The end, after so many steps of those who compute.
    fn finish(&mut self, output: Vec<u8>, steps: Option<u64>) -> Result<(), Problem<P::Error>> {
        self.count_time();
        let interval = steps.map(|steps| self.pace.report(self.protection.interval, steps));
        let report = RankReport { stats: self.checkpointer.stats(), output, interval };
        self.world.finalize(report.to_bytes())?;
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
            self.world.activity(activity::REBUILDING);
            self.checkpointer.restore(&self.world, restoring, Some(&mut nothing))?;
            self.world.resumed(0);
        }
        self.world.activity(activity::WAITING);
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
                CHECKPOINT => {
                    self.world.activity(activity::CHECKPOINT);
                    self.checkpointer.checkpoint(&self.world, &mut nothing)?;
                    self.world.activity(activity::WAITING);
                }
                _ => return self.finish(Vec::new(), None),
            }
        }
    }

    /// Repairs after a failure; any other problem ends the job.
    fn recover(&mut self, problem: Problem<P::Error>) -> Result<Membership, RunError<P::Error>> {
        // While the world is interrupted every error is taken for its consequence: what the program makes of the
        // error of a call is its own affair, and an error with another cause comes again.
        match self.world.check() {
            Err(error) if error.is_failure() => {
                self.world.activity(activity::WAITING);
                self.pace.fail();
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
                // Whoever has refused says why, and ends the job.
                if let CheckpointError::Refused { .. } = error
                    && let Err(ended) = self.world.everyone().barrier()
                {
                    return RunError::Ended(ended);
                }
                let code = match error {
                    CheckpointError::BeyondTolerance(_) | CheckpointError::Unsound { .. } => 3,
                    CheckpointError::Memory { .. } => 2,
                    _ => 1,
                };
                self.world.abort(code, error.to_string());
                RunError::Checkpoint(error)
            }
        }
    }
}
