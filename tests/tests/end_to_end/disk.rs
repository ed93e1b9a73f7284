//! Checkpoints on a disk: kills at every moment, all ranks at once too; nothing is left after a good end, and what
//! cannot be written is said.

use std::path::Path;

use tempfile::{TempDir, tempdir};

use crate::common::{POISSON, Report, Run, built, poisson_answer};

/// Per failure its ranks and the numbers of steps that may have been lost, as in the other tables of kills.
type Expected = &'static [(&'static [u64], &'static [u64])];

const STEP_40: &[u64] = &[8, 9];
/// Replacements do not know how far those before them had come.
const UNKNOWN: &[u64] = &[0];
const CHECKPOINT_3: &[u64] = &[9, 10];
const AFTER_CHECKPOINT_3: &[u64] = &[0, 9, 10];
const ALL: &[u64] = &[0, 1, 2, 3];

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    entries.map(|name| name.to_string_lossy().into_owned()).collect()
}

/// `ftrun` with four ranks and this directory.
fn on(dir: &TempDir, options: &str) -> Run {
    let run = Run::ftrun(&format!("-n 4 {options} --scheme"));
    run.arg(format!("disk:{}", dir.path().display()))
}

fn with_poisson(run: Run) -> Run {
    POISSON.split_whitespace().fold(run, Run::arg)
}

fn check(kills: &str, expected: Expected) {
    let dir = tempdir().unwrap();
    let outcome = with_poisson(on(&dir, &format!("--json {kills}"))).finish().expect(0);
    let report = outcome.report();
    assert_eq!(report.answer(), poisson_answer().answer(), "{outcome}");
    assert_eq!(report.iterations(), poisson_answer().iterations(), "{outcome}");
    assert_eq!(report.unfired(), [""; 0], "{outcome}");
    let failures = report.failures();
    assert_eq!(failures.len(), expected.len(), "{outcome}");
    for ((ranks, lost), (expected_ranks, allowed)) in failures.iter().zip(expected) {
        assert_eq!(ranks, expected_ranks, "{outcome}");
        assert!(allowed.contains(lost), "{lost} steps lost, {allowed:?} expected: {outcome}");
    }
    assert_eq!(report.0["scheme"], format!("disk:{}", dir.path().display()), "{outcome}");
    assert_eq!(report.0["checkpoints"]["committed"], 5, "{outcome}");
    assert_eq!(names(dir.path()), [""; 0], "left behind: {outcome}");
}

#[test]
fn nothing_happens() {
    check("", &[]);
}

#[test]
fn kills_in_a_step() {
    check("--kill 2@step=40", &[(&[2], STEP_40)]);
    check("--kill 0@step=40", &[(&[0], STEP_40)]);
    check("--kill 1,3@step=40", &[(&[1, 3], STEP_40)]);
    check("--kill 0,1,2@step=40", &[(&[0, 1, 2], STEP_40)]);
    check("--kill 2@init", &[(&[2], &[0])]);
    check("--kill 0,2@step=15 --kill 0,1@step=35", &[(&[0, 2], &[3, 4]), (&[0, 1], &[3, 4])]);
}

#[test]
fn kills_of_all_ranks_at_once() {
    check("--kill 0,1,2,3@step=40", &[(ALL, UNKNOWN)]);
    check("--kill 0,1,2,3@init", &[(ALL, UNKNOWN)]);
    check("--kill 0,1,2,3@step=15 --kill 0,1,2,3@step=35", &[(ALL, UNKNOWN), (ALL, UNKNOWN)]);
    // While the first to be replaced are reading, all die again.
    check("--kill 0,1,2,3@step=40 --kill 0,1,2,3@restore=1/exchange", &[(ALL, UNKNOWN), (ALL, UNKNOWN)]);
    check("--kill 0,1,2,3@step=40 --kill 0@restore=1/verify", &[(ALL, UNKNOWN), (&[0], UNKNOWN)]);
}

/// The work since the last checkpoint is done again, not that since the start.
#[test]
fn after_the_loss_of_all_the_job_goes_on_from_the_disk() {
    let dir = tempdir().unwrap();
    let outcome = with_poisson(on(&dir, "--json --kill 0,1,2,3@step=40")).finish().expect(0);
    // Had they begun anew, the constant part would be there twice, and checkpoints 1 to 4.
    let bytes = |report: &Report| report.0["checkpoints"]["bytes_protected"].as_u64().unwrap();
    let (these, undisturbed) = (bytes(&outcome.report()), bytes(poisson_answer()));
    assert!(these <= undisturbed && these > undisturbed / 2, "{these}, {undisturbed}: {outcome}");
}

#[test]
fn kills_in_every_phase_of_the_first_checkpoint() {
    for phase in ["copy", "encode", "exchange", "vote", "commit"] {
        for ranks in ["0", "1"] {
            let expected: Expected = if ranks == "0" { &[(&[0], &[0])] } else { &[(&[1], &[0])] };
            check(&format!("--kill {ranks}@checkpoint=1/{phase}"), expected);
        }
    }
    check("--kill 0,1,2,3@checkpoint=1/vote", &[(ALL, UNKNOWN)]);
    check("--kill 0,1,2,3@checkpoint=1/commit", &[(ALL, UNKNOWN)]);
}

#[test]
fn kills_in_every_phase_of_a_later_checkpoint() {
    for phase in ["copy", "encode", "exchange", "vote"] {
        check(&format!("--kill 1@checkpoint=3/{phase}"), &[(&[1], CHECKPOINT_3)]);
        check(&format!("--kill 0@checkpoint=3/{phase}"), &[(&[0], CHECKPOINT_3)]);
        check(&format!("--kill 0,1,2,3@checkpoint=3/{phase}"), &[(ALL, UNKNOWN)]);
    }
    check("--kill 1@checkpoint=3/commit", &[(&[1], AFTER_CHECKPOINT_3)]);
    check("--kill 0,1,2,3@checkpoint=3/commit", &[(ALL, UNKNOWN)]);
    // Rank 0 has written the manifest of checkpoint 3 and told nobody: all go back to checkpoint 2, and its
    // replacement reads that from the disk.
    check("--kill 0@checkpoint=3/commit", &[(&[0], CHECKPOINT_3)]);
    // The same, and all die before the next attempt is through.
    let twice = "--kill 0@checkpoint=3/commit --kill 0,1,2,3@restore=1/plan";
    check(twice, &[(&[0], UNKNOWN_OR_CHECKPOINT_3), (ALL, UNKNOWN)]);
}

const UNKNOWN_OR_CHECKPOINT_3: &[u64] = &[0, 9, 10];

#[test]
#[ignore = "slow: .ci/run runs it"]
fn kills_during_a_repair() {
    for phase in ["repair=1/agree", "repair=1/reconnect", "restore=1/plan", "restore=1/exchange"] {
        for rank in [0, 1] {
            let dir = tempdir().unwrap();
            let run = on(&dir, &format!("--json --kill 2@step=40 --kill {rank}@{phase}"));
            let outcome = with_poisson(run).finish().expect(0);
            assert_eq!(outcome.report().answer(), poisson_answer().answer(), "{outcome}");
            assert_eq!(outcome.report().unfired(), [""; 0], "{outcome}");
            assert_eq!(names(dir.path()), [""; 0], "left behind: {outcome}");
        }
    }
    check("--kill 2@step=40 --kill 2@restore=1/exchange", &[(&[2], STEP_40), (&[2], STEP_40)]);
    check("--kill 2@step=40 --kill 0,1,2,3@restore=1/verify", &[(&[2], UNKNOWN_OR_STEP_40), (ALL, UNKNOWN)]);
}

const UNKNOWN_OR_STEP_40: &[u64] = &[0, 8, 9];

#[test]
fn one_rank_is_enough() {
    let dir = tempdir().unwrap();
    let scheme = format!("disk:{}", dir.path().display());
    let run = Run::ftrun("-n 1 --json --kill 0@step=40 --scheme").arg(scheme);
    let outcome = with_poisson(run).finish().expect(0);
    assert_eq!(outcome.report().answer(), poisson_answer().answer(), "{outcome}");
    assert_eq!(names(dir.path()), [""; 0], "left behind: {outcome}");
}

#[test]
fn the_report_for_people_says_where_the_data_came_from() {
    let dir = tempdir().unwrap();
    let outcome = with_poisson(on(&dir, "--kill 2@step=40")).finish().expect(0);
    assert!(outcome.stdout.contains("read back from disk in "), "{outcome}");
    assert!(!outcome.stdout.contains("in memory"), "{outcome}");
}

#[test]
fn a_relative_directory_is_that_of_the_launcher() {
    let dir = tempdir().unwrap();
    let script = format!("cd {} && exec {} ", dir.path().display(), built().join("ftrun").display());
    let arguments = format!("-n 2 --json --scheme disk:here {POISSON} --max-iter 3");
    let outcome = Run::program(Path::new("/bin/sh"), "-c").arg(script + &arguments).finish().expect(1);
    let scheme = format!("disk:{}", dir.path().join("here").display());
    assert_eq!(outcome.report().0["scheme"], scheme, "{outcome}");
    assert_eq!(names(dir.path()), ["here"]);
}

#[test]
fn a_directory_that_cannot_be_used_ends_the_job_before_the_work() {
    let dir = tempdir().unwrap();
    std::fs::write(dir.path().join("file"), "").unwrap();
    for (name, cause) in [("file", "File exists"), ("file/x", "Not a directory"), ("no/x", "No such file")] {
        let bad = dir.path().join(name);
        let run = Run::ftrun("-n 4 --scheme").arg(format!("disk:{}", bad.display()));
        let outcome = with_poisson(run).finish().expect(2);
        let line = format!("ftrun: cannot keep checkpoints in {}: {cause}", bad.display());
        assert!(outcome.stderr.starts_with(&line) && outcome.stderr.lines().count() == 1, "{outcome}");
        assert_eq!(outcome.stdout, "", "{outcome}");
    }
    for (scheme, part) in [("disk", "disk:DIR"), ("disk:", "disk:DIR")] {
        let run = Run::ftrun(&format!("-n 4 --scheme {scheme} {POISSON}"));
        let outcome = run.finish().expect(2);
        assert!(outcome.stderr.contains(part) && outcome.stderr.lines().count() == 1, "{outcome}");
    }
    let outcome = with_poisson(on(&dir, "--parity-ranks 1")).finish().expect(2);
    assert!(outcome.stderr.contains("goes with 0 parity ranks"), "{outcome}");
}

/// A shell that limits the size of files to 1 KiB and becomes `ftrun`.
fn ftrun_with_small_files(arguments: &str) -> Run {
    let run = Run::program(Path::new("/bin/bash"), "-c").arg("ulimit -f 1 && exec \"$@\"").arg("bash");
    arguments.split_whitespace().fold(run.arg(built().join("ftrun")), Run::arg)
}

const FILE_SIZE: &str = "limits here: file size 1024 bytes (ulimit -f)";

/// The limit stands for a disk that is full, too.
#[test]
fn file_size_limit_ends_a_job_that_has_its_checkpoints_on_disk_only() {
    let dir = tempdir().unwrap();
    let run = ftrun_with_small_files(&format!("-n 4 --scheme disk:{} {POISSON}", dir.path().display()));
    let outcome = run.finish().expect(1);
    assert!(outcome.stderr.starts_with("ftrun: cannot write "), "{outcome}");
    assert!(outcome.stderr.contains("File too large") && outcome.stderr.contains(FILE_SIZE), "{outcome}");
    assert_eq!(outcome.stderr.lines().count(), 1, "{outcome}");
    assert_eq!(names(dir.path()).len(), 1, "the files of a job that fails stay: {outcome}");
}

#[test]
fn file_size_limit_costs_a_job_its_spilled_checkpoints_only() {
    let dir = tempdir().unwrap();
    let spill = format!("--json --every 5 --spill {} --spill-every 1", dir.path().display());
    for options in ["", "--keep-memory", "--kill 2@step=20"] {
        let outcome = ftrun_with_small_files(&format!("-n 4 {options} {spill} {POISSON}")).finish().expect(0);
        assert_eq!(outcome.report().answer(), poisson_answer().answer(), "{outcome}");
        assert!(outcome.stderr.contains("cannot write ") && outcome.stderr.contains(FILE_SIZE), "{outcome}");
        let lost = outcome.report().failures();
        assert_eq!(lost.len(), usize::from(options.contains("kill")), "{outcome}");
    }
}

#[test]
fn file_size_limit_is_named_for_results_that_cannot_be_written() {
    let dir = tempdir().unwrap();
    let out = |name: &str| dir.path().join(name).display().to_string();
    for job in [
        format!("heat --grid 64 --picture {}", out("heat.svg")),
        format!("solve --poisson 12 --residuals {}", out("norms.svg")),
        format!("--timeline {} {POISSON}", out("time.svg")),
        format!("solve --poisson 24 --out {}", out("x.npy")),
        format!("seismic --synthetic layers --shape 101x51 --time 0.1 --shots 2 --out {}", out("gathers")),
    ] {
        let outcome = ftrun_with_small_files(&format!("-n 2 {job}")).finish().expect(1);
        assert!(outcome.stderr.contains(FILE_SIZE) && !outcome.stderr.contains("signal"), "{outcome}");
    }
}

/// The job runs to its end, and its last line tells why its output is not complete.
#[test]
fn log_file_at_the_size_limit_is_named_and_ends_no_job() {
    let dir = tempdir().unwrap();
    let log = std::fs::File::create(dir.path().join("log")).unwrap();
    let script = "yes | head -c 9999; echo >\"$0\"";
    let done = dir.path().join("done");
    let run = ftrun_with_small_files("-n 1 /bin/sh -c").arg(script).arg(&done).stdout_to(log);
    let outcome = run.finish().expect(1);
    assert!(outcome.stderr.starts_with("ftrun: what was printed to standard output is not all there"));
    assert!(outcome.stderr.contains(FILE_SIZE), "{outcome}");
    assert!(done.exists(), "{outcome}");
}
