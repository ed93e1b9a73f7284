//! Processes that were started ahead take the ranks of lost ones; when there are too few of them, others are started.

use std::time::Duration;

use ft_comm::time::{Clock, Time};
use rustix::process::{Pid, Signal};

use crate::common::{Outcome, PATIENT, Run, Running, bytes_of, example};

/// A job of four ranks that is about to begin; its spares, as many as are named, are ready.
fn ready(options: &str, spares: usize) -> Running {
    let run = Run::ftrun(&format!("-n 4 -v --json {PATIENT} --spares {spares} {options}")).open_stdin();
    let mut running = run.arg(example("waiting")).start();
    if spares > 0 {
        running.await_text(&format!("{spares} of {spares} spares are ready"));
    }
    running
}

fn go(mut running: Running) -> Outcome {
    running.end_stdin();
    running.finish().expect(0)
}

/// How often ranks were replaced, and by how many spares.
#[track_caller]
fn check(options: &str, spares: usize, replaced: [u32; 4], used: u64) {
    let outcome = go(ready(options, spares));
    assert!(outcome.stderr.contains(&format!("replaced {replaced:?}")), "{outcome}");
    assert_eq!(outcome.report().spares_used(), used, "{outcome}");
}

/// Bytes of memory that a process has from the system, beside what lies in files.
fn resident(process: Pid) -> u64 {
    bytes_of(process, "RssAnon")
}

#[test]
fn have_memory_ready_for_what_a_rank_keeps() {
    // Two copies of 8 MiB, and two of that of the other rank.
    let job = "-n 2 -v --spares 1 --scheme neighbor --every 1 load --state 8MiB --steps 1000000 --step-ms 1";
    let mut running = Run::ftrun(job).start();
    running.await_text("1 of 1 spares are ready");
    let spare = running.started(3);
    let (clock, limit) = (Clock::start(), Duration::from_secs(30));
    while resident(spare) < 32 << 20 {
        assert!(clock.now().since(Time(0)) < limit, "{} bytes", resident(spare));
        std::thread::yield_now();
    }
    assert!(resident(spare) < 48 << 20, "{} bytes", resident(spare));
    rustix::process::kill_process(running.started(1), Signal::KILL).unwrap();
    running.await_text("restored");
    running.signal(Signal::TERM);
    running.finish().expect(143);
}

#[test]
fn take_the_ranks_of_lost_ones() {
    check("", 2, [0, 0, 0, 0], 0);
    check("--kill 2@step=12", 1, [0, 0, 1, 0], 1);
    check("--kill 0@step=12", 1, [1, 0, 0, 0], 1);
    check("--kill 3@checkpoint=2/exchange", 1, [0, 0, 0, 1], 1);
    check("--scheme rs:2+2 --kill 0,2@step=12", 3, [1, 0, 1, 0], 2);
    // The spare of the first is lost in its turn, at every stage of its way into the job.
    for point in ["repair=1/agree", "repair=1/reconnect", "restore=1"] {
        check(&format!("--kill 1@step=12 --kill 1@{point}"), 2, [0, 2, 0, 0], 2);
    }
}

#[test]
fn others_are_started_where_there_are_too_few() {
    check("--scheme rs:2+2 --kill 0,2@step=12", 1, [1, 0, 1, 0], 1);
    check("--kill 1@step=12", 0, [0, 1, 0, 0], 0);
}

#[test]
fn are_made_up_for_when_they_are_lost() {
    let mut running = ready("", 1);
    rustix::process::kill_process(running.started(5), Signal::KILL).unwrap();
    running.await_text("a spare is lost");
    running.await_times("1 of 1 spares are ready", 2);
    let outcome = go(running);
    assert!(outcome.stderr.contains("replaced [0, 0, 0, 0]"), "{outcome}");
}
