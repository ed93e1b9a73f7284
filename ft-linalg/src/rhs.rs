//! Right-hand sides.

use std::path::Path;

use ft_comm::Communicator;

use crate::{DistMatrix, DistVector, LinalgError, Partition, error::agree, matrix_market};

/// All ones. Not collective.
pub fn ones(part: &Partition) -> DistVector {
    DistVector::constant(part.clone(), 1.0)
}

/// `b = A x` for a known solution `x`, so that the error of a computed one can be told. Collective.
///
/// `b` is rounded: the solution of the rounded system differs from `x` by about `cond(A)` units of the last place.
///
/// # Errors
/// As [`DistMatrix::multiply`].
pub fn from_solution(a: &DistMatrix, x: &DistVector, comm: &Communicator) -> Result<DistVector, LinalgError> {
    a.multiply(x, comm)
}

/// A Matrix Market array of one column with `n` elements, read by every rank. Collective.
///
/// # Errors
/// On every rank when one of them cannot read it or it has another length: [`LinalgError::MatrixMarket`],
/// [`LinalgError::Length`], [`LinalgError::OtherRank`]; [`LinalgError::Comm`].
pub fn from_file(
    part: &Partition,
    path: impl AsRef<Path>,
    comm: &Communicator,
) -> Result<DistVector, LinalgError> {
    let mine = matrix_market::read_vector(path)
        .map_err(LinalgError::from)
        .and_then(|whole| DistVector::from_global(part.clone(), &whole));
    agree(mine, comm)
}
