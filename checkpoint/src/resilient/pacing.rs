//! When the next checkpoint is due, the same on all ranks: rank 0 counts out the steps and tells the others, with all that it has
//! learned.

use std::time::Duration;

use ft_comm::time::{Clock, Time};
use ft_comm::{CommError, Communicator, World};

use crate::pace::{Interval, IntervalReport, Pace};
use crate::trial::Trial;

/// Tag of the word of rank 0 on how many steps it is to the next checkpoint, and why.
const PACE: u32 = 1;

/// How often who waits for a step looks for failures.
const LOOK: Duration = Duration::from_millis(5);

/// What a rank knows of time: its own, and what the job has learned of steps, checkpoints and failures.
#[derive(Debug)]
pub(super) struct Pacing {
    interval: Interval,
    trial: Trial,
    /// The trial is.
    pub(super) over: bool,
    /// The step after which the next checkpoint is due, unless it is counted from the first step.
    due: u64,
    pace: Pace,
    clock: Clock,
    /// Until when time has been counted.
    counted: Time,
    /// The step of the last checkpoint or restore, and when that was over.
    last: (u64, Time),
    /// The time from one step to the next, at least, and when the next one may begin.
    least: Option<Duration>,
    may_begin: Time,
}

impl Pacing {
    pub(super) fn new(interval: Interval, trial: Trial, least: Option<Duration>) -> Self {
        Self {
            interval,
            trial,
            over: false,
            due: 0,
            pace: Pace::default(),
            clock: Clock::start(),
            counted: Time(0),
            last: (0, Time(0)),
            least,
            may_begin: Time(0),
        }
    }

    /// Waits until the next step may begin: at once, unless somebody wants to look on. A failure ends it.
    pub(super) fn await_step(&mut self, world: &World) -> Result<(), CommError> {
        let Some(least) = self.least else { return Ok(()) };
        loop {
            let left = self.may_begin.since(self.now());
            if left.is_zero() {
                break;
            }
            world.check()?;
            std::thread::park_timeout(left.min(LOOK));
        }
        self.may_begin = self.now().after(least);
        Ok(())
    }

    /// Ends a trial that has as many `steps` as it is to have.
    pub(super) fn end_after(&mut self, steps: u64) {
        self.over |= self.trial.is_last(steps);
    }

    /// How often checkpoints are taken.
    pub(super) fn interval(&self) -> Interval {
        self.interval
    }

    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }

    /// Whether a checkpoint is due after step `number`.
    pub(super) fn is_due(&self, number: u64) -> bool {
        match self.interval {
            Interval::Steps(steps) => number.is_multiple_of(steps),
            Interval::Seconds(_) | Interval::Auto { .. } => number >= self.due,
        }
    }

    /// Counts out the steps from `step` to the next checkpoint. It depends on the pace only.
    pub(super) fn count_out(&mut self, step: u64) {
        self.due = step + self.pace.next(self.interval);
        self.last = (step, self.clock.now());
    }

    pub(super) fn count_time(&mut self) {
        let now = self.clock.now();
        self.pace.elapse(now.since(self.counted).as_secs_f64());
        self.counted = now;
    }

    /// A program begins after others: how long its steps take is not known yet.
    pub(super) fn begin_program(&mut self) {
        self.pace.begin_program();
    }

    /// There was a failure.
    pub(super) fn fail(&mut self) {
        self.pace.fail();
    }

    /// A checkpoint after `step`, which was `begun` then, is over.
    pub(super) fn checkpoint(&mut self, step: u64, begun: Time) {
        let (before, since) = self.last;
        self.pace.step(step.saturating_sub(before), begun.since(since).as_secs_f64());
        self.pace.checkpoint(self.clock.now().since(begun).as_secs_f64());
        self.count_time();
        self.count_out(step);
    }

    /// How the interval was chosen, after so many steps of the job.
    pub(super) fn report(&self, steps: u64) -> IntervalReport {
        self.pace.report(self.interval, steps)
    }

    /// Whether what is learned of steps, checkpoints and failures decides when the next checkpoint is taken.
    fn is_paced(&self) -> bool {
        !matches!(self.interval, Interval::Steps(_))
    }

    /// Rank 0 tells the others what it has learned, how many steps it is to the next checkpoint, and whether a trial is over.
    pub(super) fn agree(
        &mut self,
        world: &World,
        orders: &Communicator,
        steps: u64,
    ) -> Result<(), CommError> {
        if !self.is_paced() && !self.trial.is_wanted() {
            return Ok(());
        }
        self.over = self.trial.is_over(self.pace.elapsed(), steps);
        let mut word = [0; Pace::WORDS + 2];
        let (flags, pace) = word.split_at_mut(2);
        flags.copy_from_slice(&[self.due, u64::from(self.over)]);
        pace.copy_from_slice(&self.pace.to_words());
        if world.rank() == 0 {
            return (1..world.size()).try_for_each(|rank| orders.send(&word, rank, PACE));
        }
        orders.recv(&mut word, 0, PACE)?;
        let [due, over, pace @ ..] = word;
        (self.due, self.over, self.pace) = (due, over != 0, Pace::from_words(pace));
        Ok(())
    }

    /// After a repair everybody goes on with what the one knows that has been there longest: rank 0 may be a new one. All
    /// count out the same steps from it, by the same arithmetic. Collective.
    pub(super) fn recall(&mut self, world: &World) -> Result<(), CommError> {
        if !self.is_paced() {
            return Ok(());
        }
        self.count_time();
        let mut all = vec![0; Pace::WORDS * world.size()];
        world.comm().allgather(&self.pace.to_words(), &mut all)?;
        let (all, _) = all.as_chunks();
        self.pace = Pace::longest(all.iter().copied().map(Pace::from_words));
        Ok(())
    }
}
