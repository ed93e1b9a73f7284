//! What the jobs of the ways mean: what longer runs are to expect, which way is to be recommended, and whether the model has foretold the
//! jobs with losses at random.

use serde::Serialize;

use super::super::combinations::{hundredths, is_close};
use super::super::experiment::AdviceExperiment;
use super::measured::{Measured, Round, known};
use super::runs::Plan;
use super::{Way, WayCosts};
use crate::recovery::{Spread, span};

/// What one way costs this program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WayCandidate {
    /// The way.
    pub way: Way,
    /// The options of `ftrun` that ask for it.
    pub options: &'static str,
    /// Time of a step beside checkpoints, over that of the first way, less 1: below 0 where noise is more than that.
    pub log: Spread,
    /// Seconds that the program was held for a checkpoint.
    pub checkpoint_s: Spread,
    /// Seconds by which a job with one loss, late between two checkpoints, was longer than a calm one.
    pub lost_s: Spread,
    /// Seconds that a loss takes however much is done again: from the death of a rank until all work again, or where others stay, what it has cost
    /// without its share of that.
    pub recovery_s: Spread,
    /// Steps that were done again after the late loss; none where a program counts otherwise.
    pub steps_again: Option<f64>,
    /// Seconds of work that they had been, of all ranks that did them again.
    pub again_rank_s: Option<f64>,
    /// What a late loss has cost more than an early one, over the time that the work had taken which it does again more. Where all go back, all
    /// wait for all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<Spread>,
    /// How many times as fast the lost rank did it again, where it alone went back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<Spread>,
    /// Ranks that went on where they were after the late loss.
    pub stayed: f64,
    /// What the model is given.
    pub costs: WayCosts,
    /// What to expect, by mean time between failures.
    pub outlook: Vec<WayOutlook>,
    /// The overhead at the first of them if all costs are those of the upper quartiles: what it may be as far as the jobs can tell.
    pub at_worst: f64,
    /// The jobs with losses at random.
    pub check: Check,
}

/// What the model says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WayOutlook {
    /// Mean time between failures of the job.
    pub mtbf_s: f64,
    /// The best interval between checkpoints in seconds of work; a step at least.
    pub interval_s: f64,
    /// The same in steps.
    pub steps: u64,
    /// Time beyond the work, as a share of the work.
    pub overhead: f64,
    /// Seconds of work that are done again, of all ranks that do so, for each second of work of the job.
    pub again_rank_s: f64,
}

/// The model beside what was measured, under losses at random.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Check {
    /// Mean time between the losses, of the jobs' medians.
    pub mtbf_s: f64,
    /// Losses of all these jobs.
    pub losses: usize,
    /// Seconds that the model foretells for a job with its losses; of all of them the median.
    pub foretold_s: f64,
    /// Seconds that a job took; of all of them the median.
    pub measured_s: f64,
    /// Measured over foretold.
    pub ratio: Spread,
}

/// What is measured over what is foretold, at least and at most, where the model holds.
const FORETOLD: (f64, f64) = (1.0 / 1.5, 1.5);

impl Check {
    /// Whether the model holds, as far as these jobs can tell.
    pub(super) fn holds(&self) -> bool {
        (FORETOLD.0..=FORETOLD.1).contains(&self.ratio.median)
    }
}

/// A way that cannot be.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Refused {
    /// The way.
    pub way: Way,
    /// Why, in the words of who refuses it.
    pub reason: String,
}

/// What the ways cost, and which one is to be used.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaysAdvice {
    /// The scheme of all of them.
    pub scheme: String,
    /// Steps of a job.
    pub steps: u64,
    /// Steps between two checkpoints.
    pub every: u64,
    /// Seconds of a step, without checkpoints, of the way that the others are compared with.
    pub step_s: f64,
    /// The ways that the program allows, the simplest first.
    pub candidates: Vec<WayCandidate>,
    /// The others.
    pub refused: Vec<Refused>,
    /// The way to use, if there is one: the simplest of those that no other is better than for sure.
    pub recommended: Option<Way>,
    /// Why, in a sentence or two.
    pub reason: String,
    /// The command that does it.
    pub command: Option<String>,
}

/// Puts all together.
pub(super) fn judge(
    experiment: &AdviceExperiment,
    scheme: &str,
    plan: Plan,
    rounds: &[(Way, Vec<Round>)],
    refused: Vec<Refused>,
) -> WaysAdvice {
    let first = rounds.first().map_or(&[][..], |(_, rounds)| rounds);
    let step_s = Spread::of(first.iter().map(Round::step_s)).median;
    let context = Context { experiment, plan, step_s };
    let candidates: Vec<WayCandidate> =
        rounds.iter().map(|(way, rounds)| context.candidate(*way, rounds, first)).collect();
    let best = recommend(&candidates);
    let AdviceExperiment { ranks, .. } = experiment;
    let command = best.map(|best| {
        let program = experiment.program();
        format!("ftrun -n {ranks} --scheme {scheme} --interval auto {} {program}", best.options)
    });
    let reason = reason(&candidates, best);
    WaysAdvice {
        scheme: scheme.to_owned(),
        steps: plan.steps,
        every: plan.every,
        step_s,
        recommended: best.map(|best| best.way),
        reason,
        command,
        refused,
        candidates,
    }
}

/// What is the same for all ways.
struct Context<'a> {
    experiment: &'a AdviceExperiment,
    plan: Plan,
    step_s: f64,
}

impl Context<'_> {
    fn candidate(&self, way: Way, rounds: &[Round], first: &[Round]) -> WayCandidate {
        let measured = Measured::of(rounds, first);
        let (costs, worst) = (measured.costs(), measured.costs_at_worst());
        let ranks = way.ranks_back(self.experiment.ranks) as f64;
        let median = |of: &dyn Fn(&Round) -> f64| known(rounds.iter().map(of)).map(|all| all.median);
        let outlooks =
            self.experiment.mtbfs_s.iter().map(|mtbf_s| outlook(&costs, *mtbf_s, self.step_s, ranks));
        let Measured { checkpoint_s, log, lost_s, recovery_s, held, replay } = measured;
        WayCandidate {
            way,
            options: way.options(),
            log,
            checkpoint_s,
            lost_s,
            recovery_s,
            steps_again: median(&|round| round.late.steps.map_or(f64::NAN, |steps| steps as f64)),
            again_rank_s: median(&Round::again_s).map(|again_s| ranks * again_s),
            held,
            replay,
            stayed: median(&|round| f64::from(round.late.stayed)).unwrap_or(0.0),
            costs,
            at_worst: self
                .experiment
                .mtbfs_s
                .first()
                .map_or(0.0, |mtbf_s| outlook(&worst, *mtbf_s, self.step_s, ranks).overhead),
            outlook: outlooks.collect(),
            check: self.check(&costs, rounds),
        }
    }

    fn check(&self, costs: &WayCosts, rounds: &[Round]) -> Check {
        let foretold_s = |round: &Round| round.foretold_s(costs, self.plan, self.step_s);
        let median = |of: &dyn Fn(&Round) -> f64| Spread::of(rounds.iter().map(of)).median;
        Check {
            mtbf_s: median(&|round| round.mtbf_s),
            losses: rounds.iter().map(|round| round.random.losses).sum(),
            foretold_s: median(&foretold_s),
            measured_s: median(&|round| round.random.elapsed_s),
            ratio: Spread::of(rounds.iter().map(|round| round.random.elapsed_s / foretold_s(round))),
        }
    }
}

fn outlook(costs: &WayCosts, mtbf_s: f64, step_s: f64, ranks: f64) -> WayOutlook {
    let best_s = costs.best_interval_s(mtbf_s);
    let (steps, interval_s) = match step_s > 0.0 {
        true => {
            let steps = (best_s / step_s).round().max(1.0);
            (steps as u64, steps * step_s)
        }
        false => (1, best_s),
    };
    // No number stands for work that never ends.
    let finite = |number: f64| if number < f64::MAX { number } else { f64::MAX };
    WayOutlook {
        mtbf_s,
        interval_s,
        steps,
        overhead: finite(costs.overhead(mtbf_s, interval_s)),
        again_rank_s: finite(ranks * costs.again(mtbf_s, interval_s)),
    }
}

/// The simplest of those that no other beats where failures are most frequent. Who has the least overhead is never beaten.
fn recommend(candidates: &[WayCandidate]) -> Option<&WayCandidate> {
    let beats = |other: &WayCandidate, one: &WayCandidate| !is_close(overhead(one), other.at_worst);
    candidates.iter().find(|one| !candidates.iter().any(|other| beats(other, one)))
}

/// At the shortest mean time between failures.
fn overhead(candidate: &WayCandidate) -> f64 {
    candidate.outlook.first().map_or(0.0, |outlook| outlook.overhead)
}

fn reason(candidates: &[WayCandidate], best: Option<&WayCandidate>) -> String {
    let Some(best) = best else {
        return "The program allows none of these ways.".to_owned();
    };
    let mtbf = best.outlook.first().map_or(String::new(), |outlook| span(outlook.mtbf_s));
    let shown = |candidate: &WayCandidate| hundredths(overhead(candidate));
    let others = candidates.iter().filter(|one| *one != best);
    let next = others.min_by(|one, other| overhead(one).total_cmp(&overhead(other)));
    let Some(next) = next else {
        return format!(
            "{} is the only one of these ways that was measured to its end; it costs {} at an MTBF of {mtbf}.",
            best.way.name(),
            shown(best)
        );
    };
    let (name, other) = (best.way.name(), next.way.name());
    let start = format!("{name} is best: at an MTBF of {mtbf} it costs {}", shown(best));
    if overhead(next) > overhead(best) {
        return format!("{start}, the next best, {other}, {}.", shown(next));
    }
    if is_close(overhead(best), overhead(next)) {
        return format!("{start}, hardly more than {} with {other}, which is less simple.", shown(next));
    }
    format!(
        "{name} is the one to use: at an MTBF of {mtbf} it costs {}, and {other} {}, but these jobs spread so much that this may be {}. With \
         more of them, or longer ones (--repeat, --seconds), that is known better.",
        shown(best),
        shown(next),
        hundredths(next.at_worst)
    )
}

#[cfg(test)]
mod tests;
