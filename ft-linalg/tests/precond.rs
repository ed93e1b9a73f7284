//! Preconditioners: symmetric and positive definite where they say so, the same bits and iterations on any number of ranks,
//! and errors that name the row everywhere.

mod common;

use std::ops::Range;

use common::{data_matrix, on_ranks};
use ft_comm::Communicator;
use ft_linalg::precond::{Amg, AmgOptions};
use ft_linalg::{
    Cg, CsrRows, DistMatrix, DistRows, DistVector, LinalgError, LinearOperator, MakePreconditioner,
    Partition, Poisson, Precond, Preconditioner, Problem, SolveState, Solver, Step, StopCriteria, Workspace,
    answer_hash,
    gallery::{ConvectionDiffusion, Elasticity, Laplacian27, NeumannPoisson, ShiftedPoisson},
    operator::FromFn,
    rhs,
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
    "asm:ssor=1.1,overlap=1,restricted",
];

fn all() -> impl Iterator<Item = Precond> {
    SYMMETRIC.iter().chain(&OTHERS).map(|name| name.parse().unwrap())
}

fn poisson(grid: &Poisson, comm: &Communicator) -> DistMatrix {
    by_rows(grid.n(), |range| grid.rows(range), comm)
}

/// Cut by nonzeros.
fn by_rows(n: usize, rows: impl Fn(Range<usize>) -> CsrRows, comm: &Communicator) -> DistMatrix {
    let row = |row: usize, entries: &mut Vec<(usize, f64)>| {
        let made = rows(row..row + 1);
        let (cols, vals) = made.row(0);
        entries.extend(cols.iter().map(|col| *col as usize).zip(vals.iter().copied()));
    };
    DistRows::from_fn(n, n, comm, row).unwrap().into_matrix(comm).unwrap()
}

fn elasticity(edge: usize, comm: &Communicator) -> DistMatrix {
    Elasticity::clamped(edge, edge, edge).unwrap().matrix(comm).unwrap().into_matrix(comm).unwrap()
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
        for name in OTHERS {
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
fn a_solve_goes_on_with_the_same_bits_where_the_preconditioner_is_made_again() {
    let grid = Poisson::new_3d(14, 13, 12).unwrap();
    for size in [1, 3] {
        on_ranks(size, |comm| {
            for name in SYMMETRIC {
                let kind: Precond = name.parse().unwrap();
                let run = |again: bool| {
                    let a = poisson(&grid, comm);
                    let (b, x) = (rhs::ones(a.part()), DistVector::zeros(a.part().clone()));
                    let mut state = SolveState::<Cg>::new(&STOP, &kind, Problem { a, b, x }, comm).unwrap();
                    for iteration in 0.. {
                        if again && iteration % 3 == 1 {
                            state.rebuild(&kind, comm).unwrap();
                        }
                        if let Step::Done(reason) = state.step(comm).unwrap() {
                            assert!(reason.is_converged(), "{name}: {reason}");
                            break;
                        }
                    }
                    state.solver.x().to_vec()
                };
                assert_eq!(run(true), run(false), "{name}");
            }
        });
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
            let convection = convection(n, comm);
            let symmetric = by_rows(n, |rows| Poisson::new_2d(n, 1).unwrap().rows(rows), comm);
            for kind in all() {
                let a = if kind.is_symmetric() { &symmetric } else { &convection };
                let m = kind.make(a, comm).unwrap();
                assert_eq!(applied(&*m, a.part(), false, one, comm).len(), n, "{kind}");
            }
        });
    }
}

#[test]
fn a_bad_entry_is_the_same_error_on_every_rank() {
    for bad in [0.0, -1.5] {
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

/// Iterations of conjugate gradients to 1e-8 on `A x = A 1`, and the hash of the answer.
fn iterations_with(a: &DistMatrix, m: &dyn Preconditioner, comm: &Communicator) -> (u64, String) {
    let b = rhs::from_solution(a, &rhs::ones(a.part()), comm).unwrap();
    let mut x = DistVector::zeros(a.part().clone());
    let solution = ft_linalg::solve::<Cg>(&STOP, a, m, &b, &mut x, comm).unwrap();
    assert!(solution.reason.is_converged(), "{}", solution.reason);
    (solution.reason.iterations(), answer_hash(a.part(), x.local(), comm).unwrap())
}

/// As [`iterations_with`], the same for every one of `sizes`.
fn iterations(name: &str, sizes: &[usize], system: impl Fn(&Communicator) -> DistMatrix + Sync) -> u64 {
    let kind: Precond = name.parse().unwrap();
    let run = |size: usize| {
        let mut outcomes = on_ranks(size, |comm| {
            let a = system(comm);
            iterations_with(&a, &*kind.make(&a, comm).unwrap(), comm)
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
    let table = [
        ("none", 183),
        ("bjacobi", 107),
        ("ssor:1.5", 91),
        ("asm", 113),
        ("asm:ic0,overlap=3", 113),
        ("bjacobi:cholesky", 66),
        ("asm:cholesky", 36),
        ("chebyshev", 43),
        ("amg", 9),
    ];
    check(&table, &[1, 4, 7], |comm| poisson(&grid, comm));
}

#[test]
fn iterations_poisson_3d() {
    let grid = Poisson::new_3d(32, 32, 32).unwrap();
    let table = [("none", 81), ("bjacobi", 47), ("ssor:1.5", 42), ("asm", 50), ("chebyshev", 19), ("amg", 9)];
    check(&table, &SIZES, |comm| poisson(&grid, comm));
}

#[test]
fn iterations_27_points() {
    let grid = Laplacian27::new(32, 32, 32).unwrap();
    let table = [("none", 48), ("bjacobi", 38), ("ssor", 41), ("asm", 34), ("chebyshev", 13), ("amg", 6)];
    check(&table, &SIZES, |comm| by_rows(grid.n(), |rows| grid.rows(rows), comm));
}

#[test]
fn iterations_elasticity() {
    let table = [
        ("none", 130),
        ("jacobi", 105),
        ("bjacobi", 104),
        ("ssor", 108),
        ("asm", 59),
        ("bjacobi:cholesky", 98),
        ("chebyshev", 26),
        ("amg", 39),
    ];
    check(&table, &[1, 3, 4], |comm| elasticity(10, comm));
}

fn check_data(name: &str, table: &[(&str, u64)]) {
    let Some(matrix) = data_matrix(name) else { return };
    check(table, &[1, 3, 4], |comm| DistMatrix::from_coordinates(&matrix, comm).unwrap());
}

#[test]
fn iterations_1138_bus() {
    let exact = ("bjacobi:cholesky", 512);
    let rest =
        [("jacobi", 936), ("bjacobi", 542), ("ssor", 729), ("asm", 181), ("chebyshev", 230), ("amg", 151)];
    check_data("1138_bus", &[&rest[..], &[exact]].concat());
}

#[test]
fn iterations_s1rmq4m1() {
    check_data(
        "s1rmq4m1",
        &[("jacobi", 714), ("bjacobi", 254), ("ssor", 311), ("asm", 165), ("bjacobi:cholesky", 241)],
    );
}

#[test]
fn iterations_bcsstk16() {
    check_data(
        "bcsstk16",
        &[("jacobi", 197), ("bjacobi", 67), ("ssor", 87), ("asm", 54), ("chebyshev", 50), ("amg", 41)],
    );
}

#[test]
fn iterations_bcsstk13() {
    check_data("bcsstk13", &[("jacobi", 1358), ("bjacobi", 898), ("bjacobi:cholesky", 510)]);
}

#[test]
fn iterations_of_multigrid_hardly_grow_with_the_problem() {
    let counts = |name: &str| {
        let planes = [30, 60, 120, 240].map(|edge| {
            let grid = Poisson::new_2d(edge, edge).unwrap();
            iterations(name, &[3], |comm| poisson(&grid, comm))
        });
        let cubes = [10, 20, 40].map(|edge| {
            let grid = Poisson::new_3d(edge, edge, edge).unwrap();
            iterations(name, &[3], |comm| poisson(&grid, comm))
        });
        (planes, cubes)
    };
    let (planes, cubes) = counts("amg");
    assert!(planes[3] <= planes[0] + 6 && planes[3] <= 20, "{planes:?}");
    assert!(cubes[2] <= cubes[0] + 5 && cubes[2] <= 15, "{cubes:?}");
    let (planes, _) = counts("bjacobi");
    assert!(planes[3] > 4 * planes[0], "the problems do not get harder: {planes:?}");
}

#[test]
fn rigid_motions_help_multigrid_with_elasticity() {
    let shape = Elasticity::clamped(12, 12, 12).unwrap();
    let counts = on_ranks(3, |comm| {
        let a = shape.matrix(comm).unwrap().into_matrix(comm).unwrap();
        let motion = |k: usize| a.part().range().map(|row| shape.rigid_motion(k, row)).collect();
        let motions: Vec<Vec<f64>> = (0..6).map(motion).collect();
        let options = AmgOptions::default();
        let given = Amg::with_near_null(&a, &options, &motions, comm).unwrap();
        [given, Amg::new(&a, &options, comm).unwrap()].map(|m| iterations_with(&a, &m, comm).0)
    });
    let [given, constant] = counts[0];
    assert!(given <= 20 && 2 * given < constant, "{given} and {constant}");
}

#[test]
fn what_is_unfit_says_so_with_the_reason_on_every_rank() {
    let grid = ConvectionDiffusion::new_2d(30, 30, 100.0).unwrap();
    let indefinite = ShiftedPoisson::new_2d(30, 30, 2.0).unwrap();
    let singular = NeumannPoisson::new(30, 30, 1).unwrap();
    let said = |name: &str, matrix: &(dyn Fn(&Communicator) -> DistMatrix + Sync)| {
        let kind: Precond = name.parse().unwrap();
        let mut errors = on_ranks(3, |comm| {
            kind.make(&matrix(comm), comm).err().map_or("nothing".into(), |error| error.to_string())
        });
        errors.dedup();
        assert_eq!(errors.len(), 1, "{name}: {errors:?}");
        errors.remove(0)
    };
    let convection = |comm: &Communicator| by_rows(900, |rows| grid.rows(rows), comm);
    for name in ["bjacobi:ic0", "bjacobi:cholesky", "asm:ic0,overlap=1"] {
        let found = said(name, &convection);
        assert!(found.starts_with("matrix is not symmetric: a(1,2) = "), "{name}: {found}");
    }
    for name in ["chebyshev", "amg"] {
        assert!(said(name, &convection).contains("needs symmetry"), "{name}");
    }
    for name in ["ssor", "jacobi", "bjacobi:ilu0", "bjacobi:lu"] {
        assert_eq!(said(name, &convection), "nothing", "{name}");
    }
    let shifted = |comm: &Communicator| by_rows(900, |rows| indefinite.rows(rows), comm);
    let found = said("bjacobi:cholesky", &shifted);
    assert!(found.contains("pivot of row"), "{found}");
    assert_eq!(
        said("amg", &shifted),
        "amg needs a positive definite matrix, which the operator does not have"
    );
    let neumann = |comm: &Communicator| by_rows(900, |rows| singular.rows(rows), comm);
    let found = said("bjacobi:cholesky,domains=1", &neumann);
    assert!(found.contains("pivot of row 900 is"), "{found}");
}

/// Products with `D^-1 A` leave a space that ends after one or two vectors; what rounding leaves
/// behind them is no asymmetry.
#[test]
fn matrices_of_few_eigenvalues_are_symmetric_to_polynomials_and_multigrid() {
    type Row = fn(usize, &mut Vec<(usize, f64)>);
    let cases: [(&str, usize, Row); 5] = [
        ("a diagonal of 500", 500, |row, entries| entries.push((row, (row + 1) as f64))),
        ("a diagonal of 2", 2, |row, entries| entries.push((row, (row + 2) as f64))),
        ("the identity", 1000, |row, entries| entries.push((row, 1.0))),
        ("101 pairs", 202, |row, entries| entries.extend([(row, 2.0), (row ^ 1, -1.0)])),
        ("400 pairs", 800, |row, entries| entries.extend([(row, 2.0), (row ^ 1, -1.0)])),
    ];
    for (name, n, row) in cases {
        for kind in ["chebyshev:1", "chebyshev:3", "amg"] {
            for size in [1, 3] {
                on_ranks(size, |comm| {
                    let a = DistRows::from_fn(n, n, comm, row).unwrap().into_matrix(comm).unwrap();
                    let m = kind.parse::<Precond>().unwrap().make(&a, comm);
                    let m = m.unwrap_or_else(|error| panic!("{kind} for {name}: {error}"));
                    let (iterations, _) = iterations_with(&a, &*m, comm);
                    assert!(iterations <= 3, "{kind} for {name}: {iterations}");
                });
            }
        }
    }
}

/// A node with so many neighbors that none of them is strongly coupled: no aggregates are found,
/// and a dense factorization of the whole matrix would be cubic in its rows.
#[test]
fn multigrid_of_a_star_smooths_what_it_cannot_coarsen() {
    let n = 4000;
    let row = |row: usize, entries: &mut Vec<(usize, f64)>| match row {
        0 => entries.extend((0..n).map(|col| (col, if col == 0 { n as f64 } else { -1.0 }))),
        _ => entries.extend([(0, -1.0), (row, 2.0)]),
    };
    on_ranks(2, |comm| {
        let a = DistRows::from_fn(n, n, comm, row).unwrap().into_matrix(comm).unwrap();
        let m = Amg::new(&a, &AmgOptions::default(), comm).unwrap();
        assert!(m.levels() == 1 && !m.is_solved());
        let (iterations, _) = iterations_with(&a, &m, comm);
        assert!(iterations <= 5, "{iterations}");
    });
}

#[test]
fn given_near_null_vectors_help_where_constants_are_not_near_null() {
    // Poisson scaled by rows and columns: the near-null vector is the reciprocal of the scale.
    let grid = Poisson::new_2d(60, 60).unwrap();
    let scale = |row: usize| if row.is_multiple_of(3) { 0.1 } else { 1.0 + (row % 7) as f64 };
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
