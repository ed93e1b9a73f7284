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
    let total = 1 + experiment.repeat * experiment.schemes.len();
    let mut walls_s: Vec<f64> = Vec::new();
    let mut run = |scheme: &str, purpose| -> Result<Seen, AdviceError> {
        if is_interrupted() {
            return Err(HarnessError::Interrupted.into());
        }
        let done = walls_s.len();
        // The first run says the most of how long the others take.
        let each_s = walls_s.iter().sum::<f64>() / done.max(1) as f64;
        let each_s = if done == 0 { experiment.seconds } else { each_s };
        let left = Duration::from_secs_f64(each_s * (total - done) as f64);
        progress(&Progress { done, total, next: format!("scheme {scheme}"), left });
        // As `--scheme` wants it.
        let folder = fresh.as_ref().filter(|_| scheme == FRESH_DISK);
        let text = folder.map_or(scheme.to_owned(), |folder| format!("disk:{}", folder.path().display()));
        let longest_s = walls_s.iter().copied().fold(experiment.seconds, f64::max);
        let seen = job::run(experiment, &text, purpose, longest_s, &children)?;
        walls_s.push(seen.wall_s);
        Ok(seen)
    };

    let steps = run("none", Purpose::Steps)?;
    let mut seen = vec![Vec::new(); experiment.schemes.len()];
    for repetition in 0..experiment.repeat {
        for (scheme, seen) in experiment.schemes.iter().zip(&mut seen) {
            let purpose = Purpose::Kill { steps: steps.steps, victim: repetition % experiment.ranks };
            seen.push(run(scheme, purpose)?);
        }
    }
    progress(&Progress { done: total, total, next: String::new(), left: Duration::ZERO });
    Ok(judge(experiment, &steps, &seen))
}
