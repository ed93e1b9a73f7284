//! `--interval auto` held against the model: runs with random failures between runs without any.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use ft_checkpoint::interval::Costs;
use serde_json::Value;

use crate::launched::{Failure, Launched};
use ft_tools::harness::{Children, HarnessError};

/// What to run.
#[derive(Clone, Debug)]
pub struct Order {
    /// The launcher.
    pub ftrun: PathBuf,
    /// Ranks of each job.
    pub ranks: usize,
    /// The scheme of the runs with failures.
    pub scheme: String,
    /// Mean time between failures in seconds.
    pub mtbf_s: f64,
    /// The program and its arguments; it reports an `answer_hash`.
    pub command: Vec<OsString>,
}

/// A run without failures or protection, and one with failures.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// Seconds of the undisturbed run.
    pub undisturbed_s: f64,
    /// Seconds that it would have taken if its steps had been as long as those of the run with failures, where the program
    /// says how long they were: what else the machine did meanwhile is not in the difference.
    pub alike_s: Option<f64>,
    /// Seconds of the one with failures.
    pub disturbed_s: f64,
    /// Failures that happened.
    pub failures: usize,
    /// Checkpoints that were committed.
    pub checkpoints: u64,
    /// Seconds of work between two checkpoints in the end.
    pub interval_s: f64,
    /// Seconds of a checkpoint in the end.
    pub checkpoint_s: f64,
    /// Mean seconds from a failure to the resumption.
    pub recovery_s: f64,
    /// The job's own estimate of the time between failures.
    pub mtbf_s: f64,
    /// Seconds of steps that were done again.
    pub again_s: f64,
}

impl Round {
    /// Seconds beyond the undisturbed run, as a share of it.
    pub fn measured(&self) -> f64 {
        self.disturbed_s / self.undisturbed_s - 1.0
    }

    /// Seconds beyond an undisturbed run with steps of the same length, as a share of it.
    pub fn measured_alike(&self) -> Option<f64> {
        self.alike_s.map(|alike_s| self.disturbed_s / alike_s - 1.0)
    }

    /// The same by the model, which is told how many failures there were and what they cost each.
    pub fn modelled(&self) -> f64 {
        let costs = Costs { checkpoint_s: self.checkpoint_s, recovery_s: self.recovery_s };
        costs.seconds_with(self.failures, self.undisturbed_s, self.interval_s) / self.undisturbed_s - 1.0
    }

    /// What was measured as a multiple of what the model says.
    pub fn ratio(&self) -> f64 {
        self.measured() / self.modelled()
    }

    /// The same beside steps of the same length.
    pub fn ratio_alike(&self) -> Option<f64> {
        self.measured_alike().map(|measured| measured / self.modelled())
    }
}

impl fmt::Display for Round {
    /// A row of [`HEADER`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { undisturbed_s, disturbed_s, failures, checkpoints, interval_s, mtbf_s, again_s, .. } =
            self;
        write!(
            f,
            "| {undisturbed_s:.1} | {disturbed_s:.1} | {failures} | {checkpoints} | {interval_s:.3} | {:.1} | {:.1} | \
             {mtbf_s:.2} | {again_s:.1} | {:.1} % | {:.1} % | {:.2} | {:.1} % | {:.2} |",
            self.checkpoint_s * 1e3,
            self.recovery_s * 1e3,
            self.measured() * 100.0,
            self.modelled() * 100.0,
            self.ratio(),
            self.measured_alike().unwrap_or(f64::NAN) * 100.0,
            self.ratio_alike().unwrap_or(f64::NAN)
        )
    }
}

/// The head of a table of rounds in Markdown.
pub const HEADER: &str = "\
| undisturbed [s] | with failures [s] | failures | checkpoints | interval [s] | checkpoint [ms] | recovery [ms] | MTBF estimated [s] | \
done again [s] | overhead | model | ratio | overhead, steps alike | ratio, steps alike |\n\
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|";

/// Most seconds of one run.
const LIMIT: Duration = Duration::from_secs(3600);

/// One round. The undisturbed run comes first in every other one, by `number`; it also seeds the failures.
///
/// # Errors
/// A job fails, or the answers differ.
pub fn round(order: &Order, number: u64, is_interrupted: &dyn Fn() -> bool) -> Result<Round, HarnessError> {
    let children = Children { adopts: false, is_interrupted };
    let plain = "--scheme none".to_owned();
    let Order { scheme, mtbf_s, .. } = order;
    let struck =
        format!("--scheme {scheme} --interval auto --mtbf {mtbf_s} --seed {number} --max-restarts 1000000");
    let (undisturbed, disturbed) = if number.is_multiple_of(2) {
        let disturbed = job(order, &struck, &children)?;
        (job(order, &plain, &children)?, disturbed)
    } else {
        (job(order, &plain, &children)?, job(order, &struck, &children)?)
    };
    let output = |why: String| HarnessError::Output { command: struck.clone(), why };
    let answer = |job: &Launched| job.result["answer_hash"].clone();
    if answer(&undisturbed) == Value::Null || answer(&undisturbed) != answer(&disturbed) {
        return Err(output("its answer is not that of the undisturbed run".into()));
    }
    judge(&undisturbed, &disturbed).ok_or_else(|| output("it does not run in the resilient loop".into()))
}

fn judge(undisturbed: &Launched, disturbed: &Launched) -> Option<Round> {
    let interval = disturbed.checkpoints.interval.as_ref()?;
    let failures = &disturbed.failures;
    let recovery_s = |failure: &Failure| {
        let parts = [failure.detect_s, failure.repair_s, failure.restore_s];
        parts.into_iter().flatten().sum::<f64>()
    };
    let steps_lost: u64 = failures.iter().map(|failure| failure.steps_lost).sum();
    // Steps, and the mean length of all of them, those that were done again included; `load` reports both.
    let work_s = |job: &Launched| Some(job.result["steps"].as_f64()? * job.result["step_seconds"].as_f64()?);
    let alike_s = || Some(undisturbed.elapsed_s - work_s(undisturbed)? + work_s(disturbed)?);
    Some(Round {
        undisturbed_s: undisturbed.elapsed_s,
        alike_s: alike_s(),
        disturbed_s: disturbed.elapsed_s,
        failures: failures.len(),
        checkpoints: disturbed.checkpoints.committed,
        interval_s: interval.work_s,
        checkpoint_s: interval.checkpoint_s,
        recovery_s: failures.iter().map(recovery_s).sum::<f64>() / failures.len().max(1) as f64,
        mtbf_s: interval.mtbf_s.unwrap_or(f64::NAN),
        again_s: steps_lost as f64 * interval.step_s,
    })
}

fn job(order: &Order, options: &str, children: &Children<'_>) -> Result<Launched, HarnessError> {
    let mut command = Command::new(&order.ftrun);
    command.args(["--json", "-n", &order.ranks.to_string()]).args(options.split(' ')).args(&order.command);
    let ended = children.run(command, LIMIT)?;
    Launched::read(&ended.output).map_err(|why| HarnessError::Output { command: options.to_owned(), why })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_round_by_hand() {
        let read = |elapsed_s: f64, step_seconds: f64, failures: Value, checkpoints: Value| {
            let report = json!({
                "status": 0, "message": "", "elapsed_s": elapsed_s, "spares_used": 0, "unfired": [],
                "result": {"answer_hash": "a", "steps": 90, "step_seconds": step_seconds},
                "failures": failures, "checkpoints": checkpoints,
            });
            Launched::read(&report.to_string()).unwrap()
        };
        let failures = json!([
            {"ranks": [1], "detect_s": 0.25, "repair_s": 0.5, "restore_s": 0.25, "steps_lost": 3},
            {"ranks": [2], "detect_s": null, "repair_s": 0.5, "restore_s": 0.5, "steps_lost": 1},
        ]);
        let interval = json!({
            "chosen": "auto", "steps": 20, "work_s": 2.0, "step_s": 0.1, "checkpoint_s": 0.5,
            "failures": 2, "mtbf_s": 7.2, "optimum_s": 2.1, "steps_done": 100,
        });
        let plain = read(10.0, 0.1, json!([]), json!({"committed": 1, "interval": null}));
        let struck = read(18.0, 0.11, failures, json!({"committed": 6, "interval": interval}));
        let round = judge(&plain, &struck).unwrap();
        assert_eq!((round.recovery_s, round.failures), (1.0, 2));
        assert!((round.again_s - 0.4).abs() < 1e-9);
        // 5 checkpoints of 0.5 s, 2 failures of 1 + 2.5 / 2 s: 7 s more.
        assert!((round.modelled() - 0.7).abs() < 1e-9 && (round.measured() - 0.8).abs() < 1e-9);
        assert!((round.ratio() - 0.8 / 0.7).abs() < 1e-9);
        // 1 s outside of the steps, 9.9 s in them.
        assert!((round.measured_alike().unwrap() - (18.0 / 10.9 - 1.0)).abs() < 1e-9);
        assert!(judge(&plain, &plain).is_none());
    }
}
