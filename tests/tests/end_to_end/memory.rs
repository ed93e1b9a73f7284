//! Memory in use at most beside what the documentation of `ParityGroup::kept_bytes` says.

use crate::common::{Run, example};

#[test]
#[ignore = "slow: .ci/run runs it"]
fn of_every_scheme_is_that_of_the_formula() {
    for options in
        ["neighbor", "neighbor:2", "xor", "rs:2+2", "rs:3+1 --parity-ranks 1", "xor:3 --parity-ranks 1"]
    {
        let ranks = if options.contains("--parity-ranks") { 3 } else { 4 };
        let run = Run::ftrun(&format!("-n {ranks} --transport tcp --scheme {options}"))
            .arg(example("memory"))
            .arg("112");
        let outcome = run.limit(60).finish().expect(0);
        let mut seen = 0;
        for line in outcome.stdout.lines() {
            let mut numbers =
                line.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse::<f64>().ok());
            let (Some(_), Some(used), Some(due)) = (numbers.next(), numbers.next(), numbers.next()) else {
                panic!("{outcome}")
            };
            assert!((used / due - 1.0).abs() <= 0.05, "{options}: {line}");
            seen += 1;
        }
        assert_eq!(seen, 4, "{outcome}");
    }
}

#[test]
fn more_than_is_allowed_is_refused_before_it_is_taken() {
    // Two copies of 8 MiB, and what the scheme adds: a third of that for the parity of three others.
    for (options, limit, status) in [
        ("--scheme xor", "22MiB", 0),
        ("--scheme xor", "21MiB", 2),
        ("--scheme xor --checkpoints asynchronous", "21MiB", 2),
        // Not even the copies.
        ("--scheme neighbor", "15MiB", 2),
        // A parity rank holds as much as a rank that computes, in all.
        ("--scheme xor --parity-ranks 1", "17MiB", 0),
        ("--scheme rs:4+2 --parity-ranks 2", "15MiB", 2),
        // One copy alone.
        ("--scheme xor --memory least", "14MiB", 0),
        ("--scheme xor --memory least", "13MiB", 2),
        ("--scheme rs:4+2 --parity-ranks 2 --memory least", "17MiB", 0),
        ("--scheme neighbor --memory least", "7MiB", 2),
        // A quarter of the state for what has changed.
        ("--scheme rs:4+2 --parity-ranks 2 --incremental", "17MiB", 2),
        ("--scheme rs:4+2 --parity-ranks 2 --incremental", "19MiB", 0),
    ] {
        let program = "load --state 8MiB --steps 5 --step-ms 0";
        let run = Run::ftrun(&format!("-n 4 {options} --checkpoint-memory {limit} {program}"));
        let outcome = run.finish().expect(status);
        if status == 2 {
            assert!(outcome.stderr.contains("--checkpoint-memory"), "{outcome}");
            let words = outcome.stderr.split(' ');
            let bytes: Vec<u64> = words.filter_map(|word| word.trim_end_matches(':').parse().ok()).collect();
            let allowed = limit.trim_end_matches("MiB").parse::<u64>().unwrap() << 20;
            assert!(bytes.contains(&allowed) && bytes.iter().any(|taken| *taken > allowed), "{outcome}");
        }
    }
}
