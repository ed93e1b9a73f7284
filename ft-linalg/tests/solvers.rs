//! Every solver on the problems that suit it: against dense factorizations, with the same bits on any number of ranks, restored
//! in the middle, and with a reason where there is no answer.

mod common;

use common::{dense, on_ranks};
use ft_checkpoint::{StatePart, load, save};
use ft_comm::Communicator;
use ft_linalg::solver::{
    Bicgstab, Cgls, Chebyshev, ChebyshevOptions, Fgmres, Gmres, GmresOptions, Lsqr, Minres, Richardson,
    RichardsonOptions, SingleReductionCg, Watch,
};
use ft_linalg::stop::Quantity;
use ft_linalg::{
    Cg, CsrRows, DistMatrix, DistVector, Identity, LinalgError, LinearOperator, MakePreconditioner,
    Partition, Poisson, Precond, Preconditioner, Solution, Solver, Step, StopCriteria, StopReason, System,
    Workspace, solve,
};
use nalgebra::{DMatrix, DVector};

/// A solver that can be made of a stopping rule alone.
trait Simple: Solver + Clone {
    fn options(stop: StopCriteria) -> Self::Options;
}

macro_rules! simple {
    ($($solver:ty => $options:expr),+ $(,)?) => {$(
        impl Simple for $solver {
            fn options(stop: StopCriteria) -> Self::Options {
                #[expect(clippy::redundant_closure_call, reason = "the macro takes a function of any kind")]
                $options(stop)
            }
        }
    )+};
}

simple! {
    Cg => |stop| stop,
    SingleReductionCg => |stop| stop,
    Minres => |stop| stop,
    Bicgstab => |stop| stop,
    Gmres => |stop| GmresOptions { stop, restart: 25 },
    Fgmres => |stop| GmresOptions { stop, restart: 25 },
    Richardson => |stop| RichardsonOptions { stop, omega: 0.9 },
    Chebyshev => |stop| ChebyshevOptions { stop, bounds: None },
    Cgls => |stop| stop,
    Lsqr => |stop| stop,
}

/// A square system by its rows.
#[derive(Clone, Copy)]
enum Kind {
    Poisson,
    /// Some eigenvalues below 0.
    Shifted,
    /// Singular, with `b` in its range.
    Neumann,
    /// Random, not symmetric, rows dominated by their diagonals.
    Dominant,
    /// Upwind differences; the wind is ten times as strong as diffusion in a cell.
    Convection,
}
use Kind::{Convection, Dominant, Neumann, Shifted};

const GRID: usize = 18;

impl Kind {
    const N: usize = GRID * GRID;

    fn entry(self, row: usize, cols: &mut Vec<u64>, vals: &mut Vec<f64>) {
        if let Dominant = self {
            let (mut sum, before) = (0.0, cols.len());
            for col in (0..Self::N).filter(|col| (row * 31 + col * 17) % 37 == 0 && *col != row) {
                let value = random((row * Self::N + col) as u64);
                sum += value.abs();
                cols.push(col as u64);
                vals.push(value);
            }
            let at = before + cols[before..].partition_point(|col| (*col as usize) < row);
            cols.insert(at, row as u64);
            vals.insert(at, 1.5 * sum + 0.1);
            return;
        }
        let (i, j) = (row % GRID, row / GRID);
        let wind = if let Convection = self { 10.0 } else { 0.0 };
        let near = [
            (j > 0, row.wrapping_sub(GRID), -1.0 - 0.5 * wind),
            (i > 0, row.wrapping_sub(1), -1.0 - wind),
            (i + 1 < GRID, row + 1, -1.0),
            (j + 1 < GRID, row + GRID, -1.0),
        ];
        let diagonal = match self {
            Neumann => near.iter().filter(|near| near.0).count() as f64,
            Shifted => 4.0 - 0.3,
            _ => 4.0 + 1.5 * wind,
        };
        let mut all: Vec<_> =
            near.iter().filter(|near| near.0).map(|near| (near.1, near.2)).chain([(row, diagonal)]).collect();
        all.sort_by_key(|entry| entry.0);
        cols.extend(all.iter().map(|entry| entry.0 as u64));
        vals.extend(all.iter().map(|entry| entry.1));
    }

    fn rows(self, range: std::ops::Range<usize>) -> CsrRows {
        let (mut row_ptr, mut cols, mut vals) = (vec![0], vec![], vec![]);
        for row in range {
            self.entry(row, &mut cols, &mut vals);
            row_ptr.push(cols.len());
        }
        CsrRows::new(row_ptr, cols, vals, Self::N).unwrap()
    }

    fn matrix(self, comm: &Communicator) -> DistMatrix {
        let part = Partition::of(comm, Self::N);
        DistMatrix::new(part.clone(), self.rows(part.range()), comm).unwrap()
    }

    fn b(self, row: usize) -> f64 {
        match self {
            // In the range: its sum is 0.
            Neumann => f64::from(row.is_multiple_of(2)) - 0.5,
            _ => random(row as u64 + 7),
        }
    }

    /// `A` and `b` on one rank, densely.
    fn dense(self) -> (DMatrix<f64>, DVector<f64>) {
        let mut a = DMatrix::zeros(Self::N, Self::N);
        for row in 0..Self::N {
            let (mut cols, mut vals) = (vec![], vec![]);
            self.entry(row, &mut cols, &mut vals);
            cols.iter().zip(vals).for_each(|(col, val)| a[(row, *col as usize)] = val);
        }
        (a, DVector::from_fn(Self::N, |row, _| self.b(row)))
    }
}

/// Between -1 and 1, from a number.
fn random(seed: u64) -> f64 {
    let mut bits = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 31)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    ((bits ^ (bits >> 29)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// A solve from start to end.
type Whole = (Solution, Vec<f64>);

fn whole<S: Simple>(kind: Kind, precond: Precond, stop: StopCriteria, comm: &Communicator) -> Whole {
    let a = kind.matrix(comm);
    let m = precond.make(&a, comm).unwrap();
    let b = DistVector::from_fn(a.part().clone(), |row| kind.b(row.0));
    let mut x = DistVector::zeros(a.part().clone());
    let solution = solve::<S>(&S::options(stop), &a, &*m, &b, &mut x, comm).unwrap();
    (solution, x.gather(comm).unwrap())
}

/// The same, but after some iterations only what a checkpoint holds goes on.
fn restored<S: Simple>(
    kind: Kind,
    precond: Precond,
    stop: StopCriteria,
    after: u64,
    comm: &Communicator,
) -> Whole {
    let mut a = kind.matrix(comm);
    let b = DistVector::from_fn(a.part().clone(), |row| kind.b(row.0));
    let m = precond.make(&a, comm).unwrap();
    let (mut solver, mut watch);
    {
        let (system, mut work) = (System { a: &a, m: &*m, b: b.local() }, Workspace::default());
        let x = vec![0.0; b.local().len()];
        solver = S::start(&S::options(stop), &system, &x, comm, &mut work).unwrap();
        watch = Watch::default();
        for _ in 0..after {
            assert_eq!(watch.step(&mut solver, &system, comm, &mut work).unwrap(), Step::Continue);
        }
    }
    let (mut after_restore, mut watched, mut shard) = (S::default(), Watch::default(), vec![]);
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

type WholeFn = fn(Kind, Precond, StopCriteria, &Communicator) -> Whole;
type RestoredFn = fn(Kind, Precond, StopCriteria, u64, &Communicator) -> Whole;

struct Row {
    name: &'static str,
    whole: WholeFn,
    restored: RestoredFn,
    problems: &'static [(Kind, Precond)],
}

const fn row<S: Simple>(name: &'static str, problems: &'static [(Kind, Precond)]) -> Row {
    Row { name, whole: whole::<S>, restored: restored::<S>, problems }
}

const TABLE: &[Row] = &[
    row::<Cg>("cg", &[(Kind::Poisson, Precond::Jacobi), (Neumann, Precond::None)]),
    row::<SingleReductionCg>(
        "single-reduction cg",
        &[(Kind::Poisson, Precond::Jacobi), (Neumann, Precond::Jacobi)],
    ),
    row::<Minres>(
        "minres",
        &[(Kind::Poisson, Precond::None), (Shifted, Precond::Jacobi), (Neumann, Precond::None)],
    ),
    row::<Bicgstab>(
        "bicgstab",
        &[(Kind::Poisson, Precond::None), (Dominant, Precond::Jacobi), (Convection, Precond::Jacobi)],
    ),
    row::<Gmres>(
        "gmres",
        &[
            (Kind::Poisson, Precond::Jacobi),
            (Dominant, Precond::None),
            (Convection, Precond::Jacobi),
            (Neumann, Precond::None),
        ],
    ),
    row::<Fgmres>("fgmres", &[(Kind::Poisson, Precond::None), (Convection, Precond::Jacobi)]),
    row::<Richardson>("richardson", &[(Dominant, Precond::Jacobi)]),
    row::<Chebyshev>("chebyshev", &[(Kind::Poisson, Precond::Jacobi)]),
];

#[test]
fn answers_are_those_of_dense_factorizations() {
    for Row { name, whole, problems, .. } in TABLE {
        for &(kind, precond) in *problems {
            let (a, b) = kind.dense();
            let (solution, x) =
                on_ranks(1, |comm| whole(kind, precond, StopCriteria::DEFAULT, comm)).remove(0);
            assert!(solution.reason.is_converged(), "{name}: {}", solution.reason);
            assert_eq!(solution.history.len() as u64, solution.reason.iterations() + 1, "{name}");
            let x = DVector::from_vec(x);
            let residual = (&b - &a * &x).norm() / b.norm();
            assert!(residual < 1e-7, "{name}: {residual:e}");
            let error = match kind {
                // Solutions differ by a constant.
                Neumann => {
                    let exact = a.svd(true, true).solve(&b, 1e-10).unwrap();
                    let shift = (&x - &exact).sum() / Kind::N as f64;
                    (&x - exact).add_scalar(-shift).norm() / x.norm()
                }
                _ => (&x - a.lu().solve(&b).unwrap()).norm() / x.norm(),
            };
            assert!(error < 1e-6, "{name}: {error:e}");
        }
    }
}

#[test]
fn same_bits_on_any_number_of_ranks_and_after_a_restore() {
    for Row { name, whole, restored, problems } in TABLE {
        for &(kind, precond) in *problems {
            let stop =
                StopCriteria { true_residual_every: 10, stagnation_window: 500, ..StopCriteria::DEFAULT };
            let one = on_ranks(1, |comm| whole(kind, precond, stop, comm)).remove(0);
            for size in [2, 3, 4, 7] {
                let all = on_ranks(size, |comm| whole(kind, precond, stop, comm));
                assert!(all.into_iter().all(|other| other == one), "{name} on {size} ranks");
            }
            let iterations = one.0.reason.iterations();
            for after in [1, 17.min(iterations - 1), iterations / 2] {
                let all = on_ranks(3, |comm| restored(kind, precond, stop, after, comm));
                assert!(all.into_iter().all(|other| other == one), "{name} after {after}");
            }
        }
    }
}

/// A matrix of any shape that all ranks have, each of which multiplies with its own rows, and columns.
struct Dense {
    a: DMatrix<f64>,
    rows: Partition,
    cols: Partition,
}

impl Dense {
    fn new(a: DMatrix<f64>, comm: &Communicator) -> Self {
        let (rows, cols) = (Partition::of(comm, a.nrows()), Partition::of(comm, a.ncols()));
        Self { a, rows, cols }
    }
}

impl LinearOperator for Dense {
    fn part(&self) -> &Partition {
        &self.rows
    }

    fn col_part(&self) -> &Partition {
        &self.cols
    }

    fn apply(
        &self,
        x: &[f64],
        y: &mut [f64],
        comm: &Communicator,
        _: &mut Workspace,
    ) -> Result<(), LinalgError> {
        let x = DistVector::from_local(self.cols.clone(), x.to_vec())?.gather(comm)?;
        y.iter_mut()
            .zip(self.rows.range())
            .for_each(|(y, row)| *y = x.iter().enumerate().map(|(col, x)| self.a[(row, col)] * x).sum());
        Ok(())
    }

    fn apply_transpose(
        &self,
        x: &[f64],
        y: &mut [f64],
        comm: &Communicator,
        _: &mut Workspace,
    ) -> Result<(), LinalgError> {
        let x = DistVector::from_local(self.rows.clone(), x.to_vec())?.gather(comm)?;
        y.iter_mut()
            .zip(self.cols.range())
            .for_each(|(y, col)| *y = x.iter().enumerate().map(|(row, x)| self.a[(row, col)] * x).sum());
        Ok(())
    }
}

fn least_squares<S: Simple>(a: &DMatrix<f64>, b: &DVector<f64>, comm: &Communicator) -> Whole {
    let a = Dense::new(a.clone(), comm);
    let b = DistVector::from_global(a.rows.clone(), b.as_slice()).unwrap();
    let mut x = DistVector::zeros(a.cols.clone());
    let stop = StopCriteria { rtol: 1e-12, ..StopCriteria::DEFAULT };
    let solution = solve::<S>(&S::options(stop), &a, &Identity, &b, &mut x, comm).unwrap();
    (solution, x.gather(comm).unwrap())
}

#[test]
fn least_squares_of_any_shape_and_rank() {
    // Tall, wide, and of rank 20.
    for (rows, cols, rank) in [(120, 40, 40), (40, 120, 40), (90, 60, 20)] {
        let tall = DMatrix::from_fn(rows, rank, |i, j| random((i * 1000 + j) as u64));
        let wide = DMatrix::from_fn(rank, cols, |i, j| random((i * 7777 + j) as u64));
        let a = if rank == cols {
            tall
        } else if rank == rows {
            wide
        } else {
            tall * wide
        };
        let b = DVector::from_fn(rows, |i, _| random(i as u64 + 99));
        let shortest = a.clone().svd(true, true).solve(&b, 1e-9).unwrap();
        for (name, run) in [
            ("cgls", least_squares::<Cgls> as fn(&_, &_, &Communicator) -> Whole),
            ("lsqr", least_squares::<Lsqr>),
        ] {
            let one = on_ranks(1, |comm| run(&a, &b, comm)).remove(0);
            assert!(one.0.reason.is_converged(), "{name}: {}", one.0.reason);
            let error = (DVector::from_vec(one.1.clone()) - &shortest).norm() / shortest.norm();
            assert!(error < 1e-8, "{name} {rows} x {cols}: {error:e}");
            for size in [2, 3, 4, 7] {
                let all = on_ranks(size, |comm| run(&a, &b, comm));
                assert!(all.into_iter().all(|other| other == one), "{name} on {size} ranks");
            }
        }
    }
}

#[test]
fn a_square_matrix_without_a_transpose_is_an_error() {
    on_ranks(2, |comm| {
        let a = Kind::Poisson.matrix(comm);
        let (b, mut x) = (ft_linalg::rhs::ones(a.part()), DistVector::zeros(a.part().clone()));
        let error = solve::<Lsqr>(&StopCriteria::DEFAULT, &a, &Identity, &b, &mut x, comm).unwrap_err();
        assert!(matches!(error, LinalgError::NoTranspose));
    });
}

/// What a solver says of a small system.
fn reason<S: Simple, const N: usize>(
    stop: StopCriteria,
    a: [[f64; N]; N],
    b: [f64; N],
    x: [f64; N],
) -> StopReason {
    let reasons = on_ranks(2, |comm| {
        let part = Partition::of(comm, N);
        let a = DMatrix::from_fn(N, N, |row, col| a[row][col]);
        let a = Dense::new(a, comm);
        let b = DistVector::from_global(part.clone(), &b).unwrap();
        let mut x = DistVector::from_global(part, &x).unwrap();
        let solution = solve::<S>(&S::options(stop), &a, &Identity, &b, &mut x, comm).unwrap();
        if b.local().iter().all(|b| *b == 0.0) {
            assert!(x.local().iter().all(|x| *x == 0.0));
        }
        solution.reason
    });
    assert!(reasons.iter().all(|reason| *reason == reasons[0]));
    reasons[0]
}

fn bad_input_is_named<S: Simple>() {
    let (stop, nan, inf) = (StopCriteria::DEFAULT, f64::NAN, f64::INFINITY);
    let a = [[2.0, 1.0], [1.0, 2.0]];
    let breakdown = |quantity| StopReason::Breakdown { iterations: 0, quantity };
    let say = reason::<S, 2>;
    for bad in [nan, inf, -inf] {
        assert_eq!(say(stop, a, [1.0, bad], [0.0; 2]), breakdown(Quantity::RightHandSide));
        assert_eq!(say(stop, a, [1.0; 2], [bad, 0.0]), breakdown(Quantity::FirstApproximation));
        assert_eq!(say(stop, [[2.0, bad], [1.0, 2.0]], [1.0; 2], [0.0; 2]), breakdown(Quantity::Product));
    }
    assert_eq!(say(stop, a, [0.0; 2], [5.0; 2]), StopReason::Converged { iterations: 0 });
    assert!(say(stop, [[2.0, 0.0], [0.0, 2.0]], [2.0, 4.0], [1.0, 2.0]).is_converged());
}

#[test]
fn numbers_that_are_not_finite_are_named_and_zero_gives_zero() {
    bad_input_is_named::<Cg>();
    bad_input_is_named::<SingleReductionCg>();
    bad_input_is_named::<Minres>();
    bad_input_is_named::<Bicgstab>();
    bad_input_is_named::<Gmres>();
    bad_input_is_named::<Fgmres>();
    bad_input_is_named::<Richardson>();
    bad_input_is_named::<Chebyshev>();
    bad_input_is_named::<Cgls>();
    bad_input_is_named::<Lsqr>();
}

#[test]
fn what_has_no_answer_says_so() {
    let stop = StopCriteria { iterations_max: 200, ..StopCriteria::DEFAULT };
    let vanished = |iterations, quantity| StopReason::Vanished { iterations, quantity };
    // Nilpotent, with b outside of the range.
    let nilpotent = [[0.0, 1.0], [0.0, 0.0]];
    let pivot = vanished(1, Quantity::Pivot);
    assert_eq!(reason::<Gmres, 2>(stop, nilpotent, [0.0, 1.0], [0.0; 2]), pivot);
    assert_eq!(reason::<Fgmres, 2>(stop, nilpotent, [0.0, 1.0], [0.0; 2]), pivot);
    // Skew: r.Ar is 0.
    let skew = [[0.0, 1.0], [-1.0, 0.0]];
    let shadow = vanished(0, Quantity::ShadowCurvature);
    assert_eq!(reason::<Bicgstab, 2>(stop, skew, [1.0, 0.0], [0.0; 2]), shadow);
    assert!(reason::<Gmres, 2>(stop, skew, [1.0, 0.0], [0.0; 2]).is_converged());
    // Indefinite.
    let indefinite = [[1.0, 0.0], [0.0, -3.0]];
    let named = StopReason::Indefinite { iterations: 0, quantity: Quantity::Curvature, value: -2.0 };
    assert_eq!(reason::<SingleReductionCg, 2>(stop, indefinite, [1.0; 2], [0.0; 2]), named);
    assert!(reason::<Minres, 2>(stop, indefinite, [1.0; 2], [0.0; 2]).is_converged());
    assert!(matches!(
        reason::<Chebyshev, 2>(stop, indefinite, [1.0; 2], [0.0; 2]),
        StopReason::Indefinite { quantity: Quantity::SmallestEigenvalue, .. }
    ));
    // Singular, with b outside of the range: the residual stays at 1.
    let singular = [[1.0, 0.0], [0.0, 0.0]];
    let minres = reason::<Minres, 2>(stop, singular, [1.0; 2], [0.0; 2]);
    assert!(matches!(minres, StopReason::Vanished { quantity: Quantity::Pivot, .. }), "{minres:?}");
    // Too long a step.
    let far = [[3.0, 0.0], [0.0, 3.0]];
    let dtol = StopCriteria { dtol: 1e5, ..stop };
    assert!(matches!(
        reason::<Richardson, 2>(dtol, far, [1.0; 2], [0.0; 2]),
        StopReason::Diverged { relative_residual, .. } if relative_residual > 1e5
    ));
    assert_eq!(
        reason::<Richardson, 2>(stop, far, [1.0; 2], [0.0; 2]),
        StopReason::MaxIterations { iterations: 200 }
    );
}

#[test]
fn a_solve_is_stopped_from_outside() {
    for Row { name, whole, problems, .. } in TABLE {
        let (kind, precond) = problems[0];
        let outcome = |stop| on_ranks(2, |comm| whole(kind, precond, stop, comm)).remove(0).0;
        let late = outcome(StopCriteria { seconds_max: 0.0, ..StopCriteria::DEFAULT });
        assert_eq!(late.reason, StopReason::OutOfTime { iterations: 1 }, "{name}");
        // The answer is that of the last iteration.
        let far = late.relative_residual - late.recurred_relative_residual;
        assert!(far.abs() < 1e-12, "{name}: {late:?}");
        // Nothing gets a million times better in three iterations.
        let strict = StopCriteria { stagnation_window: 3, stagnation_factor: 1e-6, ..StopCriteria::DEFAULT };
        assert_eq!(outcome(strict).reason, StopReason::Stagnated { iterations: 3 }, "{name}");
        // The true residual has converged where the recurrence is never believed.
        let truth = StopCriteria { true_residual_every: 1, ..StopCriteria::DEFAULT };
        assert!(outcome(truth).reason.is_converged(), "{name}");
    }
}

#[test]
fn what_drifts_is_stopped_early() {
    let run = |every| {
        let stop = StopCriteria { rtol: 1e-17, true_residual_every: every, ..StopCriteria::DEFAULT };
        on_ranks(2, |comm| whole::<Cg>(Kind::Poisson, Precond::None, stop, comm)).remove(0).0.reason
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
        let options = RichardsonOptions { stop, omega: 1.0 };
        solve::<Richardson>(&options, &a, &*m, &b, &mut x, comm).unwrap();
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
