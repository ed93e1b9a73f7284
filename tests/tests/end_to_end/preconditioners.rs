//! Conjugate gradients with each preconditioner: the answer, its bits and the number of iterations are the same on any number
//! of ranks and with any failure. A replacement makes the preconditioner again, and so do ranks that have closed up.

use crate::common::{Outcome, Run};

/// Each preconditioner, and an iteration that all of them come to.
const NAMES: [&str; 11] = [
    "jacobi",
    "ssor:1.3",
    "bjacobi:ic0",
    "bjacobi:ssor=1.2,domains=5",
    "bjacobi:cholesky",
    "asm:ic0,overlap=1",
    "asm:ssor=1,overlap=2,domains=3",
    "asm:cholesky,overlap=1",
    "chebyshev:3",
    "amg",
    "amg:threshold=0,smooth=1",
];
const LATE: u64 = 6;

fn run(options: &str, name: &str) -> Outcome {
    let run = Run::ftrun(&format!("--json --every 2 {options} cg --poisson 14 --tol 1e-10 --precond {name}"));
    let outcome = run.limit(60).finish().expect(0);
    assert_eq!(outcome.report().unfired(), [""; 0], "{name}: {outcome}");
    outcome
}

#[test]
fn each_preconditioner_survives_kills_and_fewer_ranks() {
    for name in NAMES {
        let undisturbed = run("-n 4", name).report();
        assert!(undisturbed.iterations() > LATE, "{name}");
        for options in [
            "-n 1".to_owned(),
            "-n 3".to_owned(),
            format!("-n 4 --kill 2@step={LATE}"),
            format!("-n 5 --scheme rs:3+2 --kill 0,3@step={LATE}"),
            format!("-n 4 --on-failure shrink --kill 1@step={LATE}"),
        ] {
            let outcome = run(&options, name);
            let found = outcome.report();
            assert_eq!(
                (found.answer(), found.iterations()),
                (undisturbed.answer(), undisturbed.iterations()),
                "{name}, {options}: {outcome}"
            );
        }
    }
}

#[test]
fn some_ranks_have_no_rows_and_no_domain() {
    for name in NAMES {
        let hash = |options: &str| {
            let run = Run::ftrun(&format!("--json {options} cg --poisson2d 8 --precond {name}"));
            run.limit(60).finish().expect(0).report().answer().to_owned()
        };
        assert_eq!(hash("-n 5 --kill 3@step=2"), hash("-n 1"), "{name}");
    }
}
