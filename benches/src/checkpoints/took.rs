//! What a program says that it took.

use serde::Deserialize;

use super::job::{Job, VICTIM};
use crate::launched::{Launched, Restore, part};
use ft_tools::recovery::Spread;

/// What a program took, in seconds, and where the time went.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Took {
    /// What counts.
    pub(super) seconds: f64,
    /// Parts of it, or numbers beside it.
    pub(super) parts: Vec<(&'static str, f64)>,
    /// What two jobs of the same work have in common.
    pub(super) answer: Option<String>,
}

impl Took {
    /// Reads what a job has printed.
    ///
    /// # Errors
    /// It says something else, or has done something else than was ordered.
    pub(super) fn read(job: Job, output: &str) -> Result<Self, String> {
        match job {
            Job::Rebuild(_) => rebuild(&Launched::read(output)?),
            Job::Solver { .. } => solver(&Launched::read(output)?),
            _ => Timed::of(output)?.took(),
        }
    }
}

/// The line of a program that takes several checkpoints.
#[derive(Debug, Deserialize)]
struct Timed {
    seconds: Vec<f64>,
    #[serde(default)]
    copy: Vec<f64>,
    #[serde(default)]
    encode: Vec<f64>,
    #[serde(default)]
    exchange: Vec<f64>,
    #[serde(default)]
    commit: Vec<f64>,
}

impl Timed {
    fn of(output: &str) -> Result<Self, String> {
        let line = output.lines().find(|line| line.starts_with('{')).ok_or("there is no line of JSON")?;
        serde_json::from_str(line).map_err(|error| format!("'{line}' has no times: {error}"))
    }

    fn took(self) -> Result<Took, String> {
        let median = |values: &[f64]| Spread::of(values.iter().copied()).median;
        if self.seconds.is_empty() {
            return Err("there are no times".into());
        }
        let Self { copy, encode, exchange, commit, .. } = &self;
        let parts = [("copy", copy), ("encode", encode), ("exchange", exchange), ("commit", commit)];
        let parts = parts.into_iter().filter(|(_, values)| !values.is_empty());
        let parts = parts.map(|(name, values)| (name, median(values))).collect();
        Ok(Took { seconds: median(&self.seconds), parts, answer: None })
    }
}

fn rebuild(job: &Launched) -> Result<Took, String> {
    let failure = job.ordered(&[VICTIM], 1)?;
    let seconds = part("restore_s", failure.restore_s)?;
    let Restore { plan, rebuild, reprotect, load } = failure.restore.ok_or("it was not restored from")?;
    // At the rank where each took longest: who waits for the one that rebuilds does so in its load.
    let parts = vec![("plan", plan), ("rebuild", rebuild), ("reprotect", reprotect), ("load", load)];
    Ok(Took { seconds, parts, answer: None })
}

fn solver(job: &Launched) -> Result<Took, String> {
    let seconds = job.result["seconds"].as_f64().ok_or("there is no time in the result")?;
    let answer = job.result["answer"].as_str().ok_or("there is no answer in the result")?.to_owned();
    let parts = vec![("checkpoints", job.checkpoints.committed as f64)];
    Ok(Took { seconds, parts, answer: Some(answer) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::launched::tests::{report, report_with};

    #[test]
    fn times_are_medians() {
        let job = Job::File(4);
        let took =
            Took::read(job, "a word\n{\"seconds\":[3.0,1.0,2.0],\"copy\":[0.5,0.25,0.125]}\n").unwrap();
        assert_eq!(took, Took { seconds: 2.0, parts: vec![("copy", 0.25)], answer: None });
        assert_eq!(Took::read(job, "nothing").unwrap_err(), "there is no line of JSON");
        assert_eq!(Took::read(job, "{\"seconds\":[]}").unwrap_err(), "there are no times");
        assert!(Took::read(job, "{\"ranks\":1}").unwrap_err().contains("has no times: missing field"));
    }

    #[test]
    fn a_rebuild_is_the_restore_of_the_rank_that_was_lost() {
        let job = Job::Rebuild(4);
        let took = Took::read(job, &report_with("/spares_used", json!(1))).unwrap();
        assert_eq!((took.seconds, took.parts[1]), (2.0, ("rebuild", 1.0)));
        assert_eq!(Took::read(job, &report().to_string()).unwrap_err(), "0 spares were ready instead of 1");
    }

    #[test]
    fn a_solver_has_an_answer() {
        let took = Took::read(Job::Solver { protected: true }, &report().to_string()).unwrap();
        let expected = Took { seconds: 10.5, parts: vec![("checkpoints", 3.0)], answer: Some("3f".into()) };
        assert_eq!(took, expected);
    }
}
