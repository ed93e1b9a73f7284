//! One job of `ftrun load` as a child process, and what is read from its report (`--json`).

use std::ffi::OsString;
use std::process::{Command, Stdio};

use ft_comm::time::Clock;
use serde::Deserialize;

use super::error::BenchError;
use super::experiment::{EVERY, Experiment, KILL_AT, Kind, Run, STEP_MS};

/// The part of the report that is used here.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Report {
    pub elapsed_s: f64,
    pub result: LoadResult,
    pub checkpoints: Checkpoints,
    pub failures: Vec<Failure>,
    pub kills_postponed: u64,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct LoadResult {
    pub seconds: f64,
    pub step_seconds: f64,
    pub vm_hwm_bytes: u64,
    pub answer_hash: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Checkpoints {
    pub committed: u64,
    pub bytes_protected: u64,
    pub bytes_sent: u64,
    pub seconds: f64,
    pub phases: Phases,
    pub memory_overhead: f64,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Phases {
    pub copy: f64,
    pub encode: f64,
    pub exchange: f64,
    pub commit: f64,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Failure {
    pub detect_s: Option<f64>,
    pub repair_s: Option<f64>,
    pub agree_s: Option<f64>,
    pub respawn_s: Option<f64>,
    pub restore_s: Option<f64>,
    pub restore: Option<Restore>,
    pub steps_lost: u64,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Restore {
    pub plan: f64,
    pub rebuild: f64,
    pub reprotect: f64,
    pub load: f64,
}

/// Runs a job; gives its report and the seconds that the process took on the clock of this one.
pub(super) fn run(experiment: &Experiment, run: &Run, scheme: &str) -> Result<(Report, f64), BenchError> {
    let args = arguments(experiment, run, scheme);
    let words: Vec<String> = args.iter().map(|arg| arg.display().to_string()).collect();
    let command = format!("ftrun {}", words.join(" "));
    let clock = Clock::start();
    let output = Command::new(&experiment.program)
        .args(&args)
        .stdin(Stdio::null())
        .output()
        .map_err(|cause| BenchError::Start { command: command.clone(), cause })?;
    let wall_s = clock.now().seconds();
    if !output.status.success() {
        let status = output.status.code().unwrap_or(-1);
        return Err(BenchError::Failed { command, status, message: complaint(&output.stderr) });
    }
    let failed = |why: String| BenchError::Report { command: command.clone(), why };
    let report: Report = serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))?;
    if matches!(run.kind, Kind::Kill { .. }) && report.failures.len() != 1 {
        return Err(failed(format!("{} failures where one was ordered", report.failures.len())));
    }
    Ok((report, wall_s))
}

fn arguments(experiment: &Experiment, run: &Run, scheme: &str) -> Vec<OsString> {
    let ranks = experiment.ranks.to_string();
    // A word of its own: the folder of a disk scheme may have blanks.
    let mut args: Vec<OsString> = ["--json", "-n", &ranks, "--scheme", scheme].map(OsString::from).into();
    let Run { state, steps, .. } = run;
    let mut text = format!("load --state {state} --steps {steps} --step-ms {STEP_MS}");
    text += &match run.kind {
        Kind::Plain => format!(" --every {EVERY}"),
        Kind::Kill { victim } => format!(" --every {EVERY} --kill {victim}@step={KILL_AT}"),
        Kind::Random { mtbf_s, every } => {
            format!(" --every {every} --mtbf {mtbf_s} --max-restarts 1000 --seed {}", experiment.seed)
        }
    };
    args.extend(text.split(' ').map(OsString::from));
    args
}

/// The first line that `ftrun` says for itself, or else the first.
pub fn complaint(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let own = text.lines().find_map(|line| line.strip_prefix("ftrun: "));
    own.or_else(|| text.lines().find(|line| !line.is_empty())).unwrap_or("it said nothing").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands() {
        let experiment = Experiment {
            program: "ftrun".into(),
            ranks: 4,
            states: vec![],
            schemes: vec![],
            repeat: 1,
            seed: 9,
        };
        let line = |kind| {
            let run = Run { state: 64, scheme: 1, kind, steps: 16, repetition: 0 };
            let args = arguments(&experiment, &run, "disk:/a b");
            assert_eq!(args[4], "disk:/a b");
            args.join(" ".as_ref()).into_string().unwrap()
        };
        let start = "--json -n 4 --scheme disk:/a b load --state 64 --steps 16 --step-ms 10";
        assert_eq!(line(Kind::Plain), format!("{start} --every 5"));
        assert_eq!(line(Kind::Kill { victim: 0 }), format!("{start} --every 5 --kill 0@step=13"));
        let random = Kind::Random { mtbf_s: 2.5, every: 25 };
        assert_eq!(line(random), format!("{start} --every 25 --mtbf 2.5 --max-restarts 1000 --seed 9"));
    }

    #[test]
    fn the_complaint_is_that_of_the_launcher() {
        assert_eq!(complaint(b"thread panicked\nftrun: rank 2 is gone\nmore\n"), "rank 2 is gone");
        assert_eq!(complaint(b"\nno loader\n"), "no loader");
        assert_eq!(complaint(b""), "it said nothing");
    }
}
