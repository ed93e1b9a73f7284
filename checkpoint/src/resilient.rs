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

use crate::checkpointer::{Checkpointer, RankState, Restored};
use crate::error::CheckpointError;
use crate::pace::{Interval, Pace};
use crate::protection::{Checkpoints, Protection};
use crate::region::ProtectError;
use crate::region::{Field, Protect, StatePart, Walk};
use crate::scheme::Scheme;
use crate::settings::LoopSettings;
use crate::trial::Trial;

mod pacing;
mod program;
mod report;

pub use program::{Flow, Program, RestorePolicy};
pub use report::RankReport;

/// The library layer of the communicator on which parity ranks are told what comes next.
const LAYER: u32 = 1;
const CHECKPOINT: u64 = 1;
const FINISH: u64 = 2;

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
    let mut session = Session::new(world, protection, checkpointer, program, trial);
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
    fn walk<W: Walk>(&mut self, part: StatePart, walk: &mut W) -> Result<(), ProtectError> {
        if part == StatePart::Variable {
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

impl<'a, P: Program> Session<'a, P> {
    fn new(
        world: World,
        protection: Protection,
        checkpointer: Checkpointer,
        program: &'a mut P,
        trial: Trial,
    ) -> Self {
        Self {
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
        }
    }

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
        self.take_up(state, (restoring.generation > 0).then_some(steps_lost))?;
        let output = self.work(state)?;
        self.checkpointer.wait(&self.world)?;
        self.order(FINISH, state.step)?;
        self.finish(output, Some(state.step))
    }

    /// Before the first step: what ranks have is protected. After a repair `steps_lost` says how many steps are done again.
    fn take_up(
        &mut self,
        state: &mut Stepped<P::State>,
        steps_lost: Option<u64>,
    ) -> Result<(), Problem<P::Error>> {
        if steps_lost.is_some() {
            self.recall()?;
        }
        // What was laid out anew is protected before anybody works.
        let anew = self.checkpointer.is_bare() && steps_lost.is_some();
        if anew {
            self.checkpoint(state)?;
        }
        if let Some(steps_lost) = steps_lost {
            self.world.resumed(steps_lost);
        }
        self.reached = 0;
        self.world.activity(activity::COMPUTING);
        match self.checkpointer.has_committed() {
            _ if anew => {}
            true => self.count_out(state.step),
            false => self.checkpoint(state)?,
        }
        Ok(())
    }

    /// Step after step, with checkpoints between them, until the work is done or a trial is over; gives the output.
    fn work(&mut self, state: &mut Stepped<P::State>) -> Result<Vec<u8>, Problem<P::Error>> {
        while !self.over {
            let number = state.step + 1;
            self.world.step(number)?;
            let flow = self.program.step(&mut state.state, &self.world, number).map_err(Problem::Program)?;
            state.step = number;
            if flow == Flow::Done {
                self.world.activity(activity::WAITING);
                return self.program.output(&mut state.state, &self.world).map_err(Problem::Program);
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
        Ok(Vec::new())
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
        let steps_lost = match P::RESTORE {
            RestorePolicy::Global => self.deal_out(state, restoring)?,
            RestorePolicy::LostOnly => self.go_on_without(state, restoring)?,
        };
        if steps_lost.is_none() {
            state.step = 0;
            state.state = self.program.init(&self.world).map_err(Problem::Program)?;
        }
        self.checkpointer.lay_out_anew(&self.world)?;
        Ok(steps_lost.unwrap_or(self.reached))
    }

    /// The states of a checkpoint are dealt out over the ranks that are left; none if nothing was committed.
    fn deal_out(
        &mut self,
        state: &mut Stepped<P::State>,
        restoring: &Membership,
    ) -> Result<Option<u64>, Problem<P::Error>> {
        let before = self.checkpointer.ranks_before();
        let shares = self.checkpointer.gather::<Stepped<P::State>>(&self.world, restoring)?;
        let Some(shares) = shares else { return Ok(None) };
        state.step = shares.first().map_or(0, |share| share.state.step);
        let inner =
            |share: RankState<Stepped<P::State>>| RankState { rank: share.rank, state: share.state.state };
        let shares = shares.into_iter().map(inner).collect();
        let dealt = self.program.redistribute(shares, before, &self.world);
        state.state = dealt.map_err(Problem::Program)?;
        self.program.rebuild(&mut state.state, &self.world).map_err(Problem::Program)?;
        Ok(Some(self.reached.saturating_sub(state.step)))
    }

    /// All keep their live states; none if somebody never began: it has nothing to go on with, and then nobody has got far.
    fn go_on_without(
        &mut self,
        state: &mut Stepped<P::State>,
        restoring: &Membership,
    ) -> Result<Option<u64>, Problem<P::Error>> {
        self.checkpointer.pass_over(restoring)?;
        if !self.settle(state, self.live)?.is_empty() {
            return Ok(None);
        }
        self.program.rebuild(&mut state.state, &self.world).map_err(Problem::Program)?;
        let again = self.program.reconcile(&mut state.state, &self.world, &[]);
        again.map(Some).map_err(Problem::Program)
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
