//! Every example alone, on four ranks, and with one of them killed. Each ends with an assertion of its own.

use crate::common::{Outcome, Run, example};

/// Name, and a kill that the example survives.
const EXAMPLES: &[(&str, &str)] = &[
    ("hello", "2@init"),
    ("ring", "2@step=500"),
    ("resilient", "2@step=40"),
    ("protected_solve", "2@step=20"),
    ("own_solver", "2@step=20"),
    ("sections", "2@step=85"),
    ("handing_on", "2@step=50"),
    ("two_solves", "2@step=60"),
    ("assembled", "2@step=5"),
    ("eigenvalues", "2@step=4"),
    ("time_steps", "2@step=100"),
];

#[test]
fn alone() {
    for (name, _) in EXAMPLES {
        Run::program(&example(name), "").finish().expect(0);
    }
}

#[test]
fn on_four_ranks() {
    for (name, _) in EXAMPLES {
        Run::ftrun("-n 4").arg(example(name)).finish().expect(0);
    }
}

#[test]
fn with_a_killed_rank() {
    for (name, kill) in EXAMPLES {
        let run = Run::ftrun(&format!("-n 4 --json --kill {kill}"));
        let outcome = run.arg(example(name)).finish().expect(0);
        let report = outcome.report();
        assert_eq!(report.unfired(), [""; 0], "{outcome}");
        assert_eq!(report.failures().len(), 1, "{outcome}");
        assert_eq!(report.failures()[0].0, [2], "{outcome}");
    }
}

#[test]
fn with_a_parity_rank() {
    for name in ["resilient", "protected_solve"] {
        let run = Run::ftrun("-n 4 --json --parity-ranks 1 --kill 4@checkpoint=2 --kill 0@step=15");
        let outcome = run.arg(example(name)).finish().expect(0);
        assert_eq!(outcome.report().failures().len(), 2, "{outcome}");
    }
}

/// What the ranks say, in their order.
fn said(options: &str, name: &str) -> (Vec<String>, Outcome) {
    let outcome = Run::ftrun(&format!("--json {options}")).arg(example(name)).finish().expect(0);
    // With `--json` what ranks print is on standard error.
    let of_ranks = outcome.stderr.lines().filter(|line| line.starts_with("rank "));
    let mut lines: Vec<String> = of_ranks.map(str::to_owned).collect();
    lines.sort();
    (lines, outcome)
}

#[test]
fn a_solver_of_ones_own_has_the_same_bits_with_kills() {
    for (options, kills) in [
        ("-n 2", "--kill 0@step=7 --kill 1@step=60"),
        ("-n 4", "--kill 1@step=7 --kill 3@step=30 --kill 0@step=31"),
        ("-n 7 --scheme rs:2+2", "--kill 5,6@step=20 --kill 0,2@step=50"),
    ] {
        let (calm, _) = said(options, "own_solver");
        assert!(!calm.is_empty() && calm.iter().all(|line| line.contains("x has the bits")), "{calm:?}");
        let (struck, outcome) = said(&format!("{options} {kills}"), "own_solver");
        assert_eq!((struck, outcome.report().unfired()), (calm, vec![]), "{outcome}");
    }
}

/// In the job of this example `solves` solves follow each other; a rank is lost in the middle of every one of them.
fn survives_a_kill_in_each(name: &str, solves: usize) {
    let (calm, _) = said("-n 4", name);
    assert_eq!(calm.len(), 4, "{calm:?}");
    let ends: Vec<u64> = calm[0]
        .split("after steps ")
        .nth(1)
        .and_then(|ends| ends.split(": ").next())
        .map(|ends| ends.split(' ').map(|end| end.parse().expect("a step")).collect())
        .expect("the steps at which solves end");
    assert_eq!(ends.len(), solves, "{calm:?}");
    let starts = std::iter::once(&0).chain(&ends);
    let kills: Vec<String> = starts
        .zip(&ends)
        .enumerate()
        .map(|(at, (start, end))| format!("--kill {}@step={}", at % 4, (start + end).div_ceil(2)))
        .collect();
    let (struck, outcome) = said(&format!("-n 4 {}", kills.join(" ")), name);
    assert_eq!(struck, calm, "{outcome}");
    let report = outcome.report();
    assert_eq!((report.unfired().len(), report.failures().len()), (0, solves), "{outcome}");
}

/// Two solves, what is collective between them, and a loop of ten.
#[test]
fn two_solves_and_a_loop_of_ten_have_the_same_bits_with_kills_in_each() {
    survives_a_kill_in_each("two_solves", 12);
}

#[test]
fn solves_in_a_time_stepper_have_the_same_bits_with_kills_in_each() {
    survives_a_kill_in_each("time_steps", 20);
}

/// `hello` takes no care of failures: the job ends, and says so.
#[test]
fn a_failure_that_a_program_does_not_handle_ends_the_job() {
    let run = Run::ftrun("-n 4 --json --kill 2@collective=1");
    let outcome = run.arg(example("hello")).finish().expect(1);
    assert!(!outcome.report().message().is_empty(), "{outcome}");
}

/// Nobody makes a call while rank 2 dies: if the alarm were not raised, the others would compute for ever.
#[test]
fn ranks_that_compute_hear_of_a_failure() {
    let run = Run::ftrun("-n 4 --kill 2@at=computing:1").arg(example("busy"));
    let outcome = run.finish().expect(0);
    for rank in [0, 1, 3] {
        let line = format!("rank {rank} was computing, 1 told and [2] lost");
        assert!(outcome.stdout.contains(&line), "{outcome}");
    }
}
