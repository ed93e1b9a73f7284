//! What the jobs of a way have shown, as numbers, and what they are together.

use super::WayCosts;
use super::runs::Plan;
use crate::recovery::Spread;

/// What a job has shown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sample {
    pub(super) elapsed_s: f64,
    pub(super) steps: u64,
    /// Those that were committed.
    pub(super) checkpoints: u32,
    /// Seconds that they have held the program, without the first one.
    pub(super) held_s: f64,
    pub(super) losses: usize,
}

/// The loss of a job that was struck.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Loss {
    /// Seconds by which it has made the job longer.
    pub(super) lost_s: f64,
    /// Seconds until all worked again; where others stayed, until all was in memory again.
    pub(super) recovery_s: Option<f64>,
    /// Seconds from there until all worked again, where others stayed.
    pub(super) replay_s: Option<f64>,
    /// Steps that were done again, where these can be told.
    pub(super) steps: Option<u64>,
    /// Ranks that went on where they were.
    pub(super) stayed: u32,
}

/// The jobs of a way, one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Round {
    pub(super) start: Sample,
    pub(super) calm: Sample,
    /// With a loss soon behind a checkpoint, where only the lost goes back.
    pub(super) early: Option<Loss>,
    /// With a loss late behind a checkpoint.
    pub(super) late: Loss,
    pub(super) random: Sample,
    /// Mean time between the losses at random.
    pub(super) mtbf_s: f64,
}

impl Round {
    /// What a start has in it, unless it has all.
    fn start(&self) -> Sample {
        if self.calm.steps > self.start.steps { self.start } else { Sample::default() }
    }

    /// Seconds of a checkpoint; the first is not counted, as it has the constant part.
    pub(super) fn checkpoint_s(&self) -> f64 {
        let Sample { held_s, checkpoints, .. } = self.calm;
        held_s / f64::from(checkpoints.saturating_sub(1).max(1))
    }

    /// Seconds of a step, without checkpoints.
    pub(super) fn step_s(&self) -> f64 {
        let (start, calm) = (self.start(), self.calm);
        let work_s = calm.elapsed_s - start.elapsed_s - (calm.held_s - start.held_s).max(0.0);
        work_s.max(0.0) / calm.steps.saturating_sub(start.steps).max(1) as f64
    }

    /// Seconds that the work took for the first time that a rank did again; not a number where that cannot be told.
    fn again_s_of(&self, loss: &Loss) -> f64 {
        loss.steps.map_or(f64::NAN, |steps| steps as f64 * self.step_s())
    }

    /// The same of the late loss.
    pub(super) fn again_s(&self) -> f64 {
        self.again_s_of(&self.late)
    }

    /// The share of the work done again that has held up the job: what a late loss costs more than an early one. Not a number where one of
    /// them has had hardly more to do again than the other.
    pub(super) fn held(&self) -> f64 {
        let Some(early) = &self.early else { return f64::NAN };
        let more_s = self.again_s() - self.again_s_of(early);
        if more_s > self.again_s() / 4.0 { (self.late.lost_s - early.lost_s) / more_s } else { f64::NAN }
    }

    /// Seconds of both losses that do not grow with what is done again, of which this share holds up the job. Without a share it is what was
    /// seen between the kill and the resumption.
    fn fixed_s(&self, held: Option<f64>) -> [f64; 2] {
        let known_s = |loss: &Loss| loss.recovery_s.unwrap_or(f64::NAN);
        let of = |loss: &Loss| match held {
            // What it was seen to take is the least of it.
            Some(held) => (loss.lost_s - held * self.again_s_of(loss)).max(known_s(loss)),
            None => known_s(loss),
        };
        [self.early.as_ref().map_or(f64::NAN, of), of(&self.late)]
    }

    /// How many times as fast the work was done again; not a number where that is not known.
    pub(super) fn replay(&self) -> f64 {
        self.again_s() / self.late.replay_s.unwrap_or(f64::NAN)
    }

    /// Seconds that the model foretells for the job with losses at random, with as many as it has had.
    pub(super) fn foretold_s(&self, costs: &WayCosts, plan: Plan, step_s: f64) -> f64 {
        let (start, random) = (self.start(), self.random);
        let steps = random.steps.saturating_sub(start.steps).max(1);
        let (work_s, interval_s) = (steps as f64 * step_s, plan.every_random as f64 * step_s);
        start.elapsed_s + costs.seconds_with(random.losses, work_s, interval_s)
    }
}

/// What the rounds of a way are together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Measured {
    pub(super) checkpoint_s: Spread,
    /// Steps over those of the way that all are compared with, less 1.
    pub(super) log: Spread,
    /// Of the late loss.
    pub(super) lost_s: Spread,
    pub(super) recovery_s: Spread,
    /// None where all go back, and where it could not be told.
    pub(super) held: Option<Spread>,
    /// None where nobody replays.
    pub(super) replay: Option<Spread>,
}

impl Measured {
    /// Of a way, beside the rounds of the first one.
    pub(super) fn of(rounds: &[Round], first: &[Round]) -> Self {
        let pairs = rounds.iter().zip(first);
        let held = known(rounds.iter().map(Round::held));
        let share = held.map(|held| held.median.max(0.0));
        Self {
            checkpoint_s: Spread::of(rounds.iter().map(Round::checkpoint_s)),
            log: Spread::of(pairs.map(|(round, first)| round.step_s() / first.step_s() - 1.0)),
            lost_s: Spread::of(rounds.iter().map(|round| round.late.lost_s)),
            recovery_s: Spread::of(rounds.iter().flat_map(|round| round.fixed_s(share))),
            held,
            replay: known(rounds.iter().map(Round::replay)),
        }
    }

    /// What the model is given. Nothing costs less than nothing, whatever noise says; and where all ranks go back all that is done again
    /// holds up the job.
    pub(super) fn costs(&self) -> WayCosts {
        self.costs_by(|spread| spread.median)
    }

    /// The same of the upper quartiles.
    pub(super) fn costs_at_worst(&self) -> WayCosts {
        self.costs_by(|spread| spread.high)
    }

    fn costs_by(&self, of: fn(&Spread) -> f64) -> WayCosts {
        let cost = |spread: &Spread| of(spread).max(0.0);
        WayCosts {
            checkpoint_s: cost(&self.checkpoint_s),
            log: cost(&self.log),
            recovery_s: cost(&self.recovery_s),
            held: self.held.as_ref().map_or(1.0, cost),
        }
    }
}

/// Of those that are numbers, if any are.
pub(super) fn known(numbers: impl Iterator<Item = f64>) -> Option<Spread> {
    let known: Vec<f64> = numbers.filter(|number| number.is_finite()).collect();
    (!known.is_empty()).then(|| Spread::of(known))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Steps of `step_s`, two intervals of twenty of them with checkpoints of 10 ms; a start takes 0.1 s, and a recovery 20 ms. A loss costs
    /// `late_s` late, and where only the lost goes back `early_s` early.
    pub(in super::super) fn round(step_s: f64, early_s: Option<f64>, late_s: f64) -> Round {
        let calm = Sample {
            elapsed_s: 0.1 + 39.0 * step_s + 0.01,
            steps: 40,
            checkpoints: 3,
            held_s: 0.02,
            losses: 0,
        };
        let loss = |lost_s, steps| Loss {
            lost_s,
            recovery_s: Some(0.02),
            replay_s: early_s.map(|_| 0.4),
            steps: Some(steps),
            stayed: if early_s.is_some() { 3 } else { 0 },
        };
        Round {
            start: Sample { elapsed_s: 0.1, steps: 1, checkpoints: 2, held_s: 0.01, losses: 0 },
            calm,
            early: early_s.map(|lost_s| loss(lost_s, 4)),
            late: loss(late_s, 16),
            random: Sample { elapsed_s: calm.elapsed_s + 4.0 * late_s, losses: 4, ..calm },
            mtbf_s: 0.5,
        }
    }

    fn close(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-12
    }

    #[test]
    fn of_a_round_by_hand() {
        let round = round(0.05, Some(0.2), 0.65);
        assert!(close(round.checkpoint_s(), 0.01), "{}", round.checkpoint_s());
        assert!(close(round.step_s(), 0.05), "{}", round.step_s());
        // 12 steps more took 0.45 s longer, and for the first time 0.6 s. 16 of them were done again in 0.4 s.
        assert!(close(round.held(), 0.75) && close(round.replay(), 2.0), "{round:?}");
        // What is left of 0.2 s for 4 steps, and of 0.65 s for 16.
        let fixed = round.fixed_s(Some(0.75));
        assert!(close(fixed[0], 0.05) && close(fixed[1], 0.05), "{fixed:?}");
        assert_eq!(round.fixed_s(Some(2.0)), [0.02; 2], "what was seen is the least");
        assert_eq!(round.fixed_s(None), [0.02; 2]);
        let costs = WayCosts { checkpoint_s: 0.01, log: 0.0, recovery_s: 0.02, held: 0.75 };
        // The start, 39 steps, 7.8 checkpoints, and 4 losses of 0.02 s and of three quarters of half of 0.26 s.
        let expected = 0.1 + 1.95 + 0.078 + 4.0 * (0.02 + 0.75 * 0.13);
        let foretold_s = round.foretold_s(&costs, Plan::of(40), 0.05);
        assert!(close(foretold_s, expected), "{foretold_s} and not {expected}");
    }

    #[test]
    fn what_cannot_be_told() {
        let all = Sample { elapsed_s: 2.0, steps: 1, checkpoints: 2, held_s: 0.5, losses: 0 };
        let round = Round { start: all, calm: all, ..Round::default() };
        // A start that is all there is counts as work.
        assert_eq!((round.checkpoint_s(), round.step_s()), (0.5, 1.5));
        assert!(round.held().is_nan() && round.replay().is_nan() && round.again_s().is_nan());
        let measured = Measured::of(&[round], &[round]);
        assert_eq!((measured.held, measured.replay, measured.costs().held), (None, None, 1.0));
        // Both losses have gone back as far.
        let mut same = tests::round(0.05, Some(0.2), 0.2);
        same.late.steps = Some(5);
        assert!(same.held().is_nan());
    }

    #[test]
    fn ways_beside_the_first() {
        let first = [round(0.05, None, 0.82); 3];
        let local = [0.06, 0.055, 0.045].map(|step_s| round(step_s, Some(0.1), 0.1 + 12.0 * step_s / 4.0));
        let measured = Measured::of(&local, &first);
        assert!(close(measured.log.median, 0.1), "{measured:?}");
        let costs = measured.costs();
        assert!(close(costs.held, 0.25), "{costs:?}");
        // The middle of 0.1 less a quarter of 4 steps.
        assert!(close(costs.recovery_s, 0.1 - 0.055), "{costs:?}");
        let all = Measured::of(&first, &first);
        assert_eq!((all.held, all.replay, all.costs().held), (None, None, 1.0));
        assert!(close(all.costs().recovery_s, 0.02));
        // Noise.
        let faster = Measured::of(&[round(0.04, Some(0.2), 0.1)], &first).costs();
        assert_eq!((faster.log, faster.held), (0.0, 0.0));
    }
}
