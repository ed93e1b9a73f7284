//! The end of a job, for programs (`--json`, DESIGN section 7) and for people.

use std::fmt::Write as _;
use std::time::Duration;

use ft_checkpoint::Stats;
use ft_checkpoint::resilient::RankReport;
use ft_comm::launch::{Ending, Failure};
use ft_comm::list;
use serde::Serialize;
use serde_json::Value;

use crate::cg::CgResult;

/// The report of one job.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    app: String,
    ranks: usize,
    parity_ranks: usize,
    scheme: String,
    seed: Option<u64>,
    elapsed_s: f64,
    result: Value,
    checkpoints: Checkpoints,
    failures: Vec<FailureReport>,
    unfired: Vec<String>,
    degraded: Option<String>,
    selection: &'static str,
    exit: &'static str,
    status: i32,
    message: String,
    strangers_refused: u64,
}

#[derive(Debug, Serialize)]
struct Checkpoints {
    committed: u32,
    bytes_protected: u64,
    bytes_sent: u64,
    seconds: f64,
    memory_overhead: f64,
}

#[derive(Debug, Serialize)]
struct FailureReport {
    ranks: Vec<usize>,
    point: String,
    detect_s: Option<f64>,
    repair_s: Option<f64>,
    restore_s: Option<f64>,
    steps_lost: u64,
}

/// The job as it was ordered.
pub(crate) struct Ordered {
    pub(crate) app: String,
    pub(crate) ranks: usize,
    pub(crate) parity_ranks: usize,
    pub(crate) scheme: String,
    pub(crate) kills: Vec<String>,
}

impl Report {
    pub(crate) fn new(ordered: Ordered, ending: &Ending, bundled: bool) -> Self {
        let reports: Vec<RankReport> =
            ending.outputs.iter().filter_map(|bytes| RankReport::read(bytes)).collect();
        let stats = reports.iter().map(|report| report.stats).reduce(Stats::merge).unwrap_or_default();
        let result: Value =
            reports.first().and_then(|r| serde_json::from_slice(&r.output).ok()).unwrap_or(Value::Null);
        let unsolved = result.get("converged").is_some_and(|converged| converged == false);
        // A bundled program has nothing to do once its ranks have agreed that all is done: how its processes end
        // after that says nothing about the answer.
        let status = match bundled && !ending.outputs.is_empty() {
            true => i32::from(unsolved),
            false => ending.code,
        };
        let message = match result.get("reason") {
            Some(Value::String(reason)) if unsolved => reason.clone(),
            _ if status == 0 => String::new(),
            _ => ending.message.clone(),
        };
        let seconds = |span: Option<Duration>| span.map(|span| span.as_secs_f64());
        let failure = |failure: &Failure| FailureReport {
            ranks: failure.ranks.clone(),
            point: failure.point.clone(),
            detect_s: seconds(failure.detect),
            repair_s: seconds(failure.repair),
            restore_s: seconds(failure.restore),
            steps_lost: failure.steps_lost,
        };
        Self {
            app: ordered.app,
            ranks: ordered.ranks,
            parity_ranks: ordered.parity_ranks,
            scheme: ordered.scheme,
            seed: None,
            elapsed_s: ending.elapsed.as_secs_f64(),
            result,
            checkpoints: Checkpoints {
                committed: stats.committed,
                bytes_protected: stats.bytes_protected,
                bytes_sent: stats.bytes_sent,
                seconds: stats.seconds,
                memory_overhead: stats.memory_overhead(),
            },
            failures: ending.failures.iter().map(failure).collect(),
            unfired: ending.unfired.iter().map(|at| ordered.kills[*at].clone()).collect(),
            degraded: None,
            selection: ft_comm::collective::SELECTION,
            exit: match status {
                0 => "done",
                2 => "bad input",
                3 => "beyond tolerance",
                _ => "failed",
            },
            status,
            message,
            strangers_refused: ending.strangers,
        }
    }

    /// Exit status of the launcher.
    pub(crate) fn status(&self) -> i32 {
        self.status
    }

    /// What went wrong, in one line; empty if nothing did.
    pub(crate) fn complaint(&self) -> &str {
        &self.message
    }

    pub(crate) fn unfired(&self) -> &[String] {
        &self.unfired
    }

    pub(crate) fn json(&self) -> String {
        serde_json::to_string(self).expect("a report can be written")
    }

    /// The report of a bundled app for people.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let mut line = |arguments: std::fmt::Arguments<'_>| {
            let _ = writeln!(text, "{arguments}");
        };
        let result: Option<CgResult> = serde_json::from_value(self.result.clone()).ok();
        let size =
            result.as_ref().map_or(String::new(), |r| format!("{} rows, {} nonzeros, ", r.rows, r.nonzeros));
        let parity = match self.parity_ranks {
            0 => String::new(),
            count => format!(" + {count} parity"),
        };
        line(format_args!(
            "{}: {size}{}{parity}, scheme {}",
            self.app,
            count(self.ranks as u64, "rank"),
            self.scheme
        ));
        let rebuilt =
            if self.scheme.starts_with("disk:") { "read back from disk" } else { "rebuilt in memory" };
        for failure in &self.failures {
            let ms = |seconds: Option<f64>| seconds.map_or("?".into(), |s| format!("{:.1} ms", s * 1e3));
            line(format_args!(
                "  {} failed ({}): noticed after {}, replaced in {}, {rebuilt} in {}, {} done again",
                list("rank", &failure.ranks),
                failure.point,
                ms(failure.detect_s),
                ms(failure.repair_s),
                ms(failure.restore_s),
                count(failure.steps_lost, "step")
            ));
        }
        let Checkpoints { committed, bytes_protected, seconds, memory_overhead, .. } = self.checkpoints;
        line(format_args!(
            "  {} of {:.1} MiB in all, {seconds:.3} s, memory x {memory_overhead:.2}",
            count(committed, "checkpoint"),
            bytes_protected as f64 / f64::from(1 << 20),
        ));
        if let Some(result) = result {
            line(format_args!(
                "  {}, relative residual {:.2e}, answer {}",
                result.reason,
                result.relative_residual,
                &result.answer_hash[..16.min(result.answer_hash.len())]
            ));
        }
        line(format_args!("  {:.3} s", self.elapsed_s));
        text
    }
}

/// "1 rank", "4 ranks".
fn count(number: impl Into<u64>, noun: &str) -> String {
    let number = number.into();
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
