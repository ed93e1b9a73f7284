//! One job of the program: how it is ordered, and what it has shown of a scheme.

use std::process::Command;
use std::time::Duration;

use ft_checkpoint::IntervalReport;

use super::error::AdviceError;
use super::experiment::AdviceExperiment;
use super::report::Report;
use crate::harness::{Children, Parting};

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
}

impl Seen {
    /// What there is in the report of a job.
    pub(crate) fn of(report: &Report, interval: &IntervalReport, purpose: Purpose) -> Result<Self, String> {
        let recovery_s = match purpose {
            Purpose::Steps => None,
            Purpose::Kill { .. } => report.only_failure()?.recovery_s(),
        };
        Ok(Self {
            steps: interval.steps_done,
            step_s: interval.step_s,
            checkpoint_s: interval.checkpoint_s,
            recovery_s,
            state_bytes: report.checkpoints.state_bytes,
            kept_bytes: report.checkpoints.kept_bytes,
        })
    }
}

/// What a job has reported, and how.
#[derive(Clone, Debug)]
pub(crate) struct Reported {
    pub(crate) report: Report,
    /// Of the resilient loop.
    pub(crate) interval: IntervalReport,
    /// Its command line.
    pub(crate) name: String,
    /// Seconds of the process.
    pub(crate) wall_s: f64,
}

/// Runs one job with these options.
pub(crate) fn run(
    experiment: &AdviceExperiment,
    options: &[String],
    longest_s: f64,
    children: &Children<'_>,
) -> Result<Reported, AdviceError> {
    let mut command = Command::new(&experiment.ftrun);
    command.args(options).args(&experiment.command);
    let name = format!("ftrun {} {}", options.join(" "), experiment.program());
    let limit_s = 10.0 * longest_s + PATIENCE_S;
    let limit = Duration::from_secs_f64(limit_s);
    // However it ends, its report says more.
    let ended = children.run_until(command, limit, &|| true, limit)?;
    if ended.parting == Parting::Hung {
        return Err(AdviceError::Endless { command: name, limit_s });
    }
    let report = Report::of(&ended, &name)?;
    let Some(interval) = report.checkpoints.interval.clone() else {
        let program = experiment.command.first().map(|word| word.display().to_string());
        return Err(AdviceError::NoLoop { program: program.unwrap_or_default() });
    };
    Ok(Reported { report, interval, name, wall_s: ended.wall_s })
}

/// The first options of any job, with a scheme as `--scheme` takes it, and those in `rest`, which have no blanks in them.
pub(crate) fn ordered(experiment: &AdviceExperiment, scheme: &str, rest: &str) -> Vec<String> {
    // A word of its own: the folder of a disk scheme may have blanks.
    let mut args: Vec<String> = ["--json", "--scheme", scheme].map(str::to_owned).into();
    let ranks = experiment.ranks.to_string();
    args.extend(["-n", &ranks].into_iter().chain(rest.split_whitespace()).map(str::to_owned));
    args
}

/// The options of a job that measures a scheme.
pub(crate) fn options(experiment: &AdviceExperiment, scheme: &str, purpose: Purpose) -> Vec<String> {
    let interval_s = experiment.seconds / CHECKPOINTS;
    let rest = match (purpose, experiment.whole) {
        (Purpose::Steps, true) => String::new(),
        (Purpose::Steps, false) => format!("--trial-seconds {}", experiment.seconds),
        // Its steps are those of rank 0; others may have fewer.
        (Purpose::Kill { steps, .. }, true) => format!("--kill 0@step={}", steps / 2 + 1),
        (Purpose::Kill { steps, victim }, false) => {
            format!("--trial-steps {steps} --kill {victim}@step={}", steps / 2 + 1)
        }
    };
    ordered(experiment, scheme, &format!("--interval {interval_s} {rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands() {
        let mut experiment = AdviceExperiment {
            ftrun: "ftrun".into(),
            command: vec![],
            whole: false,
            ranks: 4,
            schemes: vec![],
            seconds: 2.0,
            repeat: 1,
            mtbfs_s: vec![60.0],
            survive: 1,
            failures: vec![],
            ways: vec![],
        };
        let words = options(&experiment, "disk:/a b", Purpose::Steps);
        assert_eq!(words.join(" "), "--json --scheme disk:/a b -n 4 --interval 0.2 --trial-seconds 2");
        assert_eq!(words[2], "disk:/a b");
        let kill = |steps, victim| Purpose::Kill { steps, victim };
        let expected = "--json --scheme xor -n 4 --interval 0.2 --trial-steps 41 --kill 3@step=21";
        assert_eq!(options(&experiment, "xor", kill(41, 3)).join(" "), expected);
        assert!(options(&experiment, "xor", kill(1, 0)).contains(&"0@step=1".to_owned()));
        // To its end.
        experiment.whole = true;
        let expected = "--json --scheme none -n 4 --interval 0.2";
        assert_eq!(options(&experiment, "none", Purpose::Steps).join(" "), expected);
        let expected = "--json --scheme xor -n 4 --interval 0.2 --kill 0@step=21";
        assert_eq!(options(&experiment, "xor", kill(41, 3)).join(" "), expected);
    }
}
