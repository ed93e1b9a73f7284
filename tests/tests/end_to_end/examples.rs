//! Every example alone, on four ranks, and with one of them killed. Each ends with an assertion of its own.

use crate::common::{Run, example};

/// Name, and a kill that the example survives.
const EXAMPLES: &[(&str, &str)] = &[
    ("hello", "2@init"),
    ("ring", "2@step=500"),
    ("resilient", "2@step=40"),
    ("protected_solve", "2@step=20"),
    ("sections", "2@step=85"),
];

#[test]
fn alone() {
    for (name, _) in EXAMPLES {
        Run::program(&example(name), "").finish().expect(0);
    }
}

#[test]
fn on_four_ranks() {
    for (name, _) in EXAMPLES {
        Run::ftrun("-n 4").arg(example(name)).finish().expect(0);
    }
}

#[test]
fn with_a_killed_rank() {
    for (name, kill) in EXAMPLES {
        let run = Run::ftrun(&format!("-n 4 --json --kill {kill}"));
        let outcome = run.arg(example(name)).finish().expect(0);
        let report = outcome.report();
        assert_eq!(report.unfired(), [""; 0], "{outcome}");
        assert_eq!(report.failures().len(), 1, "{outcome}");
        assert_eq!(report.failures()[0].0, [2], "{outcome}");
    }
}

#[test]
fn with_a_parity_rank() {
    for name in ["resilient", "protected_solve"] {
        let run = Run::ftrun("-n 4 --json --parity-ranks 1 --kill 4@checkpoint=2 --kill 0@step=15");
        let outcome = run.arg(example(name)).finish().expect(0);
        assert_eq!(outcome.report().failures().len(), 2, "{outcome}");
    }
}

/// `hello` takes no care of failures: the job ends, and says so.
#[test]
fn a_failure_that_a_program_does_not_handle_ends_the_job() {
    let run = Run::ftrun("-n 4 --json --kill 2@collective=1").limit(10);
    let outcome = run.arg(example("hello")).finish().expect(1);
    assert!(!outcome.report().message().is_empty(), "{outcome}");
}

/// Nobody makes a call while rank 2 dies: if the alarm were not raised, the others would compute for ever.
#[test]
fn ranks_that_compute_hear_of_a_failure() {
    let run = Run::ftrun("-n 4 --kill 2@at=computing:1").arg(example("busy"));
    let outcome = run.finish().expect(0);
    for rank in [0, 1, 3] {
        let line = format!("rank {rank} was computing, 1 told and [2] lost");
        assert!(outcome.stdout.contains(&line), "{outcome}");
    }
}
