//! `npb-cg` through kills: the published eigenvalues, with the same bits on any number of ranks.

use serde_json::Value;

use crate::common::{Outcome, Run};

/// Status 0 says that the eigenvalue is the published one.
fn result(arguments: &str) -> (Value, Outcome) {
    let outcome = Run::ftrun(&format!("--json {arguments}")).limit(120).finish().expect(0);
    assert_eq!(outcome.report().unfired(), [""; 0], "{outcome}");
    (outcome.report().0["result"].clone(), outcome)
}

fn same_bits(class: &str, options: &[&str]) {
    let (first, _) = result(&format!("-n 1 npb-cg --class {class}"));
    for options in options {
        let (other, outcome) = result(&format!("{options} npb-cg --class {class}"));
        for name in ["zeta", "answer_hash", "residual_norm", "iterations"] {
            assert_eq!(other[name], first[name], "{outcome}");
        }
    }
}

/// Two to eight ranks, the last of which is killed.
fn kills(step: u64) -> Vec<String> {
    (2..=8).map(|ranks| format!("-n {ranks} --every 2 --kill {}@step={step}", ranks - 1)).collect()
}

#[test]
fn class_s_on_one_to_eight_ranks_with_a_kill_in_each() {
    let kills = kills(7);
    let mut options: Vec<&str> = kills.iter().map(String::as_str).collect();
    options.extend([
        "-n 3",
        "-n 4 --scheme rs:2+2 --kill 0,2@step=9",
        "-n 4 --on-failure shrink --kill 2@step=5",
    ]);
    same_bits("S", &options);
}

#[test]
fn class_w_on_one_to_eight_ranks_with_a_kill_in_each() {
    same_bits("w", &kills(4).iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn class_a() {
    same_bits("A", &["-n 3 --scheme xor --kill 0@step=4"]);
}

#[test]
#[ignore = "75 iterations on 13 million nonzeros, on each number of ranks: minutes, run with --release"]
fn classes_a_and_b_on_one_to_eight_ranks_with_a_kill_in_each() {
    same_bits("A", &kills(9).iter().map(String::as_str).collect::<Vec<_>>());
    same_bits("B", &kills(40).iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn an_unknown_class_is_refused() {
    let outcome = Run::ftrun("-n 2 npb-cg --class D").finish().expect(2);
    assert!(outcome.stderr.contains("S, W, A, B and C"), "{outcome}");
}
