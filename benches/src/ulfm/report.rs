//! What follows from the report of `ftrun load` (`--json`).

use serde::Deserialize;

use super::job::Job;
use super::sides::Figures;

/// The part of the report that is used here.
#[derive(Debug, Deserialize)]
struct Report {
    status: i32,
    message: String,
    result: LoadResult,
    failures: Vec<Failure>,
    unfired: Vec<String>,
    spares_used: usize,
}

#[derive(Debug, Deserialize)]
struct LoadResult {
    wrong_words: u64,
}

#[derive(Debug, Deserialize)]
struct Failure {
    ranks: Vec<usize>,
    detect_s: Option<f64>,
    agree_s: Option<f64>,
    repair_s: Option<f64>,
    restore_s: Option<f64>,
}

/// Times from the kill on; of two, from the kill of the one that was noticed first.
///
/// # Errors
/// The answer is wrong, or it was another failure than the one that was ordered.
pub(super) fn figures(output: &str, job: &Job) -> Result<Figures, String> {
    let report: Report =
        serde_json::from_str(output.trim()).map_err(|error| format!("this is no report: {error}"))?;
    if report.status != 0 || report.result.wrong_words != 0 {
        let wrong = report.result.wrong_words;
        return Err(format!("status {}, {wrong} words are wrong: {}", report.status, report.message));
    }
    if let Some(kill) = report.unfired.first() {
        return Err(format!("{kill} has not happened"));
    }
    let [failure] = &report.failures[..] else {
        return Err(format!("{} failures instead of one", report.failures.len()));
    };
    if failure.ranks != job.victims() {
        return Err(format!("ranks {:?} were lost instead of {:?}", failure.ranks, job.victims()));
    }
    if report.spares_used != job.spares {
        return Err(format!("{} spares were ready instead of {}", report.spares_used, job.spares));
    }
    let part = |name: &str, seconds: Option<f64>| seconds.ok_or_else(|| format!("there is no {name}"));
    let noticed = part("detect_s", failure.detect_s)?;
    let repaired = noticed + part("repair_s", failure.repair_s)?;
    Ok(vec![
        ("noticed", noticed),
        ("known", noticed + part("agree_s", failure.agree_s)?),
        ("repaired", repaired),
        ("resumed", repaired + part("restore_s", failure.restore_s)?),
    ])
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::job::tests::FRESH;
    use super::*;

    fn report() -> Value {
        json!({
            "app": "load", "status": 0, "message": "", "spares_used": 0, "unfired": [],
            "result": {"wrong_words": 0, "seconds": 1.0},
            "failures": [{"ranks": [2], "point": "step=20", "detect_s": 0.25, "agree_s": 0.5, "repair_s": 1.0,
                "respawn_s": 0.75, "restore_s": 2.0, "steps_lost": 3}],
        })
    }

    #[test]
    fn parts_are_added_from_the_kill_on() {
        let expected = [("noticed", 0.25), ("known", 0.75), ("repaired", 1.25), ("resumed", 3.25)];
        assert_eq!(figures(&format!("{}\n", report()), &FRESH).unwrap(), expected);
    }

    #[test]
    fn another_failure_than_the_ordered_one_does_not_count() {
        let refused = |pointer: &str, value: Value, job: &Job| {
            let mut report = report();
            *report.pointer_mut(pointer).unwrap() = value;
            figures(&report.to_string(), job).unwrap_err()
        };
        for (pointer, value, why) in [
            ("/status", json!(3), "status 3, 0 words are wrong: "),
            ("/result/wrong_words", json!(7), "status 0, 7 words are wrong: "),
            ("/unfired", json!(["2@step=20"]), "2@step=20 has not happened"),
            ("/failures", json!([]), "0 failures instead of one"),
            ("/failures/0/ranks", json!([2, 3]), "ranks [2, 3] were lost instead of [2]"),
            ("/failures/0/agree_s", Value::Null, "there is no agree_s"),
            ("/failures/0/restore_s", Value::Null, "there is no restore_s"),
            ("/spares_used", json!(1), "1 spares were ready instead of 0"),
        ] {
            assert_eq!(refused(pointer, value, &FRESH), why);
        }
        let spare = refused("/status", json!(0), &Job { spares: 1, ..FRESH });
        assert_eq!(spare, "0 spares were ready instead of 1");
        assert!(figures("", &FRESH).unwrap_err().starts_with("this is no report"));
    }
}
