//! What is not proven right is exit status 1 with the reason in one line, and no figure is lost for not being finite.

use serde_json::Value;

use crate::common::{Outcome, Run};

/// A symmetric matrix of two rows, by its entries on and below the diagonal.
fn matrix(entries: [&str; 3]) -> tempfile::NamedTempFile {
    let [a, b, c] = entries;
    let text = format!("%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n1 1 {a}\n2 1 {b}\n2 2 {c}\n");
    let file = tempfile::Builder::new().suffix(".mtx").tempfile().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

/// The result of a job that fails with `reason`, which stands on stderr alone, on the report for people and in the one for
/// programs.
fn fails(arguments: &str, reason: &str) -> Value {
    let outcome = Run::ftrun(&format!("-n 2 {arguments}")).finish().expect(1);
    assert_eq!(outcome.stderr, format!("ftrun: {reason}\n"), "{outcome}");
    assert!(outcome.stdout.contains(reason), "{outcome}");
    let outcome = Run::ftrun(&format!("-n 2 --json {arguments}")).finish().expect(1);
    let report = outcome.report();
    assert!(report.message() == reason && report.0["exit"] == "failed", "{outcome}");
    let result = report.0["result"].clone();
    assert!(result["converged"] == false && result["reason"] == reason, "{outcome}");
    result
}

#[test]
fn a_system_whose_products_overflow_is_not_solved() {
    let file = matrix(["1e200", "0", "1e200"]);
    let reason = "norm of the residual is not finite after 0 iterations";
    let result = fails(&format!("cg --matrix {}", file.path().display()), reason);
    assert_eq!(result["relative_residual"], 1.0);
    // Here not even the right-hand side is finite.
    let file = matrix(["1e308", "1e308", "1e308"]);
    let reason = "element 1 of the right-hand side is not finite";
    let result = fails(&format!("cg --matrix {}", file.path().display()), reason);
    assert_eq!(result["relative_residual"], "NaN");
}

#[test]
fn a_system_whose_products_underflow_is_not_solved() {
    let file = matrix(["1e-200", "0", "2e-200"]);
    let reason =
        "residuals are so small that their squares underflow after 0 iterations: scale the system up";
    let result = fails(&format!("cg --matrix {}", file.path().display()), reason);
    assert_eq!(result["relative_residual"], 1.0);
}

/// The recurrence of conjugate gradients converges to any tolerance; the answer does not.
#[test]
fn a_residual_that_only_the_recurrence_has_is_no_answer() {
    let arguments = "cg --poisson2d 20 --tol 1e-17";
    let outcome = Run::ftrun(&format!("-n 2 --json {arguments}")).finish().expect(1);
    let result = outcome.report().0["result"].clone();
    let reached = result["relative_residual"].as_f64().unwrap();
    assert!(reached > 2e-17 && reached < 1e-13, "{outcome}");
    let reason = format!(
        "not converged after {} iterations: the recurrence has, but rounding leaves the answer a relative residual of \
         {reached:.2e}",
        result["iterations"]
    );
    fails(arguments, &reason);
}

/// `pi` of one point is far off, and says by how much that may be.
#[test]
fn few_points_have_a_result() {
    let run = |arguments: &str| -> (Value, Outcome) {
        let outcome = Run::ftrun(&format!("-n 2 --json pi {arguments}")).finish().expect(0);
        (outcome.report().0["result"].clone(), outcome)
    };
    for (arguments, samples) in [("--samples 1 --seed 1", 1), ("--samples 1 --seed 2", 1), ("--samples 3", 3)]
    {
        let (result, outcome) = run(arguments);
        assert_eq!(result["samples"], samples, "{outcome}");
        assert_eq!(result["pi"], 4.0 * result["hits"].as_f64().unwrap() / f64::from(samples), "{outcome}");
        let error = result["standard_error"].as_f64().unwrap();
        assert!(error > 0.1 && result["deviation"].as_f64().unwrap() < 8.0, "{outcome}");
    }
    let outcome = Run::ftrun("-n 2 pi --samples 1").finish().expect(0);
    assert!(outcome.stdout.contains("pi: 1 sample, ") && outcome.stdout.contains("  pi = "), "{outcome}");
}

#[test]
fn a_wave_field_that_overflows_is_no_gather() {
    let folder = tempfile::tempdir().unwrap();
    let wavelet = folder.path().join("wavelet.txt");
    let run = |values: &str, status| {
        std::fs::write(&wavelet, values).unwrap();
        let survey = "seismic --synthetic homogeneous --shape 40x40 --time 0.2";
        let out = folder.path().join("out");
        let run = Run::ftrun(&format!("-n 2 {survey} --wavelet {} --out", wavelet.display())).arg(&out);
        let outcome = run.finish().expect(status);
        assert!(outcome.stdout.is_empty() && outcome.stderr.lines().count() == 1, "{outcome}");
        assert!(!out.join("shot_0001.sgy").exists(), "{outcome}");
        outcome.stderr
    };
    let said = run("0 3e38\n1 3e38\n", 1);
    assert!(
        said.contains("shot 1 overflows: what receiver ") && said.contains(" is not finite from "),
        "{said}"
    );
    let said = run("0 0\n1 1e300\n", 2);
    assert!(said.contains("line 2: 1e300 is beyond what 32 bits hold"), "{said}");
}

/// A system of which the first residual is in the null space says so; it once ended in panics of
/// every rank.
#[test]
fn a_matrix_that_makes_nothing_of_the_first_residual_is_refused_in_one_line() {
    let reason = "matrix is not positive definite: smallest eigenvalue = 0e0 after 0 iterations";
    for entries in [["1", "-1", "1"], ["0", "0", "0"]] {
        let file = matrix(entries);
        let matrix = file.path().display();
        fails(&format!("solve --matrix {matrix} --rhs ones --solver chebyshev"), reason);
    }
}

#[test]
fn more_eigenvalues_than_rows_are_refused() {
    let file = matrix(["1", "0", "2"]);
    for solver in ["lanczos", "lobpcg"] {
        let arguments = format!("solve --matrix {} --solver {solver} --eigenvalues 3", file.path().display());
        let outcome = Run::ftrun(&format!("-n 2 {arguments}")).finish().expect(2);
        let reason = "3 eigenvalues were asked of a matrix of 2 rows. Ask for at most 2";
        assert!(outcome.stderr.contains(reason), "{outcome}");
    }
}

/// An eigenvalue that is called converged is right, whatever directions of a large block depend on
/// each other: the largest of this grid once came out as 9e13.
#[test]
fn eigenvalues_of_a_large_block_are_those_of_the_grid() {
    let outcome = Run::ftrun("-n 2 --json solve --poisson2d 5 --solver lobpcg --eigenvalues 8").finish();
    let outcome = outcome.expect(0);
    let pairs = outcome.report().0["result"]["eigenvalues"].as_array().unwrap().clone();
    let value = |pair: &Value| pair[0].as_f64().unwrap();
    assert!((value(&pairs[0]) - (4.0 + 12f64.sqrt())).abs() < 1e-6, "{outcome}");
    assert!(pairs.len() == 8 && pairs.iter().all(|pair| (4.99..7.5).contains(&value(pair))), "{outcome}");
}

/// Both norms of least squares: what is left of the right-hand side, and what is small.
#[test]
fn least_squares_report_the_residual_and_that_of_the_normal_equations() {
    let mut file = tempfile::Builder::new().suffix(".mtx").tempfile().unwrap();
    let text = "%%MatrixMarket matrix coordinate real general\n2 1 2\n1 1 1\n2 1 1\n";
    std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
    let mut rhs = tempfile::Builder::new().suffix(".mtx").tempfile().unwrap();
    let text = "%%MatrixMarket matrix array real general\n2 1\n1\n0\n";
    std::io::Write::write_all(&mut rhs, text.as_bytes()).unwrap();
    let (matrix, rhs) = (file.path().display(), rhs.path().display());
    for solver in ["lsqr", "cgls"] {
        let arguments = format!("-n 2 --json solve --matrix {matrix} --rhs {rhs} --solver {solver}");
        let outcome = Run::ftrun(&arguments).finish().expect(0);
        let result = outcome.report().0["result"].clone();
        assert!((result["relative_residual"].as_f64().unwrap() - 0.5f64.sqrt()).abs() < 1e-12, "{outcome}");
        assert!(result["relative_gradient"].as_f64().unwrap() < 1e-8, "{outcome}");
    }
}
