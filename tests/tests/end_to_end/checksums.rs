//! `--scheme checksum:K+M`: doubles come back within the bound that is said, all else as it was. `FT_RUNS=100` makes a soak of the random
//! kills.

use crate::common::{Outcome, POISSON, Run, poisson_answer};

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

#[test]
fn what_does_not_go_with_checksums_is_refused_by_name() {
    for (options, part) in [
        ("--scheme checksum:4+2 --incremental", "--incremental"),
        ("--scheme checksum:4+2 --memory least", "--memory least"),
        ("--scheme checksum:4+2 --scrub", "--scrub"),
        ("--scheme checksum:4+2 --spill x", "--spill"),
        ("--scheme checksum:4+2 --checkpoint-memory 1GiB", "--checkpoint-memory"),
        ("--scheme checksum:4+2 --parity-ranks 2", "--parity-ranks"),
        ("--scheme checksum:4+2 --on-failure shrink", "--on-failure shrink"),
        ("--levels checksum:4+2@3,rs:2+2@6", "--levels is for exact schemes"),
        ("--levels neighbor@3,checksum:4+2@6", "--levels is for exact schemes"),
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
        let kills = format!("--mtbf 0.05 --max-restarts 1000 --seed {seed} --every 4");
        let outcome = run(&format!("-n 6 --scheme checksum:4+2 {kills}"), "cg --poisson 40");
        assert_eq!(outcome.report().0["result"]["converged"], true, "{outcome}");
    }
}
