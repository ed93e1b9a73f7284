//! Runs one after the other, some at a time, and what is said of them.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::clock::Clock;
use crate::summary::Summary;

/// What a run has shown.
#[derive(Debug)]
pub(crate) struct Judged {
    /// What it has in common with others.
    pub(crate) labels: Vec<(&'static str, String)>,
    pub(crate) status: i32,
    /// What is wrong, each with a word for its kind.
    pub(crate) findings: Vec<(&'static str, String)>,
    /// What repeats it, and what it said.
    pub(crate) account: String,
}

/// Something that can be run many times.
pub(crate) trait Work: Sync {
    /// # Errors
    /// It cannot be run at all.
    fn run(&self, number: u64) -> Result<Judged, String>;
}

/// Which runs, and how many at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) runs: u64,
    /// The same run again and again.
    pub(crate) only: Option<u64>,
    /// No run begins later.
    pub(crate) until: Option<Duration>,
    pub(crate) at_a_time: usize,
}

/// Does the work, and says what is found as it is found.
pub(crate) fn work(plan: Plan, work: &impl Work) -> Result<Summary, String> {
    let (clock, next, stop) = (Clock::start(), AtomicU64::new(0), AtomicBool::new(false));
    let summary = Mutex::new(Summary::default());
    let turn = || -> Result<(), String> {
        while !stop.load(Ordering::Relaxed) && plan.until.is_none_or(|until| clock.now() < until) {
            let turn = next.fetch_add(1, Ordering::Relaxed);
            if turn >= plan.runs {
                break;
            }
            let number = plan.only.unwrap_or(turn);
            let judged = work.run(number).inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
            let mut summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
            note(&mut summary, number, judged);
            show_progress(&summary, plan, clock.now());
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..plan.at_a_time).map(|_| scope.spawn(turn)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().map_err(|_| "a worker has panicked".to_owned())?)
    })?;
    clear_progress();
    Ok(summary.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn note(summary: &mut Summary, number: u64, judged: Judged) {
    let Judged { labels, status, findings, account } = judged;
    let mut kinds: Vec<&'static str> = findings.iter().map(|(kind, _)| *kind).collect();
    kinds.dedup();
    let is_told = summary.add(number, labels, status, &kinds);
    if findings.is_empty() {
        return;
    }
    clear_progress();
    println!("run {number}: {}", kinds.join(", "));
    if is_told {
        findings.iter().for_each(|(_, text)| println!("  {text}"));
        println!("{account}\n");
    }
}

fn show_progress(summary: &Summary, plan: Plan, elapsed: Duration) {
    if std::io::stderr().is_terminal() {
        let rate = summary.runs as f64 / elapsed.as_secs_f64();
        let Summary { runs, findings, .. } = summary;
        // Nothing is lost with it.
        let _ = write!(
            std::io::stderr(),
            "\r{runs} of {} runs, {rate:.1} a second, {findings} with findings ",
            plan.runs
        );
    }
}

fn clear_progress() {
    if std::io::stderr().is_terminal() {
        let _ = write!(std::io::stderr(), "\r\x1b[K");
    }
}
