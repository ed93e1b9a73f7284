//! `pi` and `ep` through kills: counts are exact, sums bit for bit, for any number of ranks.

use serde_json::Value;

use crate::common::{Outcome, Run};

fn result(arguments: &str) -> (Value, Outcome) {
    let outcome = Run::ftrun(&format!("--json {arguments}")).limit(60).finish().expect(0);
    let report = outcome.report();
    assert_eq!(report.unfired(), [""; 0], "{outcome}");
    (report.0["result"].clone(), outcome)
}

#[test]
fn pi_has_the_same_hits_on_any_ranks_and_through_kills() {
    let app = "pi --samples 20000000 --seed 42";
    let (first, outcome) = result(&format!("-n 1 {app}"));
    assert!(first["deviation"].as_f64().unwrap() < 4.0, "{outcome}");
    for options in [
        "-n 2",
        "-n 3",
        "-n 8",
        "-n 4 --kill 2@step=3",
        "-n 4 --kill 0@step=3 --every 2",
        "-n 4 --scheme rs:2+2 --kill 0,3@step=4",
        "-n 3 --kill 1@checkpoint=1/vote",
    ] {
        let (other, outcome) = result(&format!("{options} {app}"));
        assert_eq!(other["hits"], first["hits"], "{outcome}");
    }
    let (other, outcome) = result("-n 2 pi --samples 20000000 --seed 43");
    assert_ne!(other["hits"], first["hits"], "{outcome}");
}

#[test]
fn ep_has_the_published_sums_with_the_same_bits_on_any_ranks() {
    let (first, outcome) = result("-n 1 ep --class S");
    assert_eq!(first["counts"][0], 6_140_517, "{outcome}");
    for options in ["-n 2", "-n 3", "-n 4", "-n 4 --kill 2@step=2", "-n 3 --kill 0@step=3 --every 2"] {
        let (other, outcome) = result(&format!("{options} ep --class s"));
        for name in ["sx", "sy", "counts", "wrong"] {
            assert_eq!(other[name], first[name], "{outcome}");
        }
    }
}

#[test]
fn bad_usage() {
    for arguments in
        ["pi --samples 0", "pi --samples x", "ep --class Z", "pi --mtbf 0", "pi --timeline a.gif"]
    {
        let outcome = Run::ftrun(&format!("-n 2 {arguments}")).finish().expect(2);
        assert!(outcome.stderr.starts_with("ftrun: ") && outcome.stdout.is_empty(), "{outcome}");
    }
}
