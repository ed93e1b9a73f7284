//! Small messages and small collectives without a pause, while random ranks are killed: each gets what it has to. `FT_KILLS=500` makes it a soak, which
//! has to be built with `--release`.

use crate::common::{Run, example};
use crate::random_kills::number;

/// Ranks that were lost, and the digest of a run with these options, which was right.
fn dense(options: &str, steps: u64) -> (u64, String) {
    let run = Run::ftrun(&format!("-n 4 --json --every 5 {options}")).arg(example("dense"));
    let outcome = run.arg("--steps").arg(steps.to_string()).limit(3600).finish().expect(0);
    let line = outcome.stderr.lines().find(|line| line.ends_with(": right"));
    let line = line.unwrap_or_else(|| panic!("no account: {outcome}"));
    let lost = outcome.report().failures().iter().map(|(ranks, _)| ranks.len() as u64).sum();
    (lost, line.split("digest ").nth(1).unwrap().to_owned())
}

#[test]
fn what_is_small_comes_to_whom_it_is_for_whoever_is_killed() {
    let steps = 300;
    let (_, expected) = dense("", steps);
    let (kills, mut lost) = (number("FT_KILLS").unwrap_or(15), 0);
    let schemes = ["rs:2+2", "neighbor", "xor --spares 1"];
    for run in 0.. {
        if lost >= kills {
            break;
        }
        let options = format!("--scheme {} --mtbf 0.05 --max-restarts 100000 --seed {run}", schemes[run % 3]);
        let (more, digest) = dense(&options, steps);
        assert_eq!(digest, expected, "{options}");
        lost += more;
        println!("{lost} of {kills} kills");
    }
    assert_ne!(dense("", steps + 1).1, expected);
}
