//! What people are told of failures: what it was, what it cost, and who is left.

use crate::common::{Outcome, Run, example};

/// Words in the order in which they stand in `text`.
fn in_order(text: &str, words: &[&str]) -> bool {
    let mut rest = text;
    words.iter().all(|word| rest.split_once(word).map(|(_, behind)| rest = behind).is_some())
}

/// A program of one's own, of which rank 2 is lost.
fn own(options: &str) -> Outcome {
    Run::ftrun(&format!("-n 4 --kill 2@step=45 {options}")).arg(example("resilient")).finish().expect(0)
}

#[test]
fn programs_of_ones_own_have_an_account() {
    let outcome = own("");
    let line = [
        "ftrun: rank 2 failed (step=45): noticed after ",
        "replaced in ",
        "rebuilt in memory in ",
        " done again\n",
    ];
    assert!(in_order(&outcome.stderr, &line), "{outcome}");
    assert_eq!((outcome.stderr.lines().count(), outcome.stdout.as_str()), (1, ""), "{outcome}");

    let outcome = own("-v");
    let at_once = [
        " s  --kill 2@step=45 strikes\n",
        " s  rank 2 is lost: killed by signal 9\n",
        " s  rank 2 back, generation 1 starts\n",
        " s  state restored from memory, ",
        " s  all ranks are done\n",
    ];
    assert!(in_order(&outcome.stderr, &at_once) && in_order(&outcome.stderr, &line), "{outcome}");

    let outcome = own("-q");
    assert_eq!((outcome.stderr.as_str(), outcome.stdout.as_str()), ("", ""), "{outcome}");
    // The report has it.
    assert_eq!(own("--json").stderr, "");
}

#[test]
fn what_was_lost_before_the_end_is_told_of_a_job_that_failed() {
    let options = "-n 4 --kill 2@step=15 --kill 0,1@step=35";
    let outcome = Run::ftrun(&format!("{options} cg --poisson 16")).finish().expect(3);
    let lines: Vec<&str> = outcome.stderr.lines().collect();
    let [first, second, cause] = lines[..] else { panic!("{outcome}") };
    assert!(first.starts_with("ftrun: rank 2 failed (step=15): "), "{outcome}");
    assert!(second.starts_with("ftrun: ranks 0 and 1 failed (step=35): "), "{outcome}");
    assert!(
        cause.starts_with("ftrun: ranks 0 and 1 of parity group 0 (ranks 0 1 2 3) are lost"),
        "{outcome}"
    );
}

#[test]
fn whom_nobody_replaces_is_not_back() {
    let options = "-n 4 --on-failure shrink --kill 3@step=15";
    let outcome = Run::ftrun(&format!("-v {options} cg --poisson 12")).finish().expect(0);
    let account = [
        "rank 3 failed (step=15): noticed after ",
        ", 3 ranks closed up in ",
        ", at work again in ",
        "  3 of 4 ranks are left: ranks 0, 1 and 2 of the start\n",
        "  xor:4 is xor:3 with 3 ranks left\n",
    ];
    assert!(in_order(&outcome.stdout, &account), "{outcome}");
    assert!(outcome.stderr.contains(" s  3 ranks without rank 3, generation 1 starts\n"), "{outcome}");
    for word in ["replaced", "rank 3 back"] {
        assert!(!outcome.stdout.contains(word) && !outcome.stderr.contains(word), "{word}: {outcome}");
    }
    let report = Run::ftrun(&format!("--json {options} cg --poisson 12")).finish().expect(0).report().0;
    assert_eq!(report["left"], serde_json::json!([0, 1, 2]), "{report}");
    let failure = &report["failures"][0];
    assert_eq!((&failure["replaced"], failure["respawn_s"].is_null()), (&false.into(), true), "{report}");
    assert!(failure["repair_s"].is_number(), "{report}");

    let report = Run::ftrun("--json -n 4 --kill 3@step=15 cg --poisson 12").finish().expect(0).report().0;
    assert_eq!((&report["left"], &report["degraded"]), (&serde_json::Value::Null, &serde_json::Value::Null));
    let failure = &report["failures"][0];
    assert_eq!((&failure["replaced"], failure["respawn_s"].is_number()), (&true.into(), true), "{report}");
}

#[test]
fn groups_that_are_larger_than_asked_for_are_told() {
    for (options, told) in [
        ("-n 6 --scheme rs:2+2", "6 ranks, scheme rs:4+2 (rs:2+2 over 6 ranks)\n"),
        ("-n 4 --scheme rs:2+2", "4 ranks, scheme rs:2+2\n"),
        ("-n 4 --scheme xor:2", "4 ranks, scheme 2 groups of xor:2\n"),
        ("-n 5 --scheme xor:2", "5 ranks, scheme groups of xor:2 and xor:3 (xor:2 over 5 ranks)\n"),
        ("-n 4", "4 ranks, scheme xor:4\n"),
        ("-n 1", "1 rank, scheme none\n"),
    ] {
        let outcome = Run::ftrun(&format!("{options} cg --poisson 6")).finish().expect(0);
        assert!(outcome.stdout.contains(told), "{outcome}");
    }
    let report = Run::ftrun("-n 6 --scheme rs:2+2 --json cg --poisson 6").finish().expect(0).report().0;
    assert_eq!(
        (&report["scheme"], &report["scheme_asked"]),
        (&"rs:4+2".into(), &"rs:2+2".into()),
        "{report}"
    );
}

/// The killed leave half-made connections behind, and are no strangers.
#[test]
fn the_killed_are_no_strangers() {
    let kills = "--kill 2@step=5 --kill 1@step=15 --kill 3@step=25 --kill 0,2@step=35";
    let outcome =
        Run::ftrun(&format!("-n 6 --scheme rs:4+2 --json {kills} cg --poisson 16")).finish().expect(0);
    assert_eq!(outcome.report().failures().len(), 4, "{outcome}");
    assert_eq!(outcome.report().0["strangers_refused"], 0, "{outcome}");
}

#[test]
fn the_error_of_main_is_a_sentence() {
    let outcome = Run::ftrun("-n 4 --kill 1,2@step=45 -q").arg(example("resilient")).finish().expect(3);
    let lines: Vec<&str> = outcome.stderr.lines().collect();
    let text = "ranks 1 and 2 of parity group 0 (ranks 0 1 2 3) are lost, xor:4 survives 1 loss a group; rs:2+2 would \
                have survived this";
    assert!(lines.contains(&format!("ftrun: {text}").as_str()), "{outcome}");
    for line in lines {
        let said = line.strip_prefix("Error: ").or(line.strip_prefix("ftrun: "));
        assert!(said.is_some_and(|said| !said.contains(['{', '}', '"'])), "{line}: {outcome}");
    }
}
