//! A state goes back into the build of the program that it came from, and into no other.

use crate::common::{Outcome, Run, example};

/// Four ranks of a program whose file is replaced by the `same` or an`other` one; then rank 2 is started anew from it.
fn replaced(by: &str, scheme: &str) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    std::fs::copy(example("replaced"), &program).unwrap();
    let run = Run::ftrun(&format!("-n 4 --json --kill 2@step=40 --scheme {scheme}"));
    run.arg(&program).arg(by).finish()
}

#[test]
fn a_copy_of_the_program_takes_the_place_of_a_lost_rank() {
    let outcome = replaced("same", "xor").expect(0);
    assert_eq!(outcome.report().failures().len(), 1, "{outcome}");
}

#[test]
fn another_build_does_not() {
    for scheme in ["xor", "neighbor:1"] {
        let outcome = replaced("other", scheme).expect(1);
        let message = outcome.report().message().to_owned();
        assert!(message.contains("taken by another build of the program"), "{outcome}");
    }
}

#[test]
fn nor_from_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let outcome = replaced("other", &format!("disk:{}", folder.path().display())).expect(1);
    assert!(outcome.report().message().contains("taken by another build of the program"), "{outcome}");
}
