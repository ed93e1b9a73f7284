//! Checkpoints that go on behind the computation: kills in every phase of one, and at any time. The answer is that of the
//! undisturbed run, and what is restored is the newest checkpoint that was committed.

use crate::common::{POISSON, Run, example, poisson_answer};

fn run(options: &str) -> Run {
    Run::ftrun(&format!("-n 4 --json --checkpoints asynchronous {options} {POISSON}"))
}

/// Ranks are lost at one point; at least and at most so many steps are done again.
fn check(options: &str, ranks: &[u64], least: u64, most: u64) {
    let outcome = run(options).finish().expect(0);
    let report = outcome.report();
    assert_eq!(
        (report.answer(), report.iterations()),
        (poisson_answer().answer(), poisson_answer().iterations())
    );
    assert_eq!(report.unfired(), [""; 0], "{outcome}");
    let failures = report.failures();
    let [(lost, steps)] = &failures[..] else { panic!("{outcome}") };
    assert!(lost == ranks && (least..=most).contains(steps), "{steps} steps lost: {outcome}");
}

#[test]
fn all_that_were_begun_are_committed_at_the_end() {
    for (options, ranks) in [("", 4), ("--scheme rs:2+2", 4), ("--scheme xor --parity-ranks 1", 5)] {
        let report = run(options).finish().expect(0).report();
        assert_eq!(report.answer(), poisson_answer().answer());
        let blocking = Run::ftrun(&format!("-n 4 --json {options} {POISSON}")).finish().expect(0).report();
        for what in ["committed", "bytes_protected"] {
            let (ours, theirs) = (&report.0["checkpoints"][what], &blocking.0["checkpoints"][what]);
            assert_eq!(ours, theirs, "{what} with {options} on {ranks} ranks");
        }
    }
}

/// Checkpoint 3 is begun after step 20 and goes on during the next steps. Before its vote has passed everybody goes back to step
/// 10; a rank that dies when it has passed may be the only one to know. Nobody gets beyond step 30, where the next one waits for it.
#[test]
fn kills_in_every_phase() {
    check("--kill 1@checkpoint=3/copy", &[1], 9, 10);
    check("--kill 1@checkpoint=3/encode", &[1], 9, 10);
    check("--kill 1@checkpoint=3/exchange", &[1], 9, 20);
    check("--kill 1@checkpoint=3/vote", &[1], 9, 20);
    check("--kill 1@checkpoint=3/commit", &[1], 0, 20);
    check("--scheme rs:2+2 --kill 0,3@checkpoint=3/exchange", &[0, 3], 9, 20);
    check("--scheme neighbor --kill 0,2@checkpoint=3/vote", &[0, 2], 9, 20);
    check("--parity-ranks 1 --kill 4@checkpoint=3/exchange", &[4], 9, 20);
    // The first one is waited for.
    check("--kill 2@checkpoint=1/vote", &[2], 0, 0);
}

/// There are nine steps for a checkpoint to be committed in.
#[test]
fn a_later_kill_goes_back_to_the_newest() {
    check("--kill 2@step=40", &[2], 8, 9);
    check("--kill 0@step=40", &[0], 8, 9);
    check("--scheme rs:2+2 --kill 1,2@step=40", &[1, 2], 8, 9);
}

/// Rounds of a throttled checkpoint are begun by ranks that do not ask each other for the time.
#[test]
fn throttled() {
    check("--throttle 8KiB --kill 2@checkpoint=3/exchange", &[2], 9, 20);
    // A state of 40 rounds, each of which is a collective of its own.
    let load = |options: &str| {
        let program = "load --state 16MiB --steps 12 --step-ms 1";
        Run::ftrun(&format!("-n 4 --json --every 4 --scheme rs:2+2 {options} {program}"))
            .finish()
            .expect(0)
            .report()
    };
    let (plain, slow) = (load(""), load("--checkpoints asynchronous --throttle 8MiB --kill 1,2@step=11"));
    assert_eq!(plain.answer(), slow.answer());
    // However little may be encoded a second, there are not more rounds than it is worth.
    assert_eq!(plain.answer(), load("--checkpoints asynchronous --throttle 8").answer());
}

#[test]
fn random_kills_lose_no_message() {
    let options = "-n 4 --json --every 3 --checkpoints asynchronous --scrub --spares 1 --mtbf 0.04 --max-restarts 1000000";
    let run = Run::ftrun(options).arg(example("typed_ring")).arg("--generations").arg("25");
    let outcome = run.limit(120).finish().expect(0);
    assert!(outcome.stderr.lines().any(|line| line.ends_with(": right")), "{outcome}");
    assert!(outcome.report().failures().len() >= 10, "{outcome}");
    assert_eq!(outcome.report().0["checkpoints"]["damaged"], 0, "{outcome}");
}
