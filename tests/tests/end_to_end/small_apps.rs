//! The small bundled apps: kills at every kind of moment, and the result of the undisturbed run.

use serde_json::{Value, json};

use crate::common::{Outcome, PATIENT, Run};

/// Options, and the ranks of each failure that follows from them.
type Case = (&'static str, &'static [&'static [u64]]);

/// For any app on four ranks in the resilient loop.
const KILLS: &[Case] = &[
    ("", &[]),
    ("--kill 2@step=25", &[&[2]]),
    ("--kill 0@step=25", &[&[0]]),
    ("--scheme rs:2+2 --kill 1,3@step=25", &[&[1, 3]]),
    ("--kill 1@checkpoint=2/vote", &[&[1]]),
    ("--scheme rs:2+2 --kill 2@step=25 --kill 1@repair=1/reconnect", &[&[2], &[1]]),
    ("--kill 2@step=25 --kill 2@restore=1/exchange", &[&[2], &[2]]),
    ("--kill 1@collective=12", &[&[1]]),
    ("--parity-ranks 1 --kill 4@step=25", &[&[4]]),
    // The last step.
    ("--kill 3@step=60", &[&[3]]),
];

/// Runs it to a good end, and gives its result.
fn result(arguments: &str, expected: &[&[u64]]) -> (Value, Outcome) {
    let outcome = Run::ftrun(&format!("--json {PATIENT} {arguments}")).finish().expect(0);
    let report = outcome.report();
    let failures: Vec<Vec<u64>> = report.failures().into_iter().map(|(ranks, _)| ranks).collect();
    assert_eq!(failures, expected, "{outcome}");
    assert_eq!(report.unfired(), [""; 0], "{outcome}");
    (report.0["result"].clone(), outcome)
}

#[test]
fn ring() {
    let app = "ring --rounds 400 --checkpoint-rounds 100";
    let cases: &[(&str, &[&[u64]])] = &[
        ("-n 1", &[]),
        ("-n 3", &[]),
        ("-n 3 --kill 1@step=250", &[&[1]]),
        ("-n 4", &[]),
        ("-n 4 --kill 2@init", &[&[2]]),
        ("-n 4 --kill 2@step=1", &[&[2]]),
        ("-n 4 --kill 2@step=250", &[&[2]]),
        ("-n 4 --kill 0@step=250", &[&[0]]),
        ("-n 4 --scheme rs:2+2 --kill 1,3@step=250", &[&[1, 3]]),
        ("-n 4 --kill 1@checkpoint=1/encode", &[&[1]]),
        ("-n 4 --kill 1@checkpoint=2/vote", &[&[1]]),
        ("-n 4 --scheme rs:2+2 --kill 2@step=250 --kill 1@repair=1/reconnect", &[&[2], &[1]]),
        ("-n 4 --kill 2@step=250 --kill 2@restore=1/exchange", &[&[2], &[2]]),
        // The other ranks have sent their last message, and wait for it to leave with them.
        ("-n 4 --kill 3@step=400", &[&[3]]),
        ("-n 4 --parity-ranks 1", &[]),
        ("-n 4 --parity-ranks 1 --kill 2@step=250", &[&[2]]),
        ("-n 4 --parity-ranks 1 --kill 4@init", &[&[4]]),
        ("-n 4 --parity-ranks 1 --kill 4@step=250 --kill 2@step=350", &[&[4], &[2]]),
        ("-n 4 --parity-ranks 1 --kill 4@checkpoint=3/vote", &[&[4]]),
        ("-n 4 --parity-ranks 1 --kill 4@step=400", &[&[4]]),
        ("-n 4 --parity-ranks 2 --scheme rs:4+2 --kill 0,5@checkpoint=3/exchange", &[&[0, 5]]),
    ];
    for (options, expected) in cases {
        let (result, outcome) = result(&format!("{options} {app}"), expected);
        let ranks: u64 = options["-n ".len()..].split(' ').next().unwrap().parse().unwrap();
        let token = 400 * ranks * (ranks + 1) / 2;
        assert_eq!(result, json!({ "rounds": 400, "ranks": ranks, "token": token }), "{outcome}");
        for (_, lost) in outcome.report().failures() {
            assert!(lost <= 100, "more than since the last checkpoint: {outcome}");
        }
    }
}

/// Files are removed by hand as well.
#[test]
fn ring_with_checkpoints_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let scheme = format!("disk:{}", folder.path().display());
    let app = "ring --rounds 400 --checkpoint-rounds 100 --kill 0,1,2@step=250";
    let (result, outcome) = result(&format!("-n 3 --scheme {scheme} {app}"), &[&[0, 1, 2]]);
    assert_eq!(result["token"], 2400, "{outcome}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{outcome}");
}

#[test]
fn ring_beyond_tolerance() {
    let outcome = Run::ftrun("-n 4 --json ring --rounds 400 --kill 1,2@step=50").finish().expect(3);
    assert!(outcome.report().message().contains("rs:2+2 would have survived"), "{outcome}");
}

#[test]
fn simulator() {
    // Entry 1 of rank 0, 257 of rank 1 and so on, and back in its place after 60 turns.
    let sum: u64 = (0..4).map(|rank| rank * 256 + 1).sum();
    for (options, expected) in KILLS {
        let (result, outcome) =
            result(&format!("-n 4 {options} simulator --size 16 --numloops 60"), expected);
        assert_eq!(result["sum"], json!(sum as f64), "{outcome}");
    }
}

#[test]
fn simulator_with_random_victims() {
    let app = "simulator --procfail 3 --numloops 60 --size 32";
    let outcome = Run::ftrun(&format!("-n 8 {PATIENT} {app}")).finish().expect(0);
    assert_eq!(outcome.stdout.matches(" failed (step=").count(), 3, "{outcome}");
    let sum: u64 = (0..8).map(|rank| rank * 32 * 32 + 1).sum();
    assert!(outcome.stdout.contains(&format!("sum of the first elements {sum}, as it must be")), "{outcome}");
    assert_eq!(outcome.stderr, "", "{outcome}");

    // With an odd number of turns the last elements are the first, and the seed chooses the victims.
    let victims = |seed: u64| {
        let app = "simulator --size 8 --numloops 21 --procfail 4";
        let outcome = Run::ftrun(&format!("-n 4 --json {PATIENT} --seed {seed} {app}")).finish().expect(0);
        let report = outcome.report();
        assert_eq!(report.0["result"]["sum"], json!((64 * (1 + 2 + 3 + 4)) as f64), "{outcome}");
        let failures = report.0["failures"].as_array().unwrap();
        assert_eq!(failures.len(), 4, "{outcome}");
        failures.iter().map(|failure| format!("{}{}", failure["ranks"], failure["point"])).collect::<Vec<_>>()
    };
    assert_eq!(victims(1), victims(1));
    assert_ne!(victims(1), victims(2));
}

const HEAT: &str = "heat --grid 23 --steps 60";

#[test]
fn heat() {
    let (undisturbed, _) = result(&format!("-n 1 {HEAT}"), &[]);
    assert_eq!(undisturbed["steps"], 60);
    for (options, expected) in KILLS {
        let (result, outcome) = result(&format!("-n 4 {options} {HEAT}"), expected);
        assert_eq!(result, undisturbed, "{outcome}");
    }
    for ranks in [2, 3, 5, 23] {
        let (result, outcome) = result(&format!("-n {ranks} {HEAT}"), &[]);
        assert_eq!(result, undisturbed, "{outcome}");
    }
    let (other, _) = result("-n 1 heat --grid 23 --steps 61", &[]);
    assert_ne!(other["answer_hash"], undisturbed["answer_hash"]);
}

#[test]
fn heat_to_a_tolerance() {
    let (alone, outcome) = result("-n 1 heat --grid 20 --tol 1e-5", &[]);
    let (steps, change) = (alone["steps"].as_u64().unwrap(), alone["change"].as_f64().unwrap());
    assert!(steps < 1000 && steps.is_multiple_of(50) && change < 1e-5, "{outcome}");
    assert_eq!(result("-n 3 heat --grid 20 --tol 1e-5 --kill 1@step=333", &[&[1]]).0, alone);
    let outcome = Run::ftrun("-n 2 --json heat --grid 20 --tol 1e-5 --steps 70").finish().expect(1);
    assert!(outcome.report().message().starts_with("not converged after 70 steps"), "{outcome}");
}

/// Ranks are lost in the middle of systems that time steps solve.
#[test]
fn heat_by_implicit_steps() {
    let app = "heat --grid 60 --implicit 50 --steps 4";
    let (undisturbed, outcome) = result(&format!("-n 1 {app}"), &[]);
    assert_eq!(undisturbed["steps"], 4, "{outcome}");
    let closed_up: &[Case] = &[("--on-failure shrink --kill 2@step=70", &[&[2]])];
    for (options, expected) in KILLS.iter().chain(closed_up) {
        let (result, outcome) = result(&format!("-n 4 {options} {app}"), expected);
        assert_eq!(result, undisturbed, "{outcome}");
    }
}

/// Long implicit steps and many of Jacobi's come to rest at the same temperatures.
#[test]
fn heat_comes_to_rest_in_the_same_state_by_both_methods() {
    let folder = tempfile::tempdir().unwrap();
    let temperatures = |arguments: &str| {
        let run = Run::ftrun(&format!("-n 2 --json heat --grid 30 --tol 1e-9 {arguments} --picture"));
        let outcome = run.arg(folder.path().join("heat.svg")).finish().expect(0);
        let values = outcome.report().0["result"]["picture"].clone();
        serde_json::from_value::<Vec<f64>>(values).unwrap()
    };
    let (jacobi, implicit) = (temperatures("--steps 100000"), temperatures("--implicit 1e4 --steps 50"));
    assert_eq!((jacobi.len(), implicit.len()), (900, 900));
    // Three digits are written.
    assert!(jacobi.iter().zip(&implicit).all(|(a, b)| (a - b).abs() < 1.5e-3));
    assert!(implicit.iter().any(|value| *value > 0.9));
}

/// The picture is the same, whoever had the rows and whoever was lost.
#[test]
fn heat_as_a_picture() {
    let folder = tempfile::tempdir().unwrap();
    let draw = |arguments: &str, name: &str| {
        let file = folder.path().join(name);
        let run = Run::ftrun(&format!("{arguments} heat --grid 300 --steps 80 --picture")).arg(&file);
        let outcome = run.finish().expect(0);
        assert!(outcome.stderr.is_empty() && outcome.stdout.contains(" steps, "), "{outcome}");
        std::fs::read(file).unwrap()
    };
    let alone = draw("-n 1", "one.svg");
    assert!(String::from_utf8_lossy(&alone).contains("Temperatures after 80 steps"));
    assert!(draw("-n 4 --kill 1@step=77", "four.svg") == alone);
    assert!(draw("-n 3", "three.png").starts_with(b"\x89PNG"));
}

#[test]
fn collective() {
    let between: &[Case] = &[("--kill 1@collective=25", &[&[1]]), ("--kill 0@collective=250", &[&[0]])];
    for (options, expected) in KILLS.iter().chain(between) {
        let (result, outcome) =
            result(&format!("-n 4 {options} collective --rounds 60 --elements 100"), expected);
        assert_eq!(result["wrong"], 0, "{outcome}");
        let operations = result["operations"].as_array().unwrap();
        assert_eq!(operations.len(), 12, "{outcome}");
        assert!(operations.iter().all(|operation| operation["mean_us"].as_f64().unwrap() > 0.0), "{outcome}");
    }
    // Short and long messages take other ways.
    for arguments in
        ["-n 3 collective --rounds 9 --elements 1", "-n 5 collective --rounds 3 --elements 70000"]
    {
        assert_eq!(result(arguments, &[]).0["wrong"], 0);
    }
    let outcome = Run::ftrun("-n 2 collective --rounds 5").finish().expect(0);
    assert!(outcome.stdout.contains("\n  all right\n") && outcome.stdout.contains("bcast"), "{outcome}");
}
