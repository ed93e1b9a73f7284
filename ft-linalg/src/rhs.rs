//! Right-hand sides.

use std::path::Path;

use ft_comm::Communicator;

use crate::{DistVector, LinalgError, LinearOperator, Partition, Workspace, matrix_market};

/// All ones. Not collective.
pub fn ones(part: &Partition) -> DistVector {
    DistVector::constant(part.clone(), 1.0)
}

/// `b = A x` for a known solution `x`, so that the error of a computed one can be told. Collective.
///
/// `b` is rounded: the solution of the rounded system differs from `x` by about `cond(A)` units of the last place.
///
/// # Errors
/// As [`LinearOperator::apply`].
pub fn from_solution(
    a: &dyn LinearOperator,
    x: &DistVector,
    comm: &Communicator,
) -> Result<DistVector, LinalgError> {
    let mut b = DistVector::zeros(a.part().clone());
    a.apply(x.local(), b.local_mut(), comm, &mut Workspace::default())?;
    Ok(b)
}

/// A Matrix Market array of one column with `n` elements. Collective, as [`matrix_market::read_dist_vector`].
///
/// # Errors
/// As there.
pub fn from_file(
    part: &Partition,
    path: impl AsRef<Path>,
    comm: &Communicator,
) -> Result<DistVector, LinalgError> {
    matrix_market::read_dist_vector(part, path, comm)
}
