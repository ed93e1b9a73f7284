//! `solve`: any solver with any preconditioner, under kills, has the answer of one rank without failures; its files.

use std::collections::HashMap;
use std::fs;
use std::hash::{BuildHasher, RandomState};

use serde_json::Value;
use tempfile::tempdir;

use crate::common::{Outcome, Run};

fn result(options: &str, arguments: &str) -> (Value, Outcome) {
    let outcome = Run::ftrun(&format!("--json {options} solve {arguments}")).limit(120).finish().expect(0);
    (outcome.report().0["result"].clone(), outcome)
}

/// What all have to agree on.
fn answer(result: &Value) -> Vec<Value> {
    let names =
        ["answer_hash", "iterations", "relative_residual", "history", "eigenvalues", "rows", "nonzeros"];
    names.map(|name| result[name].clone()).to_vec()
}

/// Preconditioners that are symmetric positive definite.
const SYMMETRIC: &[&str] = &[
    "none",
    "jacobi",
    "ssor:1.2",
    "bjacobi:ic0",
    "bjacobi:ssor=0.9,domains=5",
    "bjacobi:cholesky",
    "asm:ic0,overlap=1",
    "asm:cholesky,overlap=2",
    "chebyshev:3",
    "amg",
];
const ALL: &[&str] = &[
    "none",
    "jacobi",
    "ssor:1.2",
    "bjacobi:ic0",
    "bjacobi:ilu0",
    "bjacobi:ssor=0.9,domains=5",
    "bjacobi:cholesky",
    "bjacobi:lu,domains=3",
    "asm:ic0,overlap=1",
    "asm:cholesky,overlap=2",
    "asm:ilu0,overlap=1,restricted",
    "asm:lu,overlap=2,restricted",
    "chebyshev:3",
    "amg",
];
/// With which a correction is none too long.
const CONTRACTING: &[&str] = &[
    "jacobi",
    "ssor:1.2",
    "bjacobi:ic0",
    "bjacobi:ilu0",
    "bjacobi:ssor=0.9,domains=5",
    "bjacobi:cholesky",
    "bjacobi:lu,domains=3",
    "asm:ilu0,overlap=1,restricted",
    "asm:lu,overlap=2,restricted",
    "chebyshev:3",
    "amg",
];

/// Problems that each solver can do, with the preconditioners that suit it.
const SOLVES: &[(&str, &[&str])] = &[
    ("--poisson 12 --solver cg", SYMMETRIC),
    ("--poisson2d 30 --solver single-reduction-cg", SYMMETRIC),
    ("--poisson2d 30 --solver minres", SYMMETRIC),
    ("--poisson2d 24 --solver bicgstab", ALL),
    ("--poisson2d 24 --solver gmres --restart 20", ALL),
    ("--poisson 8 --solver fgmres", ALL),
    ("--poisson2d 10 --solver richardson", CONTRACTING),
    ("--poisson2d 20 --solver chebyshev", SYMMETRIC),
    ("--poisson2d 16 --solver cgls", &["none"]),
    ("--poisson2d 16 --solver lsqr", &["none"]),
    ("--poisson2d 12 --solver power --tol 1e-3", &["none"]),
    ("--poisson2d 20 --solver lanczos --eigenvalues 2", &["none"]),
    ("--poisson2d 20 --solver lobpcg --eigenvalues 3 --smallest --tol 1e-6", SYMMETRIC),
];

/// Each scheme with how many ranks of four may be lost at once.
const SCHEMES: &[(&str, u64)] = &[("neighbor:1", 1), ("neighbor:2", 2), ("xor", 1), ("rs:2+2", 2)];

/// `FT_SEED=N` repeats the choice, `FT_RUNS=200` makes it a soak.
#[test]
fn solvers_and_preconditioners_with_kills_by_chance() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = number("FT_SEED").unwrap_or_else(|| RandomState::new().hash_one(0) >> 32);
    println!("FT_SEED={seed}");
    let mut state = seed;
    // Knuth, The Art of Computer Programming, volume 2, section 3.3.4, table 1, line 26.
    let mut below = |end: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % end
    };
    let mut calm = HashMap::new();
    for number in 0..number("FT_RUNS").unwrap_or(16) {
        let (problem, preconditioners) = SOLVES[below(SOLVES.len() as u64) as usize];
        let precond = preconditioners[below(preconditioners.len() as u64) as usize];
        let arguments = format!("{problem} --precond {precond}");
        let due = calm.entry(arguments.clone()).or_insert_with(|| answer(&result("-n 1", &arguments).0));
        let steps = due[1].as_u64().unwrap();

        let (scheme, losses) = SCHEMES[below(SCHEMES.len() as u64) as usize];
        let (ranks, every) = (4 + below(2), 1 + below(steps.min(9)));
        let mut options = format!("-n {ranks} --scheme {scheme} --every {every}");
        let first = below(ranks);
        let step = 1 + below(steps);
        for next in 0..=below(losses) {
            options += &format!(" --kill {}@step={step}", (first + next) % ranks);
        }
        let (found, outcome) = result(&options, &arguments);
        assert_eq!(answer(&found), *due, "FT_SEED={seed}, run {number}: {outcome}");
        assert_eq!(outcome.report().unfired(), [""; 0], "FT_SEED={seed}, run {number}: {outcome}");
    }
}

#[test]
fn every_solver_on_every_number_of_ranks() {
    for (problem, preconditioners) in SOLVES {
        let arguments = format!("{problem} --precond {}", preconditioners[0]);
        let due = answer(&result("-n 1", &arguments).0);
        for options in ["-n 3", "-n 4 --every 3 --kill 2@step=4"] {
            let (found, outcome) = result(options, &arguments);
            assert_eq!(answer(&found), due, "{outcome}");
        }
    }
}

/// One job of each number of ranks, each with a kill in the middle, or with two.
#[test]
#[ignore = "five hundred jobs: most of a minute"]
fn every_pair_on_every_number_of_ranks_with_kills() {
    for (problem, preconditioners) in SOLVES {
        for precond in *preconditioners {
            let arguments = format!("{problem} --precond {precond}");
            let due = answer(&result("-n 1", &arguments).0);
            let middle = due[1].as_u64().unwrap().div_ceil(2);
            for options in [
                format!("-n 2 --every 3 --kill 1@step={middle}"),
                format!("-n 3 --every 2 --scheme xor --kill 0@step={middle}"),
                format!("-n 4 --every 3 --scheme rs:2+2 --kill 1,3@step={middle}"),
                format!("-n 7 --every 5 --scheme neighbor:2 --kill 5,6@step={middle}"),
            ] {
                let (found, outcome) = result(&options, &arguments);
                assert_eq!(answer(&found), due, "{outcome}");
                assert_eq!(outcome.report().unfired(), [""; 0], "{outcome}");
            }
        }
    }
}

#[test]
fn numbers_that_are_not_finite_are_refused_by_their_place() {
    let folder = tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let head = "%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n1 1 2\n";
    let good = file("good.mtx", &format!("{head}2 2 2\n3 3 2\n"));
    for bad in ["nan", "inf", "-inf", "1e999"] {
        let matrix = file("bad.mtx", &format!("{head}2 2 {bad}\n3 3 2\n"));
        let vector = file("b.mtx", &format!("%%MatrixMarket matrix array real general\n3 1\n1\n{bad}\n1\n"));
        for (arguments, place) in [
            (format!("--matrix {matrix}"), "bad.mtx, line 4: "),
            (format!("--matrix {good} --rhs {vector}"), "b.mtx, line 4: "),
        ] {
            for solver in ["cg", "gmres", "lsqr", "lobpcg"] {
                let run = Run::ftrun(&format!("-n 2 solve {arguments} --solver {solver}"));
                let outcome = run.finish().expect(2);
                assert!(outcome.stderr.contains(place) && outcome.stderr.contains("finite"), "{outcome}");
            }
        }
    }
}

#[test]
fn duplicate_entries_are_added_and_told_once() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.mtx").display().to_string();
    let entries: String = (1..=40).map(|k| format!("{k} {k} 1\n{k} {k} {}\n", 2 + k % 5)).collect();
    fs::write(&path, format!("%%MatrixMarket matrix coordinate real general\n40 40 80\n{entries}")).unwrap();
    let (undisturbed, _) = result("-n 1", &format!("--matrix {path}"));
    assert_eq!((&undisturbed["rows"], &undisturbed["nonzeros"]), (&40.into(), &40.into()));
    let (struck, outcome) = result("-n 3 --every 1 --kill 1@step=2", &format!("--matrix {path}"));
    assert_eq!(answer(&struck), answer(&undisturbed));
    let told = outcome.stderr.matches("duplicate entries added: 40 ").count();
    assert_eq!(told, 1, "{outcome}");

    let refused = Run::ftrun(&format!("-n 2 solve --matrix {path} --duplicates refuse")).finish().expect(2);
    let why = "a.mtx, line 4: entry (1,1) was given before, on line 3";
    assert!(refused.stderr.contains(why), "{refused}");
    let unneeded = Run::ftrun("-n 2 solve --poisson 8 --duplicates refuse").finish().expect(2);
    assert!(unneeded.stderr.contains("--poisson"), "{unneeded}");
}

#[test]
fn fewer_ranks_go_on() {
    let arguments = "--poisson2d 24 --solver gmres --precond bjacobi:ilu0";
    let due = answer(&result("-n 1", arguments).0);
    let (found, outcome) = result("-n 4 --on-failure shrink --every 3 --kill 1@step=8", arguments);
    assert_eq!(answer(&found), due, "{outcome}");
}

#[test]
fn what_a_report_has() {
    let (found, _) = result("-n 3", "--poisson 12 --solver cg --precond jacobi --format csr");
    assert_eq!(
        (&found["solver"], &found["precond"], &found["format"]),
        (&"cg".into(), &"jacobi".into(), &"csr".into())
    );
    let rows: u64 = found["partition"].as_array().unwrap().iter().map(|rows| rows.as_u64().unwrap()).sum();
    assert_eq!(rows, 12 * 12 * 12);
    let history = found["history"].as_array().unwrap();
    assert_eq!(history.len() as u64, found["iterations"].as_u64().unwrap() + 1);
    let last = history.last().unwrap().as_f64().unwrap() / history[0].as_f64().unwrap();
    assert!(last <= 1e-8 && found["seconds_per_iteration"].as_f64().unwrap() > 0.0);
    let (without, _) = result("-n 2", "--poisson 12 --matrix-free --precond jacobi");
    assert_eq!((&without["answer_hash"], &without["format"]), (&found["answer_hash"], &"a stencil".into()));
}

#[test]
fn files_of_the_answer_and_of_residuals() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (found, outcome) = result(
        "-n 3 --kill 1@step=20",
        &format!("--poisson2d 20 --monitor --out {} --residuals {}", path("x.mtx"), path("r.csv")),
    );
    // What was written is a right-hand side for another solve, and the answer of that for a third one.
    let x = fs::read_to_string(path("x.mtx")).unwrap();
    assert!(x.starts_with("%%MatrixMarket matrix array real general\n400 1\n"), "{x}");
    assert!(x.lines().skip(2).all(|line| (line.parse::<f64>().unwrap() - 1.0).abs() < 1e-6), "{x}");
    result("-n 2", &format!("--poisson2d 20 --rhs {}", path("x.mtx")));

    let table = fs::read_to_string(path("r.csv")).unwrap();
    assert_eq!(table.lines().count() as u64, found["iterations"].as_u64().unwrap() + 2, "{table}");
    // Iterations that are done again are said again.
    let said = outcome.stderr.lines().filter(|line| line.trim_start().starts_with(char::is_numeric)).count();
    assert!(said > found["iterations"].as_u64().unwrap() as usize, "{outcome}");

    result("-n 2", &format!("--poisson2d 20 --out {} --residuals {}", path("x.npy"), path("r.svg")));
    assert_eq!(fs::metadata(path("x.npy")).unwrap().len(), 128 + 8 * 400);
    assert!(fs::read_to_string(path("r.svg")).unwrap().contains("norm of the residual"));
}

#[test]
fn rectangular_matrices_are_for_least_squares() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("line.mtx").display().to_string();
    // A straight line through five points, the third of them off it.
    let mut matrix = "%%MatrixMarket matrix coordinate real general\n5 2 10\n".to_owned();
    for row in 1..=5 {
        matrix += &format!("{row} 1 1\n{row} 2 {row}\n");
    }
    fs::write(&path, matrix).unwrap();
    let rhs = folder.path().join("b.mtx").display().to_string();
    fs::write(&rhs, "%%MatrixMarket matrix array real general\n5 1\n3\n5\n12\n9\n11\n").unwrap();
    let out = folder.path().join("x.mtx").display().to_string();
    for solver in ["lsqr", "cgls"] {
        result("-n 2 --kill 1@step=1", &format!("--matrix {path} --rhs {rhs} --solver {solver} --out {out}"));
        let x = fs::read_to_string(&out).unwrap();
        let x: Vec<f64> = x.lines().skip(2).map(|line| line.parse().unwrap()).collect();
        // The normal equations [5 15; 15 55] x = [40; 140].
        assert!(x.len() == 2 && (x[0] - 2.0).abs() < 1e-7 && (x[1] - 2.0).abs() < 1e-7, "{x:?}");
    }
    let refused = Run::ftrun(&format!("-n 2 solve --matrix {path} --solver gmres")).finish().expect(2);
    assert!(refused.stderr.contains("not square"), "{refused}");
}

#[test]
fn what_does_not_go_together_is_refused() {
    for (arguments, why) in [
        ("--poisson 8 --precond bjacobi:ilu0", "not symmetric positive definite"),
        ("--poisson 8 --solver lsqr --precond jacobi", "uses no preconditioner"),
        ("--poisson 8 --solver lsqr --matrix-free", "transpose"),
        ("--poisson 8 --solver qmr", "single-reduction-cg"),
        ("--poisson 8 --format ell", "inodes"),
        ("--poisson 8 --precond ilu7", "bjacobi"),
        ("--poisson 8 --out x.txt", ".npy"),
        ("--poisson 8 --residuals x.txt", ".csv"),
        ("--poisson 8 --matrix-free --precond bjacobi:ic0", "a stored matrix"),
    ] {
        let outcome = Run::ftrun(&format!("-n 2 solve {arguments}")).finish().expect(2);
        assert!(outcome.stderr.contains(why), "{arguments}: {outcome}");
    }
    // A file that cannot be written is refused before anything is solved.
    let full = Run::ftrun("-n 2 solve --poisson 8 --out /nonexistent/x.npy").finish().expect(2);
    assert!(full.stderr.contains("/nonexistent/x.npy"), "{full}");
}
