//! How jobs are, in words and tables.

use clap::builder::styling::{AnsiColor, Style};
use ft_comm::list;
use ft_launch::{Failures, HostStatus, RankStatus, Status};

use crate::words::count;

/// Characters of a command that are shown in a list.
const COMMAND_MAX: usize = 60;

/// A line, and how it looks.
pub(super) struct Line {
    pub(super) style: Style,
    pub(super) text: String,
}

impl Line {
    fn plain(text: String) -> Self {
        Self { style: Style::new(), text }
    }
}

/// Lines for a stream that takes colors, or has them taken out.
pub(super) fn text(lines: &[Line]) -> String {
    lines.iter().map(|Line { style, text }| format!("{style}{text}{style:#}\n")).collect()
}

/// A list of jobs; of some only the number is known.
pub(super) fn jobs(jobs: &[(u32, Option<Status>)]) -> String {
    let head = ["JOB", "STATE", "RANKS", "TIME", "FAILURES", "COMMAND"].map(str::to_owned);
    let row = |(job, status): &(u32, Option<Status>)| match status {
        None => {
            [job.to_string(), "silent".into(), String::new(), String::new(), String::new(), String::new()]
        }
        Some(status) => [
            job.to_string(),
            status.state.clone(),
            format!("{}/{}", up(status), status.ranks.len()),
            time(status.seconds),
            status.failures.total.to_string(),
            plain(&status.command).chars().take(COMMAND_MAX).collect(),
        ],
    };
    let rows = std::iter::once(head).chain(jobs.iter().map(row)).collect::<Vec<_>>();
    let mut lines: Vec<Line> = table(&rows, "<<>>><").into_iter().map(Line::plain).collect();
    lines[0].style = Style::new().bold();
    text(&lines)
}

/// The hosts of a job.
pub(super) fn hosts(hosts: &[HostStatus]) -> String {
    // The last column is empty where nobody measures.
    let head = if hosts.iter().any(|host| host.load.is_some()) { "LOAD" } else { "" };
    let head = ["HOST", "SLOTS", "PROCESSES", "STATE", head].map(str::to_owned);
    let row = |host: &HostStatus| {
        let load = host.load.map_or(String::new(), |load| format!("{load:.2}"));
        [plain(&host.host), host.slots.to_string(), host.processes.to_string(), plain(&host.state), load]
    };
    let rows = std::iter::once(head).chain(hosts.iter().map(row)).collect::<Vec<_>>();
    let mut lines: Vec<Line> = table(&rows, "<>><>").into_iter().map(Line::plain).collect();
    lines[0].style = Style::new().bold();
    text(&lines)
}

/// How a job is, and each of its ranks.
pub(super) fn status(status: &Status) -> Vec<Line> {
    let mut lines = vec![Line {
        style: Style::new().bold(),
        text: format!("job {}: {}", status.job, plain(&status.command)),
    }];
    lines.extend(account(status).into_iter().map(|text| Line::plain(format!("  {text}"))));
    let head = ["RANK", "HOST", "PID", "STATE", "STEP", "REPLACED", "WAITS IN"].map(str::to_owned);
    let rows: Vec<_> = std::iter::once(head).chain(status.ranks.iter().map(row)).collect();
    let styles = status.ranks.iter().map(|rank| match rank.is_up() && rank.waits.is_none() {
        true => Style::new(),
        false => AnsiColor::Yellow.on_default(),
    });
    let styles = std::iter::once(Style::new().bold()).chain(styles);
    lines.extend(styles.zip(table(&rows, "><><>><")).map(|(style, text)| Line { style, text }));
    lines
}

fn row(rank: &RankStatus) -> [String; 7] {
    let or_dash = |text: Option<String>| text.map_or_else(|| "-".to_owned(), |text| plain(&text));
    [
        rank.rank.to_string(),
        or_dash(rank.host.clone()),
        or_dash(rank.pid.map(|pid| pid.to_string())),
        plain(&rank.state),
        or_dash(rank.step.map(|step| step.to_string())),
        rank.incarnation.to_string(),
        rank.waits.as_deref().map(plain).unwrap_or_default(),
    ]
}

fn account(status: &Status) -> Vec<String> {
    let generation = status.generation.map_or(String::new(), |number| format!(", generation {number}"));
    let work = format!("{} of {} work", up(status), count(status.ranks.len() as u64, "rank"));
    let mut lines =
        vec![format!("{} for {}{generation}: {work}", plain(&status.state), time(status.seconds))];
    if let Some(epoch) = status.epoch {
        let files = if status.files > 0 { format!(", {} in files", status.files) } else { String::new() };
        lines.push(format!("{}{files}, the newest is epoch {epoch}", count(status.commits, "checkpoint")));
    }
    let done = status.done.map_or(String::new(), |done| format!("{:.0} %: ", 100.0 * done));
    lines.extend(status.progress.as_deref().map(|line| format!("{done}{}", plain(line))));
    lines.extend(failures(&status.failures));
    lines.extend(status.metrics.as_deref().map(|address| format!("metrics at http://{address}/metrics")));
    lines.extend(status.dashboard.as_deref().map(|address| format!("dashboard at {}", plain(address))));
    lines
}

/// The failures: how many, and the last one.
fn failures(failures: &Failures) -> Option<String> {
    let last = failures.newest.last()?;
    let took = match last.recovery_seconds {
        Some(seconds) => format!("all ranks work again after {:.1} ms", 1000.0 * seconds),
        None => "not over yet".to_owned(),
    };
    let (which, cause) = (list("rank", &last.ranks), plain(&last.cause));
    Some(format!("{}, the last one of {which} ({cause}): {took}", count(failures.total, "failure")))
}

fn up(status: &Status) -> usize {
    status.ranks.iter().filter(|rank| rank.is_up()).count()
}

/// "12.3 s", "2:05" (minutes) or "1:02:05" (hours).
fn time(seconds: f64) -> String {
    let whole = seconds as u64;
    match whole {
        0..60 => format!("{seconds:.1} s"),
        60..3600 => format!("{}:{:02}", whole / 60, whole % 60),
        _ => format!("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60),
    }
}

/// On one line, without what a terminal would obey.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Columns of equal width, each to the left (`<`) or to the right (`>`); the last one is as wide as it is.
fn table<const N: usize>(rows: &[[String; N]], sides: &str) -> Vec<String> {
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let cell = |(at, text): (usize, &String)| match sides.as_bytes().get(at) {
        Some(b'>') => format!("{text:>width$}", width = widths[at]),
        _ => format!("{text:<width$}", width = widths[at]),
    };
    let line = |row: &[String; N]| row.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ");
    rows.iter().map(|row| line(row).trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use ft_launch::FailureStatus;

    use super::*;

    #[test]
    fn a_job_in_words() {
        let rank = |rank: usize, state: &str| RankStatus {
            rank,
            host: Some("local".into()),
            pid: Some(4711 + rank as u32),
            state: state.into(),
            step: (rank == 0).then_some(12),
            ..RankStatus::default()
        };
        let failure =
            FailureStatus { ranks: vec![1], cause: "killed by signal 9".into(), recovery_seconds: None };
        let job = Status {
            job: 7,
            command: "cg\n--poisson 8".into(),
            state: "repairing".into(),
            seconds: 125.0,
            generation: Some(1),
            epoch: Some(3),
            commits: 4,
            done: Some(0.425),
            progress: Some("iteration 12".into()),
            ranks: vec![rank(0, "working"), rank(1, "starting")],
            failures: Failures { total: 1, newest: vec![failure], ..Failures::default() },
            ..Status::default()
        };
        let lines: Vec<String> = status(&job).into_iter().map(|line| line.text).collect();
        assert_eq!(
            lines,
            [
                "job 7: cg?--poisson 8",
                "  repairing for 2:05, generation 1: 1 of 2 ranks work",
                "  4 checkpoints, the newest is epoch 3",
                "  42 %: iteration 12",
                "  1 failure, the last one of rank 1 (killed by signal 9): not over yet",
                "RANK  HOST    PID  STATE     STEP  REPLACED  WAITS IN",
                "   0  local  4711  working     12         0",
                "   1  local  4712  starting     -         0",
            ]
        );
        let list = jobs(&[(7, Some(job)), (12, None)]);
        let list = anstream::adapter::strip_str(&list).to_string();
        assert_eq!(
            list,
            "JOB  STATE      RANKS  TIME  FAILURES  COMMAND\n\
             7    repairing    1/2  2:05         1  cg?--poisson 8\n12   silent\n"
        );
    }

    #[test]
    fn times_in_words() {
        assert_eq!([0.04, 59.94, 60.0, 3725.9].map(time), ["0.0 s", "59.9 s", "1:00", "1:02:05"]);
    }
}
