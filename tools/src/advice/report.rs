//! What is read from the report of a job (`--json`).

use ft_checkpoint::{IntervalReport, RestoreSeconds};
use serde::Deserialize;

use super::error::AdviceError;
use crate::harness::Ended;
use crate::recovery::complaint;

/// The part of the report that is used here.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Report {
    pub(super) elapsed_s: f64,
    pub(super) checkpoints: Checkpoints,
    pub(super) failures: Vec<Failure>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Checkpoints {
    pub(super) committed: u32,
    /// Seconds that they have held the rank that they held the longest, without the first, which has the constant part.
    pub(super) seconds_later: f64,
    pub(super) state_bytes: u64,
    pub(super) kept_bytes: u64,
    pub(super) interval: Option<IntervalReport>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Failure {
    detect_s: Option<f64>,
    repair_s: Option<f64>,
    restore_s: Option<f64>,
    restore: Option<RestoreSeconds>,
    pub(super) steps_lost: u64,
}

impl Report {
    /// The last line of what the job has printed.
    pub(super) fn of(ended: &Ended, name: &str) -> Result<Self, AdviceError> {
        let failed = || AdviceError::Failed {
            command: name.to_owned(),
            status: ended.status.code().unwrap_or(-1),
            message: complaint(ended.complaints.as_bytes()),
        };
        let line = ended.output.lines().last().filter(|line| line.starts_with('{')).ok_or_else(failed)?;
        let report = serde_json::from_str(line);
        let why = |error: serde_json::Error| error.to_string();
        let report =
            report.map_err(|error| AdviceError::Report { command: name.to_owned(), why: why(error) })?;
        if ended.status.success() { Ok(report) } else { Err(failed()) }
    }

    /// The failure that was ordered, or what is wrong.
    pub(super) fn only_failure(&self) -> Result<&Failure, String> {
        match &self.failures[..] {
            [failure] => Ok(failure),
            all => Err(format!("{} failures where one was ordered", all.len())),
        }
    }
}

impl Failure {
    /// Seconds from the kill to the resumption, if all of it is known.
    pub(super) fn recovery_s(&self) -> Option<f64> {
        self.repaired_s().zip(self.restore_s).map(|(repaired_s, restore_s)| repaired_s + restore_s)
    }

    /// Seconds from the kill until all that was lost is in memory again, if all of it is known: what a lost rank that goes back alone does again comes
    /// behind it.
    pub(super) fn rebuilt_s(&self) -> Option<f64> {
        self.repaired_s().zip(self.restoring_s()).map(|(repaired_s, restoring_s)| repaired_s + restoring_s)
    }

    /// Seconds from there to the resumption.
    pub(super) fn replay_s(&self) -> Option<f64> {
        self.restore_s.zip(self.restoring_s()).map(|(all_s, restoring_s)| all_s - restoring_s)
    }

    /// Ranks that went on where they were.
    pub(super) fn stayed(&self) -> u32 {
        self.restore.as_ref().map_or(0, |restore| restore.stayed)
    }

    fn repaired_s(&self) -> Option<f64> {
        self.repair_s.map(|repair_s| self.detect_s.unwrap_or(0.0) + repair_s)
    }

    fn restoring_s(&self) -> Option<f64> {
        let sum =
            |restore: &RestoreSeconds| restore.plan + restore.rebuild + restore.reprotect + restore.load;
        self.restore.as_ref().map(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(detect_s: Option<f64>, restore: Option<RestoreSeconds>) -> Failure {
        Failure { detect_s, repair_s: Some(0.25), restore_s: Some(2.0), restore, steps_lost: 7 }
    }

    #[test]
    fn times_of_a_failure() {
        let restore = RestoreSeconds { plan: 0.125, load: 0.375, stayed: 3, ..RestoreSeconds::default() };
        let known = failure(Some(0.5), Some(restore));
        assert_eq!((known.recovery_s(), known.rebuilt_s()), (Some(2.75), Some(1.25)));
        assert_eq!((known.replay_s(), known.stayed()), (Some(1.5), 3));
        let unknown = failure(None, None);
        assert_eq!((unknown.recovery_s(), unknown.rebuilt_s(), unknown.replay_s()), (Some(2.25), None, None));
    }

    #[test]
    fn one_failure_was_ordered() {
        let text = r#"{"elapsed_s": 1.5, "checkpoints": {"committed": 4, "seconds_later": 0.5, "state_bytes": 8, "kept_bytes": 16,
            "interval": null}, "failures": []}"#;
        let mut report: Report = serde_json::from_str(text).unwrap();
        assert!(report.only_failure().is_err_and(|why| why == "0 failures where one was ordered"));
        report.failures = vec![failure(None, None)];
        assert_eq!(report.only_failure().unwrap().steps_lost, 7);
    }
}
