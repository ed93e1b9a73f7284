//! Links that are cut, and processes that are stopped: nobody waits for ever, one answer comes out and it is the right
//! one, and who was taken for lost ends.

use std::time::Duration;

use rustix::process::{Pid, Signal};

use crate::common::{PATIENT, POISSON, Report, Run, Running, ends_within, poisson_answer};

/// Soon noticed, but not so soon that a busy machine makes ranks fall silent.
const SOON: &str = "--heartbeat-interval 40 --heartbeat-timeout 400";
/// The same for jobs that have to wait for the lease of a rank, which is ten times as long as the timeout.
const LEASED: &str = "--heartbeat-interval 60 --heartbeat-timeout 600";
/// The timeout of [`LEASED`] in milliseconds.
const TIMEOUT_MS: u64 = 600;
/// A job that goes on for a lease and some seconds, however fast the machine.
const LASTING: &str = "load --state 64KiB --steps 1000";

/// The answer of [`LASTING`], which does not depend on the time that its steps take.
fn lasting_answer() -> Report {
    Run::ftrun(&format!("-n 4 --json {LASTING} --step-ms 0")).finish().expect(0).report()
}

/// Runs a job to its end: the right answer, and nobody was lost but these ranks, one after the other.
fn check(options: &str, program: &str, expected: &Report, lost: &[u64]) -> Report {
    let outcome = Run::ftrun(&format!("-n 4 --json {options} {program}")).limit(60).finish().expect(0);
    check_report(outcome.report(), expected, lost)
}

fn check_report(report: Report, expected: &Report, lost: &[u64]) -> Report {
    assert_eq!(report.answer(), expected.answer(), "{}", report.0);
    let ranks: Vec<u64> = report.failures().into_iter().flat_map(|(ranks, _)| ranks).collect();
    assert_eq!(ranks, lost, "{}", report.0);
    assert_eq!(report.unfired(), Vec::<&str>::new(), "{}", report.0);
    report
}

/// A job whose rank 2 is cut off from the launcher and has just been replaced, with its old process, which lives.
fn partitioned(cut: &str) -> (Running, Pid) {
    let mut running = Run::ftrun(&format!("-n 4 -v --json {LEASED} --cut {cut} {LASTING}")).limit(60).start();
    running.await_text("all ranks have joined");
    let old = running.started(3);
    running.await_text("rank 2 back, generation 1 starts");
    assert!(running.processes().contains(&old), "the launcher cannot put to death who is cut off from it");
    (running, old)
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn a_cut_between_two_ranks_that_lasts_costs_one_of_them() {
    check(&format!("{SOON} --cut 0-1@step=20"), POISSON, poisson_answer(), &[1]);
    check(&format!("{SOON} --cut 2-1@checkpoint=3/exchange"), POISSON, poisson_answer(), &[2]);
    // The replacement of rank 3 is not cut off.
    check(&format!("{SOON} --cut 3-0,1,2@collective=30"), POISSON, poisson_answer(), &[3]);
    check(&format!("{SOON} --cut 0-3@time=0"), POISSON, poisson_answer(), &[3]);
}

/// Which of them are replaced depends on who finds out first.
#[test]
fn a_cut_between_two_pairs_of_ranks_is_healed_by_replacements() {
    let options = format!("-n 4 --json {SOON} --scheme rs:2+2 --cut 0,1-2,3@step=20");
    let report = Run::ftrun(&format!("{options} {POISSON}")).limit(60).finish().expect(0).report();
    assert_eq!(report.answer(), poisson_answer().answer());
    let mut lost: Vec<u64> = report.failures().into_iter().flat_map(|(ranks, _)| ranks).collect();
    let count = lost.len();
    lost.sort_unstable();
    lost.dedup();
    assert!(lost.len() == count && (2..4).contains(&count), "{}", report.0);
}

#[test]
fn other_programs_survive_a_cut_as_well() {
    let expected = Run::ftrun("-n 4 --json simulator --size 64 --numloops 40").finish().expect(0).report();
    let options = format!("{SOON} --cut 1-2@step=20");
    let run = Run::ftrun(&format!("-n 4 --json {options} simulator --size 64 --numloops 40")).limit(60);
    let report = run.finish().expect(0).report();
    assert_eq!(report.0["result"]["sum"], expected.0["result"]["sum"]);
    assert_eq!(report.failures().len(), 1, "{}", report.0);
}

#[test]
fn a_cut_that_heals_soon_costs_nothing_but_time() {
    for cut in ["0-1@step=20:0.3", "0,1-2,3@step=20:0.3", "2-launcher@step=20:0.3"] {
        let report = check(&format!("{PATIENT} --cut {cut}"), POISSON, poisson_answer(), &[]);
        let elapsed = report.0["elapsed_s"].as_f64().unwrap();
        assert!(cut.contains("launcher") || elapsed >= 0.3, "nothing was cut: {elapsed} s");
    }
}

#[test]
fn a_rank_that_is_cut_off_from_the_launcher_is_replaced_and_ends_itself() {
    let (running, old) = partitioned("2-launcher@step=20");
    assert!(ends_within(old, Duration::from_secs(30)), "its lease never ends");
    assert!(running.processes().len() >= 5, "the job had ended, so this shows nothing");
    check_report(running.finish().expect(0).report(), &lasting_answer(), &[2]);
}

/// The cut is longer than the timeout and shorter than the lease: what comes back is not wanted any more.
#[test]
#[ignore = "slow: .ci/run runs it"]
fn a_rank_that_comes_back_after_its_replacement_is_told_to_end() {
    let (running, old) = partitioned("2-launcher@step=20:1.8");
    assert!(ends_within(old, Duration::from_secs(30)), "nobody tells it");
    assert!(running.processes().len() >= 5, "the job had ended, so this shows nothing");
    check_report(running.finish().expect(0).report(), &lasting_answer(), &[2]);
}

#[test]
fn a_rank_that_was_stopped_for_long_is_replaced_and_gone() {
    // Others may have no core for a while.
    let options = "--heartbeat-timeout 2000";
    let mut running = Run::ftrun(&format!("-n 4 -v --json {options} {LASTING}")).limit(60).start();
    running.await_text("all ranks have joined");
    let stopped = running.started(3);
    rustix::process::kill_process(stopped, Signal::STOP).unwrap();
    running.await_text("rank 2 back, generation 1 starts");
    // It is dead already, or is told by now; going on helps nobody.
    let _ = ends_within(stopped, Duration::from_millis(2 * TIMEOUT_MS));
    let _ = rustix::process::kill_process(stopped, Signal::CONT);
    assert!(ends_within(stopped, Duration::from_secs(10)));
    check_report(running.finish().expect(0).report(), &lasting_answer(), &[2]);
}

/// The kill of the launcher does not reach it either: it wakes up in a world that has gone on without it.
#[test]
#[ignore = "slow: .ci/run runs it"]
fn a_rank_that_was_stopped_behind_a_cut_ends_itself_when_it_goes_on() {
    let (running, old) = partitioned("2-launcher@step=20");
    rustix::process::kill_process(old, Signal::STOP).unwrap();
    assert!(!ends_within(old, Duration::from_millis(2 * TIMEOUT_MS)), "who stopped it?");
    rustix::process::kill_process(old, Signal::CONT).unwrap();
    assert!(ends_within(old, Duration::from_secs(30)), "its lease never ends");
    assert!(running.processes().len() >= 5, "the job had ended, so this shows nothing");
    check_report(running.finish().expect(0).report(), &lasting_answer(), &[2]);
}

#[test]
fn a_cut_that_never_strikes_is_reported() {
    let outcome = Run::ftrun(&format!("-n 4 --json --cut 0-1@step=999:1 {POISSON}")).finish().expect(0);
    assert_eq!(outcome.report().unfired(), ["0-1@step=999:1"], "{outcome}");
    assert!(outcome.stderr.contains("ftrun: --cut 0-1@step=999:1 never fired"), "{outcome}");
}

#[test]
fn slow_links_change_no_bit() {
    check(&format!("{PATIENT} --slow 0-1,2,3:5"), POISSON, poisson_answer(), &[]);
    check(&format!("{PATIENT} --slow 1-2:5 --kill 2@step=20"), POISSON, poisson_answer(), &[2]);
}
