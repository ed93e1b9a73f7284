//! How long work takes under failures, and the interval between checkpoints that makes it shortest.
//!
//! Failures come at random with a mean time `M` between them (of the job, not of a rank). A checkpoint takes `C` and is
//! taken whenever `t` of work are done since the last one; after a failure the recovery takes `R`, may itself be struck,
//! and the work since the checkpoint is done again. Then `W` of work takes
//!
//! ```text
//! M exp(R / M) (exp((t + C) / M) - 1) W / t
//! ```
//!
//! (J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart dumps, Future Generation
//! Computer Systems 22(3), 303-312, 2006, doi 10.1016/j.future.2004.11.016, its complete model). The `t` that makes it
//! least is close to `sqrt(2 C M)` as long as `C` is small (J. W. Young, A first order approximation to the optimum
//! checkpoint interval, Communications of the ACM 17(9), 530-531, 1974), and closer to the one of Daly. All times are in
//! seconds.

use serde::{Deserialize, Serialize};

/// What protection costs, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// Of one checkpoint, `C`: what the program is held.
    pub checkpoint_s: f64,
    /// Of one recovery, from the failure to the resumption, `R`; without the work that is done again.
    pub recovery_s: f64,
}

impl Costs {
    /// Young's interval in seconds of work, `sqrt(2 C M)`.
    pub fn young_s(&self, mtbf_s: f64) -> f64 {
        (2.0 * self.checkpoint_s * mtbf_s).sqrt()
    }

    /// Daly's interval in seconds of work; the mean time between failures where checkpoints take more than twice that.
    /// `sqrt(2 C M) (1 + sqrt(x) / 3 + x / 9) - C` with `x = C / 2M`.
    pub fn daly_s(&self, mtbf_s: f64) -> f64 {
        let Self { checkpoint_s: c, .. } = *self;
        if c >= 2.0 * mtbf_s {
            return mtbf_s;
        }
        let x = c / (2.0 * mtbf_s);
        self.young_s(mtbf_s) * (1.0 + x.sqrt() / 3.0 + x / 9.0) - c
    }

    /// Work over time, between 0 and 1, with a checkpoint after every `interval_s` of work.
    pub fn efficiency(&self, mtbf_s: f64, interval_s: f64) -> f64 {
        let Self { checkpoint_s: c, recovery_s: r } = *self;
        if interval_s + c == 0.0 {
            // The limit: nothing is done again, and checkpoints are free.
            return (-r / mtbf_s).exp();
        }
        interval_s / (mtbf_s * (r / mtbf_s).exp() * ((interval_s + c) / mtbf_s).exp_m1())
    }

    /// Seconds that a run takes with as many failures as it happened to have, each of which costs a recovery and half an
    /// interval on average: to first order, where failures are rare.
    pub fn seconds_with(&self, failures: usize, work_s: f64, interval_s: f64) -> f64 {
        let Self { checkpoint_s: c, recovery_s: r } = *self;
        let each = r + (interval_s + c) / 2.0;
        work_s * (1.0 + c / interval_s) + failures as f64 * each
    }

    /// Work over time for such a run.
    pub fn efficiency_with(&self, failures: usize, work_s: f64, interval_s: f64) -> f64 {
        work_s / self.seconds_with(failures, work_s, interval_s)
    }
}

/// The mean time between failures, in seconds, of a job that had so many `failures` in `elapsed_s`, where
/// `expected_s` was expected beforehand.
///
/// The posterior mean of the rate of a Poisson process, turned over: `(expected / 2 + elapsed) / (1 / 2 + failures)`.
/// Without an expectation this is Jeffreys' prior, which knows no scale of time (H. Jeffreys, An invariant form for the prior
/// probability in estimation problems, Proceedings of the Royal Society A 186, 453-461, 1946): a job without failures expects
/// none for twice the time that it has run. An expectation weighs as much as half a failure.
pub fn mtbf_s(expected_s: Option<f64>, elapsed_s: f64, failures: u64) -> f64 {
    (expected_s.unwrap_or(0.0) / 2.0 + elapsed_s) / (0.5 + failures as f64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MINUTE: f64 = 60.0;

    /// The captions of figures in Daly's paper: C = 5 min and M = 24 h, 6 h, 15 min.
    #[test]
    fn intervals_printed_by_daly() {
        let costs = Costs { checkpoint_s: 5.0 * MINUTE, recovery_s: 0.0 };
        for (mtbf_min, expected) in [(24.0 * 60.0, 117.0), (360.0, 57.0), (15.0, 9.1)] {
            let minutes = costs.daly_s(mtbf_min * MINUTE) / MINUTE;
            assert!((minutes / expected - 1.0).abs() < 0.01, "{minutes} and not {expected}");
        }
    }

    #[test]
    fn intervals_by_hand() {
        let costs = Costs { checkpoint_s: 2.0, recovery_s: 0.0 };
        // sqrt(2 * 2 * 100) = 20; x = 2 / 200 = 0.01: 20 * (1 + 0.1 / 3 + 0.01 / 9) - 2
        assert_eq!(costs.young_s(100.0), 20.0);
        assert!((costs.daly_s(100.0) - 18.688_888_888_888_89).abs() < 1e-12);
        assert_eq!(costs.daly_s(1.0), 1.0);
        assert_eq!(costs.daly_s(0.5), 0.5);
    }

    /// Where a function with one maximum has it (J. Kiefer, Sequential minimax search for a maximum, 1953).
    fn golden_section(f: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
        let ratio = (5f64.sqrt() - 1.0) / 2.0;
        while high - low > 1e-9 * high {
            let part = ratio * (high - low);
            if f(high - part) < f(low + part) { low = high - part } else { high = low + part }
        }
        low.midpoint(high)
    }

    proptest! {
        /// Daly's interval is within a percent of the best one where checkpoints are short, and costs nothing that could be
        /// measured; Young's is worse. What a recovery takes makes no difference.
        #[test]
        fn no_interval_is_better(
            mtbf_s in 0.1..1e6f64,
            checkpoints in 1e-6..0.05f64,
            recoveries in 0.0..0.5f64,
        ) {
            let costs = Costs { checkpoint_s: checkpoints * mtbf_s, recovery_s: recoveries * mtbf_s };
            let at = |interval_s: f64| costs.efficiency(mtbf_s, interval_s);
            let (daly, young) = (costs.daly_s(mtbf_s), costs.young_s(mtbf_s));
            let best = golden_section(at, 1e-3 * costs.checkpoint_s, 10.0 * mtbf_s);
            prop_assert!((daly / best - 1.0).abs() < 0.01, "{} and not {}", daly, best);
            prop_assert!(at(daly) <= at(best) * (1.0 + 1e-9) && at(daly) > at(best) * (1.0 - 1e-4));
            prop_assert!((young / best - 1.0).abs() > (daly / best - 1.0).abs());
        }

        /// A run with the failures that are to be expected takes as long as is to be expected.
        #[test]
        fn the_failures_that_are_expected(
            mtbf_s in 1.0..1e4f64,
            checkpoints in 1e-4..1e-3f64,
            recoveries in 1e-4..1e-3f64,
        ) {
            let costs = Costs { checkpoint_s: checkpoints * mtbf_s, recovery_s: recoveries * mtbf_s };
            let (work_s, interval_s) = (1e5 * mtbf_s, costs.daly_s(mtbf_s));
            let expected = costs.efficiency(mtbf_s, interval_s);
            let failures = (work_s / expected / mtbf_s) as usize;
            let with = costs.efficiency_with(failures, work_s, interval_s);
            prop_assert!((with / expected - 1.0).abs() < 2e-3, "{} and not {}", with, expected);
        }
    }

    #[test]
    fn rare_failures_leave_all_the_time_to_the_work() {
        let costs = Costs { checkpoint_s: 0.1, recovery_s: 0.3 };
        let best = |mtbf_s: f64| costs.efficiency(mtbf_s, costs.daly_s(mtbf_s));
        let all: Vec<f64> = (0..9).map(|power| best(10f64.powi(power))).collect();
        assert!(all.is_sorted() && all[0] > 0.0 && all[0] < 0.6, "{all:?}");
        assert!((1.0 - all[8]).abs() < 1e-4, "{all:?}");
        let free = Costs { checkpoint_s: 0.0, recovery_s: 1.0 };
        assert!((free.efficiency(2.0, 0.0) - free.efficiency(2.0, 1e-9)).abs() < 1e-6);
        // Work that never comes to a checkpoint.
        assert_eq!(costs.efficiency(1e-6, 1.0), 0.0);
    }

    #[test]
    fn the_failures_that_happened() {
        // 10 s of work, 5 intervals with 0.5 s, 2 failures of 1 + 2.5 / 2.
        let costs = Costs { checkpoint_s: 0.5, recovery_s: 1.0 };
        assert_eq!(costs.seconds_with(2, 10.0, 2.0), 10.0 + 2.5 + 4.5);
        assert_eq!(costs.efficiency_with(2, 10.0, 2.0), 10.0 / (10.0 + 2.5 + 4.5));
    }

    #[test]
    fn failures_outweigh_what_was_expected() {
        assert_eq!(mtbf_s(None, 100.0, 0), 200.0);
        assert_eq!(mtbf_s(None, 100.0, 2), 40.0);
        assert_eq!(mtbf_s(Some(86_400.0), 0.0, 0), 86_400.0, "nothing is known yet");
        let day_expected = |failures: u64| mtbf_s(Some(86_400.0), failures as f64 * 2.0, failures);
        assert!((day_expected(100_000) / 2.0 - 1.0).abs() < 0.3 && day_expected(10) > 1000.0);
    }
}
