//! `--interval auto` through kills, and `ftrun advise`.

use serde_json::Value;

use crate::common::{POISSON, Run, example, poisson_answer};

/// A state, steps of a millisecond, and the answer that any run of it has.
const LOAD: &str = "load --state 64KiB --steps 400 --step-ms 1";

fn interval(outcome: &crate::common::Outcome) -> Value {
    outcome.report().0["checkpoints"]["interval"].clone()
}

/// Rank 0 counts; what it has learned is not lost with it.
#[test]
fn auto_survives_rank_0_and_says_why() {
    let undisturbed = Run::ftrun(&format!("-n 4 --json {LOAD}")).finish().expect(0).report();
    let kills = "--kill 2@step=60 --kill 0@step=150 --kill 1,3@step=250";
    let outcome = Run::ftrun(&format!("-n 4 --json --scheme rs:2+2 --interval auto {kills} {LOAD}"));
    let outcome = outcome.finish().expect(0);
    let report = outcome.report();
    assert_eq!(report.answer(), undisturbed.answer(), "{outcome}");
    assert_eq!((report.failures().len(), report.unfired()), (3, vec![]), "{outcome}");
    let interval = interval(&outcome);
    let number = |name: &str| interval[name].as_f64().unwrap_or_else(|| panic!("{name}: {outcome}"));
    assert_eq!(interval["chosen"], "auto", "{outcome}");
    // The new rank 0 has seen but one of them.
    assert_eq!((number("failures"), number("steps_done")), (3.0, 400.0), "{outcome}");
    // All of the run in three and a half failures: the new rank 0 has not been there all the time.
    let elapsed_s = report.0["elapsed_s"].as_f64().unwrap();
    let mtbf_s = number("mtbf_s");
    assert!(mtbf_s <= elapsed_s / 3.5 && mtbf_s >= 400.0 * 0.001 / 3.5, "{mtbf_s}: {outcome}");
    let expected = (2.0 * number("checkpoint_s") * mtbf_s).sqrt();
    assert!((0.5..1.1).contains(&(number("optimum_s") / expected)), "Young and Daly are close: {outcome}");
    assert!(number("steps") >= 1.0 && number("step_s") >= 0.001, "{outcome}");
}

#[test]
fn what_is_expected_makes_intervals_longer() {
    let run = |options: &str| {
        let outcome =
            Run::ftrun(&format!("-n 4 --json --interval auto {options} {POISSON}")).finish().expect(0);
        assert_eq!(outcome.report().answer(), poisson_answer().answer(), "{outcome}");
        let interval = interval(&outcome);
        (interval["mtbf_s"].as_f64().unwrap(), outcome.report().0["elapsed_s"].as_f64().unwrap())
    };
    let (unknown_s, elapsed_s) = run("");
    assert!(unknown_s <= 2.0 * elapsed_s, "none for twice the time that it has run");
    let (expected_s, _) = run("--expect-mtbf 86400");
    assert!(expected_s >= 86_400.0, "no failure has said otherwise");
    let (struck_s, elapsed_s) = run("--expect-mtbf 86400 --kill 1@step=20");
    assert!(struck_s >= 43_200.0 / 1.5 && struck_s <= (43_200.0 + elapsed_s) / 1.5, "{struck_s}");
}

#[test]
fn people_are_told() {
    let outcome =
        Run::ftrun("-n 2 --interval auto load --state 8KiB --steps 50 --step-ms 1").finish().expect(0);
    assert!(outcome.stdout.contains("interval auto: a checkpoint every "), "{outcome}");
    let outcome = Run::ftrun("-n 2 --every 5 load --state 8KiB --steps 50 --step-ms 1").finish().expect(0);
    assert!(!outcome.stdout.contains("interval"), "{outcome}");
}

const QUICK: &str = "--repeat 1 --seconds 0.2";

#[test]
fn advice_for_a_long_program() {
    // Ten minutes, if it were not ended.
    let load = "load --state 64KiB --steps 600000 --step-ms 1";
    let run = Run::ftrun(&format!("advise -n 4 --json {QUICK} --survive 2 --mtbf 1h,1d {load}"));
    // It says nothing before its jobs have ended.
    let outcome = run.limit(120).finish().expect(0);
    assert_eq!(outcome.stderr, "", "silent in a pipe");
    let advice: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let all = advice["candidates"].as_array().unwrap();
    let schemes: Vec<&str> = all.iter().map(|one| one["scheme"].as_str().unwrap()).collect();
    assert_eq!(schemes, ["neighbor:1", "xor", "neighbor:2", "rs:2+2", "disk"], "{outcome}");
    let survives: Vec<u64> = all.iter().map(|one| one["survives"].as_u64().unwrap()).collect();
    assert_eq!(survives, [1, 1, 2, 2, 4], "{outcome}");
    assert!(["neighbor:2", "rs:2+2"].contains(&advice["recommended"].as_str().unwrap()), "{outcome}");
    let state_bytes = advice["state_bytes"].as_f64().unwrap();
    assert!((65_536.0..66_000.0).contains(&state_bytes), "{outcome}");
    for one in all {
        let seconds = |what: &str| one[what]["median"].as_f64().unwrap();
        assert!(seconds("checkpoint_s") > 0.0 && seconds("recovery_s") > 0.0, "{outcome}");
        // Two copies of the own state, and what is held for others.
        let copies = one["extra_bytes"].as_f64().unwrap() / state_bytes;
        let held = match one["scheme"].as_str().unwrap() {
            "disk" => 0.0,
            "xor" => 2.0 / 3.0,
            "neighbor:2" => 4.0,
            _ => 2.0,
        };
        assert!((1.9..2.2).contains(&(copies - held)), "{copies} copies: {outcome}");
        let overheads: Vec<f64> =
            one["outlook"].as_array().unwrap().iter().map(|at| at["overhead"].as_f64().unwrap()).collect();
        assert!(overheads.len() == 2 && overheads[0] > overheads[1] && overheads[1] > 0.0, "{outcome}");
    }
}

#[test]
fn advice_for_a_program_of_ones_own() {
    let options = format!("advise -n 2 {QUICK} --schemes xor");
    let outcome = Run::ftrun(&options).arg(example("resilient")).finish().expect(0);
    let text = &outcome.stdout;
    assert!(text.contains("xor survives 1 loss: the only one of them that does"), "{outcome}");
    assert!(text.contains("ftrun -n 2 --scheme xor --interval auto "), "{outcome}");
    assert!(text.contains("MTBF 10 min:") && text.contains("from the start"), "{outcome}");
    let outcome =
        Run::ftrun(&format!("advise -n 2 {QUICK} --survive 2 --schemes xor")).arg(example("resilient"));
    let outcome = outcome.finish().expect(0);
    assert!(outcome.stdout.contains("None of these schemes survives 2 losses at once"), "{outcome}");
}

/// Times between failures may fall from kind to kind.
#[test]
fn advice_on_levels() {
    let load = "load --state 64KiB --steps 600000 --step-ms 1";
    let options =
        format!("advise -n 4 {QUICK} --schemes neighbor:1,rs:2+2,disk --level-mtbf 1=1d,2=1h,all=30d");
    let outcome = Run::ftrun(&format!("{options} --json {load}")).limit(120).finish().expect(0);
    let advice: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let levels = &advice["levels"];
    let all = levels["combinations"].as_array().unwrap();
    let overheads: Vec<f64> = all.iter().map(|one| one["overhead"].as_f64().unwrap()).collect();
    assert!(overheads.len() == 4 && overheads.is_sorted() && overheads[0] > 0.0, "{outcome}");
    for one in all {
        let numbers: Vec<u64> =
            one["levels"].as_array().unwrap().iter().map(|level| level["every"].as_u64().unwrap()).collect();
        assert_eq!(numbers[0], 1, "{outcome}");
    }
    let kinds: Vec<&str> =
        levels["failures"].as_array().unwrap().iter().map(|kind| kind["losses"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["1", "2", "all"], "{outcome}");
    let best = &levels["recommended"];
    let command = format!("ftrun -n 4 {} {load}", best["options"].as_str().unwrap());
    assert_eq!(levels["command"], command, "{outcome}");
    let outcome = Run::ftrun(&format!("{options} {load}")).limit(120).finish().expect(0);
    assert!(
        outcome.stdout.contains("Levels of protection for 1 loss every 1 d, 2 losses at once"),
        "{outcome}"
    );
    assert!(outcome.stdout.contains("neighbor:1@") && outcome.stdout.contains(",spill@"), "{outcome}");
}

/// What `advise` says of ways to go back.
fn ways(options: &str, program: &str) -> Value {
    let run = Run::ftrun(&format!("advise -n 4 --json {QUICK} --schemes xor {options} {program}"));
    let outcome = run.limit(240).finish().expect(0);
    let advice: Value = serde_json::from_str(&outcome.stdout).unwrap();
    advice["ways"].clone()
}

/// The names of ways in a list.
fn names(all: &Value) -> Vec<&str> {
    all.as_array().unwrap().iter().map(|one| one["way"].as_str().unwrap()).collect()
}

#[test]
fn advice_on_ways_to_go_back() {
    let heat = "heat --grid 60 --steps 10000000";
    let ways = ways("--mtbf 10min,1d --ways local,global,lines", heat);
    assert_eq!(names(&ways["candidates"]), ["global", "lines", "local"], "the simplest first: {ways}");
    assert_eq!((&ways["scheme"], names(&ways["refused"]).len()), (&Value::from("xor"), 0), "{ways}");
    let number = |of: &Value| of.as_f64().unwrap_or_else(|| panic!("{of}: {ways}"));
    let (steps, every) = (number(&ways["steps"]), number(&ways["every"]));
    assert_eq!(steps, 2.0 * every, "{ways}");
    let all = ways["candidates"].as_array().unwrap();
    for one in all {
        // The kill is at nine tenths of the second interval; a line may be a little behind the step.
        let again = number(&one["steps_again"]);
        assert!(again > 0.0 && again <= steps, "{ways}");
        assert!(
            number(&one["checkpoint_s"]["median"]) > 0.0 && number(&one["recovery_s"]["median"]) > 0.0,
            "{ways}"
        );
        let outlook = one["outlook"].as_array().unwrap();
        let overheads: Vec<f64> = outlook.iter().map(|at| number(&at["overhead"])).collect();
        let log = number(&one["costs"]["log"]);
        assert!(overheads.len() == 2 && overheads[0] > overheads[1] && overheads[1] > log, "{ways}");
        let check = &one["check"];
        assert!(number(&check["foretold_s"]) > 0.0 && number(&check["measured_s"]) > 0.0, "{ways}");
        // All ranks do that work again, or the lost one.
        let step_s = number(&ways["step_s"]) * (1.0 + number(&one["log"]["median"]));
        let ranks = if one["way"] == "local" { 1.0 } else { 4.0 };
        let expected = ranks * again * step_s;
        assert!((number(&one["again_rank_s"]) / expected - 1.0).abs() < 1e-6, "{ways}");
    }
    let stayed: Vec<f64> = all.iter().map(|one| number(&one["stayed"])).collect();
    assert_eq!(stayed, [0.0, 0.0, 3.0], "{ways}");
    let held: Vec<f64> = all.iter().map(|one| number(&one["costs"]["held"])).collect();
    assert_eq!(held[..2], [1.0, 1.0], "{ways}");
    let best = ways["recommended"].as_str().unwrap();
    let options = all.iter().find(|one| one["way"] == best).unwrap()["options"].as_str().unwrap();
    assert_eq!(
        ways["command"],
        format!("ftrun -n 4 --scheme xor --interval auto {options} {heat}"),
        "{ways}"
    );
}

/// A way that cannot be is no error, and says why.
#[test]
fn ways_that_a_program_refuses() {
    let load = "load --state 64KiB --steps 600000 --step-ms 1";
    let ways_of_load = ways("--ways global,local", load);
    assert_eq!(names(&ways_of_load["candidates"]), ["global"], "{ways_of_load}");
    let [refused] = &ways_of_load["refused"].as_array().unwrap()[..] else { panic!("{ways_of_load}") };
    let reason = refused["reason"].as_str().unwrap();
    assert!(refused["way"] == "local" && reason.contains("`Program::ALONE`"), "{ways_of_load}");
    assert_eq!(ways_of_load["recommended"], "global");
    // It goes to its end each time.
    let outcome =
        Run::ftrun(&format!("advise -n 4 {QUICK} --ways global,lines pipeline --items 30000")).limit(240);
    let outcome = outcome.finish().expect(0);
    let refused = "  not global: --lines meet is nothing for pipeline, whose messages cross every step: ";
    assert!(outcome.stdout.contains(refused), "{outcome}");
    let best = "--interval auto --lines log pipeline --items 30000\n";
    assert!(outcome.stdout.ends_with(best) && !outcome.stdout.contains("disk"), "{outcome}");
}

#[test]
fn no_advice() {
    for (arguments, parts) in [
        ("advise", &["PROGRAM"][..]),
        ("advise -n 4 --schemes rs:4+2 cg --poisson 8", &["--schemes rs:4+2", "6 ranks", "there are 4"]),
        ("advise -n 4 --schemes none cg --poisson 8", &["--schemes none", "survives nothing"]),
        ("advise -n 4 --mtbf 1h,10min cg --poisson 8", &["--mtbf", "rising"]),
        ("advise -n 4 --level-mtbf 1h cg --poisson 8", &["--level-mtbf", "as in 1=1h"]),
        ("advise -n 4 --level-mtbf 1=1h,, cg --poisson 8", &["--level-mtbf", "as in 1=1h"]),
        (
            "advise -n 4 --level-mtbf host=1h cg --poisson 8",
            &["--level-mtbf", "'host' is not how many ranks"],
        ),
        ("advise -n 4 --level-mtbf 1=1h,2=0 cg --poisson 8", &["--level-mtbf", "'0' must be from"]),
        ("advise -n 4 --level-mtbf all=-1d cg --poisson 8", &["--level-mtbf", "'-1d' must be from"]),
        ("advise -n 4 --level-mtbf 1=1h,1=1d cg --poisson 8", &["--level-mtbf", "1 is named twice"]),
        ("advise -n 4 --level-mtbf 4=1h cg --poisson 8", &["--level-mtbf", "write all for that"]),
        ("advise -n 4 --level-mtbf 2=1h --schemes xor cg --poisson 8", &["--level-mtbf", "2 losses at once"]),
        (
            "advise -n 4 --ways meet cg --poisson 8",
            &["--ways", "'meet' is no way to go back: write all, none,"],
        ),
        ("advise -n 4 --ways local,local cg --poisson 8", &["--ways", "local is named twice"]),
        ("advise -n 2 --schemes disk pipeline", &["--lines log", "--scheme disk"]),
        ("advise -n 4 --survive 0 cg --poisson 8", &["'0'", "--survive"]),
        ("advise -n 4 cg", &["--matrix", "--poisson"]),
        ("advise -n 4 cg --poisson 8 --scheme xor", &["--scheme", "multiple times"]),
        ("advise -n 2 cg --matrix /no/such.mtx", &["/no/such.mtx", "No such file"]),
        ("advise -n 2 bench recovery", &["'bench'", "no program"]),
        ("-n 2 advise cg --poisson 8", &["'-n' stands before 'advise'"]),
        ("advise -n 2 /bin/true", &["/bin/true", "resilient loop"]),
        ("-n 2 --interval often cg --poisson 8", &["'often'", "above 0, or auto"]),
        ("-n 2 --expect-mtbf 60 cg --poisson 8", &["--expect-mtbf", "--interval auto"]),
        ("-n 2 --interval 1 --expect-mtbf 60 cg --poisson 8", &["--expect-mtbf", "--interval auto"]),
    ] {
        let outcome = Run::ftrun(arguments).finish().expect(2);
        let complaint = outcome.stderr.lines().next().unwrap_or_default();
        assert!(complaint.starts_with("ftrun: "), "{outcome}");
        assert!(parts.iter().all(|part| complaint.contains(part)), "{parts:?}: {outcome}");
        assert_eq!(outcome.stdout, "", "{outcome}");
    }
}
