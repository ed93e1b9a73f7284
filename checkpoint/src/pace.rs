//! When the next checkpoint is due.

use serde::{Deserialize, Serialize};

use crate::interval::{Costs, mtbf_s};

/// How often checkpoints are taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Interval {
    /// After every so many steps.
    Steps(u64),
    /// After about so many seconds. Steps are counted out from the time of those before, so that all ranks take a
    /// checkpoint after the same step.
    Seconds(f64),
    /// After Daly's optimum of work ([`Costs::daly_s`]), for what checkpoints and steps were measured to take and for how
    /// often the job has failed so far ([`mtbf_s`]).
    Auto {
        /// Seconds between two failures of the job as expected beforehand, if anything is.
        mtbf: Option<f64>,
    },
}

/// The interval in use at the end of a run, and what it follows from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IntervalReport {
    /// How it was chosen: "steps", "seconds" or "auto".
    pub chosen: String,
    /// Steps between two checkpoints.
    pub steps: u64,
    /// Seconds of work between two checkpoints.
    pub work_s: f64,
    /// Seconds of one step.
    pub step_s: f64,
    /// Seconds that one checkpoint holds the program, smoothed over the latest; the very first counts only while there is no
    /// other, as it alone has the constant part.
    pub checkpoint_s: f64,
    /// Failures of the job that the survivors know of; with "steps" those since rank 0 was started.
    pub failures: u64,
    /// Estimate of the seconds between two failures of the job; not with "steps".
    pub mtbf_s: Option<f64>,
    /// Daly's interval for these in seconds of work; not with "steps".
    pub optimum_s: Option<f64>,
    /// Steps of the program that were done in the end.
    pub steps_done: u64,
}

/// How much longer than the one before an interval may be, in steps: a surprisingly short time is not believed at once.
const GROWTH_MAX: u64 = 8;
/// Checkpoints over which the time of one is smoothed.
const SMOOTHED: u64 = 8;

/// What a job has learned of its steps, checkpoints and failures, and the interval that follows. Rank 0 counts; all ranks hear of
/// it with every checkpoint, so that it outlives any of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Pace {
    /// Seconds of a step, without checkpoints; 0 while nothing is known.
    each: f64,
    /// Steps of the interval.
    steps: u64,
    /// Seconds of a checkpoint.
    checkpoint: f64,
    /// Checkpoints that were measured.
    taken: u64,
    /// Seconds since the job began.
    elapsed: f64,
    /// Failures in that time.
    failures: u64,
}

impl Pace {
    /// Numbers in [`Pace::to_words`].
    pub(crate) const WORDS: usize = 6;

    /// Time has passed.
    pub(crate) fn elapse(&mut self, seconds: f64) {
        self.elapsed += seconds;
    }

    /// Another program begins: what was learned of steps and checkpoints is that of the one before.
    pub(crate) fn begin_program(&mut self) {
        *self = Self { elapsed: self.elapsed, failures: self.failures, ..Self::default() };
    }

    /// Seconds since the job began.
    pub(crate) fn elapsed(&self) -> f64 {
        self.elapsed
    }

    /// The job was repaired.
    pub(crate) fn fail(&mut self) {
        self.failures += 1;
    }

    /// `steps` more steps took `seconds`.
    pub(crate) fn step(&mut self, steps: u64, seconds: f64) {
        if steps > 0 {
            self.each = seconds / steps as f64;
        }
    }

    /// A checkpoint took `seconds`. The first of all has the constant part too, and is forgotten with the second.
    pub(crate) fn checkpoint(&mut self, seconds: f64) {
        self.checkpoint += (seconds - self.checkpoint) / self.taken.clamp(1, SMOOTHED) as f64;
        self.taken += 1;
    }

    /// Counts out the steps until the next checkpoint.
    pub(crate) fn next(&mut self, interval: Interval) -> u64 {
        let seconds = match interval {
            Interval::Steps(steps) => {
                self.steps = steps;
                return steps;
            }
            Interval::Seconds(seconds) => seconds - self.checkpoint,
            Interval::Auto { mtbf } => self.optimum(mtbf),
        };
        let fit = if self.each > 0.0 { (seconds / self.each).round() as u64 } else { 1 };
        self.steps = fit.clamp(1, self.steps.saturating_mul(GROWTH_MAX).max(1));
        self.steps
    }

    fn mtbf(&self, expected: Option<f64>) -> f64 {
        mtbf_s(expected, self.elapsed, self.failures)
    }

    fn optimum(&self, expected: Option<f64>) -> f64 {
        let costs = Costs { checkpoint_s: self.checkpoint, recovery_s: 0.0 };
        costs.daly_s(self.mtbf(expected))
    }

    /// To tell other ranks.
    pub(crate) fn to_words(self) -> [u64; Self::WORDS] {
        let Self { each, steps, checkpoint, taken, elapsed, failures } = self;
        [each.to_bits(), steps, checkpoint.to_bits(), taken, elapsed.to_bits(), failures]
    }

    /// What another rank has told.
    pub(crate) fn from_words(words: [u64; Self::WORDS]) -> Self {
        let [each, steps, checkpoint, taken, elapsed, failures] = words;
        let (each, checkpoint) = (f64::from_bits(each), f64::from_bits(checkpoint));
        Self { each, steps, checkpoint, taken, elapsed: f64::from_bits(elapsed), failures }
    }

    /// What the one knows that has been there longest; of several the first.
    pub(crate) fn longest(all: impl IntoIterator<Item = Self>) -> Self {
        let longer =
            |longest: Self, other: Self| if other.elapsed > longest.elapsed { other } else { longest };
        all.into_iter().reduce(longer).unwrap_or_default()
    }

    pub(crate) fn report(&self, interval: Interval, steps_done: u64) -> IntervalReport {
        let (chosen, expected) = match interval {
            Interval::Steps(_) => ("steps", None),
            Interval::Seconds(_) => ("seconds", Some(None)),
            Interval::Auto { mtbf } => ("auto", Some(mtbf)),
        };
        IntervalReport {
            chosen: chosen.into(),
            steps: self.steps,
            work_s: self.steps as f64 * self.each,
            step_s: self.each,
            checkpoint_s: self.checkpoint,
            failures: self.failures,
            mtbf_s: expected.map(|expected| self.mtbf(expected)),
            optimum_s: expected.map(|expected| self.optimum(expected)),
            steps_done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Interval, Pace};

    /// `steps` steps in `seconds`, then the number of the next ones.
    fn after(pace: &mut Pace, interval: Interval, steps: u64, seconds: f64) -> u64 {
        pace.step(steps, seconds);
        pace.next(interval)
    }

    #[test]
    fn steps_fill_the_interval_and_their_number_does_not_leap() {
        let (mut pace, second) = (Pace::default(), Interval::Seconds(1.0));
        assert_eq!(after(&mut pace, second, 0, 7.0), 1, "nothing is known");
        assert_eq!(after(&mut pace, second, 1, 0.01), 8, "not 100 at once");
        assert_eq!(after(&mut pace, second, 8, 0.08), 64);
        assert_eq!(after(&mut pace, second, 64, 0.64), 100);
        assert_eq!(after(&mut pace, second, 0, 3.0), 100, "after a restore");
        pace.checkpoint(0.5);
        assert_eq!(after(&mut pace, second, 100, 1.0), 50, "checkpoints are part of it");
        pace.checkpoint(2.0);
        assert_eq!(pace.next(second), 1, "there is no time for work");
        assert_eq!(after(&mut pace, second, 2, 3.0), 1);
        assert_eq!(after(&mut pace, second, 1, 0.0), 1, "a time of nothing says nothing");
        assert_eq!(pace.next(Interval::Steps(7)), 7);
    }

    #[test]
    fn the_first_checkpoint_is_forgotten_and_the_others_are_smoothed() {
        let mut pace = Pace::default();
        pace.checkpoint(9.0);
        assert_eq!(pace.checkpoint, 9.0, "nothing better is known");
        pace.checkpoint(1.0);
        assert_eq!(pace.checkpoint, 1.0);
        pace.checkpoint(2.0);
        assert_eq!(pace.checkpoint, 1.5, "the mean");
        (0..100).for_each(|_| pace.checkpoint(4.0));
        assert!((pace.checkpoint - 4.0).abs() < 1e-3, "the old is forgotten: {pace:?}");
        pace.checkpoint(12.0);
        assert!((pace.checkpoint - 5.0).abs() < 1e-3, "one among many: {pace:?}");
    }

    #[test]
    fn the_optimum_follows_costs_and_failures() {
        // As in the tests of the formula: C = 2 s, M = 100 s.
        let mut pace = Pace { each: 0.01, steps: 1 << 40, checkpoint: 2.0, elapsed: 50.0, ..Pace::default() };
        let auto = Interval::Auto { mtbf: None };
        assert_eq!(pace.next(auto), 1869, "18.69 s");
        let report = pace.report(auto, 7);
        assert_eq!((report.mtbf_s, report.steps, report.steps_done), (Some(100.0), 1869, 7));
        assert!((report.work_s - report.optimum_s.unwrap()).abs() < 0.01, "{report:?}");
        pace.fail();
        pace.elapse(100.0);
        assert_eq!(pace.report(auto, 7).mtbf_s, Some(100.0), "150 s in one and a half");
        (0..9).for_each(|_| pace.fail());
        assert!(pace.next(auto) < 1000);
        let told = Interval::Auto { mtbf: Some(1e6) };
        assert_eq!(Pace::default().report(told, 0).mtbf_s, Some(1e6));
        assert_eq!(pace.report(Interval::Steps(3), 0).mtbf_s, None);
    }

    #[test]
    fn another_program_has_other_steps_and_the_same_failures() {
        let mut pace =
            Pace { each: 1e-6, steps: 1 << 20, checkpoint: 0.5, taken: 9, elapsed: 60.0, failures: 3 };
        pace.begin_program();
        assert_eq!(pace, Pace { elapsed: 60.0, failures: 3, ..Pace::default() });
        assert_eq!(pace.next(Interval::Seconds(1.0)), 1, "nothing is known of its steps");
    }

    #[test]
    fn the_longest_memory_counts() {
        let pace = |elapsed, failures| Pace { elapsed, failures, checkpoint: 0.1, ..Pace::default() };
        let told = Pace::from_words(pace(3.5, 2).to_words());
        assert_eq!(told, pace(3.5, 2));
        assert_eq!(Pace::longest([pace(0.5, 9), told, pace(3.5, 1), pace(2.0, 7)]), told);
        assert_eq!(Pace::longest([]), Pace::default());
    }
}
