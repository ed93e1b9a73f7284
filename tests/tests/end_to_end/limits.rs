//! Where survival ends: the job stops soon, with the status and the words that say why.

use std::path::Path;

use crate::common::{PATIENT, POISSON, Run, built, poisson_answer};

/// Long enough for any job here, too short for one that waits for something that will not come.
const SECONDS: u64 = 10;

#[test]
fn beyond_tolerance_is_status_3_with_the_numbers() {
    for (options, parts) in [
        (
            "--scheme xor --kill 1,2@step=40",
            &[
                "ranks 1 and 2",
                "group 0 (ranks 0 1 2 3)",
                "xor:4 survives 1 loss",
                "rs:2+2 would have survived",
            ][..],
        ),
        ("--scheme xor --kill 0,1,2@checkpoint=3/vote", &["ranks 0, 1 and 2", "xor:4 survives 1 loss"]),
        ("--scheme none --kill 1@step=40", &["rank 1", "none survives no loss", "xor would have survived"]),
        ("--scheme xor:2 --kill 2,3@step=40", &["ranks 2 and 3", "group 1 (ranks 2 3)"]),
        ("--scheme rs:2+2 --kill 0,1,3@step=40", &["ranks 0, 1 and 3", "rs:2+2 survives 2 losses"]),
        // The second loss comes while the first is repaired.
        (
            "--scheme xor --kill 2@step=40 --kill 1@repair=1/agree",
            &["ranks 1 and 2", "xor:4 survives 1 loss"],
        ),
        ("--scheme xor --kill 2@step=40 --kill 1@restore=1/plan", &["xor:4 survives 1 loss"]),
    ] {
        let run = Run::ftrun(&format!("-n 4 --json {PATIENT} {options} {POISSON}"));
        let outcome = run.limit(SECONDS).finish().expect(3);
        let report = outcome.report();
        assert_eq!(report.0["exit"], "beyond tolerance", "{outcome}");
        assert!(report.0["result"].is_null(), "{outcome}");
        for part in parts {
            assert!(report.message().contains(part), "'{part}' is missing: {outcome}");
        }
        assert_eq!(outcome.stderr, format!("ftrun: {}\n", report.message()), "said once");
    }
}

#[test]
fn all_ranks_lost_is_beyond_any_scheme() {
    for options in ["--scheme rs:2+2", "--scheme neighbor:3"] {
        let run = Run::ftrun(&format!("-n 4 --json {options} --kill 0,1,2,3@step=40 {POISSON}"));
        let outcome = run.limit(SECONDS).finish().expect(3);
        assert!(outcome.report().message().contains("ranks 0, 1, 2 and 3"), "{outcome}");
    }
}

#[test]
fn nobody_is_left_to_close_up() {
    let run = Run::ftrun(&format!("-n 4 --json --on-failure shrink --kill 0,1,2,3@step=40 {POISSON}"));
    let outcome = run.limit(SECONDS).finish().expect(3);
    assert_eq!(outcome.report().0["exit"], "beyond tolerance", "{outcome}");
    assert!(outcome.report().message().contains("no rank that computes is left"), "{outcome}");
}

#[test]
fn a_single_rank_has_nobody_to_hold_its_state() {
    let run = Run::ftrun(&format!("-n 1 --json --kill 0@step=40 {POISSON}"));
    let outcome = run.limit(SECONDS).finish().expect(3);
    assert!(outcome.report().message().contains("rank 0 is lost"), "{outcome}");
}

#[test]
fn too_few_open_files_are_named_with_their_limit() {
    let ftrun = built().join("ftrun");
    for files in [4, 8, 16, 24] {
        let script = format!("ulimit -n {files}; exec {} -n 2 {POISSON}", ftrun.display());
        let outcome = Run::program(Path::new("/bin/sh"), "-c").arg(script).finish().expect(1);
        let limit = format!("limits here: open files {files} (ulimit -n)");
        assert!(outcome.stderr.starts_with("ftrun: cannot ") && outcome.stderr.contains(&limit), "{outcome}");
    }
}

#[test]
fn abort_on_failure_is_status_1() {
    let run = Run::ftrun(&format!("-n 4 --json --on-failure abort --kill 2@step=40 {POISSON}"));
    let outcome = run.limit(SECONDS).finish().expect(1);
    let report = outcome.report();
    assert!(report.message().contains("rank 2 failed"), "{outcome}");
    assert!(report.message().contains("--on-failure is abort"), "{outcome}");
}

#[test]
fn a_rank_that_fails_again_and_again_ends_the_job() {
    let kills = |count: usize| "--kill 1@init ".repeat(count);
    let run = |options: &str, count| Run::ftrun(&format!("-n 4 --json {options} {} {POISSON}", kills(count)));
    for (options, survived) in [("", 3), ("--max-restarts 1", 1), ("--max-restarts 0", 0)] {
        let outcome = run(options, survived).limit(SECONDS).finish().expect(0);
        assert_eq!(outcome.report().answer(), poisson_answer().answer(), "{outcome}");
        let outcome = run(options, survived + 1).limit(SECONDS).finish().expect(1);
        let report = outcome.report();
        let times =
            if survived == 0 { "once".to_owned() } else { format!("{} times in a row", survived + 1) };
        assert!(report.message().contains(&format!("rank 1 failed {times}")), "{outcome}");
        assert!(report.message().contains(&format!("--max-restarts is {survived}")), "{outcome}");
    }
}

/// Each failure is followed by a checkpoint, so they are not in a row.
#[test]
fn failures_with_progress_in_between_do_not_add_up() {
    let kills = "--kill 1@step=5 --kill 1@step=15 --kill 1@step=25 --kill 1@step=35";
    let run = Run::ftrun(&format!("-n 4 --json {PATIENT} --max-restarts 1 {kills} {POISSON}"));
    let outcome = run.limit(SECONDS).finish().expect(0);
    let report = outcome.report();
    assert_eq!((report.answer(), report.failures().len()), (poisson_answer().answer(), 4), "{outcome}");
}

#[test]
fn a_program_that_always_crashes_is_not_started_for_ever() {
    let run = Run::ftrun("-n 2 --json /bin/sh -c").arg("kill -9 $$");
    let outcome = run.limit(SECONDS).finish().expect(1);
    assert!(outcome.report().message().contains("failed 4 times in a row"), "{outcome}");
}

#[test]
fn an_injected_failure_that_never_fires_is_named() {
    let kills = "--kill 1@step=500 --kill 2@step=20 --kill 0@repair=7";
    let run = Run::ftrun(&format!("-n 4 --json {PATIENT} {kills} {POISSON}"));
    let outcome = run.finish().expect(0);
    let report = outcome.report();
    assert_eq!(report.unfired(), ["1@step=500", "0@repair=7"], "{outcome}");
    assert_eq!(report.failures().len(), 1, "{outcome}");
    assert_eq!(
        outcome.stderr, "ftrun: --kill 1@step=500 never fired\nftrun: --kill 0@repair=7 never fired\n",
        "{outcome}"
    );
}
