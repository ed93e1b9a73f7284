//! A partial differential equation, put together from finite elements and solved through failures: `-div grad u = f` on the unit
//! square with `u = 0` on its edge, by linear triangles.
//!
//! `ftrun -n 4 --kill 2@step=5 target/release/examples/assembled`
//!
//! Every rank computes some of the elements, whoever owns their rows. The answer is compared with the known
//! `u = sin(pi x) sin(pi y)`.

use std::f64::consts::PI;

use ft_checkpoint::Protection;
use ft_comm::{Communicator, MainError, World};
use ft_linalg::precond::AmgOptions;
use ft_linalg::{
    Assembly, Cg, DistMatrix, DistVector, LinalgError, Precond, Problem, Protected, StopCriteria,
    VectorAssembly,
};

/// Points inside of the square, a side; `H` is the distance of two of them.
const SIDE: usize = 63;
const H: f64 = 1.0 / (SIDE + 1) as f64;

/// The unknown of a point of the grid, unless it is on the edge.
fn unknown([i, j]: [usize; 2]) -> Option<usize> {
    let is_inside = |k: usize| (1..=SIDE).contains(&k);
    (is_inside(i) && is_inside(j)).then(|| (j - 1) * SIDE + (i - 1))
}

fn solution([i, j]: [usize; 2]) -> f64 {
    (PI * H * i as f64).sin() * (PI * H * j as f64).sin()
}

/// Half a cell: a right-angled triangle with its right angle at the first corner.
fn corners(element: usize) -> [[usize; 2]; 3] {
    let (cell, upper) = (element / 2, element % 2);
    let (i, j) = (cell % (SIDE + 1), cell / (SIDE + 1));
    match upper {
        0 => [[i, j], [i + 1, j], [i, j + 1]],
        _ => [[i + 1, j + 1], [i, j + 1], [i + 1, j]],
    }
}

/// The system, collectively.
fn assemble(comm: &Communicator) -> Result<(DistMatrix, DistVector), LinalgError> {
    const STIFFNESS: [[f64; 3]; 3] = [[1.0, -0.5, -0.5], [-0.5, 0.5, 0.0], [-0.5, 0.0, 0.5]];
    let n = SIDE * SIDE;
    let (mut a, mut b) = (Assembly::new(n, n), VectorAssembly::new(n));
    for element in (comm.rank()..2 * (SIDE + 1) * (SIDE + 1)).step_by(comm.size()) {
        let corners = corners(element);
        for (corner, stiffness) in corners.iter().zip(STIFFNESS) {
            let Some(row) = unknown(*corner) else { continue };
            for (other, value) in corners.iter().zip(stiffness) {
                if let Some(col) = unknown(*other) {
                    a.add_keyed(element as u64, row, col, value);
                }
            }
            // A third of the triangle belongs to each of its corners.
            let load = 2.0 * PI * PI * solution(*corner);
            b.add_keyed(element as u64, row, load * H * H / 6.0);
        }
    }
    let a = a.finish(comm)?.into_matrix(comm)?;
    let b = b.finish_on(a.part().clone(), comm)?;
    Ok((a, b))
}

fn main() -> Result<(), MainError> {
    let world = World::init()?;
    let protection = Protection::from_launcher(&world)?;
    let (stop, precond) = (StopCriteria::default(), Precond::Amg(AmgOptions::default()));
    let solved = Protected::<Cg>::new(stop, precond, |world| {
        let (a, b) = assemble(world.comm())?;
        let x = DistVector::zeros(a.part().clone());
        Ok(Problem { a, b, x })
    })
    .solve(world, protection)?;
    if let Some(solved) = solved {
        assert!(solved.solution.reason.is_converged());
        let part = solved.x.part().clone();
        let point = |row: usize| [row % SIDE + 1, row / SIDE + 1];
        let errors = part.range().zip(solved.x.local()).map(|(row, u)| (u - solution(point(row))).abs());
        let largest = errors.fold(0.0, f64::max);
        // The error of linear elements falls with the square of `H`.
        assert!(largest < H * H, "{largest}");
        if solved.rank == 0 {
            println!("{}, an error of {largest:.1e} on the rows of rank 0", solved.solution.reason);
        }
    }
    Ok(())
}
