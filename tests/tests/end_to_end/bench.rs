//! `ftrun bench recovery` with the smallest order that has everything in it, and `load`, the program that it runs.

use std::path::Path;
use std::time::Instant;

use serde_json::Value;

use crate::common::{Outcome, Run};

/// A table of comma-separated values whose cells have no commas.
struct Csv {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Csv {
    fn read(file: &Path) -> Self {
        let text = std::fs::read_to_string(file).unwrap();
        assert!(
            text.ends_with('\n') && !text.contains("NaN") && !text.contains("inf") && !text.contains(",-"),
            "{text}"
        );
        let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
        let header = lines.next().unwrap();
        let rows: Vec<Vec<String>> = lines.collect();
        assert!(rows.iter().all(|row| row.len() == header.len()), "{text}");
        Self { header, rows }
    }

    fn text<'a>(&self, row: &'a [String], column: &str) -> &'a str {
        &row[self.header.iter().position(|name| name == column).unwrap_or_else(|| panic!("no {column}"))]
    }

    fn number(&self, row: &[String], column: &str) -> f64 {
        self.text(row, column).parse().unwrap_or_else(|error| panic!("{column}: {error}: {row:?}"))
    }

    fn sum(&self, row: &[String], columns: &[&str]) -> f64 {
        columns.iter().map(|column| self.number(row, column)).sum()
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "an independent stopwatch is what this test is about")]
fn the_smallest_order() {
    let folder = tempfile::tempdir().unwrap();
    let (csv, html) = (folder.path().join("a.csv"), folder.path().join("a.html"));
    let started = Instant::now();
    let run =
        Run::ftrun("bench recovery --ranks 2 --state 64KiB --schemes neighbor,disk --repeat 1 --json --csv");
    // It says nothing before its jobs have ended.
    let outcome = run.arg(&csv).arg("--html").arg(&html).limit(120).finish().expect(0);
    let all_s = started.elapsed().as_secs_f64();

    check_csv(&Csv::read(&csv), all_s);
    check_page(&std::fs::read_to_string(&html).unwrap());
    assert_eq!(outcome.stderr, "", "silent in a pipe");
    let results: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(results["measurements"].as_array().unwrap().len(), 7);
    assert_eq!(results["summaries"].as_array().unwrap().len(), 3);
    let fresh = Path::new(results["disks"][0]["folder"].as_str().unwrap());
    assert!(fresh.is_absolute() && !fresh.exists(), "{}", fresh.display());
}

/// All rows are there, and nothing takes longer than what it is part of, by the stopwatch of this test.
fn check_csv(csv: &Csv, all_s: f64) {
    let mut kinds: Vec<String> =
        csv.rows.iter().map(|row| format!("{} {}", csv.text(row, "kind"), csv.text(row, "scheme"))).collect();
    kinds.sort();
    let expected = [
        "kill disk",
        "kill neighbor",
        "plain disk",
        "plain neighbor",
        "plain none",
        "random disk",
        "random neighbor",
    ];
    assert_eq!(kinds, expected);
    let walls_s: f64 = csv.rows.iter().map(|row| csv.number(row, "wall_s")).sum();
    assert!(walls_s <= all_s, "{walls_s} s in runs, {all_s} s in all");
    for row in &csv.rows {
        let number = |column| csv.number(row, column);
        assert!(number("elapsed_s") <= number("wall_s"), "{row:?}");
        assert!(number("loop_s") <= number("elapsed_s"), "{row:?}");
        let work_s = number("step_s") * number("steps");
        assert!(work_s >= 0.01 * number("steps"), "{row:?}");
        let checkpoints_s = csv.sum(row, &["copy_s", "encode_s", "exchange_s", "commit_s"]);
        // The phases are those of the slowest rank each, and go on while the program is between two calls.
        assert!(checkpoints_s >= 0.99 * number("checkpoint_s"), "{row:?}");
        assert!(checkpoints_s < 2.0 * number("wall_s"), "{row:?}");
        assert!(number("checkpoint_s") < number("wall_s"), "{row:?}");
        let recovery_s = csv.sum(row, &["detect_s", "repair_s", "restore_s"]);
        assert!(recovery_s < number("wall_s"), "{row:?}");
        match csv.text(row, "kind") {
            "kill" => {
                assert_eq!((number("failures"), csv.text(row, "victim")), (1.0, "0"), "{row:?}");
                assert!(recovery_s > 0.0 && number("steps_lost") <= 5.0, "{row:?}");
            }
            "plain" => {
                assert_eq!((number("failures"), recovery_s), (0.0, 0.0), "{row:?}");
                let taken = if csv.text(row, "scheme") == "none" { 1.0 } else { 8.0 };
                assert_eq!(number("checkpoints"), taken, "{row:?}");
            }
            _ => assert!(number("mtbf_s") > 0.0 && number("every") > 0.0, "{row:?}"),
        }
    }
}

/// Tags are closed in the order in which they are opened, and nothing is loaded.
fn check_page(page: &str) {
    assert!(page.contains("<h2>Too few repetitions to tell memory from disk</h2>"), "{page}");
    assert!(page.starts_with("<!DOCTYPE html>") && page.matches("<svg").count() >= 5, "{page}");
    for word in ["NaN", "href=", "src=", "url(http", "@import", "<script"] {
        assert!(!page.contains(word), "{word}");
    }
    let mut open: Vec<&str> = Vec::new();
    for tag in page.split('<').skip(2).map(|tag| tag.split('>').next().unwrap()) {
        let name = tag.trim_start_matches('/').split([' ', '\n']).next().unwrap();
        match tag {
            _ if name == "meta" || tag.ends_with('/') => {}
            _ if tag.starts_with('/') => assert_eq!(open.pop(), Some(name), "{tag}"),
            _ => open.push(name),
        }
    }
    assert_eq!(open, [""; 0]);
    for part in [
        "x\u{a0}none",
        "kill\u{a0}to resumed",
        "MTBF 1\u{a0}h",
        "Only 1 of at least 3 repetitions",
        "Filesystem of disk",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn a_job_that_fails_is_said_in_one_line() {
    // No folder can be made below a file.
    let file = tempfile::NamedTempFile::new().unwrap();
    let scheme = format!("disk:{}", file.path().join("below").display());
    let run = Run::ftrun("bench recovery --ranks 2 --state 64KiB --repeat 1 --schemes").arg(&scheme);
    let outcome = run.finish().expect(1);
    assert_eq!(outcome.stdout, "", "{outcome}");
    assert_eq!(outcome.stderr.lines().count(), 1, "{outcome}");
    for part in ["ftrun: '", "--scheme disk:", "load --state 65536", "ended with status", "below"] {
        assert!(outcome.stderr.contains(part), "{part}: {outcome}");
    }
}

fn load(options: &str) -> Outcome {
    Run::ftrun(&format!("-n 4 --json {options} load --state 64KiB --steps 30 --step-ms 1")).finish().expect(0)
}

#[test]
fn load_survives_with_the_same_answer() {
    let undisturbed = load("").report();
    for kill in [
        "--kill 2@step=15",
        "--kill 0@step=15",
        "--kill 3@step=30",
        "--kill 1@init",
        "--kill 2@checkpoint=3/exchange",
        "--scheme rs:2+2 --kill 0,1@step=25",
        "--scheme neighbor --every 1 --kill 0@step=2 --kill 1@step=20",
    ] {
        let outcome = load(kill);
        let report = outcome.report();
        assert_eq!(report.answer(), undisturbed.answer(), "{outcome}");
        assert_eq!(report.unfired(), [""; 0], "{outcome}");
        assert_eq!(report.0["result"]["wrong_words"], 0, "{outcome}");
    }
    let result = &undisturbed.0["result"];
    assert_eq!((&result["state_bytes"], &result["steps"]), (&Value::from(64 << 10), &Value::from(30)));
    assert!(result["vm_hwm_bytes"].as_u64().unwrap() > 64 << 10);
    assert!(result["seconds"].as_f64().unwrap() >= 0.03, "{result}");
}
