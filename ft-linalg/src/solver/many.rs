//! Several right-hand sides of one system.

use ft_comm::Communicator;

use super::{Solution, Solver, run};
use crate::{LinalgError, LinearOperator, MultiVector, Preconditioner, Workspace};

/// Solves `A X = B`, column after column, each from that of `x`, which becomes the answer; gives what was reached in each.
/// Operator, preconditioner and memory are those of all. Collective, as [`super::solve`].
///
/// # Errors
/// As [`Solver::start`]; columns that were solved before stay.
///
/// # Panics
/// If `x` has another number of columns than `b`.
pub fn solve_many<S: Solver>(
    options: &S::Options,
    a: &dyn LinearOperator,
    m: &dyn Preconditioner,
    b: &MultiVector,
    x: &mut MultiVector,
    comm: &Communicator,
) -> Result<Vec<Solution>, LinalgError> {
    assert_eq!(x.columns(), b.columns(), "columns of x");
    let mut work = Workspace::default();
    let solve = |column| {
        let system = super::System { a, m, b: b.column(column) };
        let (solution, solver): (_, S) = run(options, &system, x.column(column), comm, &mut work, |_| ())?;
        x.column_mut(column).copy_from_slice(solver.x());
        Ok(solution)
    };
    (0..b.columns()).map(solve).collect()
}
