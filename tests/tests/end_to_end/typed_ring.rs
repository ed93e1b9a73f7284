//! Messages of many types and lengths while random ranks are killed: none is lost, doubled or torn. `FT_KILLS=10000`
//! makes it a soak, which has to be built with `--release`.

use crate::common::{Outcome, Run, example};

/// Runs it with these options; it was right, and says with which digest.
fn ring(options: &str, arguments: &str) -> (Outcome, String) {
    let run = Run::ftrun(&format!("-n 4 --json --every 5 {options}")).arg(example("typed_ring"));
    let outcome = arguments.split_whitespace().fold(run, Run::arg).limit(3600).finish().expect(0);
    let line = outcome.stderr.lines().find(|line| line.ends_with(": right"));
    let line = line.unwrap_or_else(|| panic!("no account: {outcome}")).to_owned();
    (outcome, line.split("digest ").nth(1).unwrap().to_owned())
}

fn kills() -> usize {
    std::env::var("FT_KILLS").map_or(40, |text| text.parse().expect("FT_KILLS is a number"))
}

/// The program knows what has to come out.
#[test]
fn no_message_is_lost_doubled_or_torn_by_random_kills() {
    let kills = kills();
    let options = "--spares 1 --mtbf 0.03 --max-restarts 1000000";
    let (outcome, _) = ring(options, &format!("--steps 1 --generations {kills}"));
    let report = outcome.report();
    let lost: usize = report.failures().iter().map(|(ranks, _)| ranks.len()).sum();
    assert!(lost >= kills, "{lost} of {kills} kills: {outcome}");
    println!("{lost} kills, {} s, {}", report.0["elapsed_s"], outcome.stderr);
}

/// And it says the same whatever happens.
#[test]
fn the_digest_is_that_of_a_run_without_failures() {
    let (_, expected) = ring("", "--steps 60");
    let kills = "--kill 0@step=7 --kill 2@checkpoint=3/exchange --kill 3@step=31 --kill 1@collective=50";
    let (outcome, digest) = ring(&format!("--scheme rs:2+2 --max-restarts 9 {kills}"), "--steps 60");
    assert_eq!(digest, expected, "{outcome}");
    assert_eq!(outcome.report().unfired(), [""; 0], "{outcome}");
    let (_, other) = ring("", "--steps 61");
    assert_ne!(other, expected);
}
