//! Small systems of every kind with their solutions, and whole solves of them.

use ft_comm::Communicator;
use ft_linalg::gallery::{ConvectionDiffusion, Elasticity, Laplacian27, NeumannPoisson, ShiftedPoisson};
use ft_linalg::solver::{AnyOptions, AnySolver, Method};
use ft_linalg::{
    DistMatrix, DistVector, MakePreconditioner, Partition, Poisson, Precond, Solution, StopCriteria, rhs,
    solve,
};

/// The systems, each of a few hundred rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Problem {
    Poisson,
    Laplacian27,
    Elasticity,
    /// Not symmetric; the flow is a hundred times as fast as diffusion.
    Convection,
    /// Symmetric, with some eigenvalues below 0.
    Shifted,
    /// Singular, with `b` in its range.
    Neumann,
}
impl Problem {
    pub(crate) const ALL: [Self; 6] =
        [Self::Poisson, Self::Laplacian27, Self::Elasticity, Self::Convection, Self::Shifted, Self::Neumann];

    pub(crate) fn matrix(self, comm: &Communicator) -> DistMatrix {
        let (n, rows): (usize, Box<dyn Fn(_) -> _>) = match self {
            Self::Poisson => (324, Box::new(|range| Poisson::new_2d(18, 18).unwrap().rows(range))),
            Self::Laplacian27 => (420, Box::new(|range| Laplacian27::new(6, 7, 10).unwrap().rows(range))),
            Self::Convection => {
                (324, Box::new(|range| ConvectionDiffusion::new_2d(18, 18, 100.0).unwrap().rows(range)))
            }
            Self::Shifted => {
                (324, Box::new(|range| ShiftedPoisson::new_2d(18, 18, 0.3).unwrap().rows(range)))
            }
            Self::Neumann => (324, Box::new(|range| NeumannPoisson::new(18, 18, 1).unwrap().rows(range))),
            Self::Elasticity => {
                let rows = Elasticity::clamped(4, 3, 3).unwrap().matrix(comm).unwrap();
                return rows.into_matrix(comm).unwrap();
            }
        };
        let part = Partition::of(comm, n);
        DistMatrix::new(part.clone(), rows(part.range()), comm).unwrap()
    }

    /// The system, and its solution.
    pub(crate) fn system(self, comm: &Communicator) -> (DistMatrix, DistVector, DistVector) {
        let a = self.matrix(comm);
        let x = DistVector::from_fn(a.part().clone(), |row| ((row.0 * row.0) as f64 * 0.1).sin());
        let b = rhs::from_solution(&a, &x, comm).unwrap();
        (a, b, x)
    }
}

pub(crate) fn options(method: Method, stop: StopCriteria) -> AnyOptions {
    AnyOptions { method, stop, restart: 25, omega: 0.9, ..AnyOptions::default() }
}

/// A solve from start to end.
pub(crate) type Whole = (Solution, Vec<f64>);

pub(crate) fn whole(
    method: Method,
    (problem, precond): (Problem, Precond),
    stop: StopCriteria,
    comm: &Communicator,
) -> Whole {
    let (a, b, _) = problem.system(comm);
    let m = precond.make(&a, comm).unwrap();
    let mut x = DistVector::zeros(a.part().clone());
    let solution = solve::<AnySolver>(&options(method, stop), &a, &*m, &b, &mut x, comm).unwrap();
    (solution, x.gather(comm).unwrap())
}
