//! States of different lengths on each rank, none among them, which change between checkpoints.

use crate::common::{Run, example};

/// Runs it with these options; every rank has found every byte right, in every step.
fn check(options: &str, lens: &str) {
    let run = Run::ftrun(&format!("-n 4 --every 2 {options}")).arg(example("ragged"));
    let outcome = lens.split_whitespace().fold(run, Run::arg).limit(900).finish().expect(0);
    for rank in 0..4 {
        let said = |line: &str| line.starts_with(&format!("rank {rank}: ")) && line.ends_with(", all right");
        assert!(outcome.stdout.lines().any(said), "{outcome}");
    }
    assert!(!outcome.stderr.contains("never fired"), "{outcome}");
}

#[test]
fn every_scheme_brings_them_back() {
    for checkpoints in ["", "--checkpoints asynchronous"] {
        for (scheme, lost) in [
            ("neighbor", "1"),
            ("neighbor:2", "1,2"),
            ("xor", "2"),
            ("rs:2+2", "0,3"),
            ("rs:2+2", "1,2"),
            ("xor:5 --parity-ranks 1", "1"),
            ("rs:4+2 --parity-ranks 2", "0,4"),
        ] {
            let kills = format!("--kill {lost}@step=7 --kill {lost}@checkpoint=3/exchange");
            check(&format!("--scheme {scheme} {checkpoints} {kills}"), "0 1 4099 777777");
            check(&format!("--scheme {scheme} {checkpoints} {kills}"), "1048576 13 0 65537");
        }
    }
}

#[test]
#[ignore = "needs 20 GiB of memory and minutes"]
fn beside_nothing_there_may_be_gibibytes() {
    check("--scheme xor --kill 2@step=5", "0 17 2147483651 4099");
    check("--scheme rs:2+2 --kill 0,2@step=5", "0 17 1147483649 4099");
}
