//! The lowest tones of a square drum, through failures: the smallest eigenvalues of the five-point Laplacian, two of them equal.
//!
//! `ftrun -n 4 --kill 2@step=4 target/release/examples/eigenvalues`

use std::f64::consts::PI;

use ft_checkpoint::Protection;
use ft_comm::{MainError, World};
use ft_linalg::precond::AmgOptions;
use ft_linalg::solver::{Lobpcg, LobpcgOptions};
use ft_linalg::{DistMatrix, DistVector, Partition, Poisson, Precond, Problem, Protected, rhs};

const SIDE: usize = 48;

/// The eigenvalue of `p` and `q` half waves along the sides.
fn known(p: usize, q: usize) -> f64 {
    let part = |waves: usize| 2.0 - 2.0 * (PI * waves as f64 / (SIDE + 1) as f64).cos();
    part(p) + part(q)
}

fn main() -> Result<(), MainError> {
    let world = World::init()?;
    let protection = Protection::from_launcher(&world)?;
    let options = LobpcgOptions { count: 4, ..LobpcgOptions::default() };
    let precond = Precond::Amg(AmgOptions::default());
    let solved = Protected::<Lobpcg>::new(options, precond, |world| {
        let grid = Poisson::new_2d(SIDE, SIDE)?;
        let part = Partition::of(world.comm(), grid.n());
        let a = DistMatrix::new(part.clone(), grid.rows(part.range()), world.comm())?;
        // Eigenvectors are sought from the right-hand side: it should have a part of each.
        let b = rhs::scattered(&part);
        Ok(Problem { a, b, x: DistVector::zeros(part) })
    })
    .solve(world, protection)?;
    if let Some(solved) = solved {
        assert!(solved.solution.reason.is_converged());
        let tones = [(1, 1), (1, 2), (2, 1), (2, 2)];
        for ((value, residual), (p, q)) in solved.solver.eigenvalues().iter().zip(tones) {
            assert!((value - known(p, q)).abs() < 1e-6, "{value}");
            if solved.rank == 0 {
                println!("{p} and {q} half waves: {value:.9}, residual {residual:.1e}");
            }
        }
    }
    Ok(())
}
