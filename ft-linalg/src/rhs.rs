//! Right-hand sides.

use std::path::Path;

use ft_comm::Communicator;

use crate::{DistVector, LinalgError, LinearOperator, Partition, Workspace, matrix_market};

/// A right-hand side of ones. Not collective.
pub fn ones(part: &Partition) -> DistVector {
    DistVector::constant(part.clone(), 1.0)
}

/// Numbers from 0 to 1 that show no pattern, the same on any number of ranks: where eigenvectors are sought from. Not
/// collective.
///
/// Source: Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014 (the finisher of SplitMix).
pub fn scattered(part: &Partition) -> DistVector {
    DistVector::from_fn(part.clone(), |row| {
        let mut bits = (row.0 as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    })
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
