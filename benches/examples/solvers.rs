//! Solvers of `ft-linalg`, timed; started by `solver_peers`, beside `peers/petsc_solvers.c`, which does the same.
//!
//! `ftrun -n 2 target/release/examples/solvers TASK SYSTEM ITERATIONS REPEATS [SOLVER PRECOND]`
//!
//! - TASK: `product` (ITERATIONS products), `iterate` (ITERATIONS iterations), `solve` (to 1e-8, at most ITERATIONS)
//! - SYSTEM: `poisson:N`, `stencil:N` (the same without a matrix), `poisson2:N`, `convection:N`, `convection2:N`, or a file
//!
//! It prints a name and a number a line: the norm of `A x` with `x_i = 1 / (i + 0.3)`, by which both sides can be seen to have the
//! same matrix; seconds of a product, an iteration, the setup of the preconditioner and the solve, again for every repeat; iterations;
//! and the true residual, relative.
//!
//! `solvers dot N REPEATS` prints the seconds of a reproducible dot product and of a plain one, in turns.

use std::hint::black_box;

use ft_comm::time::{Clock, Time};
use ft_comm::{Communicator, MainError, World};
use ft_linalg::dot::Reducer;
use ft_linalg::gallery::ConvectionDiffusion;
use ft_linalg::solver::{AnyOptions, AnySolver, Method};
use ft_linalg::{
    CsrRows, DistMatrix, DistStencil, DistVector, LinalgError, LinearOperator, MakePreconditioner, Partition,
    Poisson, Precond, Stencil, StopCriteria, Workspace, matrix_market, rhs, solve,
};

const USAGE: &str =
    "usage: solvers product|iterate|solve SYSTEM ITERATIONS REPEATS [SOLVER PRECOND], or dot N REPEATS";
const PECLET: f64 = 100.0;
const TOLERANCE: f64 = 1e-8;
/// Lanes of the plain dot product: as many as hide the latency of additions.
const LANES: usize = 32;

/// What is timed.
struct Order<'a> {
    task: &'a str,
    iterations: u64,
    repeats: usize,
    method: Method,
    precond: Precond,
}

fn main() -> Result<(), MainError> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut world = World::init()?;
    match words[..] {
        ["dot", n, repeats] => dots(n.parse()?, repeats.parse()?, world.comm())?,
        [task, system, iterations, repeats, ref more @ ..] => {
            let (iterations, repeats) = (iterations.parse()?, repeats.parse()?);
            let (method, precond) = match more {
                [method, precond] => (method.parse()?, precond.parse()?),
                _ => (Method::Cg, Precond::None),
            };
            let a = operator(system, world.comm())?;
            time(&Order { task, iterations, repeats, method, precond }, system, &*a, world.comm())?;
        }
        _ => return Err(USAGE.into()),
    }
    world.finalize(Vec::new())?;
    Ok(())
}

fn operator(system: &str, comm: &Communicator) -> Result<Box<dyn LinearOperator>, MainError> {
    let Some((grid, points)) = system.split_once(':') else {
        return Ok(Box::new(matrix_market::read_rows(system, comm)?.into_matrix(comm)?));
    };
    let n: usize = points.parse()?;
    let stored = |size: usize, rows: &dyn Fn(std::ops::Range<usize>) -> CsrRows| {
        let part = Partition::of(comm, size);
        DistMatrix::new(part.clone(), rows(part.range()), comm)
    };
    let of_poisson = |grid: Poisson| stored(grid.n(), &|range| grid.rows(range));
    let of_flow = |flow: ConvectionDiffusion| stored(flow.n(), &|range| flow.rows(range));
    Ok(match grid {
        "poisson" => Box::new(of_poisson(Poisson::new_3d(n, n, n)?)?),
        "poisson2" => Box::new(of_poisson(Poisson::new_2d(n, n)?)?),
        "convection" => Box::new(of_flow(ConvectionDiffusion::new_3d(n, n, n, PECLET)?)?),
        "convection2" => Box::new(of_flow(ConvectionDiffusion::new_2d(n, n, PECLET)?)?),
        "stencil" => Box::new(DistStencil::new(Stencil::from(&Poisson::new_3d(n, n, n)?), comm)?),
        _ => return Err(USAGE.into()),
    })
}

fn time(
    order: &Order<'_>,
    system: &str,
    a: &dyn LinearOperator,
    comm: &Communicator,
) -> Result<(), LinalgError> {
    let part = a.part();
    let scattered = DistVector::from_fn(part.clone(), |row| 1.0 / (row.0 as f64 + 0.3));
    say(comm, "norm", rhs::from_solution(a, &scattered, comm)?.norm2(comm)?);
    let ones = rhs::ones(part);
    let b = if system.contains(':') { ones } else { rhs::from_solution(a, &ones, comm)? };
    if order.task == "product" {
        let (mut y, mut work) = (b.local().to_vec(), Workspace::default());
        for _ in 0..order.repeats {
            let seconds = seconds(comm, || {
                (0..order.iterations).try_for_each(|_| a.apply(b.local(), &mut y, comm, &mut work))
            });
            say(comm, "product", seconds?.0 / order.iterations as f64);
        }
        return Ok(());
    }
    let mut residual = 0.0;
    for _ in 0..order.repeats {
        residual = once(order, a, &b, comm)?;
    }
    say(comm, "residual", residual);
    Ok(())
}

/// The preconditioner and the solve, once; the relative residual.
fn once(
    order: &Order<'_>,
    a: &dyn LinearOperator,
    b: &DistVector,
    comm: &Communicator,
) -> Result<f64, LinalgError> {
    let is_solve = order.task == "solve";
    let rtol = if is_solve { TOLERANCE } else { 1e-60 };
    let stop = StopCriteria { rtol, iterations_max: order.iterations, ..StopCriteria::DEFAULT };
    let options = AnyOptions { method: order.method, stop, ..AnyOptions::default() };
    let (setup, m) = seconds(comm, || order.precond.make(a, comm))?;
    let mut x = DistVector::zeros(a.part().clone());
    let (took, solution) = seconds(comm, || solve::<AnySolver>(&options, a, &*m, b, &mut x, comm))?;
    let iterations = solution.reason.iterations() as f64;
    if is_solve {
        say(comm, "setup", setup);
        say(comm, "solve", took);
    }
    say(comm, "iteration", took / iterations);
    say(comm, "iterations", iterations);
    Ok(solution.relative_residual)
}

/// Seconds of the slowest rank, and what the call gives.
fn seconds<T>(
    comm: &Communicator,
    call: impl FnOnce() -> Result<T, LinalgError>,
) -> Result<(f64, T), LinalgError> {
    comm.barrier()?;
    let clock = Clock::start();
    let given = call()?;
    comm.barrier()?;
    Ok((clock.now().since(Time(0)).as_secs_f64(), given))
}

fn say(comm: &Communicator, name: &str, value: f64) {
    if comm.rank() == 0 {
        println!("{name} {value:.9e}");
    }
}

fn dots(n: usize, repeats: usize, comm: &Communicator) -> Result<(), LinalgError> {
    let part = Partition::of(comm, n);
    let vector = |shift: f64| part.range().map(|row| 1.0 / (row as f64 + shift)).collect::<Vec<f64>>();
    let (x, y) = (vector(0.3), vector(0.7));
    let mut reducer = Reducer::new(&part);
    let calls = ((1 << 22) / n).max(1);
    for _ in 0..repeats {
        let (reproducible, _) = seconds(comm, || {
            (0..calls).try_for_each(|_| {
                reducer.dot(black_box(&x), black_box(&y), comm).map(|dot| _ = black_box(dot))
            })
        })?;
        let (plain, ()) = seconds(comm, || {
            (0..calls).for_each(|_| _ = black_box(plain_dot(black_box(&x), black_box(&y))));
            Ok(())
        })?;
        say(comm, "reproducible", reproducible / calls as f64);
        say(comm, "plain", plain / calls as f64);
    }
    Ok(())
}

/// A dot product as fast as it can be on one core, with an order of additions that depends on the partition.
fn plain_dot(x: &[f64], y: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    let ((x_head, x_tail), (y_head, y_tail)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
    for (x, y) in x_head.iter().zip(y_head) {
        for lane in 0..LANES {
            lanes[lane] += x[lane] * y[lane];
        }
    }
    let tail: f64 = x_tail.iter().zip(y_tail).map(|(x, y)| x * y).sum();
    lanes.iter().sum::<f64>() + tail
}
