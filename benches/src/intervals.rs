//! `--interval auto` held against the model: runs with random failures between runs without any.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::Parser;
use ft_checkpoint::interval::Costs;
use serde_json::Value;

use crate::launched::{Failure, Launched};
use ft_tools::harness::{Children, HarnessError, interruptible};
use ft_tools::recovery::Spread;

/// Overhead of random failures with '--interval auto' beside undisturbed runs, and what the model says of it
#[derive(Debug, Parser)]
struct Options {
    /// The launcher
    #[arg(long, value_name = "PATH", default_value = "target/release/ftrun")]
    ftrun: PathBuf,
    /// Ranks of each job
    #[arg(short = 'n', long, value_name = "N", default_value_t = 4)]
    ranks: usize,
    /// The scheme of the runs with failures
    #[arg(long, value_name = "S", default_value = "rs:2+2")]
    scheme: String,
    /// Mean time between failures
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    mtbf: f64,
    /// Runs of each kind
    #[arg(long, value_name = "R", default_value_t = 5)]
    rounds: u64,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, required = true)]
    command: Vec<OsString>,
}

/// A run without failures or protection, and one with failures.
struct Round {
    /// Of the undisturbed run.
    undisturbed_s: f64,
    /// What it would have taken if its steps had been as long as those of the run with failures, where the program
    /// says how long they were: what else the machine did meanwhile is not in the difference.
    alike_s: Option<f64>,
    /// Of the one with failures.
    disturbed_s: f64,
    /// Those that happened.
    failures: usize,
    /// Those that were committed.
    checkpoints: u64,
    /// Work between two checkpoints in the end.
    interval_s: f64,
    /// Of a checkpoint in the end.
    checkpoint_s: f64,
    /// From a failure to the resumption, in the mean.
    recovery_s: f64,
    /// The job's own estimate of the time between failures.
    mtbf_s: f64,
    /// Of steps that were done again.
    again_s: f64,
}

impl Round {
    /// Seconds beyond the undisturbed run, as a share of it.
    fn measured(&self) -> f64 {
        self.disturbed_s / self.undisturbed_s - 1.0
    }

    /// Seconds beyond an undisturbed run with steps of the same length, as a share of it.
    fn measured_alike(&self) -> f64 {
        self.alike_s.map_or(f64::NAN, |alike_s| self.disturbed_s / alike_s - 1.0)
    }

    /// The same by the model, which is told how many failures there were and what they cost each.
    fn modelled(&self) -> f64 {
        let costs = Costs { checkpoint_s: self.checkpoint_s, recovery_s: self.recovery_s };
        costs.seconds_with(self.failures, self.undisturbed_s, self.interval_s) / self.undisturbed_s - 1.0
    }

    /// What was measured as a multiple of what the model says.
    fn ratio(&self) -> f64 {
        self.measured() / self.modelled()
    }

    /// The same beside steps of the same length.
    fn ratio_alike(&self) -> f64 {
        self.measured_alike() / self.modelled()
    }
}

/// Name of a column, and what stands in it.
type Column = (&'static str, fn(&Round) -> String);

const COLUMNS: [Column; 14] = [
    ("undisturbed [s]", |round| format!("{:.1}", round.undisturbed_s)),
    ("with failures [s]", |round| format!("{:.1}", round.disturbed_s)),
    ("failures", |round| round.failures.to_string()),
    ("checkpoints", |round| round.checkpoints.to_string()),
    ("interval [s]", |round| format!("{:.3}", round.interval_s)),
    ("checkpoint [ms]", |round| format!("{:.1}", round.checkpoint_s * 1e3)),
    ("recovery [ms]", |round| format!("{:.1}", round.recovery_s * 1e3)),
    ("MTBF estimated [s]", |round| format!("{:.2}", round.mtbf_s)),
    ("done again [s]", |round| format!("{:.1}", round.again_s)),
    ("overhead", |round| percent(round.measured())),
    ("model", |round| percent(round.modelled())),
    ("ratio", |round| format!("{:.2}", round.ratio())),
    ("overhead, steps alike", |round| percent(round.measured_alike())),
    ("ratio, steps alike", |round| format!("{:.2}", round.ratio_alike())),
];

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// What the program does, from its command line to its exit status: it prints a table in Markdown.
pub fn main() -> ExitCode {
    let options = Options::parse();
    interruptible("interval_auto", |is_interrupted| {
        println!("| {} |\n|{}", COLUMNS.map(|(name, _)| name).join(" | "), "---|".repeat(COLUMNS.len()));
        let mut all: Vec<Round> = Vec::new();
        for number in 1..=options.rounds {
            let round = round(&options, number, is_interrupted).map_err(|error| error.to_string())?;
            println!("| {} |", COLUMNS.map(|(_, cell)| cell(&round)).join(" | "));
            all.push(round);
        }
        let middle = |of: fn(&Round) -> f64| Spread::of(all.iter().map(of)).median;
        println!(
            "\nMedians: overhead {}, by the model {}, ratio {:.2}; beside steps of the same length {}, ratio {:.2}.",
            percent(middle(Round::measured)),
            percent(middle(Round::modelled)),
            middle(Round::ratio),
            percent(middle(Round::measured_alike)),
            middle(Round::ratio_alike)
        );
        Ok(())
    })
}

/// Most seconds of one run.
const LIMIT: Duration = Duration::from_secs(3600);

/// One round. The undisturbed run comes first in every other one, by `number`; it also seeds the failures.
///
/// # Errors
/// A job fails, or the answers differ.
fn round(options: &Options, number: u64, is_interrupted: &dyn Fn() -> bool) -> Result<Round, HarnessError> {
    let children = Children { adopts: false, is_interrupted };
    let plain = "--scheme none".to_owned();
    let Options { scheme, mtbf, .. } = options;
    let struck =
        format!("--scheme {scheme} --interval auto --mtbf {mtbf} --seed {number} --max-restarts 1000000");
    let (undisturbed, disturbed) = if number.is_multiple_of(2) {
        let disturbed = job(options, &struck, &children)?;
        (job(options, &plain, &children)?, disturbed)
    } else {
        (job(options, &plain, &children)?, job(options, &struck, &children)?)
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

fn job(options: &Options, words: &str, children: &Children<'_>) -> Result<Launched, HarnessError> {
    let mut command = Command::new(&options.ftrun);
    command.args(["--json", "-n", &options.ranks.to_string()]).args(words.split(' ')).args(&options.command);
    let ended = children.run(command, LIMIT)?;
    Launched::read(&ended.output).map_err(|why| HarnessError::Output { command: words.to_owned(), why })
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
        assert!((round.measured_alike() - (18.0 / 10.9 - 1.0)).abs() < 1e-9);
        assert!(judge(&plain, &plain).is_none());
    }
}
