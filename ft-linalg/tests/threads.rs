//! Any number of threads gives the same bits: of solvers and preconditioners, of products in every format, and of matrices
//! that are assembled. The systems are just large enough for their loops to be shared.

mod common;

use common::on_ranks;
use ft_comm::Communicator;
use ft_linalg::gallery::ConvectionDiffusion;
use ft_linalg::operator::WithTranspose;
use ft_linalg::solver::{AnyOptions, AnySolver, Method, Task};
use ft_linalg::{
    Assembly, DistMatrix, DistVector, Format, LinearOperator, MakePreconditioner, Partition, Poisson,
    Precond, Solver, StopCriteria, System, Workspace,
};
use ft_threads::Team;

/// Points of a side: 13,824 rows, 93,312 entries.
const SIDE: usize = 24;

fn poisson(comm: &Communicator) -> DistMatrix {
    let poisson = Poisson::new_3d(SIDE, SIDE, SIDE).unwrap();
    let part = Partition::of(comm, SIDE.pow(3));
    DistMatrix::new(part.clone(), poisson.rows(part.range()), comm).unwrap()
}

fn wavy(part: &Partition) -> DistVector {
    DistVector::from_fn(part.clone(), |row| ((row.0 * row.0) as f64 * 0.1).sin())
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// What `main` gives on some ranks, of some threads each.
fn on_threads<R: Send>(ranks: usize, threads: usize, main: impl Fn(&Communicator) -> R + Sync) -> Vec<R> {
    on_ranks(ranks, |comm| Team::new(threads).install(|| main(comm)))
}

/// The approximation after some steps.
fn steps(method: Method, precond: &str, a: &dyn LinearOperator, comm: &Communicator) -> Vec<u64> {
    let precond: Precond = precond.parse().unwrap();
    let (m, b, mut work) = (precond.make(a, comm).unwrap(), wavy(a.part()), Workspace::default());
    let system = System { a, m: &*m, b: b.local() };
    let stop = StopCriteria { rtol: 1e-30, iterations_max: 100, ..StopCriteria::DEFAULT };
    let options = AnyOptions { method, stop, restart: 3, omega: 0.5, count: 2, ..AnyOptions::default() };
    let start = vec![0.0; a.col_part().local_len()];
    let mut solver = AnySolver::start(&options, &system, &start, comm, &mut work).unwrap();
    for _ in 0..4 {
        let _ = solver.step(&system, comm, &mut work).unwrap();
    }
    solver.settle(&system, comm, &mut work).unwrap();
    let norms = [solver.progress().residual_norm];
    [bits(solver.x()), bits(&norms)].concat()
}

#[test]
fn every_solver() {
    for method in Method::ALL {
        let run = |comm: &Communicator| match method.task() {
            Task::LeastSquares => {
                let poisson = Poisson::new_3d(SIDE, SIDE, SIDE).unwrap();
                let part = Partition::of(comm, SIDE.pow(3));
                let rows = ft_linalg::DistRows::new(part.clone(), part.n(), poisson.rows(part.range()), comm);
                steps(method, "none", &WithTranspose::new(rows.unwrap(), comm).unwrap(), comm)
            }
            _ => steps(method, "none", &poisson(comm), comm),
        };
        let one = on_threads(1, 1, run);
        for threads in 2..4 {
            assert!(on_threads(1, threads, run) == one, "{method}, {threads} threads");
        }
    }
}

#[test]
fn every_preconditioner() {
    for precond in [
        "jacobi",
        "ssor",
        "bjacobi:ic0",
        "bjacobi:ilu0",
        "asm",
        "asm:ilu0,overlap=2,restricted",
        "chebyshev:3",
        "amg",
    ] {
        let run = |comm: &Communicator| steps(Method::Cg, precond, &poisson(comm), comm);
        let one = on_threads(1, 1, run);
        for threads in 2..4 {
            assert!(on_threads(1, threads, run) == one, "{precond}, {threads} threads");
        }
    }
}

/// Halves of the rows, so that there are blocks that need others, and blocks that do not.
#[test]
fn products_in_every_format_on_two_ranks() {
    for format in Format::ALL {
        let run = |comm: &Communicator| {
            let mut a = poisson(comm);
            a.store_as(Some(format)).unwrap();
            let (x, mut work) = (wavy(a.part()), Workspace::default());
            let mut y = vec![0.0; x.local().len()];
            a.apply(x.local(), &mut y, comm, &mut work).unwrap();
            bits(&y)
        };
        let one = on_threads(2, 1, run);
        assert!(on_threads(2, 3, run) == one, "{format}");
    }
}

#[test]
fn matrices_that_are_assembled() {
    let run = |comm: &Communicator| {
        let problem = ConvectionDiffusion::new_2d(120, 120, 30.0).unwrap();
        let (n, mut assembly) = (120 * 120, Assembly::new(120 * 120, 120 * 120));
        let range = Partition::of(comm, n).range();
        // Every entry in two halves, the later rows first.
        for (row, (cols, vals)) in
            range.clone().zip(problem.rows(range).iter()).collect::<Vec<_>>().into_iter().rev()
        {
            for (&col, &val) in cols.iter().zip(vals) {
                assembly.add_keyed(2, row, col as usize, 0.3 * val);
                assembly.add_keyed(1, row, col as usize, 0.7 * val);
            }
        }
        let rows = assembly.finish(comm).unwrap();
        (rows.rows().row_ptr().to_vec(), rows.rows().cols().to_vec(), bits(rows.rows().vals()))
    };
    let one = on_threads(1, 1, run);
    assert!(on_threads(1, 3, run) == one);
}
