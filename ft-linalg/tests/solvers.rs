//! Every solver on the problems of the gallery that suit it: against known solutions, with the same bits on any number of
//! ranks, restored in the middle, in as few messages as promised, and with a reason where there is no answer.

mod common;

use common::problems::{Problem, Whole, options, whole};
use common::{dense, on_ranks};
use ft_checkpoint::{RankState, StatePart, load, save};
use ft_comm::Communicator;
use ft_linalg::gallery::LeastSquares;
use ft_linalg::operator::WithTranspose;
use ft_linalg::solver::{AnyOptions, AnySolver, Fgmres, GmresOptions, Method, Task, Watch};
use ft_linalg::stop::Quantity;
use ft_linalg::{
    Cg, DistMatrix, DistRows, DistVector, Identity, LinalgError, LinearOperator, MakePreconditioner,
    MultiVector, Partition, Poisson, Precond, Preconditioner, SolveState, Solver, Step, StopCriteria,
    StopReason, System, Workspace, solve, solve_many,
};
use nalgebra::DVector;

use Problem::{Convection, Laplacian27 as Points27, Neumann, Shifted};

/// The solvers of linear systems, and what suits each.
const SUITED: &[(Method, &[(Problem, Precond)])] = &[
    (
        Method::Cg,
        &[
            (Problem::Poisson, Precond::Jacobi),
            (Points27, Precond::None),
            (Problem::Elasticity, Precond::Jacobi),
            (Neumann, Precond::None),
        ],
    ),
    (
        Method::SingleReductionCg,
        &[
            (Problem::Poisson, Precond::Jacobi),
            (Points27, Precond::Jacobi),
            (Problem::Elasticity, Precond::None),
            (Neumann, Precond::Jacobi),
        ],
    ),
    (
        Method::Minres,
        &[
            (Problem::Poisson, Precond::None),
            (Problem::Elasticity, Precond::Jacobi),
            (Shifted, Precond::Jacobi),
            (Neumann, Precond::None),
        ],
    ),
    (
        Method::Bicgstab,
        &[
            (Problem::Poisson, Precond::None),
            (Problem::Elasticity, Precond::Jacobi),
            (Convection, Precond::Jacobi),
        ],
    ),
    (
        Method::Gmres,
        &[
            (Points27, Precond::Jacobi),
            (Convection, Precond::None),
            (Convection, Precond::Jacobi),
            (Neumann, Precond::None),
        ],
    ),
    (Method::Fgmres, &[(Problem::Poisson, Precond::None), (Convection, Precond::Jacobi)]),
    (Method::Richardson, &[(Points27, Precond::Jacobi), (Convection, Precond::Jacobi)]),
    (Method::Chebyshev, &[(Problem::Poisson, Precond::Jacobi), (Problem::Elasticity, Precond::Jacobi)]),
];

/// The same, but after some iterations only what a checkpoint holds goes on.
fn restored(
    method: Method,
    (problem, precond): (Problem, Precond),
    stop: StopCriteria,
    after: u64,
    comm: &Communicator,
) -> Whole {
    let (mut a, b, _) = problem.system(comm);
    let m = precond.make(&a, comm).unwrap();
    let (mut solver, mut watch);
    {
        let (system, mut work) = (System { a: &a, m: &*m, b: b.local() }, Workspace::default());
        let x = vec![0.0; b.local().len()];
        solver = AnySolver::start(&options(method, stop), &system, &x, comm, &mut work).unwrap();
        watch = Watch::default();
        for _ in 0..after {
            assert_eq!(watch.step(&mut solver, &system, comm, &mut work).unwrap(), Step::Continue);
        }
    }
    let (mut after_restore, mut watched, mut shard) = (AnySolver::default(), Watch::default(), vec![]);
    for part in [StatePart::Constant, StatePart::Variable] {
        save(&mut solver, part, &mut shard).unwrap();
        load(&mut after_restore, part, &shard).unwrap();
        save(&mut watch, part, &mut shard).unwrap();
        load(&mut watched, part, &shard).unwrap();
    }
    a.rebuild(comm).unwrap();
    let m = precond.make(&a, comm).unwrap();
    let (system, mut work) = (System { a: &a, m: &*m, b: b.local() }, Workspace::default());
    let reason = loop {
        if let Step::Done(reason) = watched.step(&mut after_restore, &system, comm, &mut work).unwrap() {
            break reason;
        }
    };
    let solution = watched.conclude(&after_restore, reason, &system, comm, &mut work).unwrap();
    // Done stays done, of the watch and of the solver, and nothing moves.
    let x = after_restore.x().to_vec();
    assert_eq!(watched.step(&mut after_restore, &system, comm, &mut work).unwrap(), Step::Done(reason));
    assert_eq!(after_restore.step(&system, comm, &mut work).unwrap(), Step::Done(reason));
    assert_eq!(after_restore.x(), x);
    (solution, DistVector::from_local(a.part().clone(), x).unwrap().gather(comm).unwrap())
}

#[test]
fn every_method_is_tested_somewhere() {
    for method in Method::ALL {
        let is_linear = SUITED.iter().any(|(suited, _)| *suited == method);
        assert_eq!(is_linear, method.task() == Task::Linear, "{method}");
    }
}

#[test]
fn answers_are_the_known_solutions() {
    for (method, problems) in SUITED {
        for &case in *problems {
            let (solution, x) =
                on_ranks(1, |comm| whole(*method, case, StopCriteria::DEFAULT, comm)).remove(0);
            assert!(solution.reason.is_converged(), "{method} {case:?}: {}", solution.reason);
            assert_eq!(solution.history.len() as u64, solution.reason.iterations() + 1, "{method} {case:?}");
            let (a, b, exact) = on_ranks(1, |comm| {
                let (a, b, exact) = case.0.system(comm);
                (a.rows().to_dense(b.local().len()), b.into_nalgebra(), exact.into_nalgebra())
            })
            .remove(0);
            let mut x = DVector::from_vec(x);
            let residual = (&b - &a * &x).norm() / b.norm();
            assert!(residual < 2.1e-8, "{method} {case:?}: {residual:e}");
            let reported = solution.relative_residual;
            assert!((reported - residual).abs() < 1e-3 * residual, "{method} {case:?}: {reported:e}");
            if case.0 == Neumann {
                // Solutions differ by a constant.
                x.add_scalar_mut((&exact - &x).mean());
            }
            let error = (&x - &exact).norm() / exact.norm();
            assert!(error < 1e-5, "{method} {case:?}: {error:e}");
        }
    }
}

/// Rows and columns of a grid multiplied by numbers from 0.01 to 100: the norm of the
/// preconditioner is far from the Euclidean one.
#[test]
fn the_residual_of_a_badly_scaled_system_is_that_of_its_answer() {
    let scale = |row: usize| 10f64.powf(2.0 * (row as f64).sin());
    let linear = Method::ALL.into_iter().filter(|method| method.task() == Task::Linear);
    for method in linear.filter(|method| !matches!(method, Method::Richardson | Method::Chebyshev)) {
        let case = |comm: &Communicator| {
            let grid = Poisson::new_2d(12, 12).unwrap();
            let row = |row: usize, entries: &mut Vec<(usize, f64)>| {
                let rows = grid.rows(row..row + 1);
                let (cols, vals) = rows.row(0);
                let scaled =
                    |(&col, val): (&u64, &f64)| (col as usize, scale(row) * val * scale(col as usize));
                entries.extend(cols.iter().zip(vals).map(scaled));
            };
            let a = DistRows::from_fn(144, 144, comm, row).unwrap().into_matrix(comm).unwrap();
            let b = ft_linalg::rhs::ones(a.part());
            let m = Precond::Jacobi.make(&a, comm).unwrap();
            let mut x = DistVector::zeros(a.part().clone());
            let options = options(method, StopCriteria::DEFAULT);
            let solution = solve::<AnySolver>(&options, &a, &*m, &b, &mut x, comm).unwrap();
            let residual = ft_linalg::solver::relative_residual(&a, &x, &b, comm).unwrap();
            (solution, residual)
        };
        let (solution, residual) = on_ranks(1, case).remove(0);
        assert_eq!(on_ranks(3, case)[2], (solution.clone(), residual), "{method}");
        assert!(solution.reason.is_converged(), "{method}: {}", solution.reason);
        assert!((solution.relative_residual - residual).abs() < 1e-3 * residual, "{method}: {residual:e}");
        let recurred = solution.recurred_relative_residual;
        assert!(residual <= 2.0e-8 && recurred > 0.5 * residual, "{method}: {recurred:e}, but {residual:e}");
    }
}

#[test]
fn same_bits_on_any_number_of_ranks_and_after_a_restore() {
    for (method, problems) in SUITED {
        for &case in *problems {
            let stop =
                StopCriteria { true_residual_every: 10, stagnation_window: 500, ..StopCriteria::DEFAULT };
            let one = on_ranks(1, |comm| whole(*method, case, stop, comm)).remove(0);
            for size in [2, 3, 4, 7] {
                let all = on_ranks(size, |comm| whole(*method, case, stop, comm));
                assert!(all.into_iter().all(|other| other == one), "{method} {case:?} on {size} ranks");
            }
            let iterations = one.0.reason.iterations();
            for after in [1, 17.min(iterations - 1), iterations / 2] {
                let all = on_ranks(3, |comm| restored(*method, case, stop, after, comm));
                assert!(all.into_iter().all(|other| other == one), "{method} {case:?} after {after}");
            }
        }
    }
}

#[test]
fn fewer_ranks_go_on_with_the_same_bits() {
    for (method, problems) in SUITED {
        let (problem, precond) = problems[0];
        let options = options(*method, StopCriteria::DEFAULT);
        let one = on_ranks(1, |comm| whole(*method, (problem, precond), options.stop, comm)).remove(0);
        let shards = on_ranks(3, |comm| {
            let (a, b, x) = problem.system(comm);
            let system = ft_linalg::Problem { a, b, x: DistVector::zeros(x.part().clone()) };
            let mut state = SolveState::<AnySolver>::new(&options, &precond, system, comm).unwrap();
            for _ in 0..one.0.reason.iterations().min(20) / 2 {
                assert_eq!(state.step(comm).unwrap(), Step::Continue);
            }
            [StatePart::Constant, StatePart::Variable].map(|part| {
                let mut shard = vec![];
                save(&mut state, part, &mut shard).unwrap();
                shard
            })
        });
        let all = on_ranks(2, |comm| {
            let held = if comm.rank() == 0 { vec![0] } else { vec![1, 2] };
            let share = |rank: usize| {
                let mut state = SolveState::<AnySolver>::default();
                load(&mut state, StatePart::Constant, &shards[rank][0]).unwrap();
                load(&mut state, StatePart::Variable, &shards[rank][1]).unwrap();
                RankState { rank, state }
            };
            let mut state = SolveState::redistribute(held.into_iter().map(share).collect(), 3, comm).unwrap();
            state.rebuild(&precond, comm).unwrap();
            while state.step(comm).unwrap() == Step::Continue {}
            let x = DistVector::from_local(state.a.part().clone(), state.solver.x().to_vec()).unwrap();
            (state.solution().unwrap().clone(), x.gather(comm).unwrap())
        });
        assert!(all.into_iter().all(|other| other == one), "{method}");
    }
}

/// The curve through measurements, with its solution; of `wide` the transpose, with the shortest solution.
fn least_squares(method: Method, wide: bool, comm: &Communicator) -> Whole {
    let curve = LeastSquares::new(150, 3.0).unwrap();
    let part = Partition::of(comm, curve.n_rows());
    let rows = DistRows::new(part.clone(), curve.n_cols(), curve.rows(part.range()), comm).unwrap();
    let rows = if wide { rows.transpose(comm).unwrap() } else { rows };
    let a = WithTranspose::new(rows, comm).unwrap();
    let b = DistVector::from_fn(a.part().clone(), |row| curve.rhs(row.0));
    let mut x = DistVector::zeros(a.col_part().clone());
    let stop = StopCriteria { rtol: 1e-12, ..StopCriteria::DEFAULT };
    let solution = solve::<AnySolver>(&options(method, stop), &a, &Identity, &b, &mut x, comm).unwrap();
    (solution, x.gather(comm).unwrap())
}

#[test]
fn least_squares_of_tall_and_wide_matrices() {
    let curve = LeastSquares::new(150, 3.0).unwrap();
    let dense = curve.rows(0..curve.n_rows()).to_dense(curve.n_cols());
    let known = DVector::from_fn(150, |col, _| curve.solution(col));
    let b = DVector::from_fn(150, |row, _| curve.rhs(row));
    let shortest = dense.transpose().svd(true, true).solve(&b, 1e-9).unwrap();
    for method in Method::ALL.into_iter().filter(|method| method.task() == Task::LeastSquares) {
        for (wide, exact) in [(false, &known), (true, &shortest)] {
            let one = on_ranks(1, |comm| least_squares(method, wide, comm)).remove(0);
            assert!(one.0.reason.is_converged(), "{method}: {}", one.0.reason);
            let error = (DVector::from_vec(one.1.clone()) - exact).norm() / exact.norm();
            assert!(error < 1e-8, "{method}, wide {wide}: {error:e}");
            let a = if wide { dense.transpose() } else { dense.clone() };
            let b = DVector::from_fn(a.nrows(), |row, _| curve.rhs(row));
            let r = &b - &a * DVector::from_vec(one.1.clone());
            let residual = r.norm() / b.norm();
            let reported = one.0.relative_residual;
            assert!(
                (reported - residual).abs() <= 1e-9 * residual + 1e-14,
                "{method}: {reported:e} {residual:e}"
            );
            let gradient = a.tr_mul(&r).norm() / a.tr_mul(&b).norm();
            assert!(one.0.relative_norm <= 2e-12 && gradient <= 2.1e-12, "{method}: {gradient:e}");
            for size in [2, 3, 4, 7] {
                let all = on_ranks(size, |comm| least_squares(method, wide, comm));
                assert!(all.into_iter().all(|other| other == one), "{method} on {size} ranks");
            }
        }
    }
}

#[test]
fn a_matrix_without_a_transpose_is_an_error() {
    on_ranks(2, |comm| {
        let (a, b, mut x) = Problem::Poisson.system(comm);
        for method in [Method::Cgls, Method::Lsqr] {
            let options = options(method, StopCriteria::DEFAULT);
            let error = solve::<AnySolver>(&options, &a, &Identity, &b, &mut x, comm).unwrap_err();
            assert!(matches!(error, LinalgError::NoTranspose));
        }
    });
}

#[test]
fn several_right_hand_sides_are_solved_as_each_alone() {
    on_ranks(3, |comm| {
        let (a, ..) = Convection.system(comm);
        let m = Precond::Jacobi.make(&a, comm).unwrap();
        let b = MultiVector::from_fn(a.part().clone(), 3, |row, column| ((row.0 * column) as f64).cos());
        let mut x = MultiVector::zeros(a.part().clone(), 3);
        let options = options(Method::Bicgstab, StopCriteria::DEFAULT);
        let solutions = solve_many::<AnySolver>(&options, &a, &*m, &b, &mut x, comm).unwrap();
        for (column, solution) in solutions.iter().enumerate() {
            let mut alone = DistVector::zeros(a.part().clone());
            let due = solve::<AnySolver>(&options, &a, &*m, &b.vector(column), &mut alone, comm).unwrap();
            assert_eq!((solution, x.vector(column)), (&due, alone));
        }
    });
}

/// Simulated events of a program on two ranks.
fn events(program: impl Fn(&Communicator) + Sync) -> u64 {
    let outcome = ft_sim::run(ft_sim::Config::calm(2), |mut world| {
        program(world.comm());
        world.finalize(vec![]).unwrap();
    });
    outcome.happened
}

/// Of ten iterations, with an operator that needs no messages.
#[test]
fn sums_of_an_iteration_come_in_few_messages() {
    let promised = [
        (Method::Cg, 2),
        (Method::SingleReductionCg, 1),
        (Method::Minres, 2),
        (Method::Bicgstab, 3),
        (Method::Gmres, 1),
        (Method::Fgmres, 1),
        (Method::Richardson, 1),
        (Method::Chebyshev, 1),
        (Method::Cgls, 2),
        (Method::Lsqr, 2),
        (Method::Power, 2),
        (Method::Lanczos, 2),
        (Method::Lobpcg, 4),
    ];
    let iterate = |method: Method, iterations: usize| {
        events(|comm| {
            let part = Partition::of(comm, 200);
            let a = Diagonal(part.clone());
            let b = vec![1.0; part.local_len()];
            let (system, mut work) = (System { a: &a, m: &Identity, b: &b }, Workspace::default());
            let stop = StopCriteria { rtol: 0.0, ..StopCriteria::DEFAULT };
            let options = AnyOptions { omega: 0.01, bounds: Some([1.0, 200.0]), ..options(method, stop) };
            let mut solver =
                AnySolver::start(&options, &system, &vec![0.0; b.len()], comm, &mut work).unwrap();
            for _ in 0..iterations {
                assert_eq!(solver.step(&system, comm, &mut work).unwrap(), Step::Continue, "{method}");
            }
        })
    };
    let sum = |times: usize| {
        events(|comm| {
            let (part, mut work) = (Partition::of(comm, 200), Workspace::default());
            let x = vec![1.0; part.local_len()];
            for _ in 0..times {
                assert_eq!(work.dots(&part, [(&x, &x)], comm).unwrap(), [200.0]);
            }
        })
    };
    let one = (sum(30) - sum(10)) / 20;
    for (method, due) in promised {
        let spent = iterate(method, 15) - iterate(method, 5);
        // Many bytes take a message of flow control now and then.
        assert_eq!(spent / (10 * one), due, "{method}");
    }
}

/// 1 to n.
struct Diagonal(Partition);

impl LinearOperator for Diagonal {
    fn part(&self) -> &Partition {
        &self.0
    }

    fn apply(
        &self,
        x: &[f64],
        y: &mut [f64],
        _: &Communicator,
        _: &mut Workspace,
    ) -> Result<(), LinalgError> {
        y.iter_mut().zip(x).zip(self.0.range()).for_each(|((y, x), row)| *y = (row + 1) as f64 * x);
        Ok(())
    }

    fn apply_transpose(
        &self,
        x: &[f64],
        y: &mut [f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        self.apply(x, y, comm, work)
    }
}

/// What a solver says of a small system.
fn reason<const N: usize>(
    method: Method,
    stop: StopCriteria,
    a: [[f64; N]; N],
    b: [f64; N],
    x: [f64; N],
) -> StopReason {
    let reasons = on_ranks(2, |comm| {
        let rows = DistRows::of_matrix(&dense(comm, a));
        let a = WithTranspose::new(rows, comm).unwrap();
        let b = DistVector::from_global(a.part().clone(), &b).unwrap();
        let mut x = DistVector::from_global(a.part().clone(), &x).unwrap();
        let solution = solve::<AnySolver>(&options(method, stop), &a, &Identity, &b, &mut x, comm).unwrap();
        if b.local().iter().all(|b| *b == 0.0) && solution.reason.is_converged() {
            assert!(x.local().iter().all(|x| *x == 0.0));
        }
        solution.reason
    });
    assert!(reasons.iter().all(|reason| *reason == reasons[0]));
    reasons[0]
}

#[test]
fn numbers_that_are_not_finite_are_named_with_their_place() {
    let a = [[2.0, 1.0], [1.0, 2.0]];
    for method in Method::ALL {
        let say = |a, b, x| reason::<2>(method, StopCriteria::DEFAULT, a, b, x);
        let named = |quantity, row| StopReason::NotFinite { quantity, row };
        for bad in [f64::NAN, f64::INFINITY, -f64::INFINITY] {
            let is_eigen = method.task() == Task::Eigenvalues;
            let start = if is_eigen { Quantity::Start } else { Quantity::RightHandSide };
            assert_eq!(say(a, [1.0, bad], [0.0; 2]), named(start, 1), "{method}");
            let matrix = say([[2.0, 1.0], [bad, 2.0]], [1.0; 2], [0.0; 2]);
            assert_eq!(matrix, named(Quantity::Product, 1), "{method}");
            if !is_eigen {
                let first = say(a, [1.0; 2], [bad, 0.0]);
                assert_eq!(first, named(Quantity::FirstApproximation, 0), "{method}");
            }
        }
    }
}

#[test]
fn zero_gives_zero_and_an_answer_stays() {
    for method in Method::ALL.into_iter().filter(|method| method.task() != Task::Eigenvalues) {
        let say = |a, b, x| reason::<2>(method, StopCriteria::DEFAULT, a, b, x);
        let at_once = StopReason::Converged { iterations: 0 };
        assert_eq!(say([[2.0, 1.0], [1.0, 2.0]], [0.0; 2], [5.0; 2]), at_once, "{method}");
        assert_eq!(say([[2.0, 0.0], [0.0, 2.0]], [2.0, 4.0], [1.0, 2.0]), at_once, "{method}");
    }
}

#[test]
fn what_has_no_answer_says_so() {
    let stop = StopCriteria { iterations_max: 200, ..StopCriteria::DEFAULT };
    let say = |method, a, b| reason::<2>(method, stop, a, b, [0.0; 2]);
    let vanished = |iterations, quantity| StopReason::Vanished { iterations, quantity };
    // Nilpotent, with b outside of the range.
    let nilpotent = [[0.0, 1.0], [0.0, 0.0]];
    let pivot = vanished(1, Quantity::Pivot);
    assert_eq!(say(Method::Gmres, nilpotent, [0.0, 1.0]), pivot);
    assert_eq!(say(Method::Fgmres, nilpotent, [0.0, 1.0]), pivot);
    // Skew: r.Ar is 0.
    let skew = [[0.0, 1.0], [-1.0, 0.0]];
    let shadow = vanished(0, Quantity::ShadowCurvature);
    assert_eq!(say(Method::Bicgstab, skew, [1.0, 0.0]), shadow);
    assert!(say(Method::Gmres, skew, [1.0, 0.0]).is_converged());
    // Indefinite.
    let indefinite = [[1.0, 0.0], [0.0, -3.0]];
    let named = StopReason::Indefinite { iterations: 0, quantity: Quantity::Curvature, value: -2.0 };
    assert_eq!(say(Method::Cg, indefinite, [1.0; 2]), named);
    assert_eq!(say(Method::SingleReductionCg, indefinite, [1.0; 2]), named);
    assert!(say(Method::Minres, indefinite, [1.0; 2]).is_converged());
    let chebyshev = say(Method::Chebyshev, indefinite, [1.0; 2]);
    assert!(matches!(chebyshev, StopReason::Indefinite { quantity: Quantity::SmallestEigenvalue, .. }));
    // The first residual is in the null space: there is nothing to estimate bounds from.
    let null = StopReason::Indefinite { iterations: 0, quantity: Quantity::SmallestEigenvalue, value: 0.0 };
    assert_eq!(say(Method::Chebyshev, [[1.0, -1.0], [-1.0, 1.0]], [1.0; 2]), null);
    assert_eq!(say(Method::Chebyshev, [[0.0; 2]; 2], [1.0, 2.0]), null);
    // Singular, with b outside of the range: the residual stays at 1.
    let singular = [[1.0, 0.0], [0.0, 0.0]];
    let minres = say(Method::Minres, singular, [1.0; 2]);
    assert!(matches!(minres, StopReason::Vanished { quantity: Quantity::Pivot, .. }), "{minres:?}");
    // The same for least squares is no trouble.
    assert!(say(Method::Lsqr, singular, [1.0; 2]).is_converged());
    assert!(say(Method::Cgls, singular, [1.0; 2]).is_converged());
    // Too long a step.
    let far = [[3.0, 0.0], [0.0, 3.0]];
    let dtol = StopCriteria { dtol: 1e5, ..stop };
    assert!(matches!(
        reason::<2>(Method::Richardson, dtol, far, [1.0; 2], [0.0; 2]),
        StopReason::Diverged { relative_residual, .. } if relative_residual > 1e5
    ));
    let long = StopReason::MaxIterations { iterations: 200 };
    assert_eq!(say(Method::Richardson, far, [1.0; 2]), long);
}

#[test]
fn a_solve_is_stopped_from_outside() {
    for (method, problems) in SUITED {
        let outcome = |stop| on_ranks(2, |comm| whole(*method, problems[0], stop, comm)).remove(0).0;
        let late = outcome(StopCriteria { seconds_max: 0.0, ..StopCriteria::DEFAULT });
        assert_eq!(late.reason, StopReason::OutOfTime { iterations: 1 }, "{method}");
        // The answer is that of the last iteration.
        let far = late.relative_residual - late.recurred_relative_residual;
        assert!(far.abs() < 1e-12, "{method}: {late:?}");
        // Nothing gets a million times better in three iterations.
        let strict = StopCriteria { stagnation_window: 3, stagnation_factor: 1e-6, ..StopCriteria::DEFAULT };
        assert_eq!(outcome(strict).reason, StopReason::Stagnated { iterations: 3 }, "{method}");
        // The true residual has converged where the recurrence is never believed.
        let truth = StopCriteria { true_residual_every: 1, ..StopCriteria::DEFAULT };
        assert!(outcome(truth).reason.is_converged(), "{method}");
    }
}

#[test]
fn what_drifts_is_stopped_early() {
    let run = |every| {
        let stop = StopCriteria { rtol: 1e-17, true_residual_every: every, ..StopCriteria::DEFAULT };
        let case = (Problem::Poisson, Precond::None);
        on_ranks(2, |comm| whole(Method::Cg, case, stop, comm)).remove(0).0.reason
    };
    let (late, early) = (run(0), run(1));
    assert!(matches!(late, StopReason::Drifted { .. }), "{late:?}");
    assert!(matches!(early, StopReason::Drifted { .. }), "{early:?}");
    assert!(early.iterations() < late.iterations());
}

#[test]
fn richardson_with_jacobi_is_the_jacobi_iteration() {
    on_ranks(1, |comm| {
        let a = dense(comm, [[4.0, 1.0], [2.0, 5.0]]);
        let m = Precond::Jacobi.make(&a, comm).unwrap();
        let b = DistVector::from_global(a.part().clone(), &[1.0, 2.0]).unwrap();
        let mut x = DistVector::zeros(a.part().clone());
        let stop = StopCriteria { iterations_max: 2, ..StopCriteria::DEFAULT };
        let options = AnyOptions { omega: 1.0, ..options(Method::Richardson, stop) };
        solve::<AnySolver>(&options, &a, &*m, &b, &mut x, comm).unwrap();
        // x1 = (1/4, 2/5), x2 = ((1 - 2/5) / 4, (2 - 1/2) / 5).
        assert!((x.local()[0] - 0.15).abs() < 1e-15 && (x.local()[1] - 0.3).abs() < 1e-15, "{x:?}");
    });
}

/// A preconditioner that is another one each time: a few steps of conjugate gradients.
struct Inner<'a>(&'a DistMatrix, u64);

impl Preconditioner for Inner<'_> {
    fn apply(
        &self,
        r: &[f64],
        z: &mut [f64],
        comm: &Communicator,
        _: &mut Workspace,
    ) -> Result<(), LinalgError> {
        let b = DistVector::from_local(self.0.part().clone(), r.to_vec())?;
        let mut x = DistVector::zeros(self.0.part().clone());
        let stop = StopCriteria { iterations_max: self.1, ..StopCriteria::DEFAULT };
        solve::<Cg>(&stop, self.0, &Identity, &b, &mut x, comm)?;
        z.copy_from_slice(x.local());
        Ok(())
    }
}

#[test]
fn flexible_gmres_takes_a_solve_as_its_preconditioner() {
    on_ranks(3, |comm| {
        let grid = Poisson::new_2d(30, 30).unwrap();
        let part = Partition::of(comm, grid.n());
        let a = DistMatrix::new(part.clone(), grid.rows(part.range()), comm).unwrap();
        let (b, mut x) = (ft_linalg::rhs::ones(&part), DistVector::zeros(part));
        let run = |m: &dyn Preconditioner, x: &mut DistVector| {
            solve::<Fgmres>(&GmresOptions::default(), &a, m, &b, x, comm).unwrap()
        };
        let plain = run(&Identity, &mut x.clone());
        let nested = run(&Inner(&a, 10), &mut x);
        assert!(nested.reason.is_converged() && nested.relative_residual < 2e-8, "{nested:?}");
        assert!(4 * nested.reason.iterations() < plain.reason.iterations());
    });
}

/// As with a good preconditioner: what products have beside the basis is small, so that a basis whose vectors are always made
/// orthogonal once is lost after nine of them, and 25 iterations are needed where 9 are enough.
#[test]
fn what_is_near_the_identity_is_solved_at_once() {
    struct Near(Partition);
    impl LinearOperator for Near {
        fn part(&self) -> &Partition {
            &self.0
        }

        fn apply(
            &self,
            x: &[f64],
            y: &mut [f64],
            _: &Communicator,
            _: &mut Workspace,
        ) -> Result<(), LinalgError> {
            for ((y, x), row) in y.iter_mut().zip(x).zip(self.0.range()) {
                *y = x * (1.0 + 0.24 * (row as f64).sin());
            }
            Ok(())
        }
    }
    on_ranks(2, |comm| {
        let part = Partition::of(comm, 1000);
        let b = ft_linalg::rhs::ones(&part);
        for method in [Method::Gmres, Method::Fgmres] {
            for (rtol, due) in [(1e-6, 7), (1e-8, 9), (1e-10, 12), (1e-12, 14), (1e-13, 15)] {
                let options = options(method, StopCriteria { rtol, ..StopCriteria::DEFAULT });
                let mut x = DistVector::zeros(part.clone());
                let near = Near(part.clone());
                let solution = solve::<AnySolver>(&options, &near, &Identity, &b, &mut x, comm).unwrap();
                assert_eq!(solution.reason, StopReason::Converged { iterations: due }, "{method} {rtol}");
                assert!(solution.relative_residual <= rtol);
            }
        }
    });
}
