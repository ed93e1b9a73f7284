//! `--levels`: what the first scheme does not survive goes back to a stronger one. `FT_RUNS=100` makes a soak of the pairs.

use std::path::Path;

use tempfile::tempdir;

use crate::common::{Outcome, PATIENT, POISSON, Run, poisson_answer};
use crate::increments::run;

const LEVELS: &str = "--levels neighbor@3,rs:2+2@6";

/// Restores from the level above the first.
fn from_above(outcome: &Outcome) -> u64 {
    outcome.report().0["checkpoints"]["levels"][0]["restores"].as_u64().unwrap()
}

#[test]
fn what_the_first_does_not_survive_goes_back_to_the_next() {
    for (kills, above) in [
        // The copies of 0 and 2 are on 1 and 3.
        ("--kill 0,2@step=20", 0),
        ("--kill 1,2@step=20", 1),
        ("--kill 1,2@step=20 --kill 2,3@step=21 --kill 0,3@step=29", 3),
        ("--kill 0,2@step=20 --kill 0,1@step=28", 1),
        // The first level is whole again, and serves.
        ("--kill 1,2@step=20 --kill 1@step=33", 1),
        // Nothing but the first checkpoint is there.
        ("--kill 2,3@step=1", 1),
        ("--kill 1@step=20 --kill 0@restore=1/exchange", 1),
        ("--kill 1,2@step=20 --kill 1@restore=1/exchange", 1),
        // While the levels protect what was restored: numbers go on, or begin anew.
        ("--kill 1,2@step=20 --kill 0,3@checkpoint=1/vote", 2),
    ] {
        for more in ["", "--checkpoints asynchronous", "--memory least", "--keep-memory --spares 1"] {
            let outcome = run(&format!("{PATIENT} {LEVELS} {kills} {more}"), POISSON);
            assert_eq!(outcome.report().answer(), poisson_answer().answer(), "{outcome}");
            let failures = outcome.report().0["failures"].as_array().unwrap().clone();
            let steps_lost = failures.iter().filter_map(|failure| failure["steps_lost"].as_u64()).max();
            assert!(steps_lost.is_none_or(|steps| steps < 15), "nobody begins from the start: {outcome}");
            // With memory that outlives processes nothing is lost; the last kills may strike at the start.
            if more != "--keep-memory --spares 1" && !kills.contains("checkpoint=1") {
                assert_eq!(from_above(&outcome), above, "{outcome}");
            }
        }
    }
}

#[test]
fn the_report_has_them() {
    let report = run(LEVELS, POISSON).report().0;
    let [checkpoints, committed] =
        [&report["checkpoints"]["levels"][0]["checkpoints"], &report["checkpoints"]["committed"]]
            .map(|number| number.as_u64().unwrap());
    assert!(checkpoints >= committed / 2 && checkpoints <= committed / 2 + 2, "{report}");
    assert_eq!(report["checkpoints"]["levels"][0]["scheme"], "rs:2+2");
    // Two copies and what is held for others, on either level as much.
    let kept = |of: &serde_json::Value| of["kept_bytes"].as_f64().unwrap();
    let share = kept(&report["checkpoints"]["levels"][0]) / kept(&report["checkpoints"]);
    assert!((share - 0.5).abs() < 0.01, "{report}");
    let text = Run::ftrun(&format!("-n 4 {LEVELS} --kill 1,2@step=20 {POISSON}")).finish().expect(0).stdout;
    assert!(text.contains("under rs:2+2, one with every 2 of these") && text.contains("1 restore"), "{text}");
}

/// Beyond all levels in memory the job ends, and goes on from the files of the last one.
#[test]
fn files_are_the_last_level() {
    let run_it = |dir: &Path, more: &str| {
        let spill = format!("--levels neighbor@3,rs:2+2@6,spill@6 --spill {}", dir.display());
        Run::ftrun(&format!("-n 4 --json -v {PATIENT} {spill} {more} {POISSON}")).limit(60)
    };
    let number = |line: &str| line.split_once("checkpoint ")?.1.strip_suffix(" is in files")?.parse().ok();
    // A disk may be slower than the steps: then those take longer.
    for pace in [0.01, 0.1, 1.0] {
        let dir = tempdir().unwrap();
        let kills = format!("--pace {pace} --kill 1,2@step=20 --kill 0,1,2@step=40");
        let killed = run_it(dir.path(), &kills).finish().expect(3);
        // Numbers go on where a level has given up what it had.
        let numbers: Vec<u32> = killed.stderr.lines().filter_map(number).collect();
        assert!(numbers.is_sorted_by(|one, next| one < next), "{killed}");
        if numbers.len() > 2 {
            let resume = format!("--resume {}", dir.path().display());
            let outcome = run_it(dir.path(), &resume).finish().expect(0);
            assert_eq!(outcome.report().answer(), poisson_answer().answer(), "{outcome}");
            return;
        }
    }
    panic!("three checkpoints in forty seconds are too many for this disk");
}

#[test]
fn pairs_at_random_steps_lose_nothing() {
    let runs: u64 = std::env::var("FT_RUNS").map_or(3, |text| text.parse().unwrap());
    for seed in 0..runs {
        let pair = |at: u64| (at % 4, (at / 4 % 3 + at + 1) % 4);
        let kill = |number: u64, at: u64| {
            let (one, other) = pair(at);
            format!("--kill {one},{other}@step={}", 3 + 17 * number + at % 17)
        };
        let kills: Vec<String> =
            (0..3).map(|number| kill(number, seed * 31 + number * 7 + seed / 5)).collect();
        let outcome = run(&format!("--max-restarts 10 {LEVELS} {}", kills.join(" ")), POISSON);
        assert_eq!(outcome.report().answer(), poisson_answer().answer(), "{outcome}");
    }
}

#[test]
fn what_does_not_go_together_is_refused() {
    for (options, why) in [
        ("--levels xor@5,rs:2+2@50 --scheme xor", "cannot be used with"),
        ("--levels xor@5,rs:2+2@50,spill@500", "say with --spill DIR"),
        ("--levels xor@5,rs:2+2@50 --parity-ranks 1", "does not go together with --parity-ranks"),
        ("--levels xor@5,rs:2+2@50 --on-failure shrink", "does not go together with --on-failure"),
        ("--levels xor@5,rs:6+2@50", "rs:6+2"),
        ("--levels xor@5,rs:2+2", "must be a scheme, an @"),
    ] {
        let outcome = Run::ftrun(&format!("-n 4 {options} {POISSON}")).finish().expect(2);
        assert!(outcome.stderr.contains(why), "{outcome}");
    }
}
