//! Conjugate gradients: small systems by hand, every way to end, comparison with a plain serial solver, and the same
//! bits on any number of ranks.

mod common;

use common::{data_matrix, dense, on_ranks};
use ft_comm::Communicator;
use ft_linalg::{
    Cg, CsrRows, DistMatrix, DistVector, Identity, Jacobi, LinalgError, Partition, Poisson, Preconditioner,
    Solution, Solver, Step, StopCriteria, StopReason, System, Workspace, answer_hash, rhs,
    stop::Quantity::{Curvature, PreconditionedResidual, Residual, RightHandSide},
};

const STOP: StopCriteria = StopCriteria { iterations_max: 20_000, ..StopCriteria::DEFAULT };

fn vector(comm: &Communicator, whole: &[f64]) -> DistVector {
    DistVector::from_global(Partition::of(comm, whole.len()), whole).unwrap()
}

fn solve(
    a: &DistMatrix,
    m: &dyn Preconditioner,
    b: &DistVector,
    comm: &Communicator,
) -> (Solution, DistVector) {
    let mut x = DistVector::zeros(a.part().clone());
    let solution = ft_linalg::solve::<Cg>(&STOP, a, m, b, &mut x, comm).unwrap();
    (solution, x)
}

fn poisson(grid: &Poisson, comm: &Communicator) -> DistMatrix {
    let part = Partition::of(comm, grid.n());
    let rows = grid.rows(part.range());
    DistMatrix::new(part, rows, comm).unwrap()
}

#[test]
fn two_by_two_by_hand() {
    on_ranks(2, |comm| {
        let a = dense(comm, [[4.0, 1.0], [1.0, 3.0]]);
        let (b, x) = (vector(comm, &[1.0, 2.0]), vector(comm, &[2.0, 1.0]));
        let (system, mut work) = (System { a: &a, m: &Identity, b: b.local() }, Workspace::default());
        let mut state = Cg::start(&STOP, &system, x.local(), comm, &mut work).unwrap();
        // r = b - A x = (1, 2) - (9, 5); r.r = 73; p.Ap = 331.
        let progress = state.progress();
        assert_eq!((progress.residual_norm, progress.reference_norm), (73f64.sqrt(), 5f64.sqrt()));
        assert_eq!(state.step(&system, comm, &mut work).unwrap(), Step::Continue);
        let x: Vec<f64> = [2.0, 1.0].iter().zip([-8.0, -3.0]).map(|(x, r)| x + 73.0 / 331.0 * r).collect();
        assert_eq!(state.x(), &x[a.part().range()]);
        let done = Step::Done(StopReason::Converged { iterations: 2 });
        assert_eq!(state.step(&system, comm, &mut work).unwrap(), done);
        for (x, exact) in state.x().iter().zip(&[1.0 / 11.0, 7.0 / 11.0][a.part().range()]) {
            assert!((x - exact).abs() <= 4.0 * f64::EPSILON, "{x} {exact}");
        }
        // Done stays done, and nothing moves.
        let x = state.x().to_vec();
        assert_eq!(state.step(&system, comm, &mut work).unwrap(), done);
        assert_eq!(state.x(), x);
    });
}

#[test]
fn jacobi_solves_a_diagonal_system_in_one_iteration() {
    on_ranks(1, |comm| {
        let a = dense(comm, [[2.0, 0.0, 0.0], [0.0, 8.0, 0.0], [0.0, 0.0, 0.5]]);
        let m = Jacobi::new(&a, comm).unwrap();
        let (solution, x) = solve(&a, &m, &vector(comm, &[2.0, 4.0, 8.0]), comm);
        assert_eq!(solution.reason, StopReason::Converged { iterations: 1 });
        assert_eq!((x.local(), solution.relative_residual), (&[1.0, 0.5, 16.0][..], 0.0));
    });
}

#[test]
fn zero_right_hand_side_gives_zero_at_once() {
    on_ranks(3, |comm| {
        let a = poisson(&Poisson::new_2d(10, 10).unwrap(), comm);
        let mut x = DistVector::constant(a.part().clone(), 7.0);
        let b = DistVector::zeros(a.part().clone());
        let solution =
            ft_linalg::solve::<Cg>(&StopCriteria::default(), &a, &Identity, &b, &mut x, comm).unwrap();
        assert_eq!(solution.reason, StopReason::Converged { iterations: 0 });
        assert_eq!((solution.relative_residual, solution.recurred_relative_residual), (0.0, 0.0));
        assert!(x.local().iter().all(|x| x.to_bits() == 0));
    });
}

#[test]
fn a_good_guess_needs_no_iteration() {
    on_ranks(1, |comm| {
        let a = poisson(&Poisson::new_2d(5, 5).unwrap(), comm);
        let ones = rhs::ones(a.part());
        let b = rhs::from_solution(&a, &ones, comm).unwrap();
        let mut x = ones.clone();
        let solution =
            ft_linalg::solve::<Cg>(&StopCriteria::default(), &a, &Identity, &b, &mut x, comm).unwrap();
        assert_eq!((solution.reason, x), (StopReason::Converged { iterations: 0 }, ones));
    });
}

#[test]
fn an_indefinite_matrix_is_named_with_iteration_and_value() {
    on_ranks(2, |comm| {
        // p = b = (1, 1): p.Ap = 1 - 3.
        let a = dense(comm, [[1.0, 0.0], [0.0, -3.0]]);
        let (solution, x) = solve(&a, &Identity, &vector(comm, &[1.0, 1.0]), comm);
        let reason = StopReason::Indefinite { iterations: 0, quantity: Curvature, value: -2.0 };
        assert_eq!(solution.reason, reason);
        assert!(x.local().iter().all(|x| *x == 0.0));
    });
}

#[test]
fn a_bad_diagonal_is_the_same_error_on_every_rank() {
    let errors = on_ranks(4, |comm| {
        let part = Partition::of(comm, 100);
        let range = part.range();
        let vals = range.clone().map(|row| if row == 70 || row == 97 { -1.5 } else { 1.0 }).collect();
        let cols = range.clone().map(|row| row as u64).collect();
        let rows = CsrRows::new((0..=range.len()).collect(), cols, vals, 100).unwrap();
        let a = DistMatrix::new(part, rows, comm).unwrap();
        Jacobi::new(&a, comm).unwrap_err().to_string()
    });
    assert_eq!(errors, ["diagonal entry of row 71 is -1.5e0, needs to be positive and finite"; 4]);
}

/// Multiplies by a constant, all rows at once.
struct Scaled(f64);

impl Preconditioner for Scaled {
    fn apply(
        &self,
        r: &[f64],
        z: &mut [f64],
        _: &Communicator,
        _: &mut Workspace,
    ) -> Result<(), LinalgError> {
        z.iter_mut().zip(r).for_each(|(z, r)| *z = self.0 * r);
        Ok(())
    }
}

#[test]
fn an_indefinite_preconditioner_is_told_from_the_matrix() {
    on_ranks(2, |comm| {
        let a = dense(comm, [[4.0, 1.0], [1.0, 3.0]]);
        let (solution, _) = solve(&a, &Scaled(-1.0), &vector(comm, &[1.0, 2.0]), comm);
        let reason = StopReason::Indefinite { iterations: 0, quantity: PreconditionedResidual, value: -5.0 };
        assert_eq!(solution.reason, reason);
    });
}

#[test]
fn a_preconditioner_over_all_rows_gives_the_bits_of_one_over_ranges() {
    on_ranks(3, |comm| {
        let a = poisson(&Poisson::new_2d(30, 30).unwrap(), comm);
        let b = DistVector::from_fn(a.part().clone(), |row| (row.0 as f64).sin());
        let jacobi = Jacobi::new(&a, comm).unwrap();
        assert_eq!(solve(&a, &jacobi, &b, comm), solve(&a, &Scaled(0.25), &b, comm));
        assert_eq!(solve(&a, &Identity, &b, comm).1, solve(&a, &Scaled(1.0), &b, comm).1);
    });
}

#[test]
fn overflow_and_nan_are_breakdowns() {
    on_ranks(2, |comm| {
        let a = dense(comm, [[4.0, 1.0], [1.0, 3.0]]);
        let (solution, _) = solve(&a, &Identity, &vector(comm, &[1.0, f64::NAN]), comm);
        assert_eq!(solution.reason, StopReason::NotFinite { quantity: RightHandSide, row: 1 });
        assert!(solution.relative_residual.is_nan());
        let (solution, _) = solve(&a, &Identity, &vector(comm, &[1e200, 1e200]), comm);
        assert_eq!(solution.reason, StopReason::Breakdown { iterations: 0, quantity: Residual });
        assert_eq!(solution.relative_residual, 1.0);
        let a = dense(comm, [[1e308, 0.0], [0.0, 1e308]]);
        let (solution, _) = solve(&a, &Identity, &vector(comm, &[1e10, 1e10]), comm);
        assert_eq!(solution.reason, StopReason::Breakdown { iterations: 0, quantity: Curvature });
    });
}

#[test]
fn a_right_hand_side_whose_squares_underflow_is_not_zero() {
    on_ranks(2, |comm| {
        let a = dense(comm, [[4.0, 1.0], [1.0, 3.0]]);
        let (solution, _) = solve(&a, &Identity, &vector(comm, &[1e-200, 2e-200]), comm);
        assert_eq!(solution.reason, StopReason::Underflow { iterations: 0 });
        assert_eq!(solution.relative_residual, 1.0);
        // The same system, large enough.
        let (solution, _) = solve(&a, &Identity, &vector(comm, &[1e-140, 2e-140]), comm);
        assert_eq!(solution.reason, StopReason::Converged { iterations: 2 });
    });
}

#[test]
fn what_only_the_recurrence_has_converged_to_is_no_answer() {
    on_ranks(2, |comm| {
        let a = poisson(&Poisson::new_2d(40, 40).unwrap(), comm);
        let mut x = DistVector::zeros(a.part().clone());
        let stop = StopCriteria { rtol: 1e-17, ..STOP };
        let solution =
            ft_linalg::solve::<Cg>(&stop, &a, &Identity, &rhs::ones(a.part()), &mut x, comm).unwrap();
        assert!(solution.recurred_relative_residual <= 1e-17, "{solution:?}");
        let StopReason::Drifted { iterations, relative_residual } = solution.reason else {
            panic!("{solution:?}");
        };
        assert!(iterations > 50 && relative_residual > 1e-16 && !solution.reason.is_converged());
        assert_eq!(relative_residual, solution.relative_residual);
    });
}

#[test]
fn iterations_are_limited() {
    on_ranks(2, |comm| {
        let a = poisson(&Poisson::new_2d(20, 20).unwrap(), comm);
        let mut x = DistVector::zeros(a.part().clone());
        let stop = StopCriteria { iterations_max: 3, ..STOP };
        let solution =
            ft_linalg::solve::<Cg>(&stop, &a, &Identity, &rhs::ones(a.part()), &mut x, comm).unwrap();
        assert_eq!(solution.reason, StopReason::MaxIterations { iterations: 3 });
        assert!(!solution.reason.is_converged() && x.norm2(comm).unwrap() > 0.0);
        assert!((solution.relative_residual - solution.recurred_relative_residual).abs() < 1e-12);
    });
}

/// Textbook algorithm with plain sums.
fn cg_serial(a: &CsrRows, b: &[f64], rtol: f64) -> (usize, Vec<f64>) {
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let (mut x, mut r, mut p, mut q) = (vec![0.0; b.len()], b.to_vec(), b.to_vec(), vec![0.0; b.len()]);
    let (mut rr, mut iterations) = (dot(&r, &r), 0);
    while rr.sqrt() > rtol * dot(b, b).sqrt() {
        a.product_serial(&p, &mut q);
        let alpha = rr / dot(&p, &q);
        (0..b.len()).for_each(|i| x[i] += alpha * p[i]);
        (0..b.len()).for_each(|i| r[i] -= alpha * q[i]);
        let beta = dot(&r, &r) / rr;
        rr = dot(&r, &r);
        (0..b.len()).for_each(|i| p[i] = r[i] + beta * p[i]);
        iterations += 1;
    }
    (iterations, x)
}

#[test]
fn agrees_with_a_plain_serial_solver() {
    let grid = Poisson::new_2d(31, 23).unwrap();
    let (iterations, exact) = cg_serial(&grid.rows(0..grid.n()), &vec![1.0; grid.n()], STOP.rtol);
    on_ranks(4, |comm| {
        let a = poisson(&grid, comm);
        let (solution, x) = solve(&a, &Identity, &rhs::ones(a.part()), comm);
        assert!(solution.reason.is_converged() && solution.relative_residual <= 1.01e-8);
        assert!(solution.reason.iterations().abs_diff(iterations as u64) <= 1);
        // Both satisfy ||b - A x|| <= 1e-8 ||b||, so they differ by at most 2e-8 ||A^-1|| ||b||, with
        // 1 / ||A^-1|| = 4 sin^2(pi / 64) + 4 sin^2(pi / 48) = 0.0268 and ||b|| = 26.7.
        let far = x.local().iter().zip(&exact[a.part().range()]).map(|(x, y)| (x - y).abs());
        assert!(far.fold(0.0, f64::max) <= 2e-8 / 0.0268 * 26.8);
    });
}

#[test]
fn same_bits_on_any_number_of_ranks() {
    let grid = Poisson::new_3d(13, 11, 9).unwrap();
    let run = |size| {
        on_ranks(size, |comm| {
            let a = poisson(&grid, comm);
            let b = DistVector::from_fn(a.part().clone(), |row| 1.0 / (1.0 + row.0 as f64));
            let (solution, x) = solve(&a, &Jacobi::new(&a, comm).unwrap(), &b, comm);
            assert!(solution.reason.is_converged());
            let norm = x.norm2(comm).unwrap().to_bits();
            (answer_hash(a.part(), x.local(), comm).unwrap(), solution.reason, norm, x.gather(comm).unwrap())
        })
    };
    let one = run(1).remove(0);
    for size in [2, 3, 4, 5, 7, 8, 50] {
        assert!(run(size).into_iter().all(|other| other == one), "{size} ranks");
    }
}

#[test]
fn a_restored_state_goes_on_with_the_same_bits() {
    let grid = Poisson::new_2d(40, 40).unwrap();
    on_ranks(4, |comm| {
        let mut a = poisson(&grid, comm);
        let (b, x) = (rhs::ones(a.part()), DistVector::zeros(a.part().clone()));
        let (system, mut work) = (System { a: &a, m: &Identity, b: b.local() }, Workspace::default());
        let mut state = Cg::start(&STOP, &system, x.local(), comm, &mut work).unwrap();
        for _ in 0..17 {
            assert_eq!(state.step(&system, comm, &mut work).unwrap(), Step::Continue);
        }
        let mut restored = state.clone();
        while state.step(&system, comm, &mut work).unwrap() == Step::Continue {}
        a.rebuild(comm).unwrap();
        let (system, mut work) = (System { a: &a, m: &Identity, b: b.local() }, Workspace::default());
        while restored.step(&system, comm, &mut work).unwrap() == Step::Continue {}
        assert!(state.progress().iterations > 17);
        assert_eq!((restored.progress(), restored.x()), (state.progress(), state.x()));
    });
}

#[test]
fn one_rank_with_bad_rows_stops_all() {
    let outcomes = on_ranks(3, |comm| {
        let part = Partition::of(comm, 96);
        let (len, start) = (part.local_len(), part.range().start as u64);
        // Rank 1 points at a column of a wider matrix.
        let cols = (0..len as u64).map(|i| if comm.rank() == 1 && i == 4 { 96 } else { start + i }).collect();
        let rows = CsrRows::new((0..=len).collect(), cols, vec![1.0; len], 1000).unwrap();
        DistMatrix::new(part, rows, comm).map(|_| ()).unwrap_err()
    });
    assert!(matches!(outcomes[0], LinalgError::OtherRank { rank: 1 }));
    assert!(matches!(outcomes[1], LinalgError::BadRows { row: 4, .. }));
    assert!(matches!(outcomes[2], LinalgError::OtherRank { rank: 1 }));
}

#[test]
fn an_object_of_another_communicator_is_refused() {
    on_ranks(2, |comm| {
        let v = DistVector::zeros(Partition::new(100, 3, 0));
        let error = v.norm2(comm).unwrap_err();
        assert!(matches!(error, LinalgError::WrongCommunicator { part_size: 3, size: 2, .. }));
    });
}

/// Iterations to 1e-8 on `A x = A 1`, the same on 1, 2 and 3 ranks, within 3 % of `expected` (counted with PETSc,
/// scipy and a fused loop of our own, which differ among themselves by up to 3 % because they sum in other orders).
fn iterations_on_real_matrix(name: &str, jacobi: bool, expected: u64) {
    let Some(matrix) = data_matrix(name) else { return };
    matrix.require_symmetric().unwrap();
    let run = |size| {
        let mut outcomes = on_ranks(size, |comm| {
            let a = DistMatrix::from_coordinates(&matrix, comm).unwrap();
            let b = rhs::from_solution(&a, &rhs::ones(a.part()), comm).unwrap();
            let m: Box<dyn Preconditioner> =
                if jacobi { Box::new(Jacobi::new(&a, comm).unwrap()) } else { Box::new(Identity) };
            let (solution, x) = solve(&a, &*m, &b, comm);
            assert!(solution.reason.is_converged(), "{}", solution.reason);
            (solution.reason.iterations(), answer_hash(a.part(), x.local(), comm).unwrap())
        });
        outcomes.dedup();
        assert_eq!(outcomes.len(), 1, "ranks disagree");
        outcomes.remove(0)
    };
    let one = run(1);
    assert!(
        one.0.abs_diff(expected) * 100 <= 3 * expected,
        "{name}: {} iterations, expected {expected}",
        one.0
    );
    assert_eq!(run(2), one);
    assert_eq!(run(3), one);
}

#[test]
fn iterations_494_bus() {
    iterations_on_real_matrix("494_bus", false, 1133);
    iterations_on_real_matrix("494_bus", true, 393);
}

#[test]
fn iterations_1138_bus_jacobi() {
    iterations_on_real_matrix("1138_bus", true, 935);
}

#[test]
fn iterations_bcsstk16_jacobi() {
    iterations_on_real_matrix("bcsstk16", true, 197);
}

#[test]
fn iterations_s1rmq4m1_jacobi() {
    iterations_on_real_matrix("s1rmq4m1", true, 714);
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn iterations_poisson_128() {
    on_ranks(2, |comm| {
        let a = poisson(&Poisson::new_3d(128, 128, 128).unwrap(), comm);
        let clock = ft_comm::time::Clock::start();
        let (solution, _) = solve(&a, &Identity, &rhs::ones(a.part()), comm);
        let each_us = clock.now().since(ft_comm::time::Time(0)).as_secs_f64() * 1e6
            / solution.reason.iterations() as f64;
        eprintln!("{} in {each_us:.0} us each", solution.reason);
        assert_eq!(solution.reason, StopReason::Converged { iterations: 319 });
    });
}
