//! `hpcg` through kills: its checks pass, with the same bits on any number of ranks.

use serde_json::Value;

use crate::common::{Outcome, Run};

/// Status 0 says that all checks have passed.
fn result(options: &str) -> (Value, Outcome) {
    let run = Run::ftrun(&format!("--json {options} hpcg --size 16 --time 0"));
    let outcome = run.limit(120).finish().expect(0);
    assert_eq!(outcome.report().unfired(), [""; 0], "{outcome}");
    (outcome.report().0["result"].clone(), outcome)
}

#[test]
fn same_bits_with_kills_before_the_first_set_and_in_it() {
    let (first, _) = result("-n 1");
    assert_eq!(first["iterations"], 50);
    for options in [
        "-n 2 --every 10 --kill 1@step=31",
        "-n 3 --every 10 --kill 0@checkpoint=1/exchange",
        "-n 4 --every 10 --scheme rs:2+2 --kill 0,3@step=50",
        "-n 4 --every 10 --on-failure shrink --kill 2@step=25",
        "-n 7",
    ] {
        let (other, outcome) = result(options);
        for name in ["answer_hash", "relative_residual", "checks", "nonzeros", "reproducible"] {
            assert_eq!(other[name], first[name], "{outcome}");
        }
    }
}

#[test]
fn a_cube_that_cannot_be_halved_is_refused() {
    let outcome = Run::ftrun("-n 2 hpcg --size 20").finish().expect(2);
    assert!(outcome.stderr.contains("multiple of 8"), "{outcome}");
}
