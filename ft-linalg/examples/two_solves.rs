//! Several protected solves in one job: two, with what is collective between them, then a loop of ten, each from what the one
//! before has found.
//!
//! `ftrun -n 4 --kill 1@step=20 --kill 2@step=60 target/release/examples/two_solves`
//!
//! A replacement gets the answers of solves that have ended, and joins the one that is under way.

use ft_checkpoint::{Job, Protection, Replicated};
use ft_comm::{MainError, World};
use ft_linalg::gallery::ConvectionDiffusion;
use ft_linalg::{
    Bicgstab, Cg, DistMatrix, DistVector, LinalgError, Partition, Poisson, Precond, Problem, Protected,
    StopCriteria,
};

const SIDE: usize = 40;

fn partition(world: &World) -> Partition {
    Partition::of(world.comm(), SIDE * SIDE)
}

/// Heat that diffuses, from the sources `b`.
fn poisson(world: &World, b: Vec<f64>, x: Vec<f64>) -> Result<Problem, LinalgError> {
    let part = partition(world);
    let a = DistMatrix::new(part.clone(), Poisson::new_2d(SIDE, SIDE)?.rows(part.range()), world.comm())?;
    Ok(Problem { a, b: DistVector::from_local(part.clone(), b)?, x: DistVector::from_local(part, x)? })
}

fn main() -> Result<(), MainError> {
    let world = World::init()?;
    let (rank, protection) = (world.rank(), Protection::from_launcher(&world)?);
    let Some(mut job) = Job::start(world, protection)? else { return Ok(()) };
    let (stop, mut ends) = (StopCriteria::default(), vec![]);
    let mut ended = |iterations: u64| ends.push(ends.last().unwrap_or(&0) + iterations);

    let (solution, heat) = Protected::<Cg>::new(stop, Precond::Jacobi, |world| {
        let n = partition(world).local_len();
        poisson(world, vec![1.0; n], vec![0.0; n])
    })
    .solve_in(&mut job)?;
    assert!(solution.reason.is_converged());
    ended(solution.reason.iterations());

    // Norms and other sums between two solves are runs of their own, of one step.
    let Replicated(norm) = job.once(|world| {
        DistVector::from_local(partition(world), heat.clone())?.norm2(world.comm()).map(Replicated)
    })?;

    let (solution, mut x) = Protected::<Bicgstab>::new(stop, Precond::Jacobi, |world| {
        let part = partition(world);
        let flow = ConvectionDiffusion::new_2d(SIDE, SIDE, 50.0)?;
        let a = DistMatrix::new(part.clone(), flow.rows(part.range()), world.comm())?;
        let b = DistVector::from_local(part.clone(), heat.iter().map(|heat| heat / norm).collect())?;
        Ok(Problem { a, b, x: DistVector::zeros(part) })
    })
    .solve_in(&mut job)?;
    assert!(solution.reason.is_converged());
    ended(solution.reason.iterations());

    for _ in 0..10 {
        let (solution, next) = Protected::<Cg>::new(stop, Precond::Jacobi, |world| {
            poisson(world, x.iter().map(|x| x + 0.01).collect(), x.clone())
        })
        .solve_in(&mut job)?;
        assert!(solution.reason.is_converged());
        ended(solution.reason.iterations());
        x = next;
    }
    job.finish()?;
    let bits = x.iter().fold(0, |bits: u64, x| bits.rotate_left(7) ^ x.to_bits());
    let ends: Vec<String> = ends.iter().map(ToString::to_string).collect();
    println!("rank {rank}, after steps {}: x has the bits {bits:016x}", ends.join(" "));
    Ok(())
}
