//! `--memory least`: one copy of a state and the state itself hold what two copies hold. `FT_RUNS=100` makes a soak of the random kills.

use tempfile::tempdir;

use crate::common::{Outcome, Run};
use crate::increments::{answer, run};

/// Several windows of a state are encoded one after the other.
const LARGE: &str = "load --state 5MiB --steps 30 --step-ms 0";
const SMALL: &str = "load --state 200KiB --steps 60 --step-ms 1";

fn overhead(outcome: &Outcome) -> f64 {
    outcome.report().0["checkpoints"]["memory_overhead"].as_f64().unwrap()
}

const SCHEMES: [&str; 7] = [
    "neighbor",
    "neighbor:2",
    "xor",
    "xor:2 --scrub",
    "rs:2+2",
    "xor --parity-ranks 1",
    "rs:4+2 --parity-ranks 2",
];

#[test]
#[ignore = "slow: .ci/run runs it"]
fn kills_in_every_phase_lose_nothing() {
    let due = answer(&run("", LARGE));
    for (at, scheme) in SCHEMES.into_iter().enumerate() {
        let phases = ["copy", "encode", "exchange", "vote", "commit"].into_iter().enumerate();
        for (_, phase) in phases.filter(|(number, _)| (number + at) % 2 == 0) {
            let (one, other) = (at % 4, (at + 1) % 4);
            let kills = format!("--kill {one}@checkpoint=3/{phase} --kill {other}@checkpoint=6/{phase}");
            let more = if at % 2 == 0 { "" } else { "--keep-memory" };
            let outcome = run(&format!("--scheme {scheme} --every 2 --memory least {kills} {more}"), LARGE);
            assert_eq!(answer(&outcome), due, "{outcome}");
            assert!(outcome.report().0["unfired"].as_array().unwrap().is_empty(), "{outcome}");
        }
    }
}

#[test]
fn a_copy_less_is_kept() {
    for (scheme, due) in [("neighbor", 1.0), ("xor", 1.0), ("rs:2+2", 1.0)] {
        let [fast, least] = ["fast", "least"]
            .map(|how| overhead(&run(&format!("--scheme {scheme} --every 2 --memory {how}"), LARGE)));
        assert!((fast - least - due).abs() < 0.02, "{scheme}: {fast} and {least} of a state");
    }
}

#[test]
fn random_kills_lose_nothing() {
    let runs = std::env::var("FT_RUNS").map_or(2, |text| text.parse().unwrap());
    let due = [SMALL, LARGE].map(|job| answer(&run("", job)));
    for seed in 0..runs {
        // Kills come seldom enough that there is progress between two of them, however slow the repairs are; steps of the small one take
        // longer for that.
        let (job, due, mtbf) = if seed % 3 == 0 { (LARGE, &due[1], 0.3) } else { (SMALL, &due[0], 0.1) };
        let (scheme, kept) =
            (SCHEMES[seed % SCHEMES.len()], if seed % 2 == 0 { "" } else { "--keep-memory" });
        let outcome = run(
            &format!(
                "--scheme {scheme} --every 2 --memory least {kept} --mtbf {mtbf} --max-restarts 100000 --seed {seed}"
            ),
            &job.replace("--step-ms 1", "--step-ms 5"),
        );
        assert_eq!(&answer(&outcome), due, "{outcome}");
    }
}

/// Ranks that stay where they are, ranks that close up, and files.
#[test]
fn whatever_is_done_with_what_is_left() {
    let cg = "cg --poisson 24 --tol 1e-10";
    let due = Run::ftrun(&format!("-n 4 --json {cg}")).finish().expect(0).report().answer().to_owned();
    let dir = tempdir().unwrap();
    let spill = format!("--spill-every 1 --spill {}", dir.path().display());
    for options in [
        "--on-failure shrink --kill 2@checkpoint=3/vote --kill 0@checkpoint=5/commit",
        "--kill 1@checkpoint=3/commit --kill 1@restore=1/exchange --kill 2@step=31",
        &format!("{spill} --kill 1@checkpoint=3/vote"),
    ] {
        let run = Run::ftrun(&format!("-n 4 --json --every 3 --scheme rs:2+2 --memory least {options} {cg}"));
        let outcome = run.finish().expect(0);
        assert_eq!(outcome.report().answer(), due, "{outcome}");
    }
}

#[test]
fn it_is_for_blocking_checkpoints_of_whole_states_in_memory() {
    for (options, why) in [
        ("--scheme disk:x", "--memory least is for checkpoints in the memory"),
        ("--checkpoints asynchronous", "--checkpoints asynchronous needs a copy of the state"),
        ("--incremental", "keeps no copy that --incremental could compare"),
    ] {
        let run = Run::ftrun(&format!("-n 2 --memory least {options} {SMALL}"));
        let outcome = run.finish().expect(2);
        assert!(outcome.stderr.contains(why), "{outcome}");
    }
    Run::ftrun(&format!("-n 2 --memory most {SMALL}")).finish().expect(2);
}
