//! When the next checkpoint is due.

/// How often checkpoints are taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Interval {
    /// After every so many steps.
    Steps(u64),
    /// After about so many seconds. Steps are counted out from the time of those before, so that all ranks take a
    /// checkpoint after the same step.
    Seconds(f64),
}

/// How much longer than the one before an interval may be, in steps: a surprisingly short time is not believed at once.
const GROWTH_MAX: u64 = 8;

/// Counts out steps to fill an interval of seconds. What was learned of the steps outlives a restore.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Pace {
    /// Seconds of a step; 0 while nothing is known.
    each: f64,
    /// Steps of the interval before.
    steps: u64,
}

impl Pace {
    /// `steps` more steps took `elapsed` seconds; gives the number of steps until the next checkpoint.
    pub(crate) fn next(&mut self, seconds: f64, steps: u64, elapsed: f64) -> u64 {
        if steps > 0 {
            self.each = elapsed / steps as f64;
        }
        let fit = if self.each > 0.0 { (seconds / self.each).round() as u64 } else { 1 };
        self.steps = fit.clamp(1, self.steps.saturating_mul(GROWTH_MAX).max(1));
        self.steps
    }
}

#[cfg(test)]
mod tests {
    use super::Pace;

    #[test]
    fn steps_fill_the_interval_and_their_number_does_not_leap() {
        let mut pace = Pace::default();
        assert_eq!(pace.next(1.0, 0, 7.0), 1, "nothing is known");
        assert_eq!(pace.next(1.0, 1, 0.01), 8, "not 100 at once");
        assert_eq!(pace.next(1.0, 8, 0.08), 64);
        assert_eq!(pace.next(1.0, 64, 0.64), 100);
        assert_eq!(pace.next(1.0, 0, 3.0), 100, "after a restore");
        assert_eq!(pace.next(1.0, 2, 3.0), 1);
        assert_eq!(pace.next(1.0, 1, 0.0), 1, "a time of nothing says nothing");
    }
}
