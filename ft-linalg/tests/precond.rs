//! Preconditioners: symmetric and positive definite where they say so, the same bits and iterations on any number of ranks,
//! and errors that name the row everywhere.

mod common;

use common::{data_matrix, on_ranks};
use ft_comm::Communicator;
use ft_linalg::precond::{Amg, AmgOptions};
use ft_linalg::{
    Cg, CsrRows, DistMatrix, DistVector, LinalgError, LinearOperator, MakePreconditioner, Partition, Poisson,
    Precond, Preconditioner, StopCriteria, Workspace, answer_hash, operator::FromFn, rhs,
};

const STOP: StopCriteria = StopCriteria { iterations_max: 5_000, ..StopCriteria::DEFAULT };
const SIZES: [usize; 5] = [1, 2, 3, 4, 7];

/// All that are symmetric positive definite.
const SYMMETRIC: [&str; 12] = [
    "none",
    "jacobi",
    "ssor:1.3",
    "bjacobi:ic0",
    "bjacobi:ic0,domains=5",
    "bjacobi:ssor=0.9",
    "bjacobi:cholesky",
    "asm:ic0,overlap=1",
    "asm:cholesky,overlap=3,domains=5",
    "chebyshev:0",
    "chebyshev:4",
    "amg",
];
const OTHERS: [&str; 5] = [
    "bjacobi:ilu0",
    "bjacobi:lu,domains=3",
    "asm:ilu0,overlap=2,restricted",
    "asm:lu,overlap=2",
    "asm:ic0,overlap=1,restricted",
];

fn all() -> impl Iterator<Item = Precond> {
    SYMMETRIC.iter().chain(&OTHERS).map(|name| name.parse().unwrap())
}

fn poisson(grid: &Poisson, comm: &Communicator) -> DistMatrix {
    let part = Partition::of(comm, grid.n());
    let rows = grid.rows(part.range());
    DistMatrix::new(part, rows, comm).unwrap()
}

/// Upwind convection from the left, with diffusion, on a row of `n` points wrapped into a grid 20 wide: not symmetric.
fn convection(n: usize, comm: &Communicator) -> DistMatrix {
    let part = Partition::of(comm, n);
    let (mut row_ptr, mut cols, mut vals) = (vec![0], vec![], vec![]);
    for row in part.range() {
        let near = [(-20, -1.0), (-1, -2.5), (0, 5.7), (1, -0.5), (20, -1.2)];
        for (step, val) in near {
            if let Some(col) = row.checked_add_signed(step).filter(|col| *col < n) {
                cols.push(col as u64);
                vals.push(val);
            }
        }
        row_ptr.push(cols.len());
    }
    DistMatrix::new(part, CsrRows::new(row_ptr, cols, vals, n).unwrap(), comm).unwrap()
}

/// All of `M^-1 r`, or of `M^-T r`, on every rank.
fn applied(
    m: &dyn Preconditioner,
    part: &Partition,
    transpose: bool,
    r: impl Fn(usize) -> f64,
    comm: &Communicator,
) -> Vec<f64> {
    let r: Vec<f64> = part.range().map(r).collect();
    // What memory held before must not matter.
    let (mut z, mut work) = (vec![f64::NAN; r.len()], Workspace::default());
    work.give(vec![f64::NAN; 10_000]);
    match transpose {
        false => m.apply(&r, &mut z, comm, &mut work).unwrap(),
        true => m.apply_transpose(&r, &mut z, comm, &mut work).unwrap(),
    }
    DistVector::from_local(part.clone(), z).unwrap().gather(comm).unwrap()
}

fn dot(x: &[f64], y: impl Fn(usize) -> f64) -> f64 {
    x.iter().enumerate().map(|(row, x)| x * y(row)).sum()
}

fn one(row: usize) -> f64 {
    (row as f64 * 0.7).sin() + 0.3
}

fn other(row: usize) -> f64 {
    (row as f64 * row as f64 * 0.013).cos()
}

#[test]
fn symmetric_ones_are_symmetric_and_positive() {
    let grid = Poisson::new_2d(37, 31).unwrap();
    on_ranks(3, |comm| {
        let a = poisson(&grid, comm);
        for name in SYMMETRIC {
            let kind: Precond = name.parse().unwrap();
            assert!(kind.is_symmetric());
            let m = kind.make(&a, comm).unwrap();
            let (x, y) =
                (applied(&*m, a.part(), false, one, comm), applied(&*m, a.part(), false, other, comm));
            let (xy, yx, xx) = (dot(&x, other), dot(&y, one), dot(&x, one));
            assert!((xy - yx).abs() <= 1e-12 * xx, "{name}: {xy} and {yx}");
            assert!(xx > 0.0 && dot(&y, other) > 0.0, "{name}");
            assert_eq!(applied(&*m, a.part(), true, one, comm).len(), x.len());
        }
    });
}

#[test]
fn transposes_are_transposes() {
    on_ranks(3, |comm| {
        let a = convection(700, comm);
        for name in OTHERS.iter().filter(|name| !name.contains("ic0")) {
            let m = name.parse::<Precond>().unwrap().make(&a, comm).unwrap();
            let (x, y) =
                (applied(&*m, a.part(), false, one, comm), applied(&*m, a.part(), true, other, comm));
            let (xy, yx) = (dot(&x, other), dot(&y, one));
            assert!((xy - yx).abs() <= 1e-12 * dot(&x, |row| x[row]).abs(), "{name}: {xy} and {yx}");
            assert!(
                (xy - dot(&applied(&*m, a.part(), true, one, comm), other)).abs() > 1e-6,
                "{name} is symmetric"
            );
        }
    });
}

#[test]
fn same_bits_on_any_number_of_ranks_and_made_again() {
    let bits = |size: usize| {
        let mut outcomes = on_ranks(size, |comm| {
            let symmetric = poisson(&Poisson::new_3d(13, 11, 9).unwrap(), comm);
            let mut bits: Vec<Vec<u64>> = Vec::new();
            for kind in all() {
                let convection = convection(700, comm);
                let a = if kind.is_symmetric() { &symmetric } else { &convection };
                let m = kind.make(a, comm).unwrap();
                for transpose in [false, true] {
                    let z = applied(&*m, a.part(), transpose, one, comm);
                    let again = applied(&*kind.make(a, comm).unwrap(), a.part(), transpose, one, comm);
                    assert_eq!(z, again, "{kind}");
                    assert!(z.iter().all(|z| z.is_finite()), "{kind}");
                    bits.push(z.iter().map(|z| z.to_bits()).collect());
                }
            }
            bits
        });
        outcomes.dedup();
        assert_eq!(outcomes.len(), 1, "ranks disagree");
        outcomes.remove(0)
    };
    let whole = bits(1);
    for size in [2, 3, 4, 7, 11] {
        for (at, (found, expected)) in bits(size).iter().zip(&whole).enumerate() {
            assert!(found == expected, "{} on {size} ranks", all().nth(at / 2).unwrap());
        }
    }
}

#[test]
fn exact_blocks_of_one_domain_solve_exactly() {
    on_ranks(3, |comm| {
        let a = convection(200, comm);
        let x = DistVector::from_fn(a.part().clone(), |row| one(row.0));
        let b = a.multiply(&x, comm).unwrap().gather(comm).unwrap();
        for name in ["bjacobi:lu,domains=1", "asm:lu,overlap=100,restricted"] {
            let m = name.parse::<Precond>().unwrap().make(&a, comm).unwrap();
            let solved = applied(&*m, a.part(), false, |row| b[row], comm);
            assert!(solved.iter().enumerate().all(|(row, z)| (z - one(row)).abs() < 1e-10), "{name}");
        }
    });
}

#[test]
fn empty_ranks_and_empty_systems_work() {
    for (size, n) in [(4, 40), (3, 0), (7, 33)] {
        on_ranks(size, |comm| {
            let a = convection(n, comm);
            for kind in all() {
                let m = kind.make(&a, comm).unwrap();
                assert_eq!(applied(&*m, a.part(), false, one, comm).len(), n, "{kind}");
            }
        });
    }
}

#[test]
fn a_bad_entry_is_the_same_error_on_every_rank() {
    for bad in [0.0, -1.5, f64::NAN, f64::INFINITY] {
        for size in [1, 4, 7] {
            for kind in all().filter(|kind| *kind != Precond::None) {
                // A negative pivot is no fault where nothing has to be positive.
                if bad < 0.0 && !kind.is_symmetric() {
                    continue;
                }
                let mut errors = on_ranks(size, |comm| {
                    let part = Partition::of(comm, 500);
                    let range = part.range();
                    let vals =
                        range.clone().map(|row| if row == 70 || row == 450 { bad } else { 1.0 }).collect();
                    let cols = range.clone().map(|row| row as u64).collect();
                    let rows = CsrRows::new((0..=range.len()).collect(), cols, vals, 500).unwrap();
                    let a = DistMatrix::new(part, rows, comm).unwrap();
                    kind.make(&a, comm).err().map_or("none".into(), |error| error.to_string())
                });
                errors.dedup();
                assert_eq!(errors.len(), 1, "{kind}: {errors:?}");
                assert!(errors[0].contains("of row 71 is"), "{kind}, {bad}: {}", errors[0]);
            }
        }
    }
}

#[test]
fn what_has_no_rows_is_refused_by_what_needs_them() {
    on_ranks(2, |comm| {
        let closure = FromFn::new(Partition::of(comm, 100), |x: &[f64], y: &mut [f64], _: &_, _: &mut _| {
            y.copy_from_slice(x);
            Ok(())
        });
        for kind in all().filter(|kind| *kind != Precond::None) {
            let error = kind.make(&closure as &dyn LinearOperator, comm).err().unwrap();
            assert!(matches!(error, LinalgError::Unfit { .. }), "{kind}");
        }
        let large = poisson(&Poisson::new_2d(200, 200).unwrap(), comm);
        let dense = "bjacobi:cholesky,domains=2".parse::<Precond>().unwrap();
        let error = dense.make(&large, comm).err().unwrap();
        assert_eq!(error.to_string(), "dense block of 20032 elements is too large");
    });
}

/// Iterations of conjugate gradients to 1e-8 on `A x = A 1`, and the hash of the answer: the same for every number of ranks.
fn iterations(name: &str, sizes: &[usize], system: impl Fn(&Communicator) -> DistMatrix + Sync) -> u64 {
    let kind: Precond = name.parse().unwrap();
    let run = |size: usize| {
        let mut outcomes = on_ranks(size, |comm| {
            let a = system(comm);
            let b = rhs::from_solution(&a, &rhs::ones(a.part()), comm).unwrap();
            let m = kind.make(&a, comm).unwrap();
            let mut x = DistVector::zeros(a.part().clone());
            let solution = ft_linalg::solve::<Cg>(&STOP, &a, &*m, &b, &mut x, comm).unwrap();
            assert!(solution.reason.is_converged(), "{name}: {}", solution.reason);
            (solution.reason.iterations(), answer_hash(a.part(), x.local(), comm).unwrap())
        });
        outcomes.dedup();
        assert_eq!(outcomes.len(), 1, "ranks disagree");
        outcomes.remove(0)
    };
    let first = run(sizes[0]);
    sizes[1..].iter().for_each(|&size| assert_eq!(run(size), first, "{name} on {size} ranks"));
    first.0
}

/// Checks a table of iterations; a count may be off by 3 %, as other orders of sums are.
fn check(table: &[(&str, u64)], sizes: &[usize], system: impl Fn(&Communicator) -> DistMatrix + Sync) {
    let found: Vec<(&str, u64)> =
        table.iter().map(|&(name, _)| (name, iterations(name, sizes, &system))).collect();
    eprintln!("{found:?}");
    for ((name, expected), (_, found)) in table.iter().zip(&found) {
        assert!(found.abs_diff(*expected) <= expected.div_ceil(33), "{name}: {found}, expected {expected}");
    }
}

#[test]
fn iterations_poisson_2d() {
    let grid = Poisson::new_2d(100, 100).unwrap();
    check(
        &[
            ("none", 1),
            ("bjacobi", 1),
            ("ssor:1.5", 1),
            ("asm", 1),
            ("bjacobi:cholesky", 1),
            ("chebyshev", 1),
            ("amg", 1),
        ],
        &SIZES,
        |comm| poisson(&grid, comm),
    );
}

#[test]
fn iterations_poisson_3d() {
    let grid = Poisson::new_3d(32, 32, 32).unwrap();
    check(
        &[("none", 1), ("bjacobi", 1), ("ssor:1.5", 1), ("asm", 1), ("chebyshev", 1), ("amg", 1)],
        &SIZES,
        |comm| poisson(&grid, comm),
    );
}

fn check_data(name: &str, table: &[(&str, u64)]) {
    let Some(matrix) = data_matrix(name) else { return };
    check(table, &[1, 3, 4], |comm| DistMatrix::from_coordinates(&matrix, comm).unwrap());
}

#[test]
fn iterations_1138_bus() {
    check_data(
        "1138_bus",
        &[
            ("jacobi", 936),
            ("bjacobi", 549),
            ("ssor", 1),
            ("asm", 1),
            ("bjacobi:cholesky", 1),
            ("chebyshev", 1),
            ("amg", 1),
        ],
    );
}

#[test]
fn iterations_s1rmq4m1() {
    check_data(
        "s1rmq4m1",
        &[
            ("jacobi", 714),
            ("bjacobi", 248),
            ("ssor", 1),
            ("asm", 1),
            ("bjacobi:cholesky", 1),
            ("chebyshev", 1),
            ("amg", 1),
        ],
    );
}

#[test]
fn iterations_bcsstk16() {
    check_data(
        "bcsstk16",
        &[
            ("jacobi", 197),
            ("bjacobi", 1),
            ("ssor", 1),
            ("asm", 1),
            ("bjacobi:cholesky", 1),
            ("chebyshev", 1),
            ("amg", 1),
        ],
    );
}

#[test]
fn iterations_bcsstk13() {
    check_data("bcsstk13", &[("jacobi", 1358), ("bjacobi", 1), ("bjacobi:cholesky", 1)]);
}

#[test]
fn given_near_null_vectors_help_where_constants_are_not_near_null() {
    // Poisson scaled by rows and columns: the near-null vector is the reciprocal of the scale.
    let grid = Poisson::new_2d(60, 60).unwrap();
    let scale = |row: usize| if row % 3 == 0 { 0.1 } else { 1.0 + (row % 7) as f64 };
    let counts = on_ranks(3, |comm| {
        let part = Partition::of(comm, grid.n());
        let whole = grid.rows(part.range());
        let (mut cols, mut vals, mut row_ptr) = (vec![], vec![], vec![0]);
        for (row, (row_cols, row_vals)) in part.range().zip(whole.iter()) {
            cols.extend(row_cols);
            vals.extend(
                row_cols.iter().zip(row_vals).map(|(&col, val)| val * scale(row) * scale(col as usize)),
            );
            row_ptr.push(cols.len());
        }
        let a = DistMatrix::new(part.clone(), CsrRows::new(row_ptr, cols, vals, grid.n()).unwrap(), comm)
            .unwrap();
        let null = vec![part.range().map(|row| 1.0 / scale(row)).collect()];
        let b = rhs::ones(&part);
        let given = Amg::with_near_null(&a, &AmgOptions::default(), &null, comm).unwrap();
        assert!(given.levels() > 1);
        let constant = Amg::new(&a, &AmgOptions::default(), comm).unwrap();
        [given, constant].map(|m| {
            let mut x = DistVector::zeros(part.clone());
            let solution = ft_linalg::solve::<Cg>(&STOP, &a, &m, &b, &mut x, comm).unwrap();
            assert!(solution.reason.is_converged());
            solution.reason.iterations()
        })
    });
    let [given, constant] = counts[0];
    assert!(given <= 20 && 2 * given < constant, "{given} and {constant}");
}

#[test]
#[ignore = "takes minutes without optimization; run with --release"]
fn poisson_128() {
    let names = ["none", "jacobi", "bjacobi", "ssor", "ssor:1.6", "asm", "chebyshev:4", "amg"];
    for size in [1, 2] {
        on_ranks(size, |comm| {
            let a = poisson(&Poisson::new_3d(128, 128, 128).unwrap(), comm);
            for name in names {
                let seconds =
                    |clock: &ft_comm::time::Clock| clock.now().since(ft_comm::time::Time(0)).as_secs_f64();
                let clock = ft_comm::time::Clock::start();
                let m = name.parse::<Precond>().unwrap().make(&a, comm).unwrap();
                let setup = seconds(&clock);
                let mut x = DistVector::zeros(a.part().clone());
                let solution =
                    ft_linalg::solve::<Cg>(&STOP, &a, &*m, &rhs::ones(a.part()), &mut x, comm).unwrap();
                if comm.rank() == 0 {
                    eprintln!(
                        "{size} {name}: {}, setup {setup:.2}, solve {:.2}",
                        solution.reason,
                        seconds(&clock) - setup
                    );
                }
            }
        });
    }
}
