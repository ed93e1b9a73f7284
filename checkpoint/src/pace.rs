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

/// The number of steps that fill `seconds` if `steps` of them took `elapsed` seconds. A surprisingly short time is
/// not believed at once: at most twice as many steps as before.
pub(crate) fn steps_in(seconds: f64, steps: u64, elapsed: f64) -> u64 {
    let each = elapsed / steps.max(1) as f64;
    let fit = if each > 0.0 { (seconds / each).round() as u64 } else { u64::MAX };
    fit.clamp(1, steps.max(1).saturating_mul(2))
}

#[cfg(test)]
mod tests {
    use super::steps_in;

    #[test]
    fn steps_fill_the_interval_and_grow_no_faster_than_twofold() {
        assert_eq!(steps_in(1.0, 10, 0.5), 20);
        assert_eq!(steps_in(1.0, 10, 1.6), 6);
        assert_eq!(steps_in(1.0, 10, 0.1), 20, "not 100 at once");
        assert_eq!(steps_in(1.0, 1, 60.0), 1);
        assert_eq!(steps_in(1.0, 0, 0.0), 2);
        assert_eq!(steps_in(1.0, 4, 0.0), 8);
    }
}
