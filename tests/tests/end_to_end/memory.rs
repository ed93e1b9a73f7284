//! Memory in use at most beside what the documentation of `Group::kept_bytes` says.

use crate::common::{Run, example};

#[test]
fn of_every_scheme_is_that_of_the_formula() {
    for options in ["neighbor", "xor", "rs:2+2", "rs:3+1 --parity-ranks 1", "xor:3 --parity-ranks 1"] {
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
