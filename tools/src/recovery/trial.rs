//! Runs with random failures, to hold against the model.

use std::time::Duration;

use serde::Serialize;

use super::experiment::{Experiment, Kind, Run, STEPS};
use super::measurement::Measurement;
use super::summary::Summary;

/// Seconds of work in a trial for each repetition that was ordered, and at most.
const WORK_S: f64 = 1.5;
const WORK_S_MOST: f64 = 20.0;
/// The mean time between failures is this many times a checkpoint and a recovery: often enough that a short run has
/// several failures.
const RARITY: f64 = 4.0;
/// And at least this.
const MTBF_S_LEAST: f64 = 0.5;

/// A run with random failures, and what the model says of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trial {
    /// Protected state of each rank.
    pub state_bytes: u64,
    /// Name of the scheme.
    pub scheme: String,
    /// Mean time between failures that was ordered.
    pub mtbf_s: f64,
    /// Seconds of work between two checkpoints.
    pub interval_s: f64,
    /// Failures that happened.
    pub failures: usize,
    /// Seconds of the work alone: the steps, at the mean of all steps of this run, so that what else the machine does
    /// meanwhile is not taken for a cost.
    pub work_s: f64,
    /// Seconds that it took.
    pub time_s: f64,
    /// Work over time.
    pub measured: f64,
    /// What the model says beforehand.
    pub predicted: f64,
    /// What the model says when told how many failures happened.
    pub predicted_for_failures: f64,
}

/// How many trials an order has, and about how long they take.
pub(crate) fn expected_trials(experiment: &Experiment) -> (usize, Duration) {
    let count = experiment.states.len().min(2) * experiment.schemes.len().min(2);
    // Work takes about twice as long with failures.
    (count, Duration::from_secs_f64(count as f64 * work_s(experiment) * 2.0))
}

fn work_s(experiment: &Experiment) -> f64 {
    (WORK_S * experiment.repeat as f64).min(WORK_S_MOST)
}

/// The trials of an order: the smallest and the largest state, each with the first and the last scheme, at the
/// interval of Daly.
pub(crate) fn trials(experiment: &Experiment, summaries: &[Summary]) -> Vec<Run> {
    let mut states = vec![experiment.states.iter().min().copied(), experiment.states.iter().max().copied()];
    let mut schemes = vec![1, experiment.schemes.len()];
    states.dedup();
    schemes.dedup();
    let mut runs = Vec::new();
    for state in states.into_iter().flatten() {
        let of_state = || summaries.iter().filter(move |summary| summary.state_bytes == state);
        for &scheme in &schemes {
            let protected = of_state().nth(scheme).and_then(|summary| summary.protected.as_ref());
            let (Some(protected), Some(unprotected)) = (protected, of_state().next()) else { continue };
            let costs = protected.costs();
            let mtbf_s = rounded((RARITY * (costs.checkpoint_s + costs.recovery_s)).max(MTBF_S_LEAST));
            let step_s = unprotected.loop_s.median / STEPS as f64;
            let every = (costs.daly_s(mtbf_s) / step_s).round().max(1.0) as u64;
            let kind = Kind::Random { mtbf_s, every };
            let steps = (work_s(experiment) / step_s.max(1e-4)).ceil() as u64;
            runs.push(Run { state, scheme, kind, steps, repetition: 0 });
        }
    }
    runs
}

/// Two significant digits.
fn rounded(number: f64) -> f64 {
    let unit = 10f64.powf(number.log10().floor() - 1.0);
    // Through text, so that the number is the one that its digits say.
    format!("{:.9}", (number / unit).round() * unit).parse().unwrap_or(number)
}

/// Holds a run against the model; none if it was no trial.
pub(crate) fn judge(run: &Measurement, summaries: &[Summary]) -> Option<Trial> {
    let Kind::Random { mtbf_s, every } = run.kind else { return None };
    let (work_s, interval_s) = (run.step_s * run.steps as f64, run.step_s * every as f64);
    let mut of_state = summaries.iter().filter(|summary| summary.state_bytes == run.state_bytes);
    let protected = of_state.find(|summary| summary.scheme == run.scheme)?;
    let costs = protected.protected.as_ref()?.costs();
    // By the launcher's clock: of the processes, none may have lived through all of it.
    let time_s = run.elapsed_s - protected.outside_s;
    Some(Trial {
        state_bytes: run.state_bytes,
        scheme: run.scheme.clone(),
        mtbf_s,
        interval_s,
        failures: run.failures,
        work_s,
        time_s,
        measured: work_s / time_s,
        predicted: costs.efficiency(mtbf_s, interval_s),
        predicted_for_failures: costs.efficiency_with(run.failures, work_s, interval_s),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::measurement::tests::measurement;
    use crate::recovery::summary::{UNPROTECTED, summaries};

    #[test]
    fn planned_and_judged() {
        let experiment = Experiment {
            program: "ftrun".into(),
            ranks: 4,
            states: vec![1 << 20],
            schemes: vec!["xor".into()],
            repeat: 4,
            seed: 1,
        };
        let runs = [
            measurement(UNPROTECTED, Kind::Plain),
            measurement("xor", Kind::Plain),
            measurement("xor", Kind::Kill { victim: 0 }),
        ];
        let summaries = summaries(&experiment.states, &experiment.schemes, 4, &runs);
        let [trial] = trials(&experiment, &summaries)[..] else { panic!("one trial") };
        // 4 * (0.125 + 3.25) s, and 6 s of steps of 3/40 s.
        let Kind::Random { mtbf_s, every } = trial.kind else { panic!("{trial:?}") };
        assert_eq!((mtbf_s, trial.steps), (14.0, 80));
        // 1.79 s of steps of 0.075 s.
        assert_eq!(every, 24);
        let interval_s = 24.0 * 0.0625;

        let run = Measurement { steps: 80, elapsed_s: 9.0, failures: 0, ..measurement("xor", trial.kind) };
        let judged = judge(&run, &summaries).unwrap();
        assert_eq!((judged.work_s, judged.time_s, judged.measured), (5.0, 8.0, 0.625));
        assert_eq!(judged.predicted_for_failures, 5.0 / (5.0 * (1.0 + 0.125 / interval_s)));
        assert!(judged.predicted < judged.predicted_for_failures);
        assert_eq!(judge(&runs[1], &summaries), None);
    }

    #[test]
    fn two_digits() {
        assert_eq!([0.1234, 33.75, 1e-3, 987.0].map(rounded), [0.12, 34.0, 0.001, 990.0]);
    }
}
