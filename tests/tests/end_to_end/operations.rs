//! Kills inside every operation: before it, in it, and while it is under way and nobody waits for it yet. The survivors
//! hear of it, make their communicators again, and end with the answer of an undisturbed job.

use std::collections::BTreeSet;

use crate::common::{Outcome, Run, example};

/// Operations that begin and end in calls of their own; failures can be injected in between.
const STARTED: [&str; 17] = [
    "ibcast",
    "ireduce",
    "iallreduce",
    "iscan",
    "iexscan",
    "ireducescatter",
    "igather",
    "igatherv",
    "iscatter",
    "iscatterv",
    "iallgather",
    "iallgatherv",
    "ialltoall",
    "ialltoallv",
    "ibarrier",
    "exchange",
    "plan",
];
/// Collective calls of a rank of an undisturbed job: 5 at the start, one of each kind, 3 to make communicators.
const COLLECTIVES: u64 = 38;
/// What a job of one round prints at its end.
const ANSWER: &str = "33 operations, answer ";

fn run(options: &str, kills: &[String]) -> Outcome {
    let mut run = Run::ftrun(options).limit(60);
    for kill in kills {
        run = run.arg("--kill").arg(kill);
    }
    let outcome = run.arg(example("conformance")).arg("survive").finish().expect(0);
    assert!(!outcome.stderr.contains("never fired"), "{outcome}");
    outcome
}

fn answer(outcome: &Outcome) -> String {
    let line = outcome.stdout.lines().find(|line| line.starts_with(ANSWER));
    line.unwrap_or_else(|| panic!("no answer: {outcome}")).to_owned()
}

/// The operations in which survivors heard of a failure.
fn interrupted(outcome: &Outcome) -> BTreeSet<String> {
    let names = outcome.stdout.lines().filter_map(|line| line.strip_prefix("interrupted in "));
    names.map(str::to_owned).collect()
}

#[test]
fn a_kill_at_the_entry_of_every_collective() {
    let due = answer(&run("-n 4", &[]));
    // All calls one after the other; each rank is killed at a fourth of them.
    for number in 1..=COLLECTIVES {
        let outcome = run("-n 4", &[format!("{}@collective={number}", number % 4)]);
        assert_eq!(answer(&outcome), due, "{outcome}");
        // Perhaps in the next one, if nobody waited for the lost rank in this one.
        assert!(!interrupted(&outcome).is_empty(), "{outcome}");
    }
}

#[test]
fn a_kill_while_every_operation_is_under_way() {
    let due = answer(&run("-n 4", &[]));
    for (number, name) in STARTED.iter().enumerate() {
        let outcome = run("-n 4", &[format!("{}@at={name}:1", number % 4)]);
        assert_eq!(answer(&outcome), due, "{outcome}");
        // Perhaps in the next one: what the lost rank had sent already may be all that the others waited for.
        assert!(!interrupted(&outcome).is_empty(), "{outcome}");
    }
}

#[test]
fn several_at_once_and_one_after_the_other() {
    let due = answer(&run("-n 5", &[]));
    for kills in [
        &["0,3@collective=12"][..],
        &["0,1,2,3@at=iallreduce:1"],
        &["1,2@at=plan:1", "0@at=ialltoallv:1"],
        // Again while the survivors make their communicators again. (Nobody comes to the exchange before all are past `ialltoallv`: the
        // barrier is in between.)
        &["2@collective=20", "1@collective=24", "3@at=ialltoallv:1", "0@at=exchange:1"],
        &["4@at=iscan:1", "0@repair=1/reconnect", "3@repair=2/agree"],
    ] {
        let kills: Vec<String> = kills.iter().map(|kill| (*kill).to_owned()).collect();
        for transport in ["auto", "tcp"] {
            let outcome = run(&format!("-n 5 --transport {transport}"), &kills);
            assert_eq!(answer(&outcome), due, "{outcome}");
            assert!(!interrupted(&outcome).is_empty(), "{outcome}");
        }
    }
}
