//! What follows from the report of `ftrun load`.

use super::job::Job;
use super::sides::Figures;
use crate::launched::{Launched, part};

/// Times from the kill on; of two, from the kill of the one that was noticed first.
///
/// # Errors
/// The answer is wrong, or it was another failure than the one that was ordered.
pub(super) fn figures(output: &str, job: &Job) -> Result<Figures, String> {
    let report = Launched::read(output)?;
    let failure = report.ordered(job.victims(), job.spares)?;
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
    use serde_json::Value;

    use super::super::job::tests::FRESH;
    use super::*;
    use crate::launched::tests::{report, report_with};

    #[test]
    fn parts_are_added_from_the_kill_on() {
        let expected = [("noticed", 0.25), ("known", 0.75), ("repaired", 1.25), ("resumed", 3.25)];
        assert_eq!(figures(&report().to_string(), &FRESH).unwrap(), expected);
    }

    #[test]
    fn what_is_missing_is_said() {
        let without = |place| figures(&report_with(place, Value::Null), &FRESH).unwrap_err();
        assert_eq!(without("/failures/0/agree_s"), "there is no agree_s");
        assert_eq!(without("/failures/0/restore_s"), "there is no restore_s");
        let spare = figures(&report().to_string(), &Job { spares: 1, ..FRESH }).unwrap_err();
        assert_eq!(spare, "0 spares were ready instead of 1");
    }
}
