//! A preconditioner of one's own in a protected solve: each pair of rows is solved by itself.
//!
//! `ftrun -n 4 --kill 2@step=20 target/release/examples/own_preconditioner`

use ft_checkpoint::Protection;
use ft_comm::{Communicator, MainError, World};
use ft_linalg::{
    Cg, DistMatrix, LinalgError, LinearOperator, Partition, Poisson, Preconditioner, Problem, Protected,
    StopCriteria, Workspace, rhs,
};

/// The inverse of the 2 x 2 block of each pair of rows, as a, b and d of the symmetric [[a, b], [b, d]].
struct Pairs(Vec<[f64; 3]>);

impl Preconditioner for Pairs {
    fn apply(
        &self,
        r: &[f64],
        z: &mut [f64],
        _: &Communicator,
        _: &mut Workspace,
    ) -> Result<(), LinalgError> {
        for ((z, r), [a, b, d]) in z.chunks_exact_mut(2).zip(r.chunks_exact(2)).zip(&self.0) {
            z.copy_from_slice(&[a * r[0] + b * r[1], b * r[0] + d * r[1]]);
        }
        Ok(())
    }
}

/// Made at the start, and again by whoever comes back after a failure. Blocks of rows are of even length, so no pair lies across ranks.
fn pairs(a: &dyn LinearOperator, _: &Communicator) -> Result<Box<dyn Preconditioner>, LinalgError> {
    let matrix = a.matrix().ok_or(LinalgError::Unfit { what: "pairs", needs: "a stored matrix" })?;
    let first = matrix.part().range().start;
    let entry = |row: usize, col: usize| {
        let (cols, vals) = matrix.rows().row(row);
        cols.binary_search(&((first + col) as u64)).map_or(0.0, |at| vals[at])
    };
    let inverse = |row: usize| {
        let (a, b, d) = (entry(row, row), entry(row, row + 1), entry(row + 1, row + 1));
        [d, -b, a].map(|value| value / (a * d - b * b))
    };
    Ok(Box::new(Pairs((0..matrix.rows().len()).step_by(2).map(inverse).collect())))
}

fn main() -> Result<(), MainError> {
    let world = World::init()?;
    let protection = Protection::from_launcher(&world)?;
    let solved = Protected::<Cg>::new(StopCriteria::default(), pairs, |world| {
        let grid = Poisson::new_2d(40, 40)?;
        let part = Partition::of(world.comm(), grid.n());
        let a = DistMatrix::new(part.clone(), grid.rows(part.range()), world.comm())?;
        Ok(Problem { a, b: rhs::ones(&part), x: ft_linalg::DistVector::zeros(part) })
    })
    .solve(world, protection)?;
    if let Some(solved) = solved.filter(|solved| solved.rank == 0) {
        println!("{}", solved.solution.reason);
    }
    Ok(())
}
