//! One job of `ftrun collective-times` as a child process, and what is read from its report.

use std::process::{Command, Stdio};

use serde::Deserialize;

use super::fit::Links;
use super::order::Order;
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
    pub(crate) links: Option<Links>,
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

/// Runs a job that times collectives; without ranks, one that times messages.
pub(crate) fn run(order: &Order, ranks: Option<usize>) -> Result<Times, BenchError> {
    let args = arguments(order, ranks);
    let command = format!("{} {args}", order.program.display());
    let output = Command::new(&order.program)
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

fn arguments(order: &Order, ranks: Option<usize>) -> String {
    let Order { time_s, transport, .. } = order;
    let common = |ranks: usize| {
        format!("--json -n {ranks} --scheme none --transport {transport} collective-times --time {time_s}")
    };
    let sizes: Vec<String> = order.sizes().iter().map(usize::to_string).collect();
    ranks.map_or_else(
        || common(2) + " --links",
        |ranks| format!("{} --sizes {}", common(ranks), sizes.join(",")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands() {
        let order = Order {
            program: "ftrun".into(),
            ranks: vec![4],
            time_s: 0.5,
            rounds: 1,
            transport: "tcp".into(),
            model: true,
        };
        let start = "--transport tcp collective-times --time 0.5";
        assert_eq!(arguments(&order, None), format!("--json -n 2 --scheme none {start} --links"));
        let expected = format!("--json -n 4 --scheme none {start} --sizes 8,16384,1048576");
        assert_eq!(arguments(&order, Some(4)), expected);
    }
}
