//! `--incremental`: checkpoints of which what has changed is sent alone hold what whole ones hold. `FT_RUNS=100` makes a soak of the
//! random kills.

use tempfile::tempdir;

use crate::common::{Outcome, Run};

/// Some 8 of 70 pages of a state change between two checkpoints.
const SCATTERED: &str = "load --state 283KiB --slice 9KiB --scattered --steps 60 --step-ms 1";

/// A run of four ranks that goes well.
pub(crate) fn run(options: &str, job: &str) -> Outcome {
    Run::ftrun(&format!("-n 4 --json {options} {job}")).limit(60).finish().expect(0)
}

/// The answer of `load`, which is right.
pub(crate) fn answer(outcome: &Outcome) -> String {
    assert_eq!(outcome.report().0["result"]["wrong_words"], 0, "{outcome}");
    outcome.report().answer().to_owned()
}

fn increments(outcome: &Outcome) -> u64 {
    outcome.report().0["checkpoints"]["increments"].as_u64().unwrap()
}

const SCHEMES: [&str; 8] = [
    "neighbor",
    "neighbor:2",
    "xor",
    "xor:2",
    "rs:2+2",
    "xor --parity-ranks 1",
    "rs:4+2 --parity-ranks 2",
    "xor --checkpoints asynchronous --scrub",
];

#[test]
fn what_is_restored_is_what_whole_checkpoints_hold() {
    let due = answer(&run("", SCATTERED));
    let whole = run("--scheme xor --every 2", SCATTERED).report().0["checkpoints"]["bytes_sent"].as_u64();
    for scheme in SCHEMES {
        for kills in
            ["", "--kill 1@step=15 --kill 2@step=41", "--kill 3@checkpoint=9/exchange --kill 0@step=40"]
        {
            for more in ["", "--keep-memory"] {
                let outcome =
                    run(&format!("--scheme {scheme} --every 2 --incremental {kills} {more}"), SCATTERED);
                assert_eq!(answer(&outcome), due, "{outcome}");
                assert!(increments(&outcome) >= 10, "{outcome}");
            }
        }
    }
    let sent = run("--scheme xor --every 2 --incremental", SCATTERED).report().0["checkpoints"]["bytes_sent"]
        .as_u64();
    assert!(3 * sent.unwrap() < whole.unwrap(), "{sent:?} of {whole:?} bytes");
}

/// Nothing is sent alone of a state that changes wholly. A copy that is being written to files is not overwritten.
#[test]
fn what_cannot_be_renewed_is_sent_as_a_whole() {
    let job = "load --state 300KiB --steps 40 --step-ms 1";
    let outcome = run("--scheme rs:2+2 --every 2 --incremental --kill 1,2@step=21", job);
    assert_eq!((answer(&outcome), increments(&outcome)), (answer(&run("", job)), 0), "{outcome}");
    let dir = tempdir().unwrap();
    let spill = format!(
        "--scheme xor --every 2 --incremental --spill-every 1 --kill 1@step=31 --spill {}",
        dir.path().display()
    );
    let outcome = run(&spill, SCATTERED);
    assert_eq!(answer(&outcome), answer(&run("", SCATTERED)), "{outcome}");
}

#[test]
fn random_kills_lose_nothing() {
    let runs = std::env::var("FT_RUNS").map_or(2, |text| text.parse().unwrap());
    let due = answer(&run("", SCATTERED));
    for seed in 0..runs {
        let scheme = SCHEMES[seed % SCHEMES.len()];
        let options = format!(
            "--scheme {scheme} --every 2 --incremental --mtbf 0.1 --max-restarts 100000 --seed {seed}"
        );
        let outcome = run(&options, &SCATTERED.replace("--step-ms 1", "--step-ms 10"));
        assert_eq!(answer(&outcome), due, "{outcome}");
    }
}

#[test]
fn it_is_for_checkpoints_in_memory() {
    for scheme in ["none", "disk:x"] {
        let run = Run::ftrun(&format!("-n 2 --incremental --scheme {scheme} {SCATTERED}"));
        let outcome = run.finish().expect(2);
        assert!(outcome.stderr.contains("--incremental is for checkpoints in the memory"), "{outcome}");
    }
}
