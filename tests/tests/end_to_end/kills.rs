//! Kills at every moment that has a name. The answer is bit for bit that of the undisturbed run, the failures that
//! were ordered are those that happened, and no more steps are done again than since the checkpoint that is whole.

use std::fmt::Write as _;

use crate::common::{Outcome, PATIENT, POISSON, Report, Run, example, poisson_answer, real_matrix};

/// Options, and per failure its ranks and the numbers of steps that may have been lost. There are two where
/// survivors may or may not have finished the step before when the news reaches them.
type Case = (&'static str, &'static [(&'static [u64], &'static [u64])]);

/// Checkpoints are taken before step 1 and after every tenth step: a kill in step 40 costs the steps 31 to 39.
const STEP_40: &[u64] = &[8, 9];
/// The first step after a checkpoint: the rank may be the only one so far to know that it is committed.
const STRAIGHT_AFTER_A_CHECKPOINT: &[u64] = &[0, 9, 10];
/// Checkpoint 3 follows step 20; the one before, step 10.
const CHECKPOINT_3: &[u64] = &[9, 10];

fn check(options: &str, program: &str, undisturbed: &Report, expected: &[(&[u64], &[u64])]) {
    let run = Run::ftrun(&format!("-n 4 --json {PATIENT} {options} {program}"));
    check_run(run, undisturbed, expected);
}

fn check_run(run: Run, undisturbed: &Report, expected: &[(&[u64], &[u64])]) {
    check_outcome(&run.finish().expect(0), undisturbed, expected);
}

fn check_outcome(outcome: &Outcome, undisturbed: &Report, expected: &[(&[u64], &[u64])]) {
    let report = outcome.report();
    assert_eq!(report.answer(), undisturbed.answer(), "{outcome}");
    assert_eq!(report.iterations(), undisturbed.iterations(), "{outcome}");
    assert_eq!(report.unfired(), [""; 0], "{outcome}");
    let failures = report.failures();
    assert_eq!(failures.len(), expected.len(), "{outcome}");
    for ((ranks, lost), (expected_ranks, allowed)) in failures.iter().zip(expected) {
        assert_eq!(ranks, expected_ranks, "{outcome}");
        assert!(allowed.contains(lost), "{lost} steps lost, {allowed:?} expected: {outcome}");
    }
}

fn check_table(cases: &[Case]) {
    for (options, expected) in cases {
        check(options, POISSON, poisson_answer(), expected);
    }
}

#[test]
fn in_a_step() {
    check_table(&[
        ("--kill 2@step=40", &[(&[2], STEP_40)]),
        ("--kill 0@step=40", &[(&[0], STEP_40)]),
        ("--kill 3@step=40", &[(&[3], STEP_40)]),
        ("--kill 2@step=1", &[(&[2], &[0])]),
        ("--kill 2@step=11", &[(&[2], STRAIGHT_AFTER_A_CHECKPOINT)]),
        ("--kill 2@init", &[(&[2], &[0])]),
        ("--kill 0@init", &[(&[0], &[0])]),
        ("--kill 2@step=15 --kill 1@step=35", &[(&[2], &[3, 4]), (&[1], &[3, 4])]),
        ("--kill 2@step=15 --kill 2@step=35", &[(&[2], &[3, 4]), (&[2], &[3, 4])]),
        ("--kill 2@step=40 --every 100", &[(&[2], &[38, 39])]),
        ("--kill 2@step=40 --every 1", &[(&[2], &[0, 1])]),
    ]);
}

#[test]
fn of_several_ranks_at_once() {
    check_table(&[
        ("--scheme rs:2+2 --kill 1,3@step=40", &[(&[1, 3], STEP_40)]),
        ("--scheme rs:2+2 --kill 0,1@step=40", &[(&[0, 1], STEP_40)]),
        ("--scheme neighbor:2 --kill 1,2@step=40", &[(&[1, 2], STEP_40)]),
        ("--scheme neighbor:2 --kill 2@step=40", &[(&[2], STEP_40)]),
        ("--scheme neighbor --kill 0,2@step=40", &[(&[0, 2], STEP_40)]),
        ("--scheme xor:2 --kill 0,3@step=40", &[(&[0, 3], STEP_40)]),
        // All at once, before anything is protected: the job starts again.
        ("--kill 0,1,2,3@init", &[(&[0, 1, 2, 3], &[0])]),
    ]);
}

#[test]
fn on_seven_ranks() {
    for (options, ranks) in [
        ("--kill 5@step=40", &[5][..]),
        ("--scheme rs:5+2 --kill 0,6@step=40", &[0, 6]),
        ("--scheme xor:3 --kill 1,6@step=40", &[1, 6]),
    ] {
        let run = Run::ftrun(&format!("-n 7 --json {PATIENT} {options} {POISSON}"));
        check_run(run, poisson_answer(), &[(ranks, STEP_40)]);
    }
}

#[test]
fn the_answer_does_not_depend_on_the_number_of_ranks() {
    for ranks in [1, 2, 3, 5, 8] {
        check_run(Run::ftrun(&format!("-n {ranks} --json {PATIENT} {POISSON}")), poisson_answer(), &[]);
    }
}

#[test]
fn in_every_phase_of_the_first_checkpoint() {
    check_table(&[
        ("--kill 1@checkpoint=1", &[(&[1], &[0])]),
        ("--kill 1@checkpoint=1/copy", &[(&[1], &[0])]),
        ("--kill 1@checkpoint=1/encode", &[(&[1], &[0])]),
        ("--kill 1@checkpoint=1/exchange", &[(&[1], &[0])]),
        ("--kill 1@checkpoint=1/vote", &[(&[1], &[0])]),
        ("--kill 1@checkpoint=1/commit", &[(&[1], &[0])]),
    ]);
}

#[test]
fn in_every_phase_of_a_later_checkpoint() {
    check_table(&[
        ("--kill 1@checkpoint=3", &[(&[1], CHECKPOINT_3)]),
        ("--kill 1@checkpoint=3/copy", &[(&[1], CHECKPOINT_3)]),
        ("--kill 1@checkpoint=3/encode", &[(&[1], CHECKPOINT_3)]),
        ("--kill 1@checkpoint=3/exchange", &[(&[1], CHECKPOINT_3)]),
        ("--kill 1@checkpoint=3/vote", &[(&[1], CHECKPOINT_3)]),
        // The vote has passed; whether another rank knows of it before the news comes is a matter of luck.
        ("--kill 1@checkpoint=3/commit", &[(&[1], STRAIGHT_AFTER_A_CHECKPOINT)]),
        ("--scheme rs:2+2 --kill 0,3@checkpoint=3/exchange", &[(&[0, 3], CHECKPOINT_3)]),
    ]);
}

#[test]
fn with_dedicated_parity_ranks() {
    check_table(&[
        ("--parity-ranks 1 --kill 2@step=40", &[(&[2], STEP_40)]),
        ("--parity-ranks 1 --kill 2@checkpoint=3/exchange", &[(&[2], CHECKPOINT_3)]),
        // The parity rank hears of steps with the order for the next checkpoint.
        ("--parity-ranks 1 --kill 4@init", &[(&[4], &[0])]),
        ("--parity-ranks 1 --kill 4@step=40", &[(&[4], &[9, 10])]),
        ("--parity-ranks 1 --kill 4@checkpoint=1", &[(&[4], &[0])]),
        ("--parity-ranks 1 --kill 4@checkpoint=3", &[(&[4], CHECKPOINT_3)]),
        ("--parity-ranks 1 --kill 4@checkpoint=3/vote", &[(&[4], CHECKPOINT_3)]),
        ("--parity-ranks 1 --kill 4@step=15 --kill 2@step=35", &[(&[4], &[9, 10]), (&[2], &[3, 4])]),
    ]);
    let options = "--parity-ranks 2 --scheme rs:4+2 --kill 1,4@step=40";
    check(options, POISSON, poisson_answer(), &[(&[1, 4], STEP_40)]);
}

/// A survivor dies while another is repaired; two losses a group can be survived.
#[test]
fn of_a_survivor_in_every_phase_of_a_repair() {
    check_table(&[
        // The decision waits for rank 1, so its death is part of the same repair.
        ("--scheme rs:2+2 --kill 2@step=40 --kill 1@repair=1", &[(&[1, 2], STEP_40)]),
        ("--scheme rs:2+2 --kill 2@step=40 --kill 1@repair=1/agree", &[(&[1, 2], STEP_40)]),
        ("--scheme rs:2+2 --kill 2@step=40 --kill 1@repair=1/reconnect", &[(&[2], STEP_40), (&[1], STEP_40)]),
        ("--scheme rs:2+2 --kill 2@step=40 --kill 1@restore=1", &[(&[2], STEP_40), (&[1], STEP_40)]),
        ("--scheme rs:2+2 --kill 2@step=40 --kill 1@restore=1/plan", &[(&[2], STEP_40), (&[1], STEP_40)]),
        ("--scheme rs:2+2 --kill 2@step=40 --kill 1@restore=1/exchange", &[(&[2], STEP_40), (&[1], STEP_40)]),
        // Some may have their state back by now, but not all, so all go through it again.
        (
            "--scheme rs:2+2 --kill 2@step=40 --kill 1@restore=1/verify",
            &[(&[2], &[0, 8, 9]), (&[1], &[0, 8, 9])],
        ),
    ]);
}

#[test]
fn of_the_replacement_itself() {
    check_table(&[
        ("--kill 2@step=40 --kill 2@repair=1/agree", &[(&[2], STEP_40)]),
        ("--kill 2@step=40 --kill 2@repair=1/reconnect", &[(&[2], STEP_40), (&[2], STEP_40)]),
        ("--kill 2@step=40 --kill 2@restore=1/plan", &[(&[2], STEP_40), (&[2], STEP_40)]),
        ("--kill 2@step=40 --kill 2@restore=1/exchange", &[(&[2], STEP_40), (&[2], STEP_40)]),
        ("--kill 2@step=40 --kill 2@restore=1/verify", &[(&[2], &[0, 8, 9]), (&[2], &[0, 8, 9])]),
    ]);
}

/// A loss before the job has begun costs nothing, whatever comes later.
#[test]
fn at_init_and_again_in_a_step() {
    check_table(&[("--kill 2@init --kill 2@step=40", &[(&[2], &[0]), (&[2], STEP_40)])]);
}

#[test]
fn as_hang_and_as_exit() {
    check_table(&[
        ("--kill 2@step=40:exit", &[(&[2], STEP_40)]),
        ("--kill 0@checkpoint=3/vote:exit", &[(&[0], CHECKPOINT_3)]),
    ]);
    // Side by side, so that the timeout may be long enough for whoever has no core for a while.
    let cases: [Case; 2] = [
        ("--kill 2@step=40:hang", &[(&[2], STEP_40)]),
        ("--scheme rs:2+2 --kill 0,2@step=40:hang", &[(&[0, 2], STEP_40)]),
    ];
    let start = |(options, _): &Case| {
        Run::ftrun(&format!("-n 4 --json --heartbeat-timeout 1500 {options} {POISSON}")).start()
    };
    let running = cases.each_ref().map(start);
    for (running, (_, expected)) in running.into_iter().zip(cases) {
        check_outcome(&running.finish().expect(0), poisson_answer(), expected);
    }
}

/// The launcher cannot hear from a process that has not come to join; it must not wait for ever either.
#[test]
fn as_hang_before_the_rank_has_joined() {
    let options = "--heartbeat-timeout 1000 --kill 1@time=0:hang";
    let outcome = Run::ftrun(&format!("-n 2 --json {options} {POISSON}")).limit(10).finish().expect(0);
    assert_eq!(outcome.report().answer(), poisson_answer().answer(), "{outcome}");
}

/// What was ordered either happens or is reported as unfired.
#[test]
fn as_exit_before_the_rank_has_joined() {
    let outcome = Run::ftrun(&format!("-n 2 --json --kill 1@time=0:exit {POISSON}")).finish().expect(0);
    let report = outcome.report();
    assert_eq!(report.failures().len() + report.unfired().len(), 1, "{outcome}");
}

/// All ranks have agreed that the job is done, but their processes still live. Nothing is left to be lost: the
/// failure does not fire, and nobody waits for a stopped process.
#[test]
fn after_the_agreed_end() {
    // The ring has four seconds to its end; the processes are there a second longer at least. All ways side by side.
    let script = format!("{} && sleep 5", example("ring").display());
    let kills = ["", ":exit", ":hang"].map(|way| format!("1@time=4{way}"));
    let start = |kill: &String| {
        Run::ftrun(&format!("-n 2 --json {PATIENT} --kill {kill} /bin/sh -c")).arg(&script).start()
    };
    let running = kills.each_ref().map(start);
    for (running, kill) in running.into_iter().zip(kills) {
        let outcome = running.finish().expect(0);
        assert_eq!(outcome.report().unfired(), [kill], "{outcome}");
    }
}

/// The collectives of the whole run, those of the report after the last step included.
#[test]
fn in_a_collective_up_to_the_last() {
    let fires = |number: u64| {
        let run = Run::ftrun(&format!("-n 4 --json --kill 2@collective={number} {POISSON}"));
        let outcome = run.finish().expect(0);
        assert_eq!(outcome.report().answer(), poisson_answer().answer(), "{outcome}");
        outcome.report().unfired().is_empty()
    };
    // The first that is not reached lies between the two.
    let (mut reached, mut beyond) = (50, 1000);
    assert!(fires(reached) && !fires(beyond));
    while beyond - reached > 1 {
        let middle = reached.midpoint(beyond);
        *(if fires(middle) { &mut reached } else { &mut beyond }) = middle;
    }
    // The last collective belongs to the report of the result: the last step is done again, or more.
    check(&format!("--kill 2@collective={reached}"), POISSON, poisson_answer(), &[(&[2], &[0, 1])]);
    check(&format!("--kill 0@collective={reached}:exit"), POISSON, poisson_answer(), &[(&[0], &[0, 1])]);
}

#[test]
fn in_the_last_step_and_while_others_are_leaving() {
    let last = poisson_answer().iterations();
    assert_eq!(last, 41, "the tables above count on it");
    check_table(&[
        ("--kill 2@step=41", &[(&[2], STRAIGHT_AFTER_A_CHECKPOINT)]),
        ("--kill 0@step=41", &[(&[0], STRAIGHT_AFTER_A_CHECKPOINT)]),
        ("--kill 2@checkpoint=5/commit", &[(&[2], STRAIGHT_AFTER_A_CHECKPOINT)]),
        // The parity rank hears of the last step when all others are done and wait for it to leave.
        ("--parity-ranks 1 --kill 4@step=41", &[(&[4], &[0, 1])]),
    ]);
}

#[test]
fn with_a_matrix_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("grid.mtx");
    // The Poisson problem in one dimension with a stronger diagonal.
    let n = 300;
    let mut text = format!("%%MatrixMarket matrix coordinate real symmetric\n{n} {n} {}\n", 2 * n - 1);
    for row in 1..=n {
        writeln!(text, "{row} {row} 2.01").unwrap();
        if row > 1 {
            writeln!(text, "{row} {} -1", row - 1).unwrap();
        }
    }
    std::fs::write(&file, text).unwrap();
    let run = |options: &str| Run::ftrun(&format!("-n 4 --json {PATIENT} {options} cg --matrix")).arg(&file);
    let undisturbed = run("").finish().expect(0).report();
    assert_eq!(undisturbed.0["result"]["rows"], n);
    check_run(run("--kill 2@step=40"), &undisturbed, &[(&[2], STEP_40)]);
    check_run(run("--kill 0@init"), &undisturbed, &[(&[0], &[0])]);
}

#[test]
fn with_a_real_matrix() {
    let Some(file) = real_matrix() else { return };
    let run = |options: &str| {
        let run = Run::ftrun(&format!("-n 4 --json {PATIENT} {options} cg --precond jacobi --matrix"));
        run.arg(&file).limit(60)
    };
    let undisturbed = run("").finish().expect(0).report();
    check_run(run("--kill 2@step=40"), &undisturbed, &[(&[2], STEP_40)]);
    check_run(run("--scheme rs:2+2 --kill 1,3@step=135"), &undisturbed, &[(&[1, 3], &[3, 4])]);
    check_run(run("--kill 1@checkpoint=3/exchange"), &undisturbed, &[(&[1], CHECKPOINT_3)]);
}
