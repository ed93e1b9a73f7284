//! How often to take checkpoints on several levels of protection at once, and what that costs: the model, which knows numbers only.
//!
//! The first level is cheap and survives the failures that are frequent, each further one costs more and survives more. Level `i` takes
//! its checkpoints at every `K_i`-th of the first (`K_1 = 1`), that is after `t_i = K_i t` of work. One takes `C_i`. Failures that
//! level `i` is the first to survive come at random at a rate `f_i` (1 / their mean time between failures). They go back to
//! its last checkpoint, and the recovery takes `R_i`. All times are in seconds.
//!
//! **Waste.** Without failures, work that takes `W` takes `W (1 + c)` with its checkpoints, where `c` is the sum of `C_i / t_i`.
//! Let it take `T` with failures. There are `f_i T` of level `i`; each costs `R_i`, and half of the time between two checkpoints of
//! its level on average, `t_i (1 + c) / 2`, is done again, checkpoints of the levels below included. So
//!
//! ```text
//! T = W (1 + c) + T (r + (1 + c) s)        r = sum of f_i R_i,  s = sum of f_i t_i / 2
//! W / T = (1 - r) / (1 + c) - s
//! ```
//!
//! To first order, `T / W - 1` is the sum of `C_i / t_i + f_i (R_i + t_i / 2)`: the waste of S. Di, L. Bautista-Gomez and F. Cappello,
//! Optimization of a multilevel checkpoint model with uncertain execution scales, SC 2014, doi 10.1109/SC.2014.79, and, with two levels,
//! of S. Di, Y. Robert, F. Vivien and F. Cappello, Toward an optimal online checkpoint solution under a two-level HPC checkpoint model,
//! IEEE Transactions on Parallel and Distributed Systems 28(1), 2017.
//!
//! **The best intervals.** With `c = A / t` and `s = B t`, where `A` is the sum of `C_i / K_i` and `B` that of `f_i K_i / 2`, the levels
//! are like a single one, and `W / T` is greatest at
//!
//! ```text
//! t = sqrt((1 - r) A / B) - A,    W / T = (sqrt(1 - r) - sqrt(A B))^2
//! ```
//!
//! For one level without `R` this is `sqrt(2 C M) - C`, as of Young and Daly. The best `K` are those with the least `A B`. In the plane
//! of `A` and `B` that product is concave, and so is `-W / T` at any fixed `t` (which a whole number of steps asks for): the least is a
//! corner of the convex hull of all `(A, B)`. The corners are where `A + x B` is least for some `x`, and that sum has a term for each
//! `K_i`, whose best value grows by one where `x = 2 C_i / (f_i K_i (K_i + 1))`. So [`best`] begins with all `K_i = 1` and takes these
//! places in falling order of `x`; it meets every corner, and none is better that it does not meet. As `A` never falls below `C_1`, a
//! bound says when to stop.
//!
//! **What is neglected.** Terms of second order: the mean of what is done again is taken to be half an interval, and a failure within a
//! recovery to cost what others cost. So the overhead is a few percent of itself too high where an interval is a fifth of the mean time
//! between failures of its level, and means little where it is longer than that time. Where checkpoints of several levels coincide
//! all of them are counted, although the strongest may stand for the others. A failure goes back to its own level, although the last
//! checkpoint of a stronger level may be newer. Files are like any level: that they are written behind the computation is not in it.

/// `K` is no greater than this: what lies beyond makes no difference that could be measured.
const EVERY_MAX: u64 = 10_000;

/// One level of protection: what it costs, and how often it is needed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Level {
    /// Seconds that the program is held for a checkpoint, `C`.
    pub(super) checkpoint_s: f64,
    /// Seconds from a failure to the resumption, `R`; without the work that is done again.
    pub(super) recovery_s: f64,
    /// Failures a second that this level survives and none before it, `f`.
    pub(super) failures_per_s: f64,
}

/// When each level takes its checkpoints, and what is to be expected then.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    /// Seconds of work between two checkpoints of the first level, `t`.
    pub(super) interval_s: f64,
    /// By level: it takes one at every so-many-th checkpoint of the first, `K`; the first of them is 1.
    pub(super) every: Vec<u64>,
    /// Work over time, between 0 and 1.
    pub(super) efficiency: f64,
}

impl Plan {
    /// Time beyond the work, as a share of the work.
    pub(super) fn overhead(&self) -> f64 {
        1.0 / self.efficiency - 1.0
    }
}

/// The plan with the greatest efficiency, whose first interval is a whole number of steps of `step_s`, or any length if that is 0.
///
/// There is none without levels, without failures, or if the work would never end.
pub(super) fn best(levels: &[Level], step_s: f64) -> Option<Plan> {
    let first = levels.first()?;
    let mut every = vec![1; levels.len()];
    let mut best: Option<Plan> = None;
    loop {
        let sums = Sums::of(levels, &every);
        let reached = best.as_ref().map_or(0.0, |best| best.efficiency);
        // No number from here on makes `A` less than the first cost, nor `B` less than it is.
        if (Sums { held_s: first.checkpoint_s, ..sums }).greatest() <= reached {
            return best;
        }
        let found = sums.intervals(step_s).map(|interval_s| (interval_s, sums.efficiency(interval_s)));
        for (interval_s, efficiency) in found {
            if efficiency > best.as_ref().map_or(0.0, |best| best.efficiency) && interval_s.is_finite() {
                best = Some(Plan { interval_s, every: every.clone(), efficiency });
            }
        }
        let Some(level) = most_to_gain(levels, &every) else { return best };
        every[level] += 1;
    }
}

/// The level whose number is the next to grow, as less of its checkpoints save the most for what failures cost more.
fn most_to_gain(levels: &[Level], every: &[u64]) -> Option<usize> {
    let gain = |at: usize| {
        let (Level { checkpoint_s, failures_per_s, .. }, k) = (levels[at], every[at] as f64);
        checkpoint_s / failures_per_s / (k * (k + 1.0))
    };
    let may_grow = |at: &usize| every[*at] < EVERY_MAX && gain(*at) > 0.0;
    (1..levels.len()).filter(may_grow).max_by(|one, other| gain(*one).total_cmp(&gain(*other)))
}

/// What several levels amount to.
#[derive(Clone, Copy, Debug)]
struct Sums {
    /// `A`: seconds of checkpoints in each interval of the first level.
    held_s: f64,
    /// `B`: seconds done again, a second and a second of that interval.
    again_per_s: f64,
    /// `1 - r`: the share of the time that recoveries leave.
    left: f64,
}

impl Sums {
    fn of(levels: &[Level], every: &[u64]) -> Self {
        let all = || levels.iter().zip(every.iter().map(|k| *k as f64));
        Self {
            held_s: all().map(|(level, k)| level.checkpoint_s / k).sum(),
            again_per_s: all().map(|(level, k)| level.failures_per_s * k / 2.0).sum(),
            left: 1.0 - all().map(|(level, _)| level.failures_per_s * level.recovery_s).sum::<f64>(),
        }
    }

    fn efficiency(&self, interval_s: f64) -> f64 {
        // Checkpoints that take no time cost nothing, however often.
        let held = if self.held_s > 0.0 { self.held_s / interval_s } else { 0.0 };
        self.left / (1.0 + held) - self.again_per_s * interval_s
    }

    /// With the best interval, whole steps or not.
    fn greatest(&self) -> f64 {
        (self.left.max(0.0).sqrt() - (self.held_s * self.again_per_s).sqrt()).max(0.0).powi(2)
    }

    /// The first intervals that may be the best: the whole numbers of steps beside the optimum, a step at least.
    fn intervals(&self, step_s: f64) -> impl Iterator<Item = f64> {
        let Self { held_s, again_per_s, left } = *self;
        let optimum_s = ((left.max(0.0) * held_s / again_per_s).sqrt() - held_s).max(0.0);
        let steps = optimum_s / step_s;
        let all = match step_s > 0.0 {
            true => [steps.floor().max(1.0) * step_s, steps.ceil().max(1.0) * step_s],
            false => [optimum_s; 2],
        };
        all.into_iter()
    }
}

#[cfg(test)]
mod tests;
