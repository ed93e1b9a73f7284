//! `--scheme checksum:K+M`: doubles come back within the bound that is said, all else as it was. `FT_RUNS=100` makes a soak of the random
//! kills.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::tempdir;

use crate::common::{Outcome, POISSON, Run, poisson_answer};
use crate::resume::{JOBS, answer, due, folder, killed, resumed};

const POISSON_24: &str = "cg --poisson 24";

fn run(options: &str, job: &str) -> Outcome {
    Run::ftrun(&format!("--json {options} {job}")).limit(60).finish().expect(0)
}

/// Ranks whose doubles were rebuilt, with how near, failure after failure.
fn rebuilt(outcome: &Outcome) -> Vec<(u64, f64)> {
    let report = outcome.report().0;
    let failures = report["failures"].as_array().unwrap().iter();
    let doubles =
        failures.flat_map(|failure| failure["restore"]["doubles"].as_array().cloned().unwrap_or_default());
    doubles.map(|of| (of["rank"].as_u64().unwrap(), of["within"].as_f64().unwrap())).collect()
}

fn ranks(rebuilt: &[(u64, f64)]) -> Vec<u64> {
    rebuilt.iter().map(|(rank, _)| *rank).collect()
}

#[test]
fn a_solver_converges_whoever_is_lost_and_the_report_has_bounds() {
    let calm = run("-n 6 --scheme checksum:4+2", POISSON_24).report().0;
    for (kills, due) in [
        ("--kill 2@step=20", &[2][..]),
        ("--kill 0@step=25", &[0]),
        ("--kill 1,4@step=31", &[1, 4]),
        ("--kill 2@step=20 --kill 3,5@step=31 --kill 2@step=40", &[2, 3, 5, 2]),
    ] {
        for more in ["", "--checkpoints asynchronous", "--spares 1", "--transport tcp"] {
            let outcome = run(&format!("-n 6 --scheme checksum:4+2 {kills} {more}"), POISSON_24);
            let (rebuilt, report) = (rebuilt(&outcome), outcome.report().0);
            assert_eq!(ranks(&rebuilt), due, "{outcome}");
            assert!(rebuilt.iter().all(|(_, within)| *within > 0.0 && *within < 1e-11), "{outcome}");
            assert_eq!(report["result"]["converged"], true, "{outcome}");
            let iterations = |of: &serde_json::Value| of["result"]["iterations"].as_i64().unwrap();
            assert!((iterations(&report) - iterations(&calm)).abs() <= 2, "{outcome}");
        }
    }
}

#[test]
fn people_are_told_how_near() {
    let outcome =
        Run::ftrun(&format!("-n 6 --scheme checksum:4+2 --kill 2@step=20 {POISSON_24}")).finish().expect(0);
    let said = outcome
        .stdout
        .split_once("doubles of rank 2 rebuilt within ")
        .unwrap_or_else(|| panic!("{outcome}"))
        .1;
    let within: f64 = said.split_whitespace().next().unwrap().parse().unwrap();
    assert!(within > 0.0 && within < 1e-11, "{outcome}");
}

#[test]
fn beyond_the_limit_the_job_ends() {
    let job = format!("-n 6 --scheme checksum:4+2 --checksum-limit 1e-30 {POISSON_24} --kill 2@step=20");
    let outcome = Run::ftrun(&job).finish().expect(3);
    for part in
        ["the doubles of rank 2 can be rebuilt within", "the limit is 1.0e-30", "--checksum-limit", "rs:K+M"]
    {
        assert!(outcome.stderr.contains(part), "{outcome}");
    }
    // Without a loss nothing is rounded.
    run("-n 6 --scheme checksum:4+2 --checksum-limit 1e-30", POISSON_24);
}

#[test]
fn more_losses_than_checksums_end_the_job_and_none_changes_nothing() {
    let outcome =
        Run::ftrun(&format!("-n 4 --scheme checksum:3+1 {POISSON} --kill 1,2@step=20")).finish().expect(3);
    assert!(outcome.stderr.contains("checksum:3+1 survives 1 loss a group"), "{outcome}");
    let outcome = run("-n 4 --scheme checksum:2+2", POISSON);
    assert_eq!(outcome.report().answer(), poisson_answer().answer(), "{outcome}");
    // Who finds its own checkpoint again has lost nothing.
    let outcome = run("-n 4 --scheme checksum:2+2 --keep-memory --kill 0,1,2,3@step=20", POISSON);
    assert_eq!(outcome.report().answer(), poisson_answer().answer(), "{outcome}");
    assert_eq!(rebuilt(&outcome), []);
}

/// The second strikes while a checkpoint of what was restored is taken, or before.
#[test]
fn a_second_loss_before_all_is_protected_again_is_survived_if_it_can_be() {
    for (kills, due) in [
        ("--kill 2@step=20 --kill 4@restore=1/verify", 0),
        ("--kill 2@step=20 --kill 4@checkpoint=3/encode", 0),
        ("--kill 2@step=20 --kill 4@checkpoint=4/vote", 0),
        ("--kill 2@step=20 --kill 3,4@restore=1/verify", 3),
    ] {
        let outcome = Run::ftrun(&format!("--json -n 6 --scheme checksum:4+2 {kills} {POISSON_24}"))
            .finish()
            .expect(due);
        if due == 0 {
            assert_eq!(outcome.report().0["result"]["converged"], true, "{outcome}");
        }
    }
}

/// A plate that is cold on most ranks: what is small beside others, or nothing at all, is exact.
#[test]
fn ranks_of_very_different_magnitudes_are_exact() {
    let heat = "heat --grid 23 --steps 60";
    let calm = run("-n 4 --scheme checksum:2+2", heat);
    let outcome = run("-n 4 --scheme checksum:2+2 --kill 1@step=5 --kill 0,3@step=25", heat);
    assert_eq!(outcome.report().answer(), calm.report().answer(), "{outcome}");
    // Sums of nothing but zeros are zeros.
    assert!(rebuilt(&outcome).iter().all(|(_, within)| *within < 1e-300), "{outcome}");
}

/// Programs that hold integers and single numbers are as exact as ever.
#[test]
fn what_holds_no_doubles_is_exact() {
    for job in ["pi --samples 3000000", "ep --class S"] {
        let calm = run("-n 4 --scheme checksum:2+2", job);
        for kill in ["--kill 1@step=3", "--kill 0,3@step=4"] {
            let outcome = run(&format!("-n 4 --scheme checksum:2+2 --every 1 {kill}"), job);
            assert_eq!(outcome.report().0["result"]["pi"], calm.report().0["result"]["pi"], "{outcome}");
            assert_eq!(rebuilt(&outcome), []);
        }
    }
}

/// What is written is each rank's own state, so it is exact; on other ranks and under other schemes, too.
#[test]
fn a_job_goes_on_from_files() {
    let ((job, name), dir) = (JOBS[0], tempdir().unwrap());
    let due = due(job, name);
    killed(dir.path(), "-n 4 --scheme checksum:2+2", job, 2);
    for options in
        ["", "--scheme checksum:2+2", "-n 2", "-n 7 --scheme checksum:4+2", "-n 3 --scheme xor --kill 1@init"]
    {
        let outcome = resumed(dir.path(), options, job).limit(60).finish().expect(0);
        assert!(!outcome.stderr.contains("is not used"), "{options}: {outcome}");
        assert_eq!(answer(&outcome, name), due, "{options}: {outcome}");
    }
    let outcome = resumed(dir.path(), "--scheme checksum:2+2 --kill 2@step=60", job).finish().expect(0);
    assert_eq!(
        (ranks(&rebuilt(&outcome)), outcome.report().0["result"]["converged"].as_bool()),
        (vec![2], Some(true))
    );
}

/// Ranks are lost while files are written, and all of them at last.
#[test]
fn what_was_rounded_is_written_as_it_is() {
    let (job, dir) = (JOBS[0].0, tempdir().unwrap());
    killed(dir.path(), "-n 4 --scheme checksum:2+2 --kill 1@step=7 --kill 0,3@step=13", job, 12);
    for options in ["", "-n 2", "-n 5 --scheme checksum:4+1 --kill 4@step=40"] {
        let outcome = resumed(dir.path(), options, job).limit(60).finish().expect(0);
        assert!(!outcome.stderr.contains("is not used"), "{options}: {outcome}");
        assert_eq!(outcome.report().0["result"]["converged"], true, "{options}: {outcome}");
    }
}

/// Doubles that are kept apart in memory are in files where they are under any other scheme.
#[test]
fn fields_are_taken_out_of_files_as_ever() {
    let dirs = [tempdir().unwrap(), tempdir().unwrap()];
    for (dir, scheme) in dirs.iter().zip(["checksum:2+2", "rs:2+2"]) {
        killed(dir.path(), &format!("-n 4 --keep 100 --scheme {scheme}"), JOBS[0].0, 4);
    }
    let sets = dirs.each_ref().map(|dir| {
        let look = Run::ftrun("inspect --json --all-bytes").arg(dir.path()).finish().expect(0);
        let found: Value = serde_json::from_str(&look.stdout).unwrap();
        found["checkpoints"].as_array().unwrap().clone()
    });
    let mut compared = 0;
    for one in sets[0].iter().filter(|set| set["whole"] == true) {
        let is_same = |other: &&Value| other["whole"] == true && other["steps"] == one["steps"];
        let Some(other) = sets[1].iter().find(is_same) else { continue };
        let (one, other) = (fields(dirs[0].path(), one), fields(dirs[1].path(), other));
        assert_eq!(one, other);
        assert!(one.iter().any(|(_, bytes)| bytes.len() > 10_000), "vectors of doubles");
        compared += 1;
    }
    assert!(compared > 0, "{sets:?}");
}

/// All arrays of doubles that ranks share, by name.
fn fields(dir: &Path, set: &Value) -> Vec<(String, Vec<u8>)> {
    let number = set["number"].as_u64().unwrap().to_string();
    let look = Run::ftrun("inspect --json --checkpoint").arg(&number).arg(dir).finish().expect(0);
    let found: Value = serde_json::from_str(&look.stdout).unwrap();
    let fields = found["checkpoints"][0]["fields"].as_array().unwrap_or_else(|| panic!("{look}")).clone();
    let arrays = fields.iter().filter(|field| field["element"] == "f64" && field["spread"] != "private");
    let taken = arrays.map(|field| {
        let (name, file) = (field["name"].as_str().unwrap(), dir.join("taken.npy"));
        let run = Run::ftrun("inspect --checkpoint").arg(&number).arg("--field").arg(name);
        run.arg("--npy").arg(&file).arg(dir).finish().expect(0);
        (name.to_owned(), fs::read(&file).unwrap())
    });
    taken.collect()
}

#[test]
fn files_of_which_any_byte_is_altered_are_refused_by_name() {
    let ((job, name), dir) = (JOBS[0], tempdir().unwrap());
    let due = due(job, name);
    killed(dir.path(), "-n 4 --scheme checksum:2+2", job, 3);
    let folder = folder(dir.path());
    let newest = *crate::resume::complete(&folder).last().unwrap();
    let file = folder.join(format!("epoch-{newest}/rank-1"));
    let right = fs::read(&file).unwrap();
    // The header, exact bytes, doubles, and what says where they belong.
    for at in [9, 70, right.len() / 2, right.len() - 30] {
        let mut wrong = right.clone();
        wrong[at] ^= 16;
        fs::write(&file, wrong).unwrap();
        let outcome = resumed(dir.path(), "", job).finish().expect(0);
        assert!(
            outcome.stderr.contains("is not used") && outcome.stderr.contains("rank-1"),
            "{at}: {outcome}"
        );
        assert_eq!(answer(&outcome, name), due, "{at}: {outcome}");
    }
}

#[test]
fn one_copy_and_the_state_are_enough() {
    let overhead = |outcome: &Outcome| outcome.report().0["checkpoints"]["memory_overhead"].as_f64().unwrap();
    let job = "cg --poisson 48 --tol 1e-6";
    let [fast, least] = ["fast", "least"]
        .map(|how| overhead(&run(&format!("-n 6 --scheme checksum:4+2 --memory {how}"), job)));
    // The constant part is the larger one by far, and has one copy in any case.
    assert!(least < fast - 0.02, "{fast} and {least} of a state");
    for (kills, due) in [
        ("--kill 2@step=20 --kill 3,5@step=31", &[2, 3, 5][..]),
        ("--kill 2@checkpoint=3/encode --kill 1@checkpoint=6/vote", &[2, 1]),
        ("--kill 4@checkpoint=3/commit --kill 0@restore=1/verify", &[4, 0]),
    ] {
        for more in ["", "--scrub", "--keep-memory"] {
            let options = format!("-n 6 --every 5 --scheme checksum:4+2 --memory least {kills} {more}");
            let outcome = run(&options, POISSON_24);
            let mut rebuilt = ranks(&rebuilt(&outcome));
            assert!(more == "--keep-memory" || due.iter().all(|rank| rebuilt.contains(rank)), "{outcome}");
            rebuilt.retain(|rank| !due.contains(rank));
            assert_eq!(rebuilt, [0; 0], "{outcome}");
            assert_eq!(outcome.report().0["result"]["converged"], true, "{outcome}");
        }
    }
    // Nothing is rounded where nobody is lost.
    let outcome = run("-n 4 --every 3 --scheme checksum:2+2 --memory least", POISSON);
    assert_eq!(outcome.report().answer(), poisson_answer().answer(), "{outcome}");
}

#[test]
fn damage_is_looked_for() {
    for more in ["", "--checkpoints asynchronous", "--memory least"] {
        let options = format!("-n 6 --scheme checksum:4+2 --scrub --kill 1,4@step=31 {more}");
        let outcome = run(&options, POISSON_24);
        assert_eq!(ranks(&rebuilt(&outcome)), [1, 4], "{outcome}");
        assert_eq!(outcome.report().0["result"]["converged"], true, "{outcome}");
    }
}

/// What the first level does not survive goes back to the next, with rounding if that is one of sums.
#[test]
fn levels_are_of_sums_or_exact() {
    let restores =
        |outcome: &Outcome| outcome.report().0["checkpoints"]["levels"][0]["restores"].as_u64().unwrap();
    for more in ["", "--checkpoints asynchronous", "--memory least"] {
        let levels = "-n 4 --levels checksum:3+1@3,rs:2+2@6";
        let outcome = run(&format!("{levels} --kill 1@step=20 {more}"), POISSON);
        assert_eq!((ranks(&rebuilt(&outcome)), restores(&outcome)), (vec![1], 0), "{outcome}");
        let outcome = run(&format!("{levels} --kill 1,2@step=20 {more}"), POISSON);
        assert_eq!((rebuilt(&outcome), restores(&outcome)), (vec![], 1), "{outcome}");
        assert_eq!(outcome.report().answer(), poisson_answer().answer(), "{outcome}");
        // What is not near enough is not survived: the next level serves.
        let outcome = run(&format!("{levels} --checksum-limit 1e-30 --kill 1@step=20 {more}"), POISSON);
        assert_eq!((rebuilt(&outcome), restores(&outcome)), (vec![], 1), "{outcome}");
        assert_eq!(outcome.report().answer(), poisson_answer().answer(), "{outcome}");

        let levels = "-n 4 --levels neighbor@3,checksum:2+2@6";
        let outcome = run(&format!("{levels} --kill 0,2@step=20 {more}"), POISSON);
        assert_eq!((rebuilt(&outcome), restores(&outcome)), (vec![], 0), "{outcome}");
        assert_eq!(outcome.report().answer(), poisson_answer().answer(), "{outcome}");
        let kills = "--kill 1,2@step=20 --kill 2,3@step=21 --kill 1@step=30";
        let outcome = run(&format!("{levels} {kills} {more}"), POISSON);
        assert_eq!((ranks(&rebuilt(&outcome)), restores(&outcome)), (vec![1, 2, 2, 3], 2), "{outcome}");
        assert_eq!(outcome.report().0["result"]["converged"], true, "{outcome}");
        // The level that has served is whole again before the first one begins anew; until then the lost count as lost.
        let kills = "--kill 1,2@step=20 --kill 0,3@checkpoint=1/vote";
        let outcome = run(&format!("{levels} {kills} {more}"), POISSON);
        assert_eq!(outcome.report().0["result"]["converged"], true, "{outcome}");
        let kills = "--kill 1,2@step=20 --kill 0@restore=1/verify";
        let outcome = Run::ftrun(&format!("--json {levels} {kills} {more} {POISSON}")).finish().expect(3);
        assert!(outcome.report().message().contains("survives"), "{outcome}");
    }
    // Files are the last level.
    let dir = tempdir().unwrap();
    let spill = format!("-n 4 --levels checksum:3+1@3,rs:2+2@6,spill@6 --spill {}", dir.path().display());
    let run_it = |more: &str| Run::ftrun(&format!("--json -v {spill} {more} {POISSON}"));
    // So slow that something is in files before all is lost.
    let mut running = run_it("--pace 0.03 --kill 1,2@step=20 --kill 0,1,2@step=40").start();
    running.await_text("is in files");
    running.finish().expect(3);
    let outcome = run_it(&format!("--resume {}", dir.path().display())).finish().expect(0);
    assert_eq!(outcome.report().answer(), poisson_answer().answer(), "{outcome}");
}

#[test]
fn what_does_not_go_with_checksums_is_refused_by_name() {
    for (options, part) in [
        ("--scheme checksum:4+2 --incremental", "--incremental"),
        ("--scheme checksum:4+2 --checkpoint-memory 1GiB", "--checkpoint-memory"),
        ("--scheme checksum:4+2 --parity-ranks 2", "--parity-ranks"),
        ("--scheme checksum:4+2 --on-failure shrink", "--on-failure shrink"),
        ("--checksum-limit 1e-9", "--checksum-limit is for --scheme checksum:K+M"),
        ("--scheme checksum:4+2 --checksum-limit 0", "--checksum-limit"),
        ("--scheme checksum:4+5", "than there are weights for (60 + 4)"),
        ("--scheme checksum:4", "cannot be read as checksum:K+M"),
        ("--scheme checksum:6+2", "needs 8 ranks a group, there are 6"),
    ] {
        let outcome = Run::ftrun(&format!("-n 6 {options} {POISSON}")).finish().expect(2);
        assert!(outcome.stderr.contains(part), "{outcome}");
    }
    let outcome = Run::ftrun("-n 3 --scheme checksum:2+1 ring").finish().expect(2);
    assert!(outcome.stderr.contains("checksum is nothing for ring"), "{outcome}");
}

#[test]
fn random_kills_under_checksums() {
    let runs = std::env::var("FT_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(3);
    for seed in 0..runs {
        let kills = format!("--mtbf 0.1 --max-restarts 100000 --seed {seed} --every 4");
        let more = ["", "--memory least", "--scrub", "--memory least --scrub"][seed as usize % 4];
        let outcome = run(&format!("-n 6 --scheme checksum:4+2 {kills} {more}"), "cg --poisson 40");
        assert_eq!(outcome.report().0["result"]["converged"], true, "{outcome}");
    }
}
