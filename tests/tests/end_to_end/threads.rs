//! Threads in a rank: how many there are, that no answer depends on it, also when a rank is killed, and what is refused.

use std::fs;
use std::path::Path;

use tempfile::tempdir;

use crate::common::{Outcome, Run};

/// The result of an app, with what may differ left out.
fn result(options: &str, app: &str, names: &[&str]) -> Vec<String> {
    let outcome = Run::ftrun(&format!("--json {options} {app}")).limit(120).finish().expect(0);
    let report = outcome.report();
    assert_eq!(report.unfired(), [""; 0], "{outcome}");
    names.iter().map(|name| report.0["result"][name].to_string()).collect()
}

#[test]
fn solves_have_the_same_bits_on_any_number_of_threads() {
    for app in [
        "cg --poisson 28 --precond jacobi",
        "solve --poisson 26 --solver gmres --precond amg",
        "solve --poisson2d 150 --solver bicgstab --precond bjacobi:ilu0",
    ] {
        let names = ["answer_hash", "iterations", "history"];
        let due = result("-n 1 --threads 1", app, &names);
        for options in ["-n 1 --threads 3", "-n 3 --threads 2 --every 3 --kill 1@step=5"] {
            assert_eq!(result(options, app, &names), due, "{options} {app}");
        }
    }
}

fn gathers(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn shots_have_the_same_bits_on_any_number_of_threads() {
    let survey = |options: &str| {
        let folder = tempdir().unwrap();
        let out = folder.path().join("out");
        let app = "seismic --synthetic layers --shape 161x121 --time 0.2 --shots 3 --freq 12 --out";
        Run::ftrun(&format!("{options} {app}")).arg(&out).limit(120).finish().expect(0);
        gathers(&out)
    };
    let due = survey("-n 1 --threads 1");
    assert!(due.len() >= 3);
    assert!(survey("-n 1 --threads 3") == due);
    assert!(survey("-n 2 --threads 2 --kill 1@step=1") == due);
}

/// What the ranks find in their environment.
fn told(run: Run) -> (Vec<String>, Outcome) {
    let outcome = run.arg("printenv").arg("FT_THREADS").finish().expect(0);
    (outcome.stdout.lines().map(str::to_owned).collect(), outcome)
}

#[test]
fn ranks_are_told_how_many_threads_they_have() {
    let cores = std::thread::available_parallelism().unwrap().get();
    assert_eq!(told(Run::ftrun("-n 1")).0, [cores.to_string()]);
    assert_eq!(told(Run::ftrun("-n 2")).0, vec![(cores / 2).max(1).to_string(); 2]);
    let many = format!("-n {}", 2 * cores);
    assert_eq!(told(Run::ftrun(&many)).0, vec!["1"; 2 * cores]);
    assert_eq!(told(Run::ftrun("-n 2 --threads 3")).0, ["3"; 2]);
    assert_eq!(told(Run::ftrun("-n 1").variable("FT_THREADS", "5")).0, ["5"]);
    assert_eq!(told(Run::ftrun("-n 1 --threads 3").variable("FT_THREADS", "5")).0, ["3"]);
    assert_eq!(told(Run::ftrun("-n 1 -x FT_THREADS=7")).0, ["7"]);
}

#[test]
fn numbers_of_threads_that_make_no_sense_are_refused() {
    for (run, said) in [
        (Run::ftrun("--threads 0 pi"), "must be at least 1"),
        (Run::ftrun("--threads 2000 pi"), "must be at most 1024"),
        (Run::ftrun("pi").variable("FT_THREADS", "two"), "FT_THREADS: 'two' is no number of threads"),
        (Run::ftrun("-x FT_THREADS=0 pi"), "FT_THREADS: '0' is no number of threads"),
    ] {
        let outcome = run.finish().expect(2);
        assert!(outcome.stderr.contains(said), "{outcome}");
    }
}
