//! Panics of programs: one that is caught around a call ends the job before anybody has a wrong sum.

use crate::common::{Run, example};

/// In one message, in pieces that are reduced as they come, in segments that are announced.
const ELEMENTS: [usize; 4] = [1, 2000, 50_000, 1_000_000];

#[test]
fn a_panic_that_is_caught_in_a_reduction_ends_the_job() {
    for transport in ["auto", "tcp"] {
        for elements in ELEMENTS {
            let run = Run::ftrun(&format!("-n 3 --json --transport {transport}")).arg(example("caught"));
            let outcome = run.arg(elements.to_string()).finish();
            assert!(outcome.stderr.contains("rank 1 has caught a panic"), "{outcome}");
            assert!(!outcome.stderr.contains("sums"), "{outcome}");
            let message = outcome.report().message().to_owned();
            // Another rank that leaves because its link broke may have the first word.
            let causes = ["rank 1: a panic that was caught", " left the job before all"];
            assert!(causes.iter().any(|cause| message.contains(cause)), "{outcome}");
            outcome.expect(1);
        }
    }
}

/// The replacement panics each time. The cause has the message, and the same backtrace is not shown
/// for each try.
#[test]
fn a_panic_is_named_as_the_cause_and_its_backtrace_is_shown_once() {
    let run = Run::ftrun("-n 4 --every 7 --lines log --kill 2@step=500").arg(example("careless"));
    let outcome = run.arg("always").variable("RUST_BACKTRACE", "1").limit(120).finish().expect(1);
    let last = outcome.stderr.lines().find(|line| line.contains("4 times in a row")).unwrap_or_default();
    let names = ["it panicked at tests/examples/careless.rs:", ": a state that cannot be made whole"];
    assert!(names.iter().all(|name| last.contains(name)), "{outcome}");
    let printed = |part: &str| outcome.stderr.matches(part).count();
    let tries = printed("panicked at tests/examples/careless.rs:") - printed("it panicked at tests/");
    assert!(tries > 2, "{outcome}");
    assert_eq!(printed("stack backtrace:\n"), 1, "{outcome}");
    assert_eq!(printed("stack backtrace: as printed before for the same panic\n"), tries - 1, "{outcome}");
}
