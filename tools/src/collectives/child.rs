//! One job of `ftrun collective --algorithms` as a child process, and what is read from its report.

use std::process::{Command, Stdio};

use serde::Deserialize;

use super::experiment::{Experiment, SIZES};
use crate::recovery::{BenchError, complaint};

/// The part of the report that is used here.
#[derive(Clone, Debug, Deserialize)]
struct Report {
    result: Times,
}

/// What the app says.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Times {
    pub(crate) timings: Vec<Timing>,
}

/// One algorithm with one size.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Timing {
    pub(crate) operation: String,
    pub(crate) bytes: usize,
    pub(crate) algorithm: String,
    pub(crate) seconds: f64,
    pub(crate) calls: usize,
}

/// Runs a job that times collectives on so many ranks.
pub(crate) fn run(experiment: &Experiment, ranks: usize) -> Result<Times, BenchError> {
    let args = arguments(experiment, ranks);
    let places = &experiment.places;
    let command = [&["ftrun".to_owned()], &places[..], std::slice::from_ref(&args)].concat().join(" ");
    let output = Command::new(&experiment.program)
        .args(places)
        .args(args.split(' '))
        .stdin(Stdio::null())
        .output()
        .map_err(|cause| BenchError::Start { command: command.clone(), cause })?;
    if !output.status.success() {
        let status = output.status.code().unwrap_or(-1);
        return Err(BenchError::Failed { command, status, message: complaint(&output.stderr) });
    }
    let report: Result<Report, _> = serde_json::from_slice(&output.stdout);
    report.map(|report| report.result).map_err(|error| BenchError::Report { command, why: error.to_string() })
}

fn arguments(experiment: &Experiment, ranks: usize) -> String {
    let Experiment { time_s, transport, .. } = experiment;
    let sizes: Vec<String> = SIZES.iter().map(usize::to_string).collect();
    format!(
        "--json -n {ranks} --scheme none --transport {transport} collective --algorithms --time {time_s} --sizes {}",
        sizes.join(",")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands() {
        let experiment = Experiment {
            program: "ftrun".into(),
            ranks: vec![4],
            time_s: 0.5,
            rounds: 1,
            transport: "tcp".into(),
            places: vec![],
        };
        let arguments = arguments(&experiment, 4);
        let sizes = arguments.strip_prefix(
            "--json -n 4 --scheme none --transport tcp collective --algorithms --time 0.5 --sizes 8,64,",
        );
        assert!(sizes.is_some_and(|sizes| sizes.ends_with(",4194304")), "{arguments}");
    }
}
