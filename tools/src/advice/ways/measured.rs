//! What the jobs of a way have shown, as numbers, and what they are together.

use super::runs::Plan;
use super::{Way, WayCosts};
use crate::recovery::Spread;

/// What a job has shown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sample {
    pub(super) elapsed_s: f64,
    pub(super) steps: u64,
    /// Those that were committed.
    pub(super) checkpoints: u32,
    /// Seconds that they have held the program.
    pub(super) held_s: f64,
    pub(super) losses: usize,
}

/// The loss of a job that was struck.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Loss {
    /// Seconds until all was in memory again.
    pub(super) recovery_s: Option<f64>,
    /// Seconds from there until all worked again.
    pub(super) replay_s: Option<f64>,
    /// Steps that were done again.
    pub(super) steps: u64,
    /// Ranks that went on where they were.
    pub(super) stayed: u32,
}

/// The jobs of a way, one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Round {
    pub(super) start: Sample,
    pub(super) calm: Sample,
    pub(super) struck: Sample,
    pub(super) loss: Loss,
    pub(super) random: Sample,
    /// Mean time between the losses at random.
    pub(super) mtbf_s: f64,
}

impl Round {
    /// What a start has in it, unless it has all.
    fn start(&self) -> Sample {
        let Self { start, calm, .. } = self;
        match calm.steps > start.steps && calm.checkpoints > start.checkpoints {
            true => *start,
            false => Sample::default(),
        }
    }

    /// Seconds of a checkpoint: those of the start are left out, with the one that has the constant part.
    pub(super) fn checkpoint_s(&self) -> f64 {
        let (start, calm) = (self.start(), self.calm);
        let checkpoints = calm.checkpoints.saturating_sub(start.checkpoints).max(1);
        (calm.held_s - start.held_s).max(0.0) / f64::from(checkpoints)
    }

    /// Seconds of a step, without checkpoints.
    pub(super) fn step_s(&self) -> f64 {
        let (start, calm) = (self.start(), self.calm);
        let held_s = (calm.held_s - start.held_s).max(0.0);
        let work_s = (calm.elapsed_s - start.elapsed_s - held_s).max(0.0);
        work_s / (calm.steps - start.steps).max(1) as f64
    }

    /// Seconds by which the loss has made the job longer.
    pub(super) fn lost_s(&self) -> f64 {
        self.struck.elapsed_s - self.calm.elapsed_s
    }

    /// Seconds that the work took for the first time that a rank did again.
    pub(super) fn again_s(&self) -> f64 {
        self.loss.steps as f64 * self.step_s()
    }

    /// The share of the work done again that has held up the job; not a number where none was.
    pub(super) fn held(&self) -> f64 {
        (self.lost_s() - self.loss.recovery_s.unwrap_or(0.0)) / self.again_s()
    }

    /// How many times as fast the work was done again; not a number where that is not known.
    pub(super) fn replay(&self) -> f64 {
        self.again_s() / self.loss.replay_s.unwrap_or(0.0)
    }

    /// Seconds that the model foretells for the job with losses at random, with as many as it has had.
    pub(super) fn foretold_s(&self, costs: &WayCosts, plan: Plan, step_s: f64) -> f64 {
        let (start, random) = (self.start(), self.random);
        let steps = random.steps.saturating_sub(start.steps).max(1);
        let (work_s, interval_s) = (steps as f64 * step_s, plan.every as f64 * step_s);
        start.elapsed_s + costs.seconds_with(random.losses, work_s, interval_s)
    }
}

/// What the rounds of a way are together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Measured {
    pub(super) checkpoint_s: Spread,
    /// Steps over those of the way that all are compared with, less 1.
    pub(super) log: Spread,
    pub(super) lost_s: Spread,
    pub(super) recovery_s: Spread,
    pub(super) held: Spread,
    /// None where nobody replays.
    pub(super) replay: Option<Spread>,
}

impl Measured {
    /// Of a way, beside the rounds of the first one.
    pub(super) fn of(way: Way, rounds: &[Round], first: &[Round]) -> Self {
        let pairs = rounds.iter().zip(first);
        Self {
            checkpoint_s: Spread::of(rounds.iter().map(Round::checkpoint_s)),
            log: Spread::of(pairs.map(|(round, first)| round.step_s() / first.step_s() - 1.0)),
            lost_s: Spread::of(rounds.iter().map(Round::lost_s)),
            recovery_s: Spread::of(rounds.iter().filter_map(|round| round.loss.recovery_s)),
            held: Spread::of(rounds.iter().map(Round::held)),
            replay: (way == Way::Local).then(|| Spread::of(rounds.iter().map(Round::replay))),
        }
    }

    /// What the model is given. Nothing costs less than nothing, whatever noise says; and where all ranks go back all that is done again
    /// holds up the job.
    pub(super) fn costs(&self, way: Way) -> WayCosts {
        WayCosts {
            checkpoint_s: self.checkpoint_s.median,
            log: self.log.median.max(0.0),
            recovery_s: self.recovery_s.median.max(0.0),
            held: if way == Way::Local { self.held.median.max(0.0) } else { 1.0 },
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Steps of `step_s`, four intervals of ten of them with checkpoints of 10 ms; a start takes 0.1 s.
    pub(in super::super) fn round(step_s: f64, lost_s: f64, recovery_s: f64) -> Round {
        let sample = |elapsed_s, steps, checkpoints, held_s| Sample {
            elapsed_s,
            steps,
            checkpoints,
            held_s,
            losses: 0,
        };
        let calm = sample(0.1 + 39.0 * step_s + 0.03, 40, 5, 0.05);
        Round {
            start: sample(0.1, 1, 2, 0.02),
            calm,
            struck: Sample { elapsed_s: calm.elapsed_s + lost_s, losses: 1, ..calm },
            loss: Loss { recovery_s: Some(recovery_s), replay_s: Some(0.2), steps: 8, stayed: 3 },
            random: Sample { elapsed_s: calm.elapsed_s + 4.0 * lost_s, losses: 4, ..calm },
            mtbf_s: 0.5,
        }
    }

    fn close(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-12
    }

    #[test]
    fn of_a_round_by_hand() {
        let round = round(0.05, 0.32, 0.02);
        assert!(close(round.checkpoint_s(), 0.01), "{}", round.checkpoint_s());
        assert!(close(round.step_s(), 0.05), "{}", round.step_s());
        // 0.3 s beside the recovery, for 8 steps of 0.05 s; they were done again in 0.2 s.
        assert!(close(round.held(), 0.75) && close(round.replay(), 2.0), "{round:?}");
        let costs = WayCosts { checkpoint_s: 0.01, log: 0.0, recovery_s: 0.02, held: 0.75 };
        // The start, 39 steps, 3.9 checkpoints, and 4 losses of 0.02 s and of three quarters of half of 0.51 s.
        let expected = 0.1 + 1.95 + 0.039 + 4.0 * (0.02 + 0.75 * 0.255);
        let foretold_s = round.foretold_s(&costs, Plan { steps: 40, every: 10 }, 0.05);
        assert!(close(foretold_s, expected), "{foretold_s} and not {expected}");
    }

    #[test]
    fn a_start_that_is_all_there_is_counts_as_work() {
        let all = Sample { elapsed_s: 2.0, steps: 1, checkpoints: 2, held_s: 0.5, losses: 0 };
        let round = Round { start: all, calm: all, ..Round::default() };
        assert_eq!((round.checkpoint_s(), round.step_s()), (0.25, 1.5));
        assert!(!round.held().is_finite() && !round.replay().is_finite());
    }

    #[test]
    fn ways_beside_the_first() {
        let first = [round(0.05, 0.42, 0.02); 3];
        let local = [round(0.06, 0.1, 0.04), round(0.055, 0.2, 0.04), round(0.045, 0.0, 0.04)];
        let measured = Measured::of(Way::Local, &local, &first);
        assert!(close(measured.log.median, 0.1), "{measured:?}");
        assert!(measured.replay.is_some() && Measured::of(Way::Lines, &local, &first).replay.is_none());
        let costs = measured.costs(Way::Local);
        assert!(close(costs.held, 0.06 / 0.48), "{costs:?}");
        assert_eq!(measured.costs(Way::Lines).held, 1.0);
        // Noise.
        let faster = Measured::of(Way::Local, &[round(0.04, 0.01, 0.02)], &first).costs(Way::Local);
        assert_eq!((faster.log, faster.held), (0.0, 0.0));
    }
}
