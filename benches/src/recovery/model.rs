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
//! checkpoint interval, Communications of the ACM 17(9), 530-531, 1974), and closer to the one of Daly.

use serde::Serialize;

/// What protection costs, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Costs {
    /// Of one checkpoint, `C`.
    pub checkpoint_s: f64,
    /// Of one recovery, from the failure to the resumption, `R`; without the work that is done again.
    pub recovery_s: f64,
}

impl Costs {
    /// Young's interval in seconds.
    pub fn young_s(&self, mtbf_s: f64) -> f64 {
        (2.0 * self.checkpoint_s * mtbf_s).sqrt()
    }

    /// Daly's interval in seconds; the mean time between failures where checkpoints take more than twice that.
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

    /// The same for a run with as many failures as it happened to have, each of which costs half an interval on average.
    pub fn efficiency_with(&self, failures: usize, work_s: f64, interval_s: f64) -> f64 {
        let Self { checkpoint_s: c, recovery_s: r } = *self;
        let each = r + (interval_s + c) / 2.0;
        work_s / (work_s * (1.0 + c / interval_s) + failures as f64 * each)
    }
}

#[cfg(test)]
mod tests {
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

    /// Daly's interval is within a few percent of the best one, and costs nothing that could be measured.
    #[test]
    fn no_interval_is_better() {
        for (checkpoint_s, recovery_s, mtbf_s) in [(0.15, 0.2, 10.0), (0.15, 0.2, 3600.0), (5.0, 10.0, 900.0)]
        {
            let costs = Costs { checkpoint_s, recovery_s };
            let at = |interval_s: f64| costs.efficiency(mtbf_s, interval_s);
            let (mut low, mut high) = (1e-3 * checkpoint_s, 10.0 * mtbf_s);
            for _ in 0..200 {
                let third = (high - low) / 3.0;
                if at(low + third) < at(high - third) { low += third } else { high -= third }
            }
            let best = low.midpoint(high);
            let daly = costs.daly_s(mtbf_s);
            assert!((daly / best - 1.0).abs() < 0.01, "{daly} and not {best}");
            assert!(at(daly) <= at(best) + 1e-12 && at(daly) > at(best) - 1e-4);
            assert!(at(costs.young_s(mtbf_s)) < at(best));
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

    /// A run with the number of failures that is to be expected is as efficient as is to be expected.
    #[test]
    fn the_failures_that_happened() {
        let costs = Costs { checkpoint_s: 0.1, recovery_s: 0.2 };
        let (mtbf_s, interval_s, work_s) = (100.0, 5.0, 1e6);
        let expected = costs.efficiency(mtbf_s, interval_s);
        let failures = (work_s / expected / mtbf_s) as usize;
        assert!((costs.efficiency_with(failures, work_s, interval_s) / expected - 1.0).abs() < 1e-3);
        // 10 s of work, 5 intervals with 0.5 s, 2 failures of 1 + 2.5 / 2.
        let costs = Costs { checkpoint_s: 0.5, recovery_s: 1.0 };
        assert_eq!(costs.efficiency_with(2, 10.0, 2.0), 10.0 / (10.0 + 2.5 + 4.5));
    }
}
