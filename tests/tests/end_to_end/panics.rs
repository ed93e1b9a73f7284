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
