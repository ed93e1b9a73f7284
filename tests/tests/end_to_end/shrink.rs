//! Repair mode `shrink`: the survivors close up, and the answer stays what it was.

use crate::common::{Outcome, PATIENT, Run, example};

fn run(options: &str) -> Outcome {
    let outcome = Run::ftrun(&format!("--json {PATIENT} {options}")).limit(60).finish().expect(0);
    assert_eq!(outcome.report().unfired(), [""; 0], "{outcome}");
    outcome
}

/// One rank after the other dies in the steps `at`, until one of eight is left.
fn one_after_another(at: impl Fn(usize) -> usize) -> String {
    let victims = [3, 0, 7, 1, 6, 2, 5].into_iter().enumerate();
    victims.map(|(nth, victim)| format!("--kill {victim}@step={} ", at(nth))).collect()
}

#[track_caller]
fn same(app: &str, kills: &str) {
    let undisturbed = run(&format!("-n 8 {app}"));
    let outcome = run(&format!("-n 8 --every 3 --on-failure shrink {kills} {app}"));
    let (due, got) = (undisturbed.report(), outcome.report());
    assert_eq!(got.answer(), due.answer(), "{outcome}");
    assert_eq!(got.0["failures"].as_array().unwrap().len(), 7, "{outcome}");
}

#[test]
fn seven_of_eight_die_one_after_another() {
    same("cg --poisson 16", &one_after_another(|nth| 4 + 5 * nth));
    same("heat --grid 64", &one_after_another(|nth| 10 + 20 * nth));
}

/// The last one does all that is left of the survey.
#[test]
fn seven_of_eight_die_one_after_another_in_a_bag_of_tasks() {
    let survey = "seismic --synthetic layers --shape 241x161 --shots 9 --time 3 --slice 5";
    let folder = tempfile::tempdir().unwrap();
    let undisturbed = run(&format!("-n 8 {survey} --out {}", folder.path().join("a").display()));
    let kills = one_after_another(|nth| 2 + 2 * nth);
    let out = folder.path().join("b");
    let outcome = run(&format!("-n 8 --on-failure shrink {kills} {survey} --out {}", out.display()));
    assert_eq!(outcome.report().answer(), undisturbed.report().answer(), "{outcome}");
    assert_eq!(outcome.report().0["failures"].as_array().unwrap().len(), 7, "{outcome}");
}

#[test]
fn what_is_left_of_the_scheme_is_told() {
    let cg = "cg --poisson 12";
    let answer = run(&format!("-n 4 {cg}")).report().answer().to_owned();
    let degraded = |options: &str| {
        let outcome = run(&format!("-n 4 --on-failure shrink {options} {cg}"));
        assert_eq!(outcome.report().answer(), answer, "{outcome}");
        outcome.report().0["degraded"].clone()
    };
    assert_eq!(degraded("--scheme xor --kill 2@step=12"), "xor:4 is xor:3 with 3 ranks left");
    assert_eq!(degraded("--scheme xor:2 --kill 2@step=12"), "2 groups of xor:2 are xor:3 with 3 ranks left");
    assert_eq!(degraded("--scheme neighbor:1 --kill 2@step=12"), serde_json::Value::Null);
    assert_eq!(degraded("--scheme rs:2+2 --kill 2@step=12"), "rs:2+2 is rs:1+2 with 3 ranks left");
    assert_eq!(degraded("--scheme rs:2+2 --kill 0,1@step=12"), "rs:2+2 is rs:1+1 with 2 ranks left");
    // Before anything is committed, inside a checkpoint, and inside the repair of another loss.
    degraded("--kill 1@init");
    degraded("--kill 1@checkpoint=1/exchange");
    degraded("--scheme rs:2+2 --kill 0@checkpoint=2/vote --kill 1@repair=1/agree");
    degraded("--scheme rs:2+2 --kill 0@step=12 --kill 3@restore=1/exchange");
}

#[test]
fn what_cannot_shrink_is_refused() {
    let refused = |options: &str, text: &str| {
        let outcome = Run::ftrun(options).limit(30).finish().expect(2);
        assert!(outcome.stderr.contains(text), "{outcome}");
    };
    refused("-n 3 --on-failure shrink simulator", "this program cannot go on with fewer ranks");
    refused(
        "-n 3 --on-failure shrink --scheme xor:4 --parity-ranks 1 cg --poisson 8",
        "dedicated parity ranks",
    );
    refused("-n 3 --on-failure blank cg --poisson 8", "no holes");
    let outcome =
        Run::ftrun("-n 3 --on-failure shrink --kill 1,2@step=12 cg --poisson 12").limit(30).finish();
    let outcome = outcome.expect(3);
    assert!(outcome.stderr.contains("rs:1+2"), "{outcome}");
}

/// The rank that prints the answer is that of the end, not of the start.
#[test]
fn the_answer_is_printed_once_when_the_first_rank_is_lost() {
    let halves = |options: &str| {
        let run = Run::ftrun(&format!("-n 4 {PATIENT} {options}")).arg(example("halves"));
        run.arg("60").arg("160").limit(120).finish().expect(0).stdout
    };
    let expected = halves("");
    let line = |out: &str| {
        out.lines().map(|line| line.split(", halves").next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(line(&expected).len(), 1, "{expected}");
    for kills in ["--kill 0@step=77", "--kill 0@step=77 --kill 1@step=120"] {
        let out = halves(&format!("--on-failure shrink {kills}"));
        assert_eq!(line(&out), line(&expected), "{kills}: {out}");
    }
}

#[test]
fn a_solve_says_its_answer_once_when_the_first_rank_is_lost() {
    let run = Run::ftrun(&format!("-n 4 --on-failure shrink --kill 0@step=5 {PATIENT}"));
    let outcome = run.arg(example("protected_solve")).limit(120).finish().expect(0);
    assert_eq!(outcome.stdout.lines().count(), 1, "{outcome}");
}
