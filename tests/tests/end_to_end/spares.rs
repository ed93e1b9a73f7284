//! Processes that were started ahead take the ranks of lost ones; when there are too few of them, others are started.

use rustix::process::{Pid, Signal};

use crate::common::{Outcome, PATIENT, Run, Running, example};

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
    // The fifth process of the job.
    let is_spare = |process: &Pid| {
        let environment = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == b"FTRUN_PEER=5")
    };
    let spare = running.processes().into_iter().find(is_spare).unwrap();
    rustix::process::kill_process(spare, Signal::KILL).unwrap();
    running.await_text("a spare is lost");
    running.await_times("1 of 1 spares are ready", 2);
    let outcome = go(running);
    assert!(outcome.stderr.contains("replaced [0, 0, 0, 0]"), "{outcome}");
}
