//! All jobs of an order, one after the other.

use std::time::Duration;

use super::error::AdviceError;
use super::experiment::AdviceExperiment;
use super::job::{self, Purpose, Seen};
use super::judgment::{Advice, judge};
use crate::harness::{Children, HarnessError};
use crate::recovery::{FRESH_DISK, FreshFolder, Progress};

/// Measures all that is ordered. `progress` hears of each job before it begins, and of the end.
///
/// # Errors
/// A job cannot be started, fails, takes too long or does not do what it was told to; the program takes no checkpoints; or
/// [`HarnessError::Interrupted`] when `is_interrupted` says so.
pub fn advise(
    experiment: &AdviceExperiment,
    is_interrupted: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Advice, AdviceError> {
    let fresh =
        experiment.schemes.iter().any(|scheme| scheme == FRESH_DISK).then(FreshFolder::new).transpose()?;
    let children = Children { adopts: false, is_interrupted };
    let mut session = Session { experiment, fresh, children, progress, walls_s: Vec::new() };
    let steps = session.run("none", Purpose::Steps)?;
    let mut seen = vec![Vec::new(); experiment.schemes.len()];
    for repetition in 0..experiment.repeat {
        for (scheme, seen) in experiment.schemes.iter().zip(&mut seen) {
            let purpose = Purpose::Kill { steps: steps.steps, victim: repetition % experiment.ranks };
            seen.push(session.run(scheme, purpose)?);
        }
    }
    session.tell(String::new());
    Ok(judge(experiment, &steps, &seen))
}

struct Session<'a> {
    experiment: &'a AdviceExperiment,
    /// For the scheme that wants one.
    fresh: Option<FreshFolder>,
    children: Children<'a>,
    progress: &'a mut dyn FnMut(&Progress),
    /// Seconds of each job so far.
    walls_s: Vec<f64>,
}

impl Session<'_> {
    fn run(&mut self, scheme: &str, purpose: Purpose) -> Result<Seen, AdviceError> {
        if (self.children.is_interrupted)() {
            return Err(HarnessError::Interrupted.into());
        }
        self.tell(format!("scheme {scheme}"));
        // As `--scheme` wants it.
        let folder = self.fresh.as_ref().filter(|_| scheme == FRESH_DISK);
        let text = folder.map_or(scheme.to_owned(), |folder| format!("disk:{}", folder.path().display()));
        let longest_s = self.walls_s.iter().copied().fold(self.experiment.seconds, f64::max);
        let seen = job::run(self.experiment, &text, purpose, longest_s, &self.children)?;
        self.walls_s.push(seen.wall_s);
        Ok(seen)
    }

    fn tell(&mut self, next: String) {
        let (done, experiment) = (self.walls_s.len(), self.experiment);
        let total = 1 + experiment.repeat * experiment.schemes.len();
        // The first run says the most of how long the others take.
        let each_s = match done {
            0 => experiment.seconds,
            _ => self.walls_s.iter().sum::<f64>() / done as f64,
        };
        let left = Duration::from_secs_f64(each_s * (total - done) as f64);
        (self.progress)(&Progress { done, total, next, left });
    }
}
