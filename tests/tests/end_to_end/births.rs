//! Processes that hang before they have joined the job: stopped between their start and `World::init`.

use crate::common::{Outcome, Run, example};

/// Runs a program of two ranks in which the process with this number is stopped as soon as it has started.
fn with_stopped(peer: u32, options: &str) -> Outcome {
    let script = format!(
        "if [ $FTRUN_PEER = {peer} ]; then kill -STOP $$; fi; exec {}",
        example("resilient").display()
    );
    let run = Run::ftrun(&format!("-n 2 -v --json {options} /bin/sh -c")).arg(script).limit(60);
    let outcome = run.finish().expect(0);
    assert!(outcome.stderr.contains("had not joined the job 10 s after its start"), "{outcome}");
    outcome
}

#[test]
fn a_rank_that_is_stopped_at_its_start_is_replaced() {
    assert_eq!(with_stopped(1, "").report().failures(), [(vec![0], 0)]);
}

#[test]
fn a_replacement_that_is_stopped_at_its_start_is_replaced() {
    let failures = with_stopped(3, "--kill 1@step=40").report().failures();
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert_eq!(failures[0].0, [1]);
}

#[test]
fn one_that_is_stopped_at_every_start_ends_the_job() {
    let script =
        format!("if [ $FTRUN_PEER != 2 ]; then kill -STOP $$; fi; exec {}", example("resilient").display());
    let run = Run::ftrun("-n 2 --json --max-restarts 1 /bin/sh -c").arg(script).limit(60);
    let outcome = run.finish().expect(1);
    let cause = "rank 0 failed 2 times in a row without progress in between (last: it had not joined the job 10 s after its start)";
    assert!(outcome.report().message().contains(cause), "{outcome}");
}

/// Nobody waits for programs that have nothing to do with the library.
#[test]
fn programs_that_never_join_may_take_their_time() {
    Run::ftrun("-n 2 /bin/sh -c")
        .arg("if [ $FTRUN_PEER = 2 ]; then sleep 12; fi")
        .limit(60)
        .finish()
        .expect(0);
}
