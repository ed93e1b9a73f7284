//! A linear system solved through failures: say what the system is, and get the answer.
//!
//! `ftrun -n 4 --kill 2@step=20 target/release/examples/protected_solve`

use ft_checkpoint::Protection;
use ft_comm::{MainError, World};
use ft_linalg::{
    Cg, DistMatrix, DistVector, Partition, Poisson, Precond, Problem, Protected, StopCriteria, rhs,
};

fn main() -> Result<(), MainError> {
    let world = World::init()?;
    let protection = Protection::from_launcher(&world)?;
    let stop = StopCriteria::default();
    let solved = Protected::<Cg>::new(stop, Precond::Jacobi, |world| {
        let grid = Poisson::new_3d(16, 16, 16)?;
        let part = Partition::of(world.comm(), grid.n());
        let a = DistMatrix::new(part.clone(), grid.rows(part.range()), world.comm())?;
        // The right-hand side of which the solution is known: ones.
        let b = rhs::from_solution(&a, &DistVector::constant(part.clone(), 1.0), world.comm())?;
        Ok(Problem { a, b, x: DistVector::zeros(part) })
    })
    .solve(world, protection)?;
    // Dedicated parity ranks get no answer.
    if let Some(solved) = solved {
        assert!(solved.solution.reason.is_converged());
        assert!(solved.x.local().iter().all(|x| (x - 1.0).abs() < 1e-6));
        if solved.rank == 0 {
            println!("{}", solved.solution.reason);
        }
    }
    Ok(())
}
