//! What a job may come to after what was done to it, and what it has come to.

use std::collections::BTreeSet;

use rustix::process::Signal;
use serde_json::Value;

use crate::app::App;
use crate::case::{Case, Mode, Stream};
use crate::reference::{Files, Reference};
use crate::run::{Outcome, Struck};
use crate::strike::{Deed, Event, Who};

/// How long a rank tries to reach its launcher, with some time to spare, in milliseconds.
const OPEN_MS: f64 = 2500.0;

/// What the strikes that have met somebody can explain.
struct Expected {
    /// Exit statuses.
    statuses: BTreeSet<i32>,
    /// Ranks may be lost.
    losses: bool,
    killed: bool,
    /// All ranks were killed.
    all: bool,
    /// How many strangers may be counted at most.
    strangers: u64,
}

fn expected(case: &Case, outcome: &Outcome) -> Expected {
    let Case { timeout_ms, hosts, .. } = *case;
    let (mut lost, mut hit_hosts, mut is_replaced) = (0usize, 0usize, false);
    let mut expected =
        Expected { statuses: BTreeSet::new(), losses: false, killed: false, all: false, strangers: 0 };
    let is_tcp = hosts.is_some() || case.options.contains("--transport tcp");
    for Struck { position, met, whom, .. } in &outcome.struck {
        match case.strikes[*position].deed {
            Deed::Strangers { .. } => expected.strangers = u64::MAX,
            // What runs keeps its program. Other hosts open theirs by its name.
            Deed::Replace { .. } => is_replaced = true,
            Deed::Signal { who: Who::Launcher, signal, resume } => match signal {
                Signal::KILL => {
                    expected.killed = true;
                    expected.statuses.insert(128 + signal.as_raw());
                }
                // Ranks bear silence for ten timeouts.
                Signal::STOP | Signal::TSTP => {
                    debug_assert!(resume.is_some_and(|ms| ms < 10.0 * timeout_ms));
                    // Nobody waits as long for a launcher who was never heard.
                    let began = outcome.stderr.contains(Event::Joined.words()) || case.app.is_own();
                    if !began && resume.is_some_and(|ms| ms > OPEN_MS) {
                        expected.statuses.insert(1);
                    }
                }
                _ => _ = expected.statuses.insert(128 + signal.as_raw()),
            },
            // Not long enough to count as lost.
            Deed::Signal { resume: Some(ms), signal: Signal::STOP, .. } if ms < timeout_ms / 2.0 => {}
            Deed::Signal { who, .. } => {
                expected.losses = true;
                // Who is stopped after it has connected and before its first word is as silent as a stranger.
                if is_tcp && case.strikes[*position].stops() {
                    expected.strangers = expected.strangers.saturating_add(*met as u64);
                }
                match who {
                    Who::Ranks(_) => lost += met,
                    Who::AllRanks => expected.all = true,
                    // It has the rank of one that is lost already, unless the other was killed before this one's rank was born.
                    Who::Newest => lost += whom.iter().filter(|kind| case.is_first(**kind)).count(),
                    Who::Agent | Who::Keeper => {
                        hit_hosts += met;
                        lost += hosts.map_or(0, |(_, slots)| slots * met);
                    }
                    Who::Launcher => {}
                }
            }
        }
    }
    let beyond = (expected.all && case.scheme.tolerance < usize::MAX)
        || lost > case.scheme.tolerance
        // What is left of the scheme after ranks have closed up, or where replacements are, is less.
        || (lost > 1 && case.mode == Mode::Shrink)
        // Parity ranks are on the hosts of the others.
        || (hit_hosts > 0 && case.options.contains("--parity-ranks"))
        || (hit_hosts > 0 && lost > hosts.map_or(0, |(_, slots)| slots));
    let statuses = &mut expected.statuses;
    let unread = matches!(case.stdout, Stream::Closed | Stream::Full);
    statuses.insert(i32::from(unread));
    // Nobody hears why.
    if matches!(case.stderr, Stream::Closed | Stream::Full) {
        statuses.insert(1);
    }
    if expected.losses && beyond {
        statuses.insert(3);
    }
    // An agent that is struck, or whose program is replaced, before it has come is a host that cannot be used.
    if (hit_hosts > 0 || is_replaced) && outcome.stderr.contains("cannot start anything on host") {
        statuses.insert(2);
    }
    if expected.losses && (case.mode == Mode::Abort || hosts.is_some_and(|(all, _)| hit_hosts >= all)) {
        statuses.insert(1);
    }
    // A program of one's own prints nothing more when its ranks are at work.
    if case.app.is_own() && unread {
        statuses.insert(0);
    }
    expected
}

/// What is wrong, each with a word for its kind.
pub(crate) fn findings(
    case: &Case,
    outcome: &Outcome,
    reference: &Reference,
    found: &Files,
) -> Vec<(&'static str, String)> {
    let mut wrong = Vec::new();
    let mut say = |kind: &'static str, text: String| wrong.push((kind, text));
    if let Some(hang) = &outcome.hang {
        say("hang", hang.clone());
        return wrong;
    }
    let expected = expected(case, outcome);
    let status = outcome.status;
    if !expected.statuses.contains(&status) {
        say("exit status", format!("status {status}, not one of {:?}", expected.statuses));
    }
    if outcome.stderr.contains("panicked") || status == 101 {
        say("panic", "a panic".to_owned());
    }
    if !outcome.left.is_empty() {
        say("left behind", format!("left behind: {}", outcome.left.join("\n    ")));
    }
    // Who is struck before it has begun ends as any program does.
    let has_begun = !outcome.was_killed || !outcome.stderr.is_empty();
    let told = !has_begun || outcome.stderr.lines().any(|line| line.starts_with("ftrun: "));
    if status != 0 && !expected.killed && !told && case.stderr == Stream::Read {
        say("silent", format!("status {status} without a word"));
    }
    check_files(case, status, &expected, reference, found, &mut say);
    match case.app.is_own() {
        true => check_lines(case, status, outcome, reference, &mut say),
        false => check_report(case, status, &expected, outcome, reference, &mut say),
    }
    wrong
}

/// Every file is whole, none is there that should not be, and after success none is missing.
fn check_files(
    case: &Case,
    status: i32,
    expected: &Expected,
    reference: &Reference,
    found: &Files,
    say: &mut impl FnMut(&'static str, String),
) {
    for (name, bytes) in found {
        match reference.files.get(name) {
            Some(right) if right == bytes => {}
            Some(right) => {
                say("file differs", format!("{name} differs ({} bytes, not {})", bytes.len(), right.len()));
            }
            None if expected.killed && name.ends_with(".part") => {}
            // A job that fails leaves its checkpoints on the disk, and so does one whose ranks are killed when they are done.
            None if (status != 0 || expected.all)
                && (case.scheme.name.starts_with("disk") || case.flushes)
                && name.starts_with("checkpoints") => {}
            None => say("file left", format!("{name} is left")),
        }
    }
    // A loss is the end of the job as well, and has the same status, where it is to be aborted.
    let aborted = expected.losses && case.mode == Mode::Abort;
    let unread = status == 1 && matches!(case.stdout, Stream::Closed | Stream::Full);
    let done = status == 0 || unread && !aborted;
    let missing = reference.files.keys().filter(|name| done && !found.contains_key(*name));
    for name in missing {
        say("file missing", format!("{name} is missing"));
    }
}

/// Lines are whole, and none is missing.
fn check_lines(
    case: &Case,
    status: i32,
    outcome: &Outcome,
    reference: &Reference,
    say: &mut impl FnMut(&'static str, String),
) {
    let lines: BTreeSet<String> = outcome.stdout.lines().map(str::to_owned).collect();
    let strange: Vec<&String> = lines.difference(&reference.lines).collect();
    // The last line of a process that is killed may be a part of one.
    if status == 0 && outcome.struck.is_empty() && !strange.is_empty() {
        say("output", format!("lines that nobody wrote: {strange:?}"));
    }
    if status == 0
        && matches!(case.stdout, Stream::Read | Stream::Paused(_))
        && !reference.lines.is_subset(&lines)
    {
        say("output", "lines are missing".to_owned());
    }
}

fn failures(report: &Value) -> usize {
    report["failures"].as_array().map_or(0, Vec::len)
}

fn check_report(
    case: &Case,
    status: i32,
    expected: &Expected,
    outcome: &Outcome,
    reference: &Reference,
    say: &mut impl FnMut(&'static str, String),
) {
    // What could not begin has no report.
    if status > 100 || status == 2 || matches!(case.stdout, Stream::Closed | Stream::Full) {
        return;
    }
    let Ok(report) = serde_json::from_str::<Value>(&outcome.stdout) else {
        return say("report", format!("no report: {:?}", outcome.stdout));
    };
    // The report was right when it was written; what could not be said afterwards is the status.
    let unsaid = matches!(case.stderr, Stream::Closed | Stream::Full) && status == 1;
    if report["status"] != status && !unsaid {
        say("report", format!("the report has status {}", report["status"]));
    }
    let answer = case.app.answer(&report["result"]);
    let is_right = match case.is_rounded() && failures(&report) > 0 {
        true => App::are_near(&answer, &reference.answer),
        false => answer == reference.answer,
    };
    if status == 0 && !is_right {
        say("wrong answer", format!("{answer:?}, not {:?}", reference.answer));
    }
    let failures = failures(&report);
    if failures > 0 && !expected.losses {
        say("loss without cause", format!("{} failures, but nobody was struck", failures));
    }
    if failures > 0 && case.mode == Mode::Abort && status == 0 {
        say("exit status", "status 0 after a failure, though --on-failure is abort".to_owned());
    }
    let strangers = report["strangers_refused"].as_u64().unwrap_or(0);
    if strangers > expected.strangers {
        say("strangers", format!("{strangers} strangers refused, but {} came at most", expected.strangers));
    }
}
