//! The end of a job, for programs (`--json`, DESIGN section 7) and for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use ft_checkpoint::resilient::RankReport;
use ft_checkpoint::{
    CheckpointSeconds, GroupLayout, IntervalReport, Level, LevelStats, LineStats, Lines, Stats,
};
use ft_comm::list;
use ft_launch::{Ending, LastAccount, SavedFiles};
use serde::Serialize;
use serde_json::Value;

use crate::app::AnyApp;
use crate::options::OnFailure;
use crate::words::{bytes, count};

mod failures;

use failures::FailureReport;

/// Version of the report that `--json` prints. It increases when a field is renamed, removed or
/// gets another meaning.
const VERSION: u32 = 1;

/// The report of one job. `docs/reference.md` lists its fields.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    version: u32,
    app: String,
    ranks: usize,
    parity_ranks: usize,
    scheme: String,
    /// As it was asked for.
    scheme_asked: String,
    /// The parity groups, for people.
    #[serde(skip)]
    groups: String,
    /// The ranks that are left close up.
    #[serde(skip)]
    closes: bool,
    seed: u64,
    elapsed_s: f64,
    result: Value,
    checkpoints: Checkpoints,
    failures: Vec<FailureReport>,
    /// Ranks that are left, by their numbers at the start; none if all are.
    left: Option<Vec<usize>>,
    unfired: Vec<String>,
    #[serde(skip)]
    unfired_options: Vec<String>,
    spares_used: u32,
    kills_postponed: u32,
    degraded: Option<String>,
    selection: String,
    exit: &'static str,
    status: i32,
    message: String,
    strangers_refused: u64,
    /// Hosts that were lost and have come back, and how often.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    hosts_back: BTreeMap<String, u32>,
    /// Hosts that got another agent in the place of one that had died, and how often.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    agents_back: BTreeMap<String, u32>,
    /// For how long the loss of one more host would have ended the job, seconds; none if it never would have since the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    exposed_s: Option<f64>,
    /// Checkpoints in files; none if they were not asked for.
    files: Option<Files>,
}

/// Checkpoints in files.
#[derive(Debug, Serialize)]
struct Files {
    /// Those that all ranks have written.
    whole: u64,
    /// The number of the newest one.
    newest: Option<u32>,
    /// How often a rank could not write its file.
    failed: u64,
}

#[derive(Debug, Serialize)]
struct Checkpoints {
    committed: u32,
    /// Those of which only what had changed was sent.
    increments: u32,
    bytes_protected: u64,
    bytes_sent: u64,
    seconds: f64,
    /// Without those that had the constant part, too.
    seconds_later: f64,
    phases: CheckpointSeconds,
    memory_overhead: f64,
    damaged: u64,
    /// Of all ranks together.
    state_bytes: u64,
    /// Copies and redundancy, of all ranks together.
    kept_bytes: u64,
    /// Of the resilient loop, if the program runs in one.
    interval: Option<IntervalReport>,
    /// What has crossed them, where messages may.
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<LineStats>,
    /// Levels of protection above the first; what they have cost is in the sums above, too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    levels: Vec<LevelReport>,
}

/// A level of protection above the first.
#[derive(Debug, Serialize)]
struct LevelReport {
    scheme: String,
    /// With every how many checkpoints of the first level it has one.
    every: u64,
    #[serde(flatten)]
    stats: LevelStats,
}

impl LevelReport {
    /// For people.
    fn line(&self) -> String {
        let Self { scheme, every, stats } = self;
        let restores = match stats.restores {
            0 => String::new(),
            restores => format!(", {}", count(u64::from(restores), "restore")),
        };
        let checkpoints = count(u64::from(stats.checkpoints), "checkpoint");
        format!(
            "{checkpoints} more under {scheme}, one with every {every} of these: {:.3} s{restores}",
            stats.seconds
        )
    }
}

impl Checkpoints {
    /// Of all ranks together.
    fn new(stats: &Stats, reports: Vec<RankReport>, levels: &[Level], lines: Lines) -> Self {
        let level = |(level, stats): (&Level, &LevelStats)| LevelReport {
            scheme: level.scheme.to_string(),
            every: level.every.get(),
            stats: *stats,
        };
        Self {
            committed: stats.committed,
            increments: stats.increments,
            bytes_protected: stats.bytes_protected,
            bytes_sent: stats.bytes_sent,
            seconds: stats.seconds,
            seconds_later: stats.seconds_later,
            phases: stats.phases,
            memory_overhead: stats.memory_overhead(),
            damaged: stats.damaged,
            state_bytes: stats.state_bytes,
            kept_bytes: stats.kept_bytes,
            interval: reports.into_iter().find_map(|report| report.interval),
            lines: (lines != Lines::Meet).then_some(stats.lines),
            levels: levels.iter().zip(&stats.levels).map(level).collect(),
        }
    }
}

/// The job as it was ordered.
pub(crate) struct Ordered {
    pub(crate) app: String,
    pub(crate) layout: GroupLayout,
    pub(crate) on_failure: OnFailure,
    pub(crate) seed: u64,
    pub(crate) kills: Vec<String>,
    pub(crate) cuts: Vec<String>,
    /// Whether messages may cross checkpoints.
    pub(crate) lines: Lines,
    /// The run is measured and ends early.
    pub(crate) is_trial: bool,
    /// Checkpoints are written to files too.
    pub(crate) spills: bool,
    /// Levels of protection above the first.
    pub(crate) levels: Vec<Level>,
    /// Identity of the table of collective algorithms.
    pub(crate) selection: String,
}

impl Ordered {
    /// The injected failures at these positions: their options, and what was said there.
    fn unfired(&self, positions: &[usize]) -> Vec<(&'static str, String)> {
        let one = |at: &usize| match at.checked_sub(self.kills.len()) {
            None => ("--kill", self.kills[*at].clone()),
            Some(at) => ("--cut", self.cuts[at].clone()),
        };
        positions.iter().map(one).collect()
    }
}

/// What the job has come to.
struct Judged {
    result: Value,
    status: i32,
    message: String,
}

impl Judged {
    fn new(ordered: &Ordered, ending: &Ending, reports: &[RankReport], app: Option<&dyn AnyApp>) -> Self {
        let mut result: Value =
            reports.first().and_then(|r| serde_json::from_slice(&r.output).ok()).unwrap_or(Value::Null);
        let done = !ending.outputs.is_empty();
        app.iter().for_each(|app| app.complete(&mut result, ending));
        // A trial ends before there is a result.
        let is_judged = done && !(ordered.is_trial && result.is_null());
        let complaint = app.filter(|_| is_judged).and_then(|app| app.complaint(&result)).unwrap_or_default();
        // A bundled program has nothing to do once its ranks have agreed that all is done: how its processes end
        // after that says nothing about the answer.
        let (status, message) = match (app.is_some() || ordered.is_trial) && done {
            true => (i32::from(!complaint.is_empty()), complaint),
            false => (ending.code, ending.message.clone()),
        };
        Self { result, status, message }
    }
}

/// An exit status in words.
fn exit(status: i32) -> &'static str {
    match status {
        0 => "done",
        2 => "bad input",
        3 => "beyond tolerance",
        124 => "out of time",
        _ => "failed",
    }
}

/// What protection has cost all ranks together, those included that were lost on the way.
fn stats_of(ending: &Ending) -> Stats {
    let left = ending.failures.iter().rev().find_map(|failure| failure.held.as_ref());
    // Where ranks have closed up they have other numbers than at the start.
    let closed_up = left.filter(|left| left.len() == ending.outputs.len());
    let mut ranks: BTreeMap<usize, Stats> = BTreeMap::new();
    let mut add = |rank: usize, part: Option<Stats>| {
        if let Some(part) = part {
            let known = ranks.entry(rank).or_default();
            *known = std::mem::take(known).then(part);
        }
    };
    for LastAccount { rank, account } in &ending.accounts {
        // What a rank held that nobody has taken is with others now.
        let is_left = left.is_none_or(|left| left.contains(rank));
        let there = |part: Stats| match is_left {
            true => part,
            false => Stats { state_bytes: 0, kept_bytes: 0, ..part },
        };
        add(*rank, Stats::read(account).map(there));
    }
    for (at, output) in ending.outputs.iter().enumerate() {
        add(closed_up.map_or(at, |left| left[at]), RankReport::read(output).map(|report| report.stats));
    }
    ranks.into_values().reduce(Stats::merge).unwrap_or_default()
}

impl Report {
    pub(crate) fn new(
        ordered: Ordered,
        ending: &Ending,
        exposed: Duration,
        app: Option<&dyn AnyApp>,
    ) -> Self {
        let reports: Vec<RankReport> =
            ending.outputs.iter().filter_map(|bytes| RankReport::read(bytes)).collect();
        let stats = stats_of(ending);
        let Judged { result, status, message } = Judged::new(&ordered, ending, &reports, app);
        let layout = &ordered.layout;
        let left = ending.failures.iter().rev().find_map(|failure| failure.held.clone());
        let unfired = ordered.unfired(&ending.unfired);
        Self {
            version: VERSION,
            app: ordered.app,
            ranks: layout.ranks(),
            parity_ranks: layout.parity_ranks(),
            scheme: if layout.groups.is_empty() { layout.scheme().clone() } else { layout.scheme_of(0) }
                .to_string(),
            scheme_asked: layout.scheme().to_string(),
            groups: layout.shape(),
            closes: ordered.on_failure == OnFailure::Shrink,
            seed: ordered.seed,
            elapsed_s: ending.elapsed.as_secs_f64(),
            result,
            checkpoints: Checkpoints::new(&stats, reports, &ordered.levels, ordered.lines),
            failures: ending.failures.iter().map(|failure| FailureReport::new(failure, &stats)).collect(),
            left: left.filter(|left| left.len() < layout.total_ranks()),
            unfired_options: unfired.iter().map(|(option, spec)| format!("{option} {spec}")).collect(),
            unfired: unfired.into_iter().map(|(_, spec)| spec).collect(),
            spares_used: ending.spares_used,
            kills_postponed: ending.postponed,
            degraded: stats.degraded,
            selection: ordered.selection,
            exit: exit(status),
            status,
            message,
            strangers_refused: ending.strangers,
            hosts_back: ending.hosts_back.clone(),
            agents_back: ending.agents_back.clone(),
            exposed_s: (!exposed.is_zero()).then_some(exposed.as_secs_f64()),
            files: ordered.spills.then(|| {
                let SavedFiles { whole, newest, failed } = ending.saved.clone();
                Files { whole, newest, failed }
            }),
        }
    }

    /// What the app says of itself.
    pub(crate) fn result(&self) -> &Value {
        &self.result
    }

    /// What was run, and how, in one line.
    pub(crate) fn title(&self) -> String {
        format!("{}: {}", self.app, self.layout())
    }

    /// "4 ranks, scheme xor:4", "6 ranks + 2 parity, scheme rs:6+2 (rs:3+2 over 6 ranks)".
    fn layout(&self) -> String {
        let ranks = count(self.ranks as u64, "rank");
        let parity = match self.parity_ranks {
            0 => String::new(),
            count => format!(" + {count} parity"),
        };
        let Self { groups, scheme_asked: asked, .. } = self;
        // One without a number leaves the size of groups open.
        let as_asked = groups.ends_with(asked) && !groups.contains(" and ") || !asked.contains(':');
        let asked = if as_asked { String::new() } else { format!(" ({asked} over {ranks})") };
        format!("{ranks}{parity}, scheme {groups}{asked}")
    }

    /// What failed and who is left, for people; empty if all is as it was at the start.
    pub(crate) fn account(&self) -> Vec<String> {
        let rebuilt =
            if self.scheme.starts_with("disk:") { "read back from disk" } else { "rebuilt in memory" };
        let mut lines = failures::lines(&self.failures, self.closes, rebuilt);
        lines.extend(self.hosts_back.iter().map(|(name, times)| match times {
            1 => format!("host {name} is back"),
            times => format!("host {name} was back {times} times"),
        }));
        lines.extend(
            self.exposed_s.map(|seconds| {
                format!("for {seconds:.1} s the loss of one more host would have ended the job")
            }),
        );
        lines.extend(self.left.as_ref().map(|left| {
            let all = count((self.ranks + self.parity_ranks) as u64, "rank");
            let are = if left.len() == 1 { "is" } else { "are" };
            format!("{} of {all} {are} left: {} of the start", left.len(), list("rank", left))
        }));
        lines.extend(self.degraded.clone());
        lines
    }

    /// Exit status of the launcher.
    pub(crate) fn status(&self) -> i32 {
        self.status
    }

    /// What went wrong, in one line; empty if nothing did.
    pub(crate) fn complaint(&self) -> &str {
        &self.message
    }

    /// Injected failures that did not fire, as on the command line.
    pub(crate) fn unfired_options(&self) -> &[String] {
        &self.unfired_options
    }

    pub(crate) fn json(&self) -> String {
        serde_json::to_string(self).expect("a report can be written")
    }

    /// The report of a bundled app for people.
    pub(crate) fn text(&self, app: &dyn AnyApp) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let mut line = |arguments: std::fmt::Arguments<'_>| {
            let _ = writeln!(text, "{arguments}");
        };
        let mut about = app.headline(&self.result);
        if !about.is_empty() {
            about += ", ";
        }
        line(format_args!("{}: {about}{}", self.app, self.layout()));
        for said in self.account() {
            line(format_args!("  {said}"));
        }
        let Checkpoints { committed, bytes_protected, seconds, memory_overhead, ref interval, .. } =
            self.checkpoints;
        line(format_args!(
            "  {} of {} in all, {seconds:.3} s, memory x {memory_overhead:.2}",
            count(committed, "checkpoint"),
            bytes(bytes_protected),
        ));
        if let Some(LineStats { kept, kept_bytes, early, outcomes }) = self.checkpoints.lines {
            let kept = count(kept, "message");
            line(format_args!(
                "  {kept} under way at them, {}; {early} received before, {outcomes} outcomes kept",
                bytes(kept_bytes)
            ));
        }
        for level in &self.checkpoints.levels {
            line(format_args!("  {}", level.line()));
        }
        if self.checkpoints.increments > 0 {
            let sent = bytes(self.checkpoints.bytes_sent);
            line(format_args!(
                "  of {} only what had changed was sent, {sent} in all",
                self.checkpoints.increments
            ));
        }
        if self.checkpoints.damaged > 0 {
            let times = count(self.checkpoints.damaged, "time");
            line(format_args!("  found damaged in memory, and made again: {times}"));
        }
        for said in interval.iter().filter_map(chosen) {
            line(format_args!("  {said}"));
        }
        for said in app.lines(&self.result) {
            line(format_args!("  {said}"));
        }
        line(format_args!("  {:.3} s", self.elapsed_s));
        text
    }
}

/// Why checkpoints were taken as often as they were in the end, if that was not simply ordered.
fn chosen(interval: &IntervalReport) -> Option<String> {
    let IntervalReport { steps, work_s, checkpoint_s, failures, mtbf_s, .. } = interval;
    let mtbf_s = mtbf_s.filter(|_| interval.chosen == "auto")?;
    Some(format!(
        "interval auto: a checkpoint every {}, {work_s:.3} s of work, since one takes {:.1} ms and a failure is expected every \
         {mtbf_s:.1} s ({failures} so far)",
        count(*steps, "step"),
        checkpoint_s * 1e3
    ))
}
