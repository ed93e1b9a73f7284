//! All jobs of an order, one after the other.

use std::time::Duration;

use super::error::AdviceError;
use super::experiment::AdviceExperiment;
use super::job::{self, Purpose, Reported, Seen};
use super::judgment::{Advice, judge};
use super::ways;
use crate::harness::{Children, HarnessError};
use crate::recovery::{FRESH_DISK, FreshFolder, Progress};

/// Measures all that is ordered. `progress` hears of each job before it begins, and of the end.
///
/// # Errors
/// A job cannot be started, fails, takes too long or does not do what it was told to; the program takes no checkpoints; or
/// [`HarnessError::Interrupted`] when `is_interrupted` says so. A way to go back that the program refuses is none.
pub fn advise(
    experiment: &AdviceExperiment,
    is_interrupted: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Advice, AdviceError> {
    let fresh =
        experiment.schemes.iter().any(|scheme| scheme == FRESH_DISK).then(FreshFolder::new).transpose()?;
    let children = Children { adopts: false, is_interrupted };
    let total = 1 + experiment.repeat * experiment.schemes.len() + ways::jobs(experiment);
    let mut session = Session { experiment, fresh, children, progress, walls_s: Vec::new(), total };
    let steps = session.measure("none", Purpose::Steps)?;
    let mut seen = vec![Vec::new(); experiment.schemes.len()];
    for repetition in 0..experiment.repeat {
        for (scheme, seen) in experiment.schemes.iter().zip(&mut seen) {
            let purpose = Purpose::Kill { steps: steps.steps, victim: repetition % experiment.ranks };
            seen.push(session.measure(scheme, purpose)?);
        }
    }
    let mut advice = judge(experiment, &steps, &seen);
    if let Some(scheme) = advice.recommended.clone().filter(|_| !experiment.ways.is_empty()) {
        advice.ways = Some(ways::weigh(&mut session, &scheme, steps.steps)?);
    }
    session.tell(String::new());
    Ok(advice)
}

/// The jobs so far, and what they need.
pub(super) struct Session<'a> {
    pub(super) experiment: &'a AdviceExperiment,
    /// For the scheme that wants one.
    fresh: Option<FreshFolder>,
    children: Children<'a>,
    progress: &'a mut dyn FnMut(&Progress),
    /// Seconds of each job so far.
    walls_s: Vec<f64>,
    /// Jobs in all.
    total: usize,
}

impl Session<'_> {
    /// Measures a scheme.
    fn measure(&mut self, scheme: &str, purpose: Purpose) -> Result<Seen, AdviceError> {
        // As `--scheme` wants it.
        let folder = self.fresh.as_ref().filter(|_| scheme == FRESH_DISK);
        let text = folder.map_or(scheme.to_owned(), |folder| format!("disk:{}", folder.path().display()));
        let options = job::options(self.experiment, &text, purpose);
        let Reported { report, interval, name, .. } = self.run(format!("scheme {scheme}"), &options)?;
        Seen::of(&report, &interval, purpose).map_err(|why| AdviceError::Report { command: name, why })
    }

    /// Runs a job with these options; people are told of it as `next`.
    pub(super) fn run(&mut self, next: String, options: &[String]) -> Result<Reported, AdviceError> {
        if (self.children.is_interrupted)() {
            return Err(HarnessError::Interrupted.into());
        }
        self.tell(next);
        let longest_s = self.walls_s.iter().copied().fold(self.experiment.seconds, f64::max);
        let reported = job::run(self.experiment, options, longest_s, &self.children)?;
        self.walls_s.push(reported.wall_s);
        Ok(reported)
    }

    /// So many jobs will not be run.
    pub(super) fn leave_out(&mut self, jobs: usize) {
        self.total = self.total.saturating_sub(jobs);
    }

    fn tell(&mut self, next: String) {
        let done = self.walls_s.len();
        let total = self.total.max(done);
        // The first run says the most of how long the others take.
        let each_s = match done {
            0 => self.experiment.seconds,
            _ => self.walls_s.iter().sum::<f64>() / done as f64,
        };
        let left = Duration::from_secs_f64(each_s * (total - done) as f64);
        (self.progress)(&Progress { done, total, next, left });
    }
}
