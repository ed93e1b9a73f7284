//! The table of scenarios on real processes, with real SIGKILLs: cells spread over all rows, columns and repair modes. The
//! simulator (`simulation/scenarios.rs`) has all cells, many times.

use std::fmt::Write as _;

use crate::common::{PATIENT, Run, example};

/// As in the simulator.
const ROWS: [&str; 26] = [
    "idle",
    "send",
    "isend",
    "ssend",
    "bsend",
    "rendezvous",
    "sendrecv",
    "any-source",
    "any-source-posted",
    "probe",
    "mprobe",
    "exchange",
    "plan",
    "barrier",
    "ibarrier",
    "dup",
    "split",
    "create",
    "agree",
    "bcast",
    "reduce",
    "allreduce",
    "gather",
    "iallgather",
    "ialltoall",
    "iscan",
];

/// Whom death strikes, of five.
const COLUMNS: [(&str, &str); 6] = [
    ("one", "--kill 1@step=3"),
    ("rank 0", "--kill 0@step=3"),
    ("the highest", "--kill 4@step=3"),
    ("two at once", "--kill 1,3@step=3"),
    ("second in the repair", "--kill 1@step=3 --kill 3@repair=1/agree"),
    ("the replacement", "--kill 1@step=3 --kill 1@repair=1/agree"),
];

const MODES: [(&str, &str); 4] = [
    ("rebuild", "--on-failure rebuild"),
    ("shrink", "--on-failure shrink"),
    ("blank", "--on-failure blank"),
    ("continue", "--on-failure shrink"),
];

/// How many ranks are there at the end.
fn left(mode: &str, column: &str) -> usize {
    match (mode, column) {
        ("rebuild", _) => 5,
        (_, "two at once" | "second in the repair") => 3,
        _ => 4,
    }
}

/// Two columns of each row and mode, so that all are seen together with all.
#[test]
fn of_calls_end_well_wherever_death_strikes() {
    let mut table = String::from("| where | mode | who | processes at the end |\n|---|---|---|---|\n");
    let mut cells = 0;
    for (at, row) in ROWS.iter().enumerate() {
        for (nth, (mode, option)) in MODES.iter().enumerate() {
            for (column, kills) in [COLUMNS[(at + nth) % 6], COLUMNS[(at + nth + 3) % 6]] {
                let there = match (*mode, column) {
                    ("rebuild", _) => true,
                    ("continue", "second in the repair") | (_, "the replacement") => false, // nobody repairs, nobody comes
                    _ => true,
                };
                if !there {
                    continue;
                }
                let run = Run::ftrun(&format!("-n 5 {PATIENT} {option} {kills}")).arg(example("scenario"));
                let outcome = run.arg(*row).arg(*mode).limit(60).finish().expect(0);
                let done = outcome.stdout.matches("has done 6 steps").count();
                assert_eq!(done, left(mode, column), "{row}, {mode}, {column}: {outcome}");
                assert!(!outcome.stderr.contains("never fired"), "{row}, {mode}, {column}: {outcome}");
                let _ = writeln!(table, "| {row} | {mode} | {column} | {done} |");
                cells += 1;
            }
        }
    }
    if let Some(file) = std::env::var_os("FT_TABLE_REAL") {
        let head = format!(
            "# Scenarios on real processes\n\n{cells} cells, each a job of five ranks and real SIGKILLs.\n\n"
        );
        std::fs::write(file, head + &table).expect("the table is written");
    }
    assert!(cells >= 150, "{cells} cells");
}
