//! How long it will still take.

use std::time::Duration;

use super::experiment::{Experiment, Kind, Run};

/// What a command can tell its user before each run.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Runs that are done.
    pub done: usize,
    /// Runs in all.
    pub total: usize,
    /// The run that begins, in a few words; empty when all is done.
    pub next: String,
    /// About how long the rest takes.
    pub left: Duration,
}

/// Expects of a run what those of its kind have taken so far.
#[derive(Debug, Default)]
pub(crate) struct Forecast {
    seen: Vec<(Run, f64)>,
}

impl Forecast {
    pub(crate) fn saw(&mut self, run: Run, wall_s: f64) {
        self.seen.push((run, wall_s));
    }

    pub(crate) fn left<'a>(&self, experiment: &Experiment, runs: impl Iterator<Item = &'a Run>) -> Duration {
        Duration::from_secs_f64(runs.map(|run| self.expected_s(experiment, run)).sum())
    }

    fn expected_s(&self, experiment: &Experiment, run: &Run) -> f64 {
        // Work takes about twice as long with failures.
        if let Kind::Random { .. } = run.kind {
            let step_s = self.seen.iter().find(|(seen, _)| seen.state == run.state && seen.scheme == 0);
            return step_s.map_or(0.0, |(seen, wall_s)| 2.0 * wall_s / seen.steps as f64 * run.steps as f64);
        }
        let alike = |seen: &Run, scheme: bool| {
            (seen.state, seen.steps) == (run.state, run.steps) && (!scheme || seen.scheme == run.scheme)
        };
        let mean = |scheme| {
            let times = self.seen.iter().filter(|(seen, _)| alike(seen, scheme)).map(|(_, wall_s)| wall_s);
            let count = times.clone().count();
            (count > 0).then(|| times.sum::<f64>() / count as f64)
        };
        let guess = run.steps as f64 * (0.02 + 3e-10 * run.state as f64 * experiment.ranks as f64);
        mean(true).or_else(|| mean(false)).unwrap_or(guess)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_expected() {
        let experiment = Experiment {
            program: "ftrun".into(),
            ranks: 4,
            states: vec![],
            schemes: vec![],
            repeat: 1,
            seed: 0,
        };
        let run = |scheme| Run { state: 64, scheme, kind: Kind::Plain, steps: 40, repetition: 0 };
        let mut forecast = Forecast::default();
        let seconds =
            |forecast: &Forecast, runs: &[Run]| forecast.left(&experiment, runs.iter()).as_secs_f64();
        assert!(seconds(&forecast, &[run(0)]) > 0.0);
        forecast.saw(run(0), 2.0);
        forecast.saw(run(1), 3.0);
        forecast.saw(run(1), 5.0);
        assert_eq!(seconds(&forecast, &[run(0), run(1), run(1)]), 2.0 + 4.0 + 4.0);
        forecast.saw(run(2), 6.0);
        assert_eq!(seconds(&forecast, &[run(3)]), 4.0, "another scheme");
        let random = Run { kind: Kind::Random { mtbf_s: 1.0, every: 3 }, steps: 80, ..run(1) };
        assert_eq!(seconds(&forecast, &[random]), 8.0);
    }
}
