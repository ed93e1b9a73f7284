//! Checkpoints that messages may cross (`Lines`): when each rank draws its line, and how a run begins, ends and goes back to one.
//!
//! A rank draws its line when its own steps say so, or because others have drawn theirs: it has received a message from behind one, or has been told. Who hears of a line first passes it on to its
//! neighbours in a tree of all ranks, so nobody is waited for and each is told at most once by each neighbour. Who has been told waits a while before it draws: mostly its own steps come there
//! soon, and then no message crosses the line.

use std::time::Duration;

use ft_comm::time::Time;
use ft_comm::{CommError, Communicator, Op, Rank, TagSel, World};

use super::RestorePolicy;
use super::job::{Job, MISUSED, order};
use super::kept::{Kept, Line};
use crate::error::CheckpointError;
use crate::pace::Interval;
use crate::protection::{Lines, Recovery};
use crate::region::Protect;

/// The library layer of the communicator on which ranks are told of lines.
const LAYER: u32 = 2;

/// How long a rank goes on that was told of a line, if its own steps may come there.
const PATIENCE: Duration = Duration::from_secs(1);

/// What a rank knows of lines.
#[derive(Debug)]
pub(super) struct Drawing {
    notices: Communicator,
    /// Lines that this rank has drawn, and that any has, as far as is known here.
    drawn: u64,
    known: u64,
    /// When it was told of one that it has not drawn.
    told_at: Option<Time>,
    /// The steps of its last two lines.
    last: u64,
    before: u64,
}

impl Drawing {
    pub(super) fn new(world: &World) -> Self {
        Self { notices: world.library(LAYER), drawn: 0, known: 0, told_at: None, last: 0, before: 0 }
    }

    /// A run begins at this step, or goes on from there.
    fn begin(&mut self, step: u64) {
        (self.drawn, self.known, self.told_at) = (0, 0, None);
        (self.last, self.before) = (step, step);
    }

    /// Others go back to the last line, and this rank goes on. The line that it has drawn last may be `gone`.
    pub(super) fn go_on(&mut self, gone: bool) {
        (self.drawn, self.known, self.told_at) = (0, 0, None);
        if gone {
            self.last = self.before;
        }
    }

    /// Hears of lines of others, and passes it on.
    fn listen(&mut self, world: &World, now: Time) -> Result<(), CommError> {
        while let Some(status) = self.notices.iprobe(ft_comm::Source::Any, TagSel::Tag(0))? {
            let mut line = [0];
            self.notices.recv(&mut line, status.source, 0)?;
            if line[0] > self.known {
                self.known = line[0];
                self.told_at = Some(now);
                self.tell(world, Some(status.source))?;
            }
        }
        Ok(())
    }

    /// Tells the neighbours of the newest line, but for the one that has told of it.
    fn tell(&self, world: &World, teller: Option<Rank>) -> Result<(), CommError> {
        let (me, size) = (world.rank(), world.size());
        let above = (me > 0).then(|| (me - 1) / 2);
        let all = above.into_iter().chain([2 * me + 1, 2 * me + 2]);
        for rank in all.filter(|rank| *rank < size && Some(*rank) != teller) {
            // Nobody waits for it to leave: this rank may lack credit until the other has received, and that may need what this rank sends next.
            drop(self.notices.isend(vec![self.known], rank, 0)?);
        }
        Ok(())
    }

    /// This rank has drawn a line after a step.
    fn has_drawn(&mut self, world: &World, step: u64) -> Result<(), CommError> {
        self.drawn += 1;
        (self.before, self.last, self.told_at) = (self.last, step, None);
        if self.drawn > self.known {
            self.known = self.drawn;
            self.tell(world, None)?;
        }
        Ok(())
    }
}

impl Job {
    /// Whether messages may cross the lines of this job.
    fn is_lined(&self) -> bool {
        self.protection.lines != Lines::Meet
    }

    /// Whether a program with this policy can have lines that messages cross, if such are asked for.
    pub(super) fn may_draw_lines(&self, restores: RestorePolicy, alone: bool) -> Result<(), CheckpointError> {
        let why = if self.is_lined() && restores == RestorePolicy::LostOnly {
            "ranks of this program keep their states when others are lost: it goes back to no line, `--lines meet` is for it"
        } else if self.goes_alone() && !alone {
            "a rank of this program needs the others to make its state whole (`Program::ALONE`): it cannot go back alone, `--recovery global` is for it"
        } else {
            return Ok(());
        };
        self.world.abort(MISUSED, why);
        Err(CheckpointError::Unfit(why.into()))
    }

    /// Where a state is loaded into, with what belongs to its line.
    pub(super) fn line_of<S>(&self, kept: &mut Kept<S>) {
        if self.is_lined() {
            kept.line.get_or_insert_default();
        }
        if self.goes_alone() {
            kept.tape.get_or_insert_default();
        }
    }

    /// A run begins: no message has crossed its line yet. Before any rank can go on.
    pub(super) fn begin_lines<S>(&mut self, kept: &mut Kept<S>) -> Result<(), CommError> {
        if self.is_lined() {
            kept.line = Some(Line::default());
            self.drawing.begin(kept.step);
            self.world.begin_lines(self.journal())?;
        }
        Ok(())
    }

    /// A state was restored, by all or by this rank `alone`, and with it its line. What was under way there follows when the state is whole.
    pub(super) fn restore_line<S>(&mut self, kept: &Kept<S>, alone: bool) -> Result<(), CommError> {
        if let Some(line) = kept.line.as_ref().filter(|_| self.is_lined()) {
            self.drawing.begin(kept.step);
            if !alone {
                self.world.goes_back()?;
                self.aide.set_replays(false);
            }
            self.world.restore_line(&line.record, self.journal())?;
        }
        Ok(())
    }

    /// The state is whole: what was under way at its line is under way again. Behind [`Job::restore_line`].
    pub(super) fn go_back_to_line(&mut self) -> Result<(), CommError> {
        if self.is_lined() { self.world.go_back_to_line() } else { Ok(()) }
    }

    /// The same where this rank alone goes back, with others that were `lost` too.
    pub(super) fn go_back_alone(&mut self, lost: &[Rank]) -> Result<(), CheckpointError> {
        let is_known = self.world.go_back_alone(lost)?;
        self.aide.require(&self.world, is_known && !self.checkpointer.owes_fresh())?;
        self.aide.set_replays(true);
        Ok(())
    }

    /// Calls of steps outlast repairs from now on, if only the lost go back.
    pub(super) fn outlast_repairs(&self) -> Result<(), CommError> {
        if self.goes_alone() && !self.world.is_parity() {
            self.world.set_repairs(Some(self.aide.repairs(&self.world)))?;
        }
        Ok(())
    }

    /// How many ranks may be lost at once, if only these go back.
    fn journal(&self) -> Option<usize> {
        self.goes_alone().then(|| self.checkpointer.losses_max())
    }

    /// Whether only who was lost goes back.
    pub(super) fn goes_alone(&self) -> bool {
        self.protection.recovery == Recovery::Local && self.is_lined()
    }

    /// Whether the messages that are kept for the lost take as much memory as they may.
    fn is_full(&self) -> Result<bool, CommError> {
        match self.protection.log_memory {
            Some(limit) if self.goes_alone() => Ok(self.world.journal_bytes()? >= limit.get()),
            _ => Ok(false),
        }
    }

    /// Steps begin, or are over.
    pub(super) fn enter_lines(&self, inside: bool) -> Result<(), CommError> {
        if self.is_lined() { self.world.enter_lines(inside) } else { Ok(()) }
    }

    /// Whether the work of this rank was done when its line was drawn.
    pub(super) fn was_done<S>(&self, kept: &Kept<S>) -> bool {
        kept.line.as_ref().is_some_and(|line| line.is_done != 0)
    }

    /// Ends a trial of so many steps. Where ranks take their checkpoints after steps of their own each finds that out by itself, and it
    /// is so again after it has gone back.
    pub(super) fn end_trial<S>(&mut self, kept: &Kept<S>) {
        if !self.meets() {
            self.pacing.end_after(self.past.steps + kept.step);
        }
    }

    /// Whether all ranks take their checkpoints after the same step.
    pub(super) fn meets(&self) -> bool {
        self.protection.lines != Lines::Log
    }

    /// After a step, where each rank draws its line when it comes by: draws it, if it is time.
    pub(super) fn draw_if_due<S: Protect>(&mut self, kept: &mut Kept<S>) -> Result<(), CheckpointError> {
        let now = self.pacing.now();
        self.drawing.listen(&self.world, now)?;
        let is_own = match self.pacing.interval() {
            Interval::Steps(steps) => kept.step - self.drawing.last >= steps,
            Interval::Seconds(_) | Interval::Auto { .. } => {
                self.world.rank() == 0 && self.pacing.is_due(kept.step)
            }
        };
        // A line of others is the next one of this rank. One of its own may be, too, if they have drawn none that it has not.
        let is_told = self.drawing.known > self.drawing.drawn;
        let has_waited = self.drawing.told_at.is_none_or(|at| now.since(at) >= PATIENCE);
        let is_time = is_own
            || self.is_full()?
            || self.world.is_behind_line()?
            || is_told && (has_waited || !matches!(self.pacing.interval(), Interval::Steps(_)));
        if is_time && self.world.may_draw_line()? { self.draw(kept, false) } else { Ok(()) }
    }

    /// Draws the line of this rank.
    fn draw<S: Protect>(&mut self, kept: &mut Kept<S>, is_done: bool) -> Result<(), CheckpointError> {
        let (step, begun) = (kept.step, self.pacing.now());
        self.world.activity(super::activity::CHECKPOINT);
        kept.line = Some(Line { is_done: u64::from(is_done), record: vec![] });
        if self.owes_layout() {
            kept.past = self.past.with_state();
        }
        self.order(order::LINE, self.past.steps + step)?;
        let is_drawn = self.checkpointer.begin_line(&self.world, kept, is_done);
        kept.past = super::kept::Past::default();
        match is_drawn? {
            true => self.drawing.has_drawn(&self.world, step)?,
            false => self.drawing.last = step,
        }
        self.world.activity(super::activity::COMPUTING);
        self.pacing.checkpoint(step, begun);
        Ok(())
    }

    /// After a step at which all ranks take a checkpoint: what is under way is waited for.
    pub(super) fn drain<S: Protect>(&mut self, kept: &mut Kept<S>) -> Result<(), CheckpointError> {
        self.checkpointer.wait(&self.world)?;
        if !self.world.may_draw_line()? {
            let why = format!(
                "a message that this rank has begun to receive, or a collective, is under way after step {}, where all ranks take a checkpoint: wait \
                 for it in the step in which it begins, or use `--lines log`",
                kept.step
            );
            return Err(CheckpointError::Unfit(why));
        }
        kept.line = Some(Line::default());
        if self.owes_layout() {
            kept.past = self.past.with_state();
        }
        self.order(order::LINE, self.past.steps + kept.step)?;
        let is_drawn = self.checkpointer.begin_line(&self.world, kept, true);
        kept.past = super::kept::Past::default();
        is_drawn?;
        self.checkpointer.wait_for_line(&self.world)?;
        if self.is_waited_for() { self.checkpointer.wait(&self.world) } else { Ok(()) }
    }

    /// The work of this rank is done. Until all others' is, it draws its line with them.
    pub(super) fn wait_for_all<S: Protect>(&mut self, kept: &mut Kept<S>) -> Result<(), CheckpointError> {
        if !self.is_lined() {
            return Ok(());
        }
        self.world.enter_lines(false)?;
        if self.meets() {
            return Ok(());
        }
        self.world.activity(super::activity::WAITING);
        // Who is done begins no line. When all are, nobody does.
        let mut all_are_done = self.world.comm().ibarrier()?;
        loop {
            let moves = self.world.moves()?;
            self.attend(kept)?;
            if all_are_done.is_done()? {
                break;
            }
            self.world.await_move(moves)?;
        }
        all_are_done.wait()?;
        let mut last = [self.drawing.drawn];
        self.world.comm().allreduce(&mut last, Op::Max)?;
        self.drawing.known = last[0];
        loop {
            let moves = self.world.moves()?;
            self.attend(kept)?;
            if self.drawing.drawn == last[0] {
                break;
            }
            self.world.await_move(moves)?;
        }
        Ok(())
    }

    /// All are done: what was begun is committed.
    pub(super) fn end_lines(&mut self) -> Result<(), CheckpointError> {
        if self.is_lined() {
            self.checkpointer.fetch_line();
            self.checkpointer.wait(&self.world)?;
            self.world.end_lines()?;
        }
        Ok(())
    }

    /// Others go back to the last line, and this rank goes on where it is.
    pub(super) fn go_on(&mut self, lost: &[Rank]) -> Result<(), CheckpointError> {
        let Self { aide, world, checkpointer, drawing, restored, .. } = self;
        aide.go_on(world, checkpointer, drawing, *restored, lost)
    }

    /// After a step: the launcher hears of it when what the lost rank had done is done again.
    pub(super) fn catch_up(&mut self) -> Result<(), CommError> {
        if let Some(steps) = self.aide.has_caught_up(&self.world)? {
            self.resumed(steps);
        }
        Ok(())
    }

    /// What a rank does for others whose own work is done.
    fn attend<S: Protect>(&mut self, kept: &mut Kept<S>) -> Result<(), CheckpointError> {
        let now = self.pacing.now();
        self.checkpointer.fetch_line();
        self.checkpointer.progress(&self.world)?;
        self.drawing.listen(&self.world, now)?;
        if self.drawing.known > self.drawing.drawn && self.world.may_draw_line()? {
            self.draw(kept, true)?;
            self.checkpointer.progress(&self.world)?;
        }
        Ok(())
    }
}
