//! What an iteration of conjugate gradients takes, and what of it the product and a sum over all ranks do.
//!
//! `ftrun -n 2 target/release/examples/iteration_time FILE.mtx jacobi`, or `poisson:128 none`, or `stencil:128 none`. Every
//! solve goes to 1e-8 from 0, for the right-hand side whose solution is all ones; the best of 12 and their median count.

use ft_comm::time::{Clock, Time};
use ft_comm::{Communicator, MainError, World};
use ft_linalg::{
    Cg, DistMatrix, DistStencil, DistVector, LinalgError, LinearOperator, MakePreconditioner, Partition,
    Poisson, Precond, Stencil, StopCriteria, Sums, Workspace, matrix_market, rhs, solve,
};

const SOLVES: usize = 12;

fn main() -> Result<(), MainError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [system, precond] = &arguments[..] else {
        return Err("usage: iteration_time FILE|poisson:N|stencil:N none|jacobi".into());
    };
    let precond = if precond == "jacobi" { Precond::Jacobi } else { Precond::None };
    let mut world = World::init()?;
    let (a, stored) = operator(system, world.comm())?;
    let lines = measure(&*a, precond, world.comm())?;
    if world.rank() == 0 {
        println!("{system}, {} ranks, {stored}: {lines}", world.size());
    }
    world.finalize(Vec::new())?;
    Ok(())
}

fn operator(system: &str, comm: &Communicator) -> Result<(Box<dyn LinearOperator>, String), LinalgError> {
    let points = |text: &str| text.parse().unwrap_or(1);
    if let Some(n) = system.strip_prefix("stencil:").map(points) {
        let stencil = Stencil::from(&Poisson::new_3d(n, n, n)?);
        return Ok((Box::new(DistStencil::new(stencil, comm)?), "no matrix".into()));
    }
    let a = if let Some(n) = system.strip_prefix("poisson:").map(points) {
        let grid = Poisson::new_3d(n, n, n)?;
        let part = Partition::of(comm, grid.n());
        DistMatrix::new(part.clone(), grid.rows(part.range()), comm)?
    } else {
        matrix_market::read_rows(system, comm)?.into_matrix(comm)?
    };
    let stored = a.plan()?.format().map_or_else(String::new, |format| format.to_string());
    Ok((Box::new(a), stored))
}

fn measure(a: &dyn LinearOperator, precond: Precond, comm: &Communicator) -> Result<String, LinalgError> {
    let part = a.part();
    let b = rhs::from_solution(a, &rhs::ones(part), comm)?;
    let m = precond.make(a, comm)?;
    let stop = StopCriteria { rtol: 1e-8, ..StopCriteria::default() };
    let mut iterations = 0;
    let solve = time(SOLVES, comm, || {
        let mut x = DistVector::zeros(part.clone());
        iterations = solve::<Cg>(&stop, a, &*m, &b, &mut x, comm)?.reason.iterations();
        Ok(iterations)
    })?;
    let (mut y, mut work) = (b.local().to_vec(), Workspace::default());
    let apply = time(SOLVES, comm, || {
        (0..100).try_for_each(|_| a.apply(b.local(), &mut y, comm, &mut work))?;
        Ok(100)
    })?;
    let sums = vec![Sums::default(); part.blocks_of(part.rank()).len()];
    let sum = time(SOLVES, comm, || {
        (0..100).try_for_each(|_| work.sum::<2>(part, &sums, comm).map(|_| ()))?;
        Ok(100)
    })?;
    Ok(format!("{iterations} iterations of {solve}, product {apply}, sum {sum}"))
}

/// Microseconds of each of the repetitions that a call says it has done: of the best call and of the median one.
fn time(
    calls: usize,
    comm: &Communicator,
    mut call: impl FnMut() -> Result<u64, LinalgError>,
) -> Result<String, LinalgError> {
    let mut times = Vec::new();
    for _ in 0..calls {
        comm.barrier()?;
        let clock = Clock::start();
        let repetitions = call()?;
        comm.barrier()?;
        times.push(clock.now().since(Time(0)).as_secs_f64() * 1e6 / repetitions.max(1) as f64);
    }
    times.sort_by(f64::total_cmp);
    Ok(format!("{:.2} ({:.2}) us", times[0], times[calls / 2]))
}
