//! A linear system from a Matrix Market file, solved through failures.
//!
//! `ftrun -n 4 --kill 2@step=5 target/release/examples/matrix_market MATRIX.mtx`

use ft_checkpoint::Protection;
use ft_comm::{MainError, World};
use ft_linalg::{Cg, DistVector, Precond, Problem, Protected, StopCriteria, matrix_market, rhs};

fn main() -> Result<(), MainError> {
    let file = std::env::args().nth(1).ok_or("usage: matrix_market FILE")?;
    let world = World::init()?;
    let protection = Protection::from_launcher(&world)?;
    let stop = StopCriteria::default();
    let solved = Protected::<Cg>::new(stop, Precond::Jacobi, |world| {
        let rows = matrix_market::read_rows(&file, world.comm())?;
        rows.require_symmetric(world.comm())?;
        let a = rows.into_matrix(world.comm())?;
        let part = a.part().clone();
        let b = rhs::ones(&part);
        Ok(Problem { a, b, x: DistVector::zeros(part) })
    })
    .solve(world, protection)?;
    // Rows are dealt out in blocks: in a small system some ranks have none.
    if let Some(solved) = solved.filter(|solved| !solved.x.local().is_empty()) {
        let first: Vec<f64> = solved.x.local().iter().copied().take(4).collect();
        println!("rank {}: {}, x = {first:.6?}", solved.rank, solved.solution.reason);
    }
    Ok(())
}
