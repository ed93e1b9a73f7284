//! How long preconditioners take: conjugate gradients on Poisson's equation in a cube, to 1e-8.
//!
//! `ftrun -n 2 target/release/examples/preconditioners 128 bjacobi amg`: points of an edge, then names as `ftrun cg --precond`
//! takes them. Each line has the seconds of the setup and of the solve on the slowest rank.

use std::process::ExitCode;

use ft_comm::time::{Clock, Time};
use ft_comm::{MainError, Op, World};
use ft_linalg::{
    Cg, DistMatrix, DistVector, LinalgError, MakePreconditioner, Partition, Poisson, Precond, StopCriteria,
    rhs, solve,
};

fn line(edge: usize, name: &Precond, world: &World) -> Result<String, LinalgError> {
    let (comm, grid) = (world.comm(), Poisson::new_3d(edge, edge, edge)?);
    let part = Partition::of(comm, grid.n());
    let a = DistMatrix::new(part.clone(), grid.rows(part.range()), comm)?;
    let (b, mut x) = (rhs::ones(&part), DistVector::zeros(part));
    let stop = StopCriteria { rtol: 1e-8, ..StopCriteria::default() };

    let seconds = |clock: &Clock| clock.now().since(Time(0)).as_secs_f64();
    comm.barrier()?;
    let clock = Clock::start();
    let m = name.make(&a, comm)?;
    let setup = seconds(&clock);
    let reason = solve::<Cg>(&stop, &a, &*m, &b, &mut x, comm)?.reason;
    let mut times = [setup, seconds(&clock) - setup];
    comm.allreduce(&mut times, Op::Max)?;
    Ok(format!("{name}: {reason}; setup {:.3} s, solve {:.3} s", times[0], times[1]))
}

fn main() -> Result<ExitCode, MainError> {
    let mut world = World::init()?;
    let mut words = std::env::args().skip(1);
    let edge = words.next().and_then(|word| word.parse().ok());
    let names: Result<Vec<Precond>, String> = words.map(|word| word.parse()).collect();
    let (Some(edge), Ok(names)) = (edge, &names) else {
        eprintln!("usage: preconditioners POINTS NAME ... {}", names.err().unwrap_or_default());
        return Ok(ExitCode::from(2));
    };
    for name in names {
        let line = line(edge, name, &world)?;
        if world.rank() == 0 {
            println!("{line}");
        }
    }
    world.finalize(vec![])?;
    Ok(ExitCode::SUCCESS)
}
