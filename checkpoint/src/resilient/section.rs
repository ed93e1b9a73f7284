//! One protected run of a program: from its `init`, or a checkpoint, to its end.

use ft_comm::{CommError, Membership, OnFailure, Op, Rank};

use super::job::{Found, Job};
use super::kept::{Kept, Past};
use super::{Flow, Problem, Program, RestorePolicy, activity};
use crate::checkpointer::{LiveState, RankState};
use crate::error::CheckpointError;
use crate::region::Field;

/// See the module.
pub(super) struct Section<'a, P: Program> {
    pub(super) program: &'a mut P,
    pub(super) kept: Kept<P::State>,
    /// The state is that of a program under way, not one to be restored.
    live: bool,
    /// It is that after a step, and all that it needs of the others is protected: the rank can stay with it where it is when others are lost.
    is_steady: bool,
    /// The work is done.
    is_done: bool,
}

/// What there is of the section before its first step, or the next one.
enum Begun {
    /// A state that is not protected where the next checkpoint goes, after `init` or a shrink; so many steps are done again.
    Bare(u64),
    /// A state that was restored; so many steps are done again.
    Protected(u64),
    /// The section has ended.
    Ended,
}

/// How far the steps have come.
enum Worked {
    /// The section had ended before.
    Before,
    /// The work is done.
    Done,
    /// A trial is over.
    Over,
}

impl<'a, P: Program> Section<'a, P> {
    pub(super) fn new(program: &'a mut P) -> Self {
        Self { program, kept: Kept::default(), live: false, is_steady: false, is_done: false }
    }

    /// Everything from the start or the last repair to the commit of the result. A trial that is over ends the job.
    pub(super) fn run<T: Field>(
        &mut self,
        job: &mut Job,
        result: &impl Fn(&P::State) -> T,
    ) -> Result<(), Problem<P::Error>> {
        match self.work(job)? {
            Worked::Before => {}
            Worked::Over => job.conclude(Vec::new(), self.kept.step)?,
            Worked::Done => {
                job.end_section(self.kept.step, result(&self.kept.state))?;
            }
        }
        Ok(())
    }

    /// Everything from the start or the last repair to the end of the job.
    pub(super) fn run_as_last(&mut self, job: &mut Job) -> Result<(), Problem<P::Error>> {
        let output = match self.work(job)? {
            Worked::Before => return Err(job.is_elsewhere().into()),
            Worked::Over => Vec::new(),
            Worked::Done => {
                self.program.output(&mut self.kept.state, &job.world).map_err(Problem::Program)?
            }
        };
        Ok(job.conclude(output, self.kept.step)?)
    }

    /// Step after step, with checkpoints between them, until the work is done or a trial is over.
    fn work(&mut self, job: &mut Job) -> Result<Worked, Problem<P::Error>> {
        job.reached = job.reached.max(job.past.steps + self.kept.step);
        job.pacing.over = false;
        job.may_draw_lines(P::RESTORE, P::ALONE)?;
        job.line_of(&mut self.kept);
        let begun = self.begin(job)?;
        if let Begun::Ended = begun {
            return Ok(Worked::Before);
        }
        self.live = true;
        self.take_up(job, begun)?;
        (self.is_steady, job.is_new) = (true, false);
        let worked = self.take_steps(job)?;
        job.wait_for_all(&mut self.kept)?;
        // From here on nobody could be fed.
        self.is_steady = false;
        job.end_lines()?;
        Ok(worked)
    }

    fn take_steps(&mut self, job: &mut Job) -> Result<Worked, Problem<P::Error>> {
        job.enter_lines(true)?;
        job.end_trial(&self.kept);
        if self.is_done || job.was_done(&self.kept) {
            job.catch_up()?;
            // A rank at the end of a trial is done in its line, too.
            return Ok(if job.pacing.over { Worked::Over } else { Worked::Done });
        }
        while !job.pacing.over {
            let number = self.kept.step + 1;
            job.pacing.await_step(&job.world)?;
            job.set_place(number);
            job.world.step(job.past.steps + number)?;
            self.is_steady = false;
            let flow = self.step(job, number)?;
            self.is_steady = true;
            self.kept.step = number;
            self.is_done = flow == Flow::Done;
            job.catch_up()?;
            job.end_trial(&self.kept);
            if self.is_done && !job.pacing.over {
                job.world.activity(activity::WAITING);
                job.world.report_done();
                return Ok(Worked::Done);
            }
            // Calls that wait from now on belong to the next step.
            job.set_place(number + 1);
            job.checkpointer.progress(&job.world)?;
            if !job.meets() {
                job.draw_if_due(&mut self.kept)?;
            } else if job.pacing.is_due(number) {
                self.checkpoint(job, false)?;
            }
            job.tell_of_checkpoint();
        }
        Ok(Worked::Over)
    }

    /// A step of the program; where only the lost go back, its calls outlast repairs.
    fn step(&mut self, job: &mut Job, number: u64) -> Result<Flow, Problem<P::Error>> {
        let Self { program, kept, .. } = self;
        if !job.goes_alone() {
            return program.step(&mut kept.state, &job.world, number).map_err(Problem::Program);
        }
        let Job { world, aide, checkpointer, pacing, drawing, .. } = job;
        aide.lend(checkpointer, pacing, drawing);
        let flow = program.step(&mut kept.state, &*world, number);
        aide.take_back(checkpointer, pacing, drawing);
        flow.map_err(Problem::Program)
    }

    /// Before the first step: what ranks have is protected.
    fn take_up(&mut self, job: &mut Job, begun: Begun) -> Result<(), Problem<P::Error>> {
        if job.is_resuming {
            job.pacing.recall(&job.world)?;
        }
        match begun {
            // What was laid out anew is protected before anybody works.
            Begun::Bare(steps_lost) => {
                if job.past.sections() > 0 {
                    job.pacing.begin_program();
                }
                job.begin_lines(&mut self.kept)?;
                self.record(job)?;
                self.checkpoint(job, true)?;
                job.resumed(steps_lost);
            }
            Begun::Protected(steps_lost) => {
                if job.levels.are_due || job.checkpointer.owes_fresh() {
                    self.kept.past = job.past.with_state();
                    job.protect_restored(&mut self.kept)?;
                    self.kept.past = Past::default();
                }
                if !job.aide.replays() {
                    job.resumed(steps_lost);
                }
                job.pacing.count_out(self.kept.step);
            }
            Begun::Ended => {}
        }
        job.world.activity(activity::COMPUTING);
        Ok(())
    }

    /// Makes or restores the state.
    fn begin(&mut self, job: &mut Job) -> Result<Begun, Problem<P::Error>> {
        let was_done = std::mem::take(&mut self.is_done);
        if let Some(repair) = &job.restoring
            && job.world.repair_mode() == OnFailure::Shrink
        {
            job.checkpointer.follow(repair);
            if job.checkpointer.has_empty_homes() {
                job.world.activity(activity::REBUILDING);
                let repair = repair.clone();
                return self.close_up(job, &repair);
            }
        }
        let is_steady = std::mem::take(&mut self.is_steady) && job.goes_alone();
        let keeps = P::RESTORE == RestorePolicy::LostOnly && self.live || is_steady;
        let live = if keeps { LiveState::Stays } else { LiveState::GoesBack };
        match job.find(Some(&mut self.kept), live)? {
            Found::Result => return Ok(Begun::Ended),
            Found::Saved => return self.resume(job),
            Found::Nothing => {
                self.start(job)?;
                return Ok(Begun::Bare(self.steps_lost(job)));
            }
            Found::State => {}
        }
        match job.lost.take() {
            Some(lost) if is_steady => {
                self.is_done = was_done;
                job.go_on(&lost)?;
                return Ok(Begun::Protected(0));
            }
            Some(lost) => {
                job.restore_line(&self.kept, true)?;
                self.rebuild_alone(job)?;
                job.go_back_alone(&lost)?;
            }
            None => {
                job.restore_line(&self.kept, false)?;
                self.rebuild_together(job)?;
                job.go_back_to_line()?;
            }
        }
        let begun = if job.has_fallen_back() { Begun::Bare } else { Begun::Protected };
        if P::RESTORE == RestorePolicy::Global {
            return Ok(begun(self.steps_lost(job)));
        }
        let lost = self.settle(job, keeps)?;
        let again = self.program.reconcile(&mut self.kept.state, &job.world, &lost);
        again.map(begun).map_err(Problem::Program)
    }

    /// Takes up the state that another job has left in files.
    fn resume(&mut self, job: &mut Job) -> Result<Begun, Problem<P::Error>> {
        let resuming = job.resuming.as_mut().expect("it was read from there");
        let (before, now) = (resuming.before(), job.world.size());
        let refused = |why| CheckpointError::ResumedRanks { before, now, why };
        let (mut shares, memory) = resuming.states::<Kept<P::State>>()?;
        if before == now {
            job.checkpointer.take_memory(memory);
            let own = shares.pop().expect("each rank has read its own");
            (self.kept.step, self.kept.state) = (own.state.step, own.state.state);
        } else {
            if !P::SHRINKS {
                return Err(refused("this program cannot go on with another number of ranks").into());
            }
            if now > before && !P::GROWS {
                return Err(refused("this program cannot go on with more ranks").into());
            }
            let mut step = [shares.first().map_or(0, |share| share.state.step)];
            job.world.comm().allreduce(&mut step, Op::Max)?;
            self.kept.step = step[0];
            let shares = shares.into_iter().map(inner).collect();
            let dealt = self.program.redistribute(shares, before, &job.world);
            self.kept.state = dealt.map_err(Problem::Program)?;
        }
        self.program.rebuild(&mut self.kept.state, &job.world).map_err(Problem::Program)?;
        if P::RESTORE == RestorePolicy::LostOnly {
            let lost = self.settle(job, false)?;
            let _ =
                self.program.reconcile(&mut self.kept.state, &job.world, &lost).map_err(Problem::Program)?;
        }
        Ok(Begun::Bare(self.steps_lost(job)))
    }

    fn start(&mut self, job: &Job) -> Result<(), Problem<P::Error>> {
        if job.goes_alone() {
            job.world.goes_back()?;
        }
        self.kept.step = 0;
        self.kept.state = self.program.init(&job.world).map_err(Problem::Program)?;
        Ok(())
    }

    /// Where only the lost go back: what they will need of the others to make their states whole is kept with these.
    fn record(&mut self, job: &Job) -> Result<(), Problem<P::Error>> {
        let Some(tape) = &mut self.kept.tape else { return Ok(()) };
        job.world.record_tape()?;
        self.program.rebuild(&mut self.kept.state, &job.world).map_err(Problem::Program)?;
        *tape = job.world.take_tape()?;
        Ok(())
    }

    /// Makes the state whole as all ranks do. Where a rank may go back alone later, communicators
    /// are those of the record: it will make these.
    fn rebuild_together(&mut self, job: &Job) -> Result<(), Problem<P::Error>> {
        let Some(tape) = &self.kept.tape else {
            return self.program.rebuild(&mut self.kept.state, &job.world).map_err(Problem::Program);
        };
        job.world.repeat_together(tape)?;
        self.program.rebuild(&mut self.kept.state, &job.world).map_err(Problem::Program)?;
        Ok(job.world.end_together()?)
    }

    /// Makes the state whole without the others, which wait.
    fn rebuild_alone(&mut self, job: &Job) -> Result<(), Problem<P::Error>> {
        job.world.play_tape(self.kept.tape.as_deref().unwrap_or_default())?;
        self.program.rebuild(&mut self.kept.state, &job.world).map_err(Problem::Program)?;
        Ok(job.world.end_tape()?)
    }

    /// How many steps are done again after a restore.
    fn steps_lost(&self, job: &Job) -> u64 {
        job.reached.saturating_sub(job.past.steps + self.kept.step)
    }

    /// All ranks go on with the step of the one that is furthest; gives those that have not kept their state.
    fn settle(&mut self, job: &Job, keeps: bool) -> Result<Vec<Rank>, CommError> {
        let mut all = vec![0; 2 * job.world.size()];
        job.world.comm().allgather(&[u64::from(!keeps), self.kept.step], &mut all)?;
        self.kept.step = all.iter().skip(1).step_by(2).copied().max().unwrap_or(0);
        Ok((0..job.world.size()).filter(|rank| all[2 * rank] == 1).collect())
    }

    /// Ranks are missing and nobody takes their place: the others share their state, or do without.
    fn close_up(&mut self, job: &mut Job, repair: &Membership) -> Result<Begun, Problem<P::Error>> {
        let steps_lost = match P::RESTORE {
            RestorePolicy::Global => self.deal_out(job, repair)?,
            RestorePolicy::LostOnly => self.go_on_without(job, repair)?,
        };
        let begun = match steps_lost {
            Some(steps_lost) => Begun::Bare(steps_lost),
            None => self.begin_again(job)?,
        };
        job.checkpointer.lay_out_anew(&job.world)?;
        job.is_repaired();
        Ok(begun)
    }

    /// Nothing was committed: from `init`, or from the files from which the job goes on.
    fn begin_again(&mut self, job: &mut Job) -> Result<Begun, Problem<P::Error>> {
        job.past = job.read_back()?;
        if job.past.is_under_way() {
            return self.resume(job);
        }
        self.start(job)?;
        Ok(Begun::Bare(job.reached))
    }

    /// The states of a checkpoint are dealt out over the ranks that are left; none if nothing was committed.
    fn deal_out(&mut self, job: &mut Job, repair: &Membership) -> Result<Option<u64>, Problem<P::Error>> {
        let before = job.checkpointer.ranks_before();
        let Some(shares) = job.checkpointer.gather(&job.world, repair, &mut self.kept)? else {
            return Ok(None);
        };
        self.kept.step = shares.first().map_or(0, |share| share.state.step);
        let shares = shares.into_iter().map(inner).collect();
        let dealt = self.program.redistribute(shares, before, &job.world);
        self.kept.state = dealt.map_err(Problem::Program)?;
        self.program.rebuild(&mut self.kept.state, &job.world).map_err(Problem::Program)?;
        Ok(Some(self.steps_lost(job)))
    }

    /// All keep their live states; none if somebody never began: it has nothing to go on with, and then nobody has got far.
    fn go_on_without(
        &mut self,
        job: &mut Job,
        repair: &Membership,
    ) -> Result<Option<u64>, Problem<P::Error>> {
        job.checkpointer.pass_over(&job.world, repair, &mut self.kept)?;
        if !self.settle(job, self.live)?.is_empty() {
            return Ok(None);
        }
        self.program.rebuild(&mut self.kept.state, &job.world).map_err(Problem::Program)?;
        let again = self.program.reconcile(&mut self.kept.state, &job.world, &[]);
        again.map(Some).map_err(Problem::Program)
    }

    /// One that begins `anew` has the constant part of the state too; it does where redundancy is to be laid over other hosts.
    fn checkpoint(&mut self, job: &mut Job, anew: bool) -> Result<(), Problem<P::Error>> {
        // A line takes care of that itself.
        let anew = anew || self.kept.line.is_none() && job.owes_layout();
        let (step, steps) = (self.kept.step, job.past.steps + self.kept.step);
        let begun = job.pacing.now();
        job.world.activity(activity::CHECKPOINT);
        if anew {
            self.kept.past = job.past.with_state();
        }
        match self.kept.line {
            Some(_) if !anew => job.drain(&mut self.kept)?,
            _ => job.protect(&mut self.kept, anew, steps)?,
        }
        self.kept.past = Past::default();
        job.world.activity(activity::COMPUTING);
        job.pacing.checkpoint(step, begun);
        Ok(job.pacing.agree(&job.world, &job.orders, steps)?)
    }
}

/// The state of a program alone.
fn inner<S>(share: RankState<Kept<S>>) -> RankState<S> {
    RankState { rank: share.rank, state: share.state.state }
}
