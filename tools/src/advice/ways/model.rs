//! What a way to go back costs: how long work takes under failures, and the interval between checkpoints that makes it shortest.
//!
//! Failures come at random with a mean time `M` between them (of the job, not of a rank). A checkpoint holds the program for `C` and is
//! taken whenever `t` of work are done since the last one. What keeps messages for a failure makes work longer by the share `o`: so the
//! time from checkpoint to checkpoint is `S = t (1 + o) + C`. After a failure the recovery takes `R`, and may itself be struck. Then the job
//! is held up by the share `k` of the time `x` since the last checkpoint: it is at `(1 - k) x`.
//!
//! - All ranks go back (`global`, `lines`): `k` is 1.
//! - Only the lost goes back (`local`): it does again what it had done, as fast as it is fed, and others wait as far as they need it. How much of
//!   that holds up the job is measured: 0 where nobody waits, 1 where all wait for work as slow as the first time, more where that is slower.
//!
//! The time `g(x)` to come to `x` follows `g' = exp(R / M) + (g(x) - g((1 - k) x)) / M`, `g(0) = 0`, as recoveries take `M (exp(R / M) - 1)` on
//! average. With `q = 1 - k` and `z = S / M` that is
//!
//! ```text
//! g(S) = M exp(R / M) sum over n >= 1 of z^n / n! (1 - q) (1 - q^2) ... (1 - q^(n - 1))
//! ```
//!
//! With `k = 1` the sum is `exp(z) - 1`: the complete model of Daly, with `t + C` stretched by `o` (J. T. Daly, A higher order estimate of the
//! optimum checkpoint interval for restart dumps, Future Generation Computer Systems 22(3), 303-312, 2006). With `k = 0` it is `z`: a failure
//! costs its recovery alone. To first order a failure costs `R + k S / 2`, and the best `t` is `sqrt(2 C M / k) / (1 + o)`; without `o` and `k` that is
//! the interval of Young (J. W. Young, A first order approximation to the optimum checkpoint interval, Communications of the ACM 17(9), 530-531,
//! 1974). What `k` is above 1 goes into `R`, as `(k - 1) S / 2`.
//!
//! What it takes for granted: work is done again at one speed, however much of it there is (a replay of very many messages is not); a checkpoint
//! costs the same however many messages it has to keep, and `o` does not depend on the interval; more ranks than the scheme survives are never
//! lost at once. After a third repair without a checkpoint all ranks go back in the program, so intervals are no longer than `M`. All times are in
//! seconds.

use serde::Serialize;

/// What a way to go back costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct WayCosts {
    /// Seconds that the program is held for a checkpoint, `C`.
    pub checkpoint_s: f64,
    /// Time beyond the work without a failure and without checkpoints, as a share of the work: `o`.
    pub log: f64,
    /// Seconds of a recovery without the work that is done again, `R`.
    pub recovery_s: f64,
    /// Share of the work done again that holds up the job: `k`.
    pub held: f64,
}

/// More in the exponent is for ever.
const EXPONENT_MAX: f64 = 700.0;
/// The shortest interval that is looked at, over the mean time between failures.
const SHORTEST: f64 = 1e-9;
/// Below this the mean of what is lost is half of it.
const SMALL: f64 = 1e-4;

impl WayCosts {
    /// Seconds from checkpoint to checkpoint without a failure, with one after every `interval_s` of work: `S`.
    fn span_s(&self, interval_s: f64) -> f64 {
        interval_s * (1.0 + self.log) + self.checkpoint_s
    }

    /// What a failure takes beside the share of the work that the sum knows.
    fn fixed_s(&self, span_s: f64) -> f64 {
        self.recovery_s + (self.held - 1.0).max(0.0) * span_s / 2.0
    }

    /// Seconds that `interval_s` of work take with the checkpoint behind them: `g(S)`.
    pub fn seconds_for(&self, mtbf_s: f64, interval_s: f64) -> f64 {
        let span_s = self.span_s(interval_s);
        mtbf_s * (self.fixed_s(span_s) / mtbf_s).exp() * self.sum(span_s / mtbf_s)
    }

    fn sum(&self, z: f64) -> f64 {
        let held = self.held.clamp(0.0, 1.0);
        if held == 0.0 {
            return z;
        }
        if held == 1.0 {
            return z.exp_m1();
        }
        if z > EXPONENT_MAX {
            return f64::INFINITY;
        }
        let (q, mut term, mut power, mut sum) = (1.0 - held, z, 1.0, 0.0);
        for n in 1.. {
            sum += term;
            power *= q;
            term *= z * (1.0 - power) / f64::from(n + 1);
            // Behind its largest one each term is less than half of the one before, soon.
            if term <= sum * f64::EPSILON && f64::from(n) > z {
                break;
            }
        }
        sum
    }

    /// Time beyond the work as a share of the work, with a checkpoint after every `interval_s` of work.
    pub fn overhead(&self, mtbf_s: f64, interval_s: f64) -> f64 {
        self.seconds_for(mtbf_s, interval_s) / interval_s - 1.0
    }

    /// Seconds that `work_s` of work are expected to take.
    pub fn total_s(&self, work_s: f64, mtbf_s: f64, interval_s: f64) -> f64 {
        work_s * (1.0 + self.overhead(mtbf_s, interval_s))
    }

    /// The seconds of work between two checkpoints that cost the least; no more than the mean time between failures.
    pub fn best_interval_s(&self, mtbf_s: f64) -> f64 {
        // Over its logarithm, as it may be anywhere: `g` is convex, so what it is over the interval has one minimum (J. Kiefer, Sequential
        // minimax search for a maximum, 1953).
        let cost = |power: f64| self.seconds_for(mtbf_s, mtbf_s * power.exp()) / power.exp();
        let ratio = (5f64.sqrt() - 1.0) / 2.0;
        let (mut low, mut high) = (SHORTEST.ln(), 0.0);
        while high - low > 1e-7 {
            let part = ratio * (high - low);
            if cost(high - part) > cost(low + part) { low = high - part } else { high = low + part }
        }
        // Where even the longest is too short, or all are for ever.
        if cost(0.0) <= cost(high) { mtbf_s } else { mtbf_s * high.exp() }
    }

    /// Seconds that a run takes with as many failures as it happened to have, each of which costs a recovery and its share of half an
    /// interval: to first order, where failures are rare.
    pub fn seconds_with(&self, failures: usize, work_s: f64, interval_s: f64) -> f64 {
        let span_s = self.span_s(interval_s);
        work_s * span_s / interval_s + failures as f64 * (self.recovery_s + self.held * span_s / 2.0)
    }

    /// Seconds of work that a rank which goes back does again, for each second of work of the job. `x` is below `S`, and the sooner the
    /// likelier.
    pub fn again(&self, mtbf_s: f64, interval_s: f64) -> f64 {
        let span_s = self.span_s(interval_s);
        let z = span_s / mtbf_s;
        let mean_s = if z < SMALL {
            span_s * (0.5 - z / 12.0)
        } else {
            mtbf_s - span_s / z.min(EXPONENT_MAX).exp_m1()
        };
        (1.0 + self.overhead(mtbf_s, interval_s)) / mtbf_s * mean_s * interval_s / span_s
    }
}

#[cfg(test)]
mod tests;
