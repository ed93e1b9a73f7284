//! A job of several protected runs: what one process keeps from its start to its end.

use std::convert::Infallible;
use std::error::Error;
use std::rc::Rc;
use std::time::Duration;

use ft_comm::{CommError, Communicator, Membership, OnFailure, Rank, World};

use super::alone::{Aide, Held, Left};
use super::kept::{Kept, Past};
use super::levels::Levels;
use super::lines::Drawing;
use super::pacing::Pacing;
use super::report::RankReport;
use super::resuming::Resuming;
use super::section::Section;
use super::{Finished, Problem, Program, RunError, activity, setup};
use crate::checkpointer::{Checkpointer, LiveState, Restored};
use crate::error::CheckpointError;
use crate::protection::{Checkpoints, Protection};
use crate::region::{Field, Protect};
use crate::settings::LoopSettings;

/// The library layer of the communicator on which parity ranks are told what comes next.
const LAYER: u32 = 1;

/// Status of a job whose `main` does what cannot be protected.
pub(super) const MISUSED: i32 = 2;

/// What parity ranks are told.
pub(super) mod order {
    pub(in crate::resilient) const CHECKPOINT: u64 = 1;
    pub(in crate::resilient) const FINISH: u64 = 2;
    /// A checkpoint that begins anew.
    pub(in crate::resilient) const ANEW: u64 = 3;
    /// A checkpoint of states of which each is of a moment of its own.
    pub(in crate::resilient) const LINE: u64 = 4;
}

/// A job of several protected runs, its *sections*, one after the other. It owns the world until the job ends.
///
/// ```
/// use ft_checkpoint::{Flow, Interval, Job, MainError, Program, Protection};
/// use ft_comm::{CommError, Op, World};
///
/// /// Adds up the ranks, a hundred times.
/// struct Sum { from: u64 }
///
/// impl Program for Sum {
///     type State = Total;
///     type Error = CommError;
///
///     fn init(&mut self, _: &World) -> Result<Total, CommError> {
///         Ok(Total { total: self.from })
///     }
///
///     fn step(&mut self, state: &mut Total, world: &World, number: u64) -> Result<Flow, CommError> {
///         let mut term = [world.rank() as u64 + 1];
///         world.comm().allreduce(&mut term, Op::Sum)?;
///         state.total += term[0];
///         Ok(if number == 100 { Flow::Done } else { Flow::Continue })
///     }
/// }
///
/// #[derive(Default, ft_checkpoint::Protect)]
/// struct Total { total: u64 }
///
/// fn main() -> Result<(), MainError> {
///     let protection = Protection::new("xor".parse()?, Interval::Steps(10));
///     # let protection = Protection::new("none".parse()?, Interval::Steps(10));
///     let Some(mut job) = Job::start(World::init()?, protection)? else { return Ok(()) };
///     let first = job.run(&mut Sum { from: 0 }, |state| state.total)?;
///     let second = job.run(&mut Sum { from: first }, |state| state.total)?;
///     let largest = job.once(|world| -> Result<u64, CommError> {
///         let mut all = [second];
///         world.comm().allreduce(&mut all, Op::Max)?;
///         Ok(all[0])
///     })?;
///     # assert_eq!((first, second, largest), (100, 200, 200));
///     println!("{largest}");
///     Ok(job.finish()?)
/// }
/// ```
///
/// # What a replacement does
///
/// A process that replaces a lost one starts `main` from its top. It does not run again what has ended: [`Job::run`] and
/// [`Job::once`] give it the results of then, out of the redundancy. At the section that the others are in it gets the state, and
/// goes on with them. So the end of a section is a commit, and no failure takes the job back behind it.
///
/// `main` must come to the same sections in the same order whenever it runs. So between them there may stand only what follows
/// from results, arguments and the number of the rank: no messages, no clock, no random numbers, no input that may change. What
/// is collective and no program of its own, as reading a matrix or a norm of an answer, is a [`Job::once`].
///
/// # Other ranks
///
/// A job that is resumed on another number of ranks has the results of then on all of them, if each says what it is to the other ranks: the same on
/// all ([`Replicated`](crate::Replicated)), or a block of an array ([`Distributed`](crate::Distributed)), also in tuples. Any other is private to its rank,
/// and the job is refused. The program under way deals out its own state ([`Program::redistribute`]).
///
/// # What it costs
///
/// A section has two checkpoints more than its interval asks for, one after `init` and one of its result; [`Job::once`] has one,
/// and so has a program that ends the job ([`Job::last`]). The results of all sections are kept until the job ends, and each of
/// these checkpoints has all of them, with 8 bytes more for each, and 32 for each that says what it is to
/// the other ranks. So results should be small, or few: a loop that hands a large array
/// from one iteration to the next is one program with a step an iteration, and not a section each.
/// While a section begins the checkpoint at the end of the one before is there too; it has results only.
#[derive(Debug)]
pub struct Job {
    pub(super) world: Rc<World>,
    pub(super) orders: Communicator,
    pub(super) protection: Protection,
    pub(super) checkpointer: Held<Checkpointer>,
    pub(super) levels: Levels,
    /// What is over on all ranks, as the newest checkpoint that was taken or restored here says.
    pub(super) past: Past,
    /// Sections whose results `main` has.
    position: usize,
    /// A repair after which nothing was restored yet.
    pub(super) restoring: Option<Membership>,
    /// The launcher waits to hear that this rank works again.
    pub(super) is_resuming: bool,
    /// What was restored is the state of a section that `main` has not come to; it is in the checkpoint still.
    is_ahead: bool,
    /// The last step that was done before the failures which are not yet survived: a restore that one of them cuts short may
    /// have taken the state back already. Counted from the start of the job.
    pub(super) reached: u64,
    pub(super) pacing: Held<Pacing>,
    pub(super) drawing: Held<Drawing>,
    /// Where only the lost go back: what repairs the world within a call.
    pub(super) aide: Rc<Aide>,
    /// This process has not been where the others are.
    pub(super) is_new: bool,
    /// In the repair that is under way all have said that all go back.
    pub(super) all_go_back: bool,
    /// Those that go back alone in it.
    pub(super) lost: Option<Vec<Rank>>,
    /// What was restored in it, and what this rank had of a line when it was interrupted.
    pub(super) restored: (Restored, u32),
    /// From what the job goes on, until something of its own is committed.
    pub(super) resuming: Option<Resuming>,
    /// Checkpoints of which the launcher knows what they have cost.
    pub(super) told: u32,
}

/// What there is of the section that `main` has come to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing: it starts with `init`.
    Nothing,
    /// Its state, which is loaded.
    State,
    /// Its state, in files of another job.
    Saved,
    /// Its result.
    Result,
}

impl Job {
    /// Starts a job of protected runs as one rank of `world`. A dedicated parity rank serves all of them in this call, until the
    /// job has ended: `None` there.
    ///
    /// # Errors
    /// The protection does not fit the job, or it has ended; everywhere.
    pub fn start(world: World, protection: Protection) -> Result<Option<Self>, RunError> {
        let told = LoopSettings::from_launcher(&world).map_err(CheckpointError::from);
        let ready = told.and_then(|told| {
            let resuming = told.resume.filter(|_| !world.is_parity());
            let writes_into = protection.spill.as_ref().and_then(|spill| spill.folder.as_deref());
            let resuming = resuming.map(|resume| Resuming::new(&resume, writes_into)).transpose()?;
            let checkpointer = setup::checkpointer(&world, &protection)?;
            told.command.iter().try_for_each(|command| checkpointer.name(command))?;
            let pace = told.pace.map(Duration::try_from_secs_f64).and_then(Result::ok);
            let levels = Levels::new(&world, &protection)?;
            Ok((checkpointer, levels, Pacing::new(protection.interval, told.trial, pace), resuming))
        });
        let (checkpointer, levels, pacing, resuming) = match ready {
            Ok(ready) => ready,
            Err(error) => {
                world.abort(MISUSED, error.to_string());
                return Err(RunError::Checkpoint(error));
            }
        };
        let mut job = Self {
            pacing: Held::new(pacing),
            orders: world.library(LAYER),
            drawing: Held::new(Drawing::new(&world)),
            aide: Rc::default(),
            is_new: world.is_replacement(),
            all_go_back: false,
            lost: None,
            restored: (Restored::Nothing, 0),
            restoring: (world.generation() > 0).then(|| world.membership()),
            world: Rc::new(world),
            protection,
            checkpointer: Held::new(checkpointer),
            levels,
            past: Past::default(),
            position: 0,
            is_resuming: false,
            is_ahead: false,
            reached: 0,
            resuming,
            told: 0,
        };
        job.outlast_repairs().map_err(RunError::Ended)?;
        if !job.world.is_parity() {
            return Ok(Some(job));
        }
        while let Err(problem) = job.serve() {
            job.recover(problem, never)?;
        }
        Ok(None)
    }

    /// This process's rank.
    pub fn rank(&self) -> Rank {
        self.world.rank()
    }

    /// Number of ranks that compute.
    pub fn size(&self) -> usize {
        self.world.size()
    }

    /// Runs `program` to its end, through failures; gives what `result` makes of its last state. That is kept until the job
    /// ends, for replacements. [`Program::output`] is not asked: it is there for the program that ends the job ([`Job::last`]).
    ///
    /// # Errors
    /// The job has ended everywhere; with its cause. One of several sections does not go together with
    /// [`OnFailure::Shrink`]: what earlier ones gave each rank cannot be dealt out anew.
    pub fn run<P: Program, T: Field>(
        &mut self,
        program: &mut P,
        result: impl Fn(&P::State) -> T,
    ) -> Result<T, RunError<P::Error>> {
        self.refuse_shrink()?;
        if self.is_at_front() {
            let mut section = Section::new(program);
            while let Err(problem) = section.run(self, &result) {
                self.recover(problem, |error| section.program.status(error))?;
            }
            if self.pacing.over {
                return Err(RunError::Trial);
            }
        }
        self.next_result()
    }

    /// Does `work` on all ranks that compute, and again from its beginning when there is a failure in it; gives its result, which is
    /// kept until the job ends, for replacements. For what is collective between two runs.
    ///
    /// # Errors
    /// As [`Job::run`]. An error of `work` ends the job, but for failures.
    pub fn once<T: Field, E: Error + From<CommError> + 'static>(
        &mut self,
        mut work: impl FnMut(&World) -> Result<T, E>,
    ) -> Result<T, RunError<E>> {
        self.refuse_shrink()?;
        if self.is_at_front() {
            while let Err(problem) = self.try_once(&mut work) {
                self.recover(problem, |_| 1)?;
            }
        }
        self.next_result()
    }

    fn try_once<T: Field, E>(
        &mut self,
        work: &mut impl FnMut(&World) -> Result<T, E>,
    ) -> Result<(), Problem<E>> {
        match self.find::<()>(None, LiveState::GoesBack)? {
            Found::Nothing => {}
            Found::State | Found::Saved => return Err(self.is_elsewhere().into()),
            Found::Result => return Ok(()),
        }
        self.resume()?;
        let result = work(&self.world).map_err(Problem::Program)?;
        Ok(self.end_section(0, result)?)
    }

    /// Runs `program` to its end as the last section, and leaves the job together with all ranks;
    /// gives its last state, and the rank that this process has then. Cheaper than
    /// [`Job::run`] and [`Job::finish`], as nothing is kept of it. If it is the only section, lost ranks need not be replaced
    /// ([`Program::SHRINKS`]).
    ///
    /// # Errors
    /// As [`Job::run`].
    pub fn last<P: Program>(mut self, program: &mut P) -> Result<Finished<P::State>, RunError<P::Error>> {
        if self.world.repair_mode() == OnFailure::Shrink && !P::SHRINKS {
            return Err(self.refuse("this program cannot go on with fewer ranks").of_program());
        }
        let mut section = Section::new(program);
        while let Err(problem) = section.run_as_last(&mut self) {
            self.recover(problem, |error| section.program.status(error))?;
        }
        if self.pacing.over {
            return Err(RunError::Trial);
        }
        Ok(Finished { state: section.kept.state, rank: self.world.rank(), size: self.world.size() })
    }

    /// Leaves the job together with all other ranks. Without it, or [`Job::last`], the job ends with an error.
    ///
    /// # Errors
    /// The job has ended everywhere; with its cause.
    pub fn finish(mut self) -> Result<(), RunError> {
        while let Err(problem) = self.try_to_finish() {
            self.recover(problem, never)?;
        }
        Ok(())
    }

    fn try_to_finish(&mut self) -> Result<(), Problem<Infallible>> {
        match self.find::<()>(None, LiveState::GoesBack)? {
            Found::Nothing => {}
            Found::State | Found::Saved | Found::Result => return Err(self.is_elsewhere().into()),
        }
        self.resume()?;
        Ok(self.conclude(Vec::new(), 0)?)
    }

    /// The world, for collective calls after the last section. A failure in them is an error that cannot be repaired, and ends the
    /// job when `main` returns it: what is to survive is a [`Job::once`].
    ///
    /// # Errors
    /// This process replaces a lost one, and the others have passed this place: such calls stand between two sections. The job
    /// has ended everywhere.
    pub fn world(&self) -> Result<&World, RunError> {
        if self.restoring.is_some() || self.is_ahead || !self.is_at_front() {
            return Err(self.refuse(
                "the communicator is used between two protected runs, where a replacement is alone with its call: \
                 use `Job::once` there",
            ));
        }
        Ok(&self.world)
    }

    /// Whether `main` has all results that there are.
    fn is_at_front(&self) -> bool {
        self.position == self.past.sections()
    }

    /// The result of the section that `main` has come to, which has ended. All ranks get it out of its bytes, as replacements do.
    fn next_result<T: Field, E: Error>(&mut self) -> Result<T, RunError<E>> {
        let result = self.past.result(self.position).transpose();
        match result.map_err(CheckpointError::from).and_then(|result| result.ok_or(self.is_elsewhere())) {
            Ok(result) => {
                self.position += 1;
                Ok(result)
            }
            Err(error) => Err(self.give_up(Problem::Checkpoint(error), |_| 1)),
        }
    }

    /// Takes up what there is of the section that `main` has come to. After a repair this is collective: all go back to the newest
    /// checkpoint. If that is of this section it is loaded into `state`, if there is one and it does not stay as it is.
    pub(super) fn find<S: Protect>(
        &mut self,
        state: Option<&mut Kept<S>>,
        live: LiveState,
    ) -> Result<Found, CheckpointError> {
        let position = self.position;
        let is_fresh =
            self.position == 0 && !self.checkpointer.has_committed() && self.past == Past::default();
        if self.restoring.is_some() || self.resuming.is_some() && is_fresh {
            self.world.activity(activity::REBUILDING);
            let is_here = |constant: &[u8]| {
                Past::read(constant).is_ok_and(|past| past.is_under_way() && past.sections() == position)
            };
            let live = self.who_goes_back(live)?;
            let restored = match self.restoring.clone() {
                Some(repair) => self.restore(&repair, (state, live), &is_here)?,
                None => Restored::Nothing,
            };
            self.restored.0 = restored;
            self.past = match restored {
                Restored::Nothing => self.read_back()?,
                Restored::Epoch(_) => Past::read(self.source().constant())?,
            };
            if self.restoring.is_some() {
                self.is_repaired();
            }
            let is_here = self.is_at_front();
            self.is_ahead = self.past.is_under_way() && !is_here;
            return match is_here {
                true if self.past.is_under_way() => Ok(self.state_is()),
                true => Ok(Found::Nothing),
                false if self.past.sections() > position => Ok(Found::Result),
                false => Err(self.is_elsewhere()),
            };
        }
        if !self.is_ahead {
            return Ok(Found::Nothing);
        }
        self.is_ahead = false;
        if let Some(state) = state.filter(|_| live == LiveState::GoesBack)
            && self.source().has_committed()
        {
            self.source().load_held(state)?;
        }
        Ok(self.state_is())
    }

    /// Whether the live state of this rank stays after a repair, as it does if it can: then all hear of those that go back alone. Collective.
    fn who_goes_back(&mut self, live: LiveState) -> Result<LiveState, CommError> {
        if !self.goes_alone() || self.restoring.is_none() {
            return Ok(live);
        }
        if std::mem::take(&mut self.all_go_back) {
            self.lost = None;
            return Ok(LiveState::GoesBack);
        }
        (_, self.restored.1) = self.checkpointer.held();
        let stays = live == LiveState::Stays;
        self.lost = self.aide.who_goes_back(&self.world, &self.checkpointer, stays, self.is_new)?;
        Ok(if self.lost.is_some() { live } else { LiveState::GoesBack })
    }

    /// Where a state is that is not that of `init`.
    fn state_is(&self) -> Found {
        if self.source().has_committed() { Found::State } else { Found::Saved }
    }

    /// What was over when the checkpoint was taken from which the job goes on; nothing, if it begins. Collective.
    pub(super) fn read_back(&mut self) -> Result<Past, CheckpointError> {
        let Some(resuming) = &mut self.resuming else { return Ok(Past::default()) };
        let (number, past) = resuming.read(&self.world)?;
        self.checkpointer.count_on_from(number);
        Ok(past)
    }

    /// What there is was restored.
    pub(super) fn is_repaired(&mut self) {
        (self.restoring, self.is_resuming) = (None, true);
    }

    /// After a restore: this rank works again where nothing of the section was done yet.
    fn resume(&mut self) -> Result<(), CheckpointError> {
        if self.checkpointer.owes_fresh() {
            let mut kept = Kept::<()> { past: self.past.clone(), ..Kept::default() };
            self.protect_first(&mut kept, true, self.past.steps)?;
        }
        if self.is_resuming {
            self.pacing.recall(&self.world)?;
        }
        self.resumed(self.reached.saturating_sub(self.past.steps));
        self.world.activity(activity::COMPUTING);
        Ok(())
    }

    /// Before this rank works: after a repair the launcher hears of it, and how many steps are done again.
    pub(super) fn resumed(&mut self, steps_lost: u64) {
        if std::mem::take(&mut self.is_resuming) {
            self.tell();
            self.world.resumed(steps_lost);
        }
        self.reached = 0;
    }

    /// The section that `main` has come to ends after so many steps: its result is protected, and with it all before.
    pub(super) fn end_section<T: Field>(&mut self, steps: u64, result: T) -> Result<(), CheckpointError> {
        self.checkpointer.wait(&self.world)?;
        let past = self.past.and(steps, result)?;
        self.world.activity(activity::CHECKPOINT);
        let steps = past.steps;
        let mut kept = Kept::<()> { past, ..Kept::default() };
        self.protect(&mut kept, true, steps)?;
        self.past = kept.past;
        self.pacing.count_time();
        self.world.activity(activity::WAITING);
        Ok(())
    }

    /// Protects a state, after so many steps of the job. One that begins `anew` has its constant part, with its `past`, and is
    /// waited for.
    pub(super) fn protect<S: Protect>(
        &mut self,
        kept: &mut Kept<S>,
        anew: bool,
        steps: u64,
    ) -> Result<(), CheckpointError> {
        if anew {
            self.protect_above(kept)?;
        }
        self.protect_first(kept, anew, steps)?;
        if anew { Ok(()) } else { self.protect_due(kept, self.checkpointer.newest()) }
    }

    /// Protects what was restored anew where that is due: on levels that did not serve, and where doubles were rebuilt with rounding.
    pub(super) fn protect_restored<S: Protect>(&mut self, kept: &mut Kept<S>) -> Result<(), CheckpointError> {
        if self.levels.are_due {
            self.protect_above(kept)?;
        }
        match self.checkpointer.owes_fresh() {
            true => self.protect_first(kept, true, self.past.steps + kept.step),
            false => Ok(()),
        }
    }

    /// As [`Job::protect`], on the first level alone.
    fn protect_first<S: Protect>(
        &mut self,
        kept: &mut Kept<S>,
        anew: bool,
        steps: u64,
    ) -> Result<(), CheckpointError> {
        let anew = anew && self.checkpointer.has_committed();
        self.order(if anew { order::ANEW } else { order::CHECKPOINT }, steps)?;
        if anew {
            self.checkpointer.begin_anew(&self.world)?;
        }
        if self.is_waited_for() {
            return self.checkpointer.checkpoint(&self.world, kept);
        }
        self.checkpointer.begin(&self.world, kept)
    }

    /// Whether the next checkpoint is, and taken again if a copy was damaged: nothing is committed before the first one, nor of what ranks
    /// have after they have closed up.
    pub(super) fn is_waited_for(&self) -> bool {
        self.protection.checkpoints == Checkpoints::Blocking || self.checkpointer.is_bare()
    }

    /// The end of the job, `steps` steps of a program after the sections that are over.
    pub(super) fn conclude(&mut self, output: Vec<u8>, steps: u64) -> Result<(), CheckpointError> {
        self.checkpointer.wait(&self.world)?;
        let steps = self.past.steps + steps;
        self.order(order::FINISH, steps)?;
        self.leave(output, Some(steps))
    }

    /// Leaves the job, after so many steps of those who compute.
    pub(super) fn leave(&mut self, output: Vec<u8>, steps: Option<u64>) -> Result<(), CheckpointError> {
        self.pacing.count_time();
        let interval = steps.map(|steps| self.pacing.report(steps));
        self.checkpointer.stop_spilling();
        let report = RankReport {
            stats: self.levels.add_to(self.checkpointer.stats(), Checkpointer::stats),
            output,
            interval,
        };
        self.world.set_repairs(None)?;
        let world = Rc::get_mut(&mut self.world).expect("nobody else has it where no call outlasts a repair");
        let left = world.finalize(report.to_bytes());
        self.outlast_repairs()?;
        left?;
        // The job has ended well; files that cannot be removed do not change that, and nobody is there to be told.
        let _ = self.checkpointer.remove_files();
        Ok(())
    }

    /// Rank 0 tells the dedicated parity ranks what comes next, and how many steps were done.
    pub(super) fn order(&self, order: u64, step: u64) -> Result<(), CommError> {
        if self.world.rank() > 0 {
            return Ok(());
        }
        (self.world.size()..self.world.total()).try_for_each(|rank| self.orders.send(&[order, step], rank, 0))
    }

    /// Repairs after a failure; any other problem ends the job, with the `status` of an error of the program.
    fn recover<E: Error>(
        &mut self,
        problem: Problem<E>,
        status: impl FnOnce(&E) -> i32,
    ) -> Result<(), RunError<E>> {
        // While the world is interrupted every error is taken for its consequence: what the program makes of the
        // error of a call is its own affair, and an error with another cause comes again.
        match self.aide.left() {
            Some(Left::Wrong(error)) => {
                self.world.goes_back().map_err(RunError::Ended)?;
                return Err(self.give_up(Problem::Checkpoint(error), status));
            }
            Some(Left::Repaired(repair)) => {
                self.world.goes_back().map_err(RunError::Ended)?;
                // Unless there was another failure meanwhile.
                if self.world.check().is_ok() {
                    (self.restoring, self.all_go_back) = (Some(repair), true);
                    return Ok(());
                }
            }
            None => {}
        }
        match self.world.check() {
            Err(error) if error.is_failure() => {
                self.world.activity(activity::WAITING);
                self.world.set_place(None);
                self.pacing.fail();
                let report = self.checkpointer.report().map_err(RunError::Checkpoint)?;
                self.levels.interrupt().map_err(RunError::Checkpoint)?;
                self.all_go_back = false;
                self.tell();
                self.restoring = Some(self.world.repair(report).map_err(RunError::Ended)?);
                self.checkpointer.begin_account();
                self.levels.begin_account();
                Ok(())
            }
            Err(ended) => Err(RunError::Ended(ended)),
            Ok(()) => Err(self.give_up(problem, status)),
        }
    }

    /// The program goes on with this step. It is said only where all ranks take the same.
    pub(super) fn set_place(&self, number: u64) {
        let run = u32::try_from(self.past.sections()).unwrap_or(u32::MAX);
        self.world.set_place(self.meets().then_some((run, self.past.steps + number)));
    }

    fn give_up<E: Error>(&self, problem: Problem<E>, status: impl FnOnce(&E) -> i32) -> RunError<E> {
        match problem {
            Problem::Program(error) => {
                self.world.abort(status(&error), error.to_string());
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
                    CheckpointError::BeyondTolerance(_)
                    | CheckpointError::Unsound { .. }
                    | CheckpointError::Inexact { .. } => 3,
                    CheckpointError::Memory { .. } => 2,
                    _ => 1,
                };
                self.world.abort(code, error.to_string());
                RunError::Checkpoint(error)
            }
        }
    }

    /// Ends the job, as its `main` does what cannot be protected.
    fn refuse(&self, why: &str) -> RunError {
        self.world.abort(MISUSED, why);
        RunError::Checkpoint(CheckpointError::Unfit(why.into()))
    }

    fn refuse_shrink<E: Error>(&self) -> Result<(), RunError<E>> {
        match self.world.repair_mode() {
            OnFailure::Shrink => {
                let why = "`--on-failure shrink` is possible with one protected run only: the results of several cannot be \
                           dealt out over fewer ranks";
                Err(self.refuse(why).of_program())
            }
            OnFailure::Rebuild | OnFailure::Abort | OnFailure::Blank => Ok(()),
        }
    }

    /// `main` has come to another section than the others.
    pub(super) fn is_elsewhere(&self) -> CheckpointError {
        CheckpointError::Unfit(format!(
            "rank {} has come to another place of `main` than the others, who are in protected run {} of the job: `main` has to \
             come to the same runs in the same order, on all ranks and whenever it starts anew",
            self.world.rank(),
            self.past.sections() + 1
        ))
    }
}

fn never(error: &Infallible) -> i32 {
    match *error {}
}
