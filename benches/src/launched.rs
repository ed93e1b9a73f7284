//! The report of a job of `ftrun` (`--json`), as far as comparisons read it.

use ft_checkpoint::IntervalReport;
use serde::Deserialize;
use serde_json::Value;

/// What a job did that came to its end.
#[derive(Debug, Deserialize)]
pub(crate) struct Launched {
    status: i32,
    message: String,
    /// From the first start to the last end.
    pub(crate) elapsed_s: f64,
    /// What the program itself reports.
    pub(crate) result: Value,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) failures: Vec<Failure>,
    /// Kills that were ordered and did not happen.
    unfired: Vec<String>,
    spares_used: usize,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Checkpoints {
    pub(crate) committed: u64,
    pub(crate) interval: Option<IntervalReport>,
}

/// Ranks that were lost at once, and what that cost.
#[derive(Debug, Deserialize)]
pub(crate) struct Failure {
    ranks: Vec<usize>,
    pub(crate) detect_s: Option<f64>,
    pub(crate) agree_s: Option<f64>,
    pub(crate) repair_s: Option<f64>,
    pub(crate) restore_s: Option<f64>,
    /// Parts of the restore.
    pub(crate) restore: Option<Restore>,
    pub(crate) steps_lost: u64,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Restore {
    pub(crate) plan: f64,
    pub(crate) rebuild: f64,
    pub(crate) reprotect: f64,
    pub(crate) load: f64,
}

impl Launched {
    /// Reads what `ftrun` has printed.
    ///
    /// # Errors
    /// The job failed, or its answer is wrong where the program knows the right one.
    pub(crate) fn read(output: &str) -> Result<Self, String> {
        let job: Self =
            serde_json::from_str(output.trim()).map_err(|error| format!("this is no report: {error}"))?;
        match (job.status, job.result.get("wrong_words").and_then(Value::as_u64)) {
            (0, None | Some(0)) => Ok(job),
            (0, Some(wrong)) => Err(format!("{wrong} words are wrong")),
            (status, _) => Err(format!("status {status}: {}", job.message)),
        }
    }

    /// The failure of exactly these ranks, which so many spares stood in for.
    ///
    /// # Errors
    /// It was another one than that, or there were more.
    pub(crate) fn ordered(&self, victims: &[usize], spares: usize) -> Result<&Failure, String> {
        if let Some(kill) = self.unfired.first() {
            return Err(format!("{kill} has not happened"));
        }
        let [failure] = &self.failures[..] else {
            return Err(format!("{} failures instead of one", self.failures.len()));
        };
        if failure.ranks != victims {
            return Err(format!("ranks {:?} were lost instead of {victims:?}", failure.ranks));
        }
        match self.spares_used == spares {
            true => Ok(failure),
            false => Err(format!("{} spares were ready instead of {spares}", self.spares_used)),
        }
    }
}

/// A time that the report has to have.
pub(crate) fn part(name: &str, seconds: Option<f64>) -> Result<f64, String> {
    seconds.ok_or_else(|| format!("there is no {name}"))
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    /// Of a job that lost rank 2.
    pub(crate) fn report() -> Value {
        json!({
            "app": "load", "status": 0, "message": "", "elapsed_s": 18.0, "spares_used": 0, "unfired": [],
            "result": {"wrong_words": 0, "seconds": 10.5, "answer": "3f"},
            "checkpoints": {"committed": 3, "interval": null},
            "failures": [{"ranks": [2], "point": "step=20", "detect_s": 0.25, "agree_s": 0.5, "repair_s": 1.0,
                "respawn_s": 0.75, "restore_s": 2.0, "steps_lost": 3,
                "restore": {"generation": 1, "plan": 0.5, "rebuild": 1.0, "reprotect": 2.0, "load": 0.25}}],
        })
    }

    /// The same with another value at a place.
    pub(crate) fn report_with(pointer: &str, value: Value) -> String {
        let mut report = report();
        *report.pointer_mut(pointer).unwrap() = value;
        report.to_string()
    }

    #[test]
    fn another_failure_than_the_ordered_one_does_not_count() {
        for (pointer, value, why) in [
            ("/status", json!(3), "status 3: "),
            ("/result/wrong_words", json!(7), "7 words are wrong"),
            ("/unfired", json!(["2@step=20"]), "2@step=20 has not happened"),
            ("/failures", json!([]), "0 failures instead of one"),
            ("/failures/0/ranks", json!([2, 3]), "ranks [2, 3] were lost instead of [2]"),
            ("/spares_used", json!(1), "1 spares were ready instead of 0"),
        ] {
            let job = Launched::read(&report_with(pointer, value));
            assert_eq!(job.and_then(|job| job.ordered(&[2], 0).map(|_| ())).unwrap_err(), why);
        }
        let job = Launched::read(&report_with("/result", json!({}))).unwrap();
        assert!(job.ordered(&[2], 0).is_ok(), "a program need not know its answer");
        assert!(Launched::read("").unwrap_err().starts_with("this is no report"));
    }
}
