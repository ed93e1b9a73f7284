//! The watchdog: who waits in which call for whom, for all ranks together, while nothing moves.

use rustix::process::Signal;

use crate::common::{Outcome, POISSON, Run, example};

/// A job that never ends, ended when it has said `part`.
fn stuck(options: &str, arguments: &str, part: &str) -> Outcome {
    let mut run = Run::ftrun(options).arg(example("stuck"));
    if !arguments.is_empty() {
        run = run.arg(arguments);
    }
    let mut running = run.start();
    running.await_text(part);
    running.signal(Signal::INT);
    running.finish().expect(130)
}

fn lines(outcome: &Outcome, part: &str) -> usize {
    outcome.stderr.lines().filter(|line| line.contains(part)).count()
}

#[test]
fn a_cycle_is_named_with_calls_ranks_and_tags() {
    let outcome = stuck("-n 4 --watchdog 0.3", "", "a deadlock?");
    // The last account knows all ranks; on a busy machine one came before that knew fewer.
    let account = outcome.stderr.rsplit_once("no rank is moving: a deadlock?").expect("all ranks wait").1;
    for line in [
        "rank 0 waits in recv for rank 1, tag 10, since ",
        "rank 1 waits in recv for rank 0, tag 11, since ",
        "rank 0 waits for rank 1, which waits for rank 0\n",
    ] {
        assert!(account.contains(line), "{line}: {outcome}");
    }
    // With more ranks than cores everybody waits for rank 0; else rank 2 has told rank 3 already that it is there.
    let both_wait_for = |other: u32| {
        let waits =
            |rank| account.contains(&format!("rank {rank} waits in barrier for rank {other}, since "));
        waits(2) && waits(3)
    };
    assert!(both_wait_for(0) || both_wait_for(1), "{outcome}");
    assert_eq!(lines(&outcome, "a deadlock?"), 1, "{outcome}");
    assert_eq!(outcome.stdout, "", "{outcome}");
}

#[test]
fn a_rank_that_computes_is_told_from_those_that_wait() {
    let outcome = stuck("--quiet --watchdog 0.3 -n 2", "computing", "rank 0 computes: it is in no call");
    assert_eq!(lines(&outcome, "rank 1 waits in barrier for rank 0"), 1, "{outcome}");
    assert_eq!((lines(&outcome, "1 of 2 ranks wait"), lines(&outcome, "a deadlock?")), (1, 0), "{outcome}");
}

#[test]
fn a_collective_that_one_rank_does_not_call_is_named_with_that_rank() {
    let missing = "rank 1 computes: it is in no call";
    let outcome = stuck("--watchdog 0.3 -n 4", "missing", missing);
    // The last account knows all that wait; on a busy machine one came before that knew fewer.
    let account = outcome.stderr.rsplit_once("3 of 4 ranks wait").expect("three ranks wait").1;
    for rank in [0, 2, 3] {
        assert!(account.contains(&format!("rank {rank} waits in allreduce for rank ")), "{outcome}");
    }
    assert!(account.contains("rank 0 waits in allreduce for rank 1, since "), "{outcome}");
    assert!(account.contains(missing) && !account.contains("rank 1 waits"), "{outcome}");
}

/// All ranks but the one that was lost wait for it; then the repaired job goes on, and nothing is said.
#[test]
fn a_job_that_moves_is_not_spoken_of() {
    let outcome = Run::ftrun(&format!("-n 4 --kill 2@step=20 {POISSON} --watchdog 20")).finish().expect(0);
    assert!(!outcome.stderr.contains("wait"), "{outcome}");
}

/// Without `--watchdog` that takes half a minute.
#[test]
fn a_rank_that_makes_no_calls_is_spoken_of_and_lives() {
    let outcome = stuck("--watchdog 0.3 -n 2", "computing", "rank 0 has made no call for ");
    let line = outcome.stderr.lines().find(|line| line.contains("has made no call")).expect("it was awaited");
    assert!(line.contains("it computes, or is blocked outside of the library"), "{outcome}");
    assert!(!outcome.stderr.contains("is lost"), "{outcome}");
}

#[test]
fn a_rank_whose_thread_has_ended_is_replaced() {
    let outcome = Run::ftrun("-v -n 3").arg(example("ended")).limit(60).finish().expect(0);
    let lost = "rank 1 is lost: the thread that makes its calls has ended, though the process has not";
    assert_eq!(lines(&outcome, lost), 1, "{outcome}");
}

#[test]
fn a_program_that_is_done_on_one_rank_only_is_refused_with_ranks_and_steps() {
    for options in ["", "--check", "--lines drain"] {
        for how in ["messages", "checkpoint"] {
            let run = Run::ftrun(&format!("-n 3 --every 8 {options}")).arg(example("early"));
            let outcome = run.arg(how).limit(60).finish().expect(2);
            assert!(
                outcome.stderr.contains("rank 1 returned Flow::Done after step 7, but rank"),
                "{outcome}"
            );
        }
    }
}
