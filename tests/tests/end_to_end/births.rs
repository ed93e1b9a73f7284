//! Processes that hang, or are stopped, between their start and `World::init`.

use crate::common::{Outcome, Run, example};
use crate::hosts::{LIKE_SSH, over};

/// Runs a program of two ranks in which the process with this number never comes to `World::init`.
fn with_hanging(peer: u32, options: &str) -> Outcome {
    let script = format!(
        "if [ $FTRUN_PEER = {peer} ]; then exec sleep 1000; fi; exec {}",
        example("resilient").display()
    );
    let run = Run::ftrun(&format!("-n 2 -v --json {options} /bin/sh -c")).arg(script).limit(60);
    let outcome = run.finish().expect(0);
    assert!(outcome.stderr.contains("had not joined the job 10 s after its start"), "{outcome}");
    outcome
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn a_rank_that_hangs_at_its_start_is_replaced() {
    assert_eq!(with_hanging(1, "").report().failures(), [(vec![0], 0)]);
}

#[test]
fn a_replacement_that_hangs_at_its_start_is_replaced() {
    let failures = with_hanging(3, "--kill 1@step=40").report().failures();
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert_eq!(failures[0].0, [1]);
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn one_that_hangs_at_every_start_ends_the_job() {
    let script =
        format!("if [ $FTRUN_PEER != 2 ]; then exec sleep 1000; fi; exec {}", example("resilient").display());
    let run = Run::ftrun("-n 2 --json --max-restarts 1 /bin/sh -c").arg(script).limit(60);
    let outcome = run.finish().expect(1);
    let cause = "rank 0 failed 2 times in a row without progress in between (last: it had not joined the job 10 s after its start)";
    assert!(outcome.report().message().contains(cause), "{outcome}");
}

/// Nobody joins: all processes are stopped as soon as they have started.
#[test]
#[ignore = "slow: .ci/run runs it"]
fn those_that_are_all_stopped_at_their_start_are_replaced() {
    let script =
        format!("if [ $FTRUN_PEER -le 2 ]; then kill -STOP $$; fi; exec {}", example("resilient").display());
    let here = Run::ftrun("-n 2 -v --json /bin/sh -c");
    let (_folder, there) = over(LIKE_SSH, "-n 2 --hosts 127.0.0.2,127.0.0.3 -v --json /bin/sh -c");
    let jobs = [here, there].map(|run| run.arg(&script).limit(60).start());
    for job in jobs {
        let outcome = job.finish().expect(0);
        assert!(outcome.stderr.contains("it was stopped for 10 s before it had joined the job"), "{outcome}");
        let mut lost: Vec<u64> =
            outcome.report().failures().into_iter().flat_map(|(ranks, _)| ranks).collect();
        lost.sort_unstable();
        assert_eq!(lost, [0, 1]);
    }
}

/// Its link was closed in order, so nothing is heard of it any more.
#[test]
fn one_that_is_stopped_when_all_is_done_does_not_hold_up_the_job() {
    let script = format!(
        "{}; status=$?; if [ $FTRUN_PEER = 2 ]; then kill -STOP $$; fi; exit $status",
        example("resilient").display()
    );
    let outcome = Run::ftrun("-n 2 -v --json /bin/sh -c").arg(script).limit(60).finish().expect(0);
    assert!(
        outcome.report().message().contains("rank 1 was killed by signal 9 after all ranks were done"),
        "{outcome}"
    );
}

/// Nobody waits for programs that have nothing to do with the library.
#[test]
#[ignore = "slow: .ci/run runs it"]
fn programs_that_never_join_may_take_their_time() {
    Run::ftrun("-n 2 /bin/sh -c")
        .arg("if [ $FTRUN_PEER = 2 ]; then sleep 12; fi")
        .limit(60)
        .finish()
        .expect(0);
}
