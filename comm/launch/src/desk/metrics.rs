//! How a job is, as numbers in the text format of Prometheus (version 0.0.4).

use std::fmt::Write as _;

use super::protocol::{RankStatus, Status};

/// A page that is being written.
struct Page(String);

impl Page {
    /// A metric of this name and kind, and what it means.
    fn metric(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string never fails.
        let _ = writeln!(self.0, "# HELP ftrun_{name} {help}\n# TYPE ftrun_{name} {kind}");
    }

    /// A value of it.
    fn value(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(name, text)| format!("{name}=\"{}\"", escaped(text))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "ftrun_{name}{labels} {value}");
    }

    /// A metric that has one value.
    fn one(&mut self, name: &str, kind: &str, help: &str, value: f64) {
        self.metric(name, kind, help);
        self.value(name, &[], value);
    }

    /// A metric that may have a value for each rank.
    fn by_rank(
        &mut self,
        status: &Status,
        name: &str,
        help: &str,
        value: impl Fn(&RankStatus) -> Option<f64>,
    ) {
        self.metric(name, "gauge", help);
        for rank in &status.ranks {
            if let Some(value) = value(rank) {
                self.value(name, &[("rank", &rank.rank.to_string())], value);
            }
        }
    }
}

/// The page of a job.
pub(super) fn text(status: &Status) -> String {
    let mut page = Page(String::new());
    let (gauge, counter) = ("gauge", "counter");
    let up = status.ranks.iter().filter(|rank| rank.is_up()).count();
    page.metric("job", gauge, "The job, by its number and what it runs.");
    page.value("job", &[("job", &status.job.to_string()), ("command", &status.command)], 1.0);
    page.one("ranks", gauge, "Ranks of the job.", status.ranks.len() as f64);
    page.one("ranks_up", gauge, "Ranks whose process works in the current generation.", up as f64);
    page.one("seconds", gauge, "Seconds since the start of the job.", status.seconds);
    if let Some(generation) = status.generation {
        page.one("generation", gauge, "Repairs so far.", f64::from(generation));
    }
    if let Some(epoch) = status.epoch {
        page.one("epoch", gauge, "Number of the newest committed checkpoint.", epoch as f64);
    }
    page.one("checkpoints_total", counter, "Committed checkpoints.", status.commits as f64);
    page.one(
        "checkpoints_in_files_total",
        counter,
        "Checkpoints that are in files too.",
        status.files as f64,
    );
    page.metric("failures_total", counter, "Failures by cause; ranks that were lost together are one.");
    for (cause, count) in &status.failures.causes {
        page.value("failures_total", &[("cause", cause)], *count as f64);
    }
    let (recovered, seconds) = (status.failures.recovered as f64, status.failures.recovery_seconds);
    page.metric("recovery_seconds", "summary", "From the notice of a failure until all ranks worked again.");
    page.value("recovery_seconds_sum", &[], seconds);
    page.value("recovery_seconds_count", &[], recovered);
    if let Some(done) = status.done {
        page.one("done_ratio", gauge, "Share of the work that is done, from 0 to 1.", done);
    }
    page.by_rank(status, "rank_up", "Whether the process of the rank works.", |rank| {
        Some(f64::from(u8::from(rank.is_up())))
    });
    page.by_rank(status, "rank_step", "The step that the rank is in.", |rank| {
        rank.step.map(|step| step as f64)
    });
    page.by_rank(status, "rank_replaced", "How often the rank was replaced.", |rank| {
        Some(f64::from(rank.incarnation))
    });
    let help = "Processor time of the launcher.";
    page.one("launcher_cpu_seconds_total", counter, help, status.launcher_cpu_seconds);
    page.0
}

/// A value of a label, as it is written between quotes.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::super::protocol::WORKING;
    use super::*;

    fn rank(rank: usize, state: &str, step: Option<u64>) -> RankStatus {
        RankStatus { rank, state: state.into(), step, ..RankStatus::default() }
    }

    #[test]
    fn every_value_stands_under_its_kind() {
        let mut status =
            Status { job: 7, command: "a \"b\" \\c\nd".into(), epoch: Some(3), ..Status::default() };
        status.ranks = vec![rank(0, WORKING, Some(12)), rank(1, "starting", None)];
        status.failures.causes = [("killed by signal 9".to_owned(), 2)].into();
        let text = text(&status);
        let mut metric = String::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                metric = rest.split(' ').next().unwrap().to_owned();
            } else if !line.starts_with('#') {
                assert!(line.starts_with(&metric), "{line} stands under {metric}");
                assert!(line.rsplit_once(' ').unwrap().1.parse::<f64>().is_ok(), "{line}");
            }
        }
        for line in [
            r#"ftrun_job{job="7",command="a \"b\" \\c\nd"} 1"#,
            "ftrun_ranks_up 1",
            "ftrun_epoch 3",
            r#"ftrun_failures_total{cause="killed by signal 9"} 2"#,
            r#"ftrun_rank_up{rank="1"} 0"#,
            r#"ftrun_rank_step{rank="0"} 12"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
        assert!(
            !text.contains("ftrun_rank_step{rank=\"1\"}") && !text.contains("ftrun_generation"),
            "{text}"
        );
    }
}
