//! One job of the program, and what is read from its report (`--json`).

use std::process::Command;
use std::time::Duration;

use ft_checkpoint::IntervalReport;
use serde::Deserialize;

use super::error::AdviceError;
use super::experiment::AdviceExperiment;
use crate::harness::{Children, Ended, Parting};
use crate::recovery::complaint;

/// What a job is for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Purpose {
    /// To see how long steps take without protection.
    Steps,
    /// To see what checkpoints and a recovery take, within so many steps.
    Kill { steps: u64, victim: usize },
}

/// Checkpoints that a job is to have at least, where its steps are short enough.
const CHECKPOINTS: f64 = 10.0;
/// What a job gets beside ten times the seconds that it should take: to read its input, and to start.
const PATIENCE_S: f64 = 60.0;

/// The part of the report that is used here.
#[derive(Clone, Debug, Deserialize)]
struct Report {
    checkpoints: Checkpoints,
    failures: Vec<Failure>,
}

#[derive(Clone, Debug, Deserialize)]
struct Checkpoints {
    state_bytes: u64,
    kept_bytes: u64,
    interval: Option<IntervalReport>,
}

#[derive(Clone, Debug, Deserialize)]
struct Failure {
    detect_s: Option<f64>,
    repair_s: Option<f64>,
    restore_s: Option<f64>,
}

impl Report {
    /// The last line of what the job has printed.
    fn of(ended: &Ended, name: &str) -> Result<Self, AdviceError> {
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

    /// Seconds from the kill to the resumption, if there was one and all of it is known; or what is wrong.
    fn recovery_s(&self, purpose: Purpose) -> Result<Option<f64>, String> {
        match (purpose, &self.failures[..]) {
            (Purpose::Steps, _) => Ok(None),
            (Purpose::Kill { .. }, [Failure { detect_s, repair_s, restore_s }]) => {
                let rest = repair_s.zip(*restore_s);
                Ok(rest.map(|(repair_s, restore_s)| detect_s.unwrap_or(0.0) + repair_s + restore_s))
            }
            (Purpose::Kill { .. }, all) => Err(format!("{} failures where one was ordered", all.len())),
        }
    }
}

/// What a job has shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Seen {
    /// Steps that were done.
    pub(crate) steps: u64,
    /// Seconds of one.
    pub(crate) step_s: f64,
    /// Seconds that the program was held for a checkpoint.
    pub(crate) checkpoint_s: f64,
    /// Seconds from the kill to the resumption; none without one.
    pub(crate) recovery_s: Option<f64>,
    /// Protected state of all ranks.
    pub(crate) state_bytes: u64,
    /// What is kept for it.
    pub(crate) kept_bytes: u64,
    /// Seconds of the process.
    pub(crate) wall_s: f64,
}

/// Runs one job with a scheme as `--scheme` takes it.
pub(crate) fn run(
    experiment: &AdviceExperiment,
    scheme: &str,
    purpose: Purpose,
    longest_s: f64,
    children: &Children<'_>,
) -> Result<Seen, AdviceError> {
    let args = options(experiment, scheme, purpose);
    let mut command = Command::new(&experiment.ftrun);
    command.args(&args).args(&experiment.command);
    let name = format!("ftrun {} {}", args.join(" "), experiment.program());
    let limit_s = 10.0 * longest_s + PATIENCE_S;
    let limit = Duration::from_secs_f64(limit_s);
    // However it ends, its report says more.
    let ended = children.run_until(command, limit, &|| true, limit)?;
    if ended.parting == Parting::Hung {
        return Err(AdviceError::Endless { command: name, limit_s });
    }
    let report = Report::of(&ended, &name)?;
    let Some(interval) = &report.checkpoints.interval else {
        let program = experiment.command.first().map(|word| word.display().to_string());
        return Err(AdviceError::NoLoop { program: program.unwrap_or_default() });
    };
    let recovery_s = report.recovery_s(purpose).map_err(|why| AdviceError::Report { command: name, why })?;
    Ok(Seen {
        steps: interval.steps_done,
        step_s: interval.step_s,
        checkpoint_s: interval.checkpoint_s,
        recovery_s,
        state_bytes: report.checkpoints.state_bytes,
        kept_bytes: report.checkpoints.kept_bytes,
        wall_s: ended.wall_s,
    })
}

/// The options before the program.
pub(crate) fn options(experiment: &AdviceExperiment, scheme: &str, purpose: Purpose) -> Vec<String> {
    let interval_s = experiment.seconds / CHECKPOINTS;
    // A word of its own: the folder of a disk scheme may have blanks.
    let mut args: Vec<String> = ["--json", "--scheme", scheme].map(str::to_owned).into();
    let rest = match purpose {
        Purpose::Steps => format!("--trial-seconds {}", experiment.seconds),
        Purpose::Kill { steps, victim } => {
            format!("--trial-steps {steps} --kill {victim}@step={}", steps / 2 + 1)
        }
    };
    let text = format!("-n {} --interval {interval_s} {rest}", experiment.ranks);
    args.extend(text.split(' ').map(str::to_owned));
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands() {
        let experiment = AdviceExperiment {
            ftrun: "ftrun".into(),
            command: vec![],
            ranks: 4,
            schemes: vec![],
            seconds: 2.0,
            repeat: 1,
            mtbfs_s: vec![60.0],
            survive: 1,
            failures: vec![],
        };
        let words = options(&experiment, "disk:/a b", Purpose::Steps);
        assert_eq!(words.join(" "), "--json --scheme disk:/a b -n 4 --interval 0.2 --trial-seconds 2");
        assert_eq!(words[2], "disk:/a b");
        let kill = options(&experiment, "xor", Purpose::Kill { steps: 41, victim: 3 });
        let expected = "--json --scheme xor -n 4 --interval 0.2 --trial-steps 41 --kill 3@step=21";
        assert_eq!(kill.join(" "), expected);
        assert!(
            options(&experiment, "xor", Purpose::Kill { steps: 1, victim: 0 })
                .contains(&"0@step=1".to_owned())
        );
    }
}
