//! All jobs of an order, one after the other.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use super::child;
use super::error::BenchError;
use super::experiment::{Experiment, FRESH_DISK, Run, runs};
use super::forecast::{Forecast, Progress};
use super::machine::{Disk, FreshFolder, Machine, filesystem, load_averages};
use super::measurement::Measurement;
use super::results::{Results, curves};
use super::summary::{Summary, UNPROTECTED, summaries, warnings};
use super::trial::{Trial, expected_trials, judge, trials};
use super::units::bytes;

/// Measures all that is ordered. `progress` hears of each run before it begins and of the end, and can end it all.
///
/// # Errors
/// A job cannot be started, fails or does not do what it was told to, or jobs with equal work differ in their answer.
/// A run with random failures that fails is a warning instead. [`BenchError::Interrupted`] when `progress` breaks.
pub fn run(
    experiment: &Experiment,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Results, BenchError> {
    let machine = Machine::here();
    let fresh =
        experiment.schemes.iter().any(|scheme| scheme == FRESH_DISK).then(FreshFolder::new).transpose()?;
    let disks = disks(experiment, fresh.as_ref().map(FreshFolder::path));
    let mut session = Session {
        experiment,
        disks: &disks,
        progress,
        forecast: Forecast::default(),
        measurements: Vec::new(),
    };
    let planned = runs(experiment);
    for at in 0..planned.len() {
        session.measure(&planned[at..], expected_trials(experiment))?;
    }
    let summaries =
        summaries(&experiment.states, &experiment.schemes, experiment.ranks, &session.measurements);
    let mut warnings = warnings(&summaries, experiment.repeat);
    let (trials, failed) = session.trials(&summaries)?;
    warnings.extend(failed);
    session.tell("", 0, Duration::ZERO)?;
    let measurements = session.measurements;
    Ok(Results {
        machine,
        disks,
        ranks: experiment.ranks,
        repeat: experiment.repeat,
        states: experiment.states.clone(),
        schemes: experiment.schemes.clone(),
        curves: curves(&summaries, &trials),
        summaries,
        trials,
        warnings,
        measurements,
    })
}

/// Where the schemes with files have them; `fresh` is for the one that says nothing of it.
fn disks(experiment: &Experiment, fresh: Option<&Path>) -> Vec<Disk> {
    let disks = experiment.schemes.iter().filter_map(|scheme| {
        let folder = if scheme == FRESH_DISK { fresh? } else { Path::new(scheme.strip_prefix("disk:")?) };
        Some(Disk { scheme: scheme.clone(), folder: folder.to_owned(), filesystem: filesystem(folder) })
    });
    disks.collect()
}

struct Session<'a> {
    experiment: &'a Experiment,
    disks: &'a [Disk],
    progress: &'a mut dyn FnMut(&Progress) -> ControlFlow<()>,
    forecast: Forecast,
    measurements: Vec<Measurement>,
}

impl Session<'_> {
    /// Does the first of the runs that are `left`. After them there are some `later` that are not known yet: their
    /// number, and how long they take.
    fn measure(&mut self, left: &[Run], later: (usize, Duration)) -> Result<(), BenchError> {
        let [run, ..] = left else { return Ok(()) };
        let experiment = self.experiment;
        let scheme = match run.scheme {
            0 => UNPROTECTED,
            at => &experiment.schemes[at - 1],
        };
        let what = format!("{scheme} with {}{}", bytes(run.state), run.kind);
        let time = self.forecast.left(experiment, left.iter()) + later.1;
        self.tell(&what, left.len() + later.0, time)?;

        let load_average = load_averages()[0];
        // As `--scheme` wants it.
        let disk = self.disks.iter().find(|disk| disk.scheme == scheme);
        let text = disk.map_or(scheme.to_owned(), |disk| format!("disk:{}", disk.folder.display()));
        let (report, wall_s) = child::run(experiment, run, &text)?;
        self.forecast.saw(*run, wall_s);
        let measured = Measurement::new(run, scheme, load_average, wall_s, &report);
        self.check_answer(&measured)?;
        self.measurements.push(measured);
        Ok(())
    }

    /// The runs with random failures, and what is to be said of those that have failed.
    fn trials(&mut self, summaries: &[Summary]) -> Result<(Vec<Trial>, Vec<String>), BenchError> {
        let planned = trials(self.experiment, summaries);
        let (mut judged, mut failed) = (Vec::new(), Vec::new());
        for at in 0..planned.len() {
            match self.measure(&planned[at..], (0, Duration::ZERO)) {
                Ok(()) => judged.extend(self.measurements.last().and_then(|run| judge(run, summaries))),
                Err(error @ BenchError::Failed { .. }) => failed.push(error.to_string()),
                Err(error) => return Err(error),
            }
        }
        Ok((judged, failed))
    }

    /// Whatever the scheme and whoever was killed: equal work has equal answers.
    fn check_answer(&self, new: &Measurement) -> Result<(), BenchError> {
        let work = |m: &Measurement| (m.state_bytes, m.steps);
        let differs = |old: &&Measurement| work(old) == work(new) && old.answer_hash != new.answer_hash;
        match self.measurements.iter().find(differs) {
            None => Ok(()),
            Some(old) => Err(BenchError::Answer {
                state_bytes: new.state_bytes,
                steps: new.steps,
                schemes: [&old.scheme, &new.scheme].map(String::clone),
                answers: [&old.answer_hash, &new.answer_hash].map(String::clone),
            }),
        }
    }

    fn tell(&mut self, next: &str, to_do: usize, left: Duration) -> Result<(), BenchError> {
        let done = self.measurements.len();
        let progress = Progress { done, total: done + to_do, next: next.to_owned(), left };
        match (self.progress)(&progress) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(BenchError::Interrupted),
        }
    }
}
