//! What a program says that it took.

use serde::Deserialize;

use super::job::{Job, VICTIM};
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
            Job::Rebuild(_) => Report::of(output)?.rebuild(),
            Job::Solver { .. } => Report::of(output)?.solver(),
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

/// The part of the report of `ftrun` that is used here.
#[derive(Debug, Deserialize)]
struct Report {
    status: i32,
    message: String,
    result: serde_json::Value,
    checkpoints: Checkpoints,
    failures: Vec<Failure>,
    spares_used: usize,
}

#[derive(Debug, Deserialize)]
struct Checkpoints {
    committed: u64,
}

#[derive(Debug, Deserialize)]
struct Failure {
    ranks: Vec<usize>,
    restore_s: Option<f64>,
    restore: Option<Restore>,
}

#[derive(Debug, Deserialize)]
struct Restore {
    plan: f64,
    rebuild: f64,
    reprotect: f64,
    load: f64,
}

impl Report {
    fn of(output: &str) -> Result<Self, String> {
        let report: Self =
            serde_json::from_str(output.trim()).map_err(|error| format!("this is no report: {error}"))?;
        match report.status {
            0 => Ok(report),
            status => Err(format!("status {status}: {}", report.message)),
        }
    }

    fn rebuild(self) -> Result<Took, String> {
        if self.spares_used != 1 {
            return Err(format!("{} spares were ready instead of 1", self.spares_used));
        }
        let [Failure { ranks, restore_s: Some(all), restore: Some(restore) }] = &self.failures[..] else {
            let count = self.failures.len();
            return Err(format!("{count} failures, or it was not restored from, instead of one"));
        };
        if ranks != &[VICTIM] {
            return Err(format!("ranks {ranks:?} were lost instead of {VICTIM}"));
        }
        if self.result["wrong_words"] != 0 {
            return Err(format!("{} words are wrong", self.result["wrong_words"]));
        }
        let Restore { plan, rebuild, reprotect, load } = *restore;
        // At the rank where each took longest: who waits for the one that rebuilds does so in its load.
        let parts = vec![("plan", plan), ("rebuild", rebuild), ("reprotect", reprotect), ("load", load)];
        Ok(Took { seconds: *all, parts, answer: None })
    }

    fn solver(self) -> Result<Took, String> {
        let seconds = self.result["seconds"].as_f64().ok_or("there is no time in the result")?;
        let answer = self.result["answer"].as_str().ok_or("there is no answer in the result")?.to_owned();
        let parts = vec![("checkpoints", self.checkpoints.committed as f64)];
        Ok(Took { seconds, parts, answer: Some(answer) })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

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

    fn report() -> Value {
        json!({
            "status": 0, "message": "", "spares_used": 1, "checkpoints": {"committed": 3},
            "result": {"wrong_words": 0, "seconds": 10.5, "answer": "3f"},
            "failures": [{"ranks": [2], "restore_s": 5.0,
                "restore": {"generation": 1, "plan": 0.5, "rebuild": 1.0, "reprotect": 2.0, "load": 0.25}}],
        })
    }

    #[test]
    fn a_rebuild_is_what_was_ordered() {
        let job = Job::Rebuild(4);
        let took = Took::read(job, &report().to_string()).unwrap();
        assert_eq!((took.seconds, took.parts[1]), (5.0, ("rebuild", 1.0)));
        let refused = |pointer: &str, value: Value| {
            let mut report = report();
            *report.pointer_mut(pointer).unwrap() = value;
            Took::read(job, &report.to_string()).unwrap_err()
        };
        assert_eq!(refused("/status", json!(3)), "status 3: ");
        assert_eq!(refused("/spares_used", json!(0)), "0 spares were ready instead of 1");
        assert_eq!(refused("/failures/0/ranks", json!([1])), "ranks [1] were lost instead of 2");
        assert_eq!(refused("/result/wrong_words", json!(9)), "9 words are wrong");
        assert!(refused("/failures", json!([])).starts_with("0 failures, "));
        assert!(
            refused("/failures/0/restore", Value::Null).starts_with("1 failures, or it was not restored")
        );
    }

    #[test]
    fn a_solver_has_an_answer() {
        let took = Took::read(Job::Solver { protected: true }, &report().to_string()).unwrap();
        let expected = Took { seconds: 10.5, parts: vec![("checkpoints", 3.0)], answer: Some("3f".into()) };
        assert_eq!(took, expected);
    }
}
