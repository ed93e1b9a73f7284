//! Several protected runs in one job, with kills in each of them, around their ends, and at any time. Every rank of the program
//! compares what it has in the end with what it computes without messages.
//!
//! With `--every 4` a run takes checkpoints after its `init`, after steps 4 and 8, and of its result, and what is agreed after it is
//! one more: 1 to 5 are those of the first run, 6 to 10 of the second.

use std::hash::{BuildHasher, RandomState};
use std::ops::RangeInclusive;
use std::path::Path;

use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::common::{Outcome, PATIENT, Run, example};

const RUNS: u64 = 12;

fn run(options: &str) -> Outcome {
    let run = Run::ftrun(&format!("-n 4 --json --every 4 {PATIENT} {options}")).arg(example("sections"));
    run.limit(60).finish().expect(0)
}

/// All ranks have the right answer, in one job with these options.
fn is_right(options: &str) -> Outcome {
    let outcome = run(options);
    let report = outcome.report();
    assert_eq!(report.unfired(), [""; 0], "{outcome}");
    assert_eq!(report.0["checkpoints"]["committed"], 5 * RUNS, "{outcome}");
    assert_eq!(report.0["checkpoints"]["interval"]["steps_done"], 10 * RUNS, "{outcome}");
    outcome
}

/// One kill a run, at a point that this gives of its number, of one rank after the other.
fn kills(point: impl Fn(u64) -> String) -> String {
    (1..=RUNS).map(|number| format!(" --kill {}@{}", number % 4, point(number))).collect()
}

#[test]
fn undisturbed() {
    assert_eq!(is_right("").report().failures().len(), 0);
}

#[test]
fn a_kill_in_every_run() {
    for scheme in ["neighbor", "xor", "rs:2+2"] {
        for checkpoints in ["", "--checkpoints asynchronous"] {
            let options = format!("--scheme {scheme} {checkpoints}");
            let outcome = is_right(&format!("{options} {}", kills(|run| format!("step={}", 10 * run - 4))));
            assert_eq!(outcome.report().failures().len(), RUNS as usize, "{outcome}");
        }
        // Before the first checkpoint of each.
        is_right(&format!("--scheme {scheme} {}", kills(|run| format!("at=begin:{run}"))));
        // The last step, and the commit of the result.
        is_right(&format!("--scheme {scheme} {}", kills(|run| format!("step={}", 10 * run))));
        is_right(&format!("--scheme {scheme} {}", kills(|run| format!("checkpoint={}/vote", 5 * run - 1))));
    }
}

#[test]
fn in_every_phase_around_the_end_of_a_run() {
    for (at, scheme) in ["neighbor", "xor", "rs:2+2"].into_iter().enumerate() {
        for checkpoint in [4, 5, 6] {
            for phase in ["copy", "encode", "exchange", "vote"] {
                let rank = (checkpoint + at) % 4;
                is_right(&format!("--scheme {scheme} --kill {rank}@checkpoint={checkpoint}/{phase}"));
            }
        }
    }
    // The end of the last one.
    is_right("--scheme xor --kill 0@checkpoint=59/vote");
    is_right("--scheme xor --kill 3@checkpoint=60/exchange");
}

#[test]
fn several_at_once_and_in_the_restore() {
    is_right("--scheme rs:2+2 --kill 0,1@step=35 --kill 2,3@at=begin:7 --kill 0,3@checkpoint=14/exchange");
    for phase in ["plan", "exchange", "verify"] {
        is_right(&format!("--scheme rs:2+2 --kill 1@step=35 --kill 2@restore=1/{phase}"));
        // The one that is on its way through the results dies again.
        is_right(&format!("--scheme rs:2+2 --kill 1@checkpoint=9/vote --kill 1@restore=1/{phase}"));
    }
    is_right("--scheme rs:2+2 --kill 1@step=35 --kill 1@repair=2/agree --kill 2@step=36");
}

#[test]
fn with_parity_ranks() {
    is_right(
        "--scheme xor:5 --parity-ranks 1 --kill 4@checkpoint=6/exchange --kill 1@step=25 --kill 4@step=40",
    );
    is_right("--scheme rs:4+2 --parity-ranks 2 --kill 4,5@checkpoint=4/vote --kill 0,5@at=begin:3");
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn on_a_disk() {
    let dir = tempdir().unwrap();
    let scheme = format!("--scheme disk:{}", dir.path().display());
    is_right(&format!("{scheme} {}", kills(|run| format!("step={}", 10 * run - 4))));
    is_right(&format!(
        "{scheme} --kill 0,1,2,3@step=35 --kill 0,1,2,3@at=begin:6 --kill 0,1,2,3@checkpoint=34/commit"
    ));
    for checkpoint in [4, 5, 6] {
        is_right(&format!("{scheme} --kill 0,1,2,3@checkpoint={checkpoint}/commit"));
        is_right(&format!("{scheme} --kill 0@checkpoint={checkpoint}/commit"));
        is_right(&format!("{scheme} --kill 0,1,2,3@checkpoint={checkpoint}/vote"));
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "left behind");
}

/// `FT_SEED=N` repeats the choice of kills, `FT_RUNS=200` makes it a soak.
#[test]
fn at_any_time() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = number("FT_SEED").unwrap_or_else(|| RandomState::new().hash_one(0) >> 32);
    println!("FT_SEED={seed}");
    let elapsed_s = run("").report().0["elapsed_s"].as_f64().unwrap();
    let mut state = seed;
    // Knuth, The Art of Computer Programming, volume 2, section 3.3.4, table 1, line 26.
    let mut below = |end: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % end
    };
    for number in 0..number("FT_RUNS").unwrap_or(12) {
        let (scheme, kills) = [("neighbor:2", 2), ("xor", 1), ("rs:2+2", 2)][number as usize % 3];
        let interval = ["--every 4", "--every 1", "--interval 0.001", "--interval auto"][below(4) as usize];
        let mut options = format!("-n 4 {PATIENT} {interval} --scheme {scheme}");
        for _ in 0..kills {
            let time = elapsed_s * (0.1 + below(900) as f64 * 0.001);
            options += &format!(" --kill {}@time={time}", below(4));
        }
        let outcome = Run::ftrun(&options).arg(example("sections")).limit(60).finish();
        assert_eq!(outcome.status, 0, "FT_SEED={seed}, run {number}: {outcome}");
        assert_eq!(
            outcome.stdout.matches("after 12 runs").count(),
            4,
            "FT_SEED={seed}, run {number}: {outcome}"
        );
    }
}

#[test]
fn ranks_that_close_up_have_one_run_only() {
    let run = Run::ftrun("-n 3 --json --on-failure shrink").arg(example("sections"));
    let outcome = run.finish().expect(2);
    assert!(outcome.report().message().contains("one protected run only"), "{outcome}");
}

/// Any number of steps.
const ANY: RangeInclusive<u64> = 0..=u64::MAX;

/// A job of this program that writes files until all of it is lost, by `options`. Gives the folder, and how many steps the newest
/// checkpoint in files is of, which are to be some of these.
fn lost(options: &str, program: &str, due: RangeInclusive<u64>) -> (TempDir, u64) {
    // A disk may be slower than the steps: then those take longer.
    for pace in [0.02, 0.1, 0.5] {
        let dir = tempdir().unwrap();
        let run = Run::ftrun(&format!("--every 2 --spill-every 1 --pace {pace} {options} --spill"));
        run.arg(dir.path()).arg(example(program)).limit(60).finish().expect(3);
        match steps(dir.path()) {
            Some(steps) if due.contains(&steps) => return (dir, steps),
            steps => println!("after {steps:?} steps in files, of {due:?}, at a pace of {pace} s"),
        }
    }
    panic!("{program} {options}: what is in files is of none of the steps {due:?}");
}

/// Four ranks that are lost in this step.
fn all_in(step: u64) -> String {
    format!("-n 4 --kill 0,1,2,3@step={step}")
}

fn resumed(dir: &Path, options: &str, program: &str, due: i32) -> Outcome {
    let run = Run::ftrun(&format!("{options} --resume")).arg(dir).arg(example(program));
    run.limit(60).finish().expect(due)
}

/// Steps of the job at the newest checkpoint that is whole; none if there is none.
fn steps(dir: &Path) -> Option<u64> {
    let look = Run::ftrun("inspect --json").arg(dir).finish();
    let found: Value = serde_json::from_str(&look.stdout).ok()?;
    let whole = found["checkpoints"].as_array()?.iter().find(|set| set["whole"] == true)?;
    whole["steps"].as_u64()
}

/// What earlier runs have given is dealt out over the ranks that there are, and so is the state of the one under way.
#[test]
fn a_job_of_several_runs_goes_on_with_other_ranks() {
    for (step, run) in [(14, 1), (44, 2), (75, 3), (91, 4)] {
        let (dir, steps) = if run < 4 {
            lost(&all_in(step), "handing_on", 30 * (run - 1) + 1..=step)
        } else {
            // Between the end of the second run and the third.
            lost("-n 4 --kill 0,1,2,3@at=begin:3", "handing_on", 40..=60)
        };
        for (ranks, options) in [
            (4, ""),
            (1, "-n 1"),
            (3, "-n 3 --kill 1@init"),
            (2, "-n 2 --scheme neighbor --kill 1@step=89"),
            (3, "-n 3 --kill 2@checkpoint=1/exchange --kill 0@checkpoint=2/vote --kill 1@step=90"),
            (7, "-n 7 --scheme rs:2+2 --kill 3@checkpoint=1/vote --kill 0,6@step=89"),
            (9, "-n 9 --scheme xor --checkpoints asynchronous --kill 8@step=88"),
        ] {
            let outcome = resumed(dir.path(), options, "handing_on", 0);
            let right = outcome.stdout.matches("all right after 3 runs").count();
            assert_eq!(right, ranks, "{options}, from step {steps}: {outcome}");
            assert!(!outcome.stderr.contains("is not used"), "{outcome}");
        }
        // Again on others, from files that are not those of the first job.
        let kill = format!("-n 5 --kill 0,1,2,3,4@step=88 --resume {}", dir.path().display());
        let (again, _) = lost(&kill, "handing_on", ANY);
        let outcome = resumed(again.path(), "-n 3 --kill 1@step=90", "handing_on", 0);
        assert_eq!(outcome.stdout.matches("all right after 3 runs").count(), 3, "{outcome}");
    }
}

#[test]
fn what_is_private_to_its_rank_is_not_dealt_out() {
    // The results of the first run are what cannot be dealt out.
    let (dir, _) = lost(&all_in(25), "sections", 11..=25);
    for options in ["-n 3", "-n 6"] {
        let outcome = resumed(dir.path(), options, "sections", 1);
        assert!(
            outcome.stderr.contains("has to be `Replicated` or `Distributed`; resume with -n 4"),
            "{outcome}"
        );
    }
    let outcome = resumed(dir.path(), "--kill 1@step=31", "sections", 0);
    assert_eq!(outcome.stdout.matches("after 12 runs").count(), 4, "{outcome}");
}

/// Answers of solves are blocks of rows, which have the same bits on any ranks.
#[test]
fn solves_go_on_with_other_ranks() {
    let printed = |outcome: &Outcome| {
        let mut lines: Vec<String> =
            outcome.stdout.lines().filter(|line| line.contains("has the bits")).map(Into::into).collect();
        lines.sort_unstable();
        lines
    };
    for step in [20, 130] {
        let (dir, _) = lost(&all_in(step), "two_solves", ANY);
        for ranks in [2, 3, 6] {
            let due =
                Run::ftrun(&format!("-n {ranks}")).arg(example("two_solves")).limit(60).finish().expect(0);
            let options = format!("-n {ranks} --scheme xor --kill 1@step={}", step + 15);
            let outcome = resumed(dir.path(), &options, "two_solves", 0);
            assert_eq!(printed(&outcome).len(), ranks, "{outcome}");
            assert_eq!(printed(&outcome), printed(&due), "from step {step}: {outcome}");
        }
    }
}
