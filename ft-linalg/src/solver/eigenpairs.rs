//! What methods for symmetric eigenvalue problems share: how many eigenpairs may be asked for, and
//! the residual that the verdict rests on.

use ft_comm::Communicator;

use super::System;
use crate::vector::axpy;
use crate::{LinalgError, MultiVector, Workspace};

/// Refuses a number of eigenvalues that the matrix does not have.
pub(super) fn require_count(count: usize, system: &System<'_>) -> Result<(), LinalgError> {
    let rows = system.a.part().n();
    if count > rows { Err(LinalgError::TooManyEigenvalues { count, rows }) } else { Ok(()) }
}

/// Returns `A x` for each column of `x`. Collective: a product a column.
pub(super) fn multiply(
    x: &MultiVector,
    system: &System<'_>,
    comm: &Communicator,
    work: &mut Workspace,
) -> Result<MultiVector, LinalgError> {
    let (mut products, mut y) = (MultiVector::zeros(x.part().clone(), 0), work.take(system.b.len()));
    for column in x.iter() {
        system.a.apply(column, &mut y, comm, work)?;
        products.push(&y);
    }
    work.give(y);
    Ok(products)
}

/// Returns `A X - X Theta`, of the product `ax`.
pub(super) fn residuals(ax: &MultiVector, x: &MultiVector, values: &[f64]) -> MultiVector {
    let mut r = ax.clone();
    for (at, value) in values.iter().enumerate() {
        axpy(-value, x.column(at), r.column_mut(at));
    }
    r
}

/// Residual norms of approximate eigenpairs, computed from the vectors alone.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Measured {
    /// `||A x - theta x||` of each vector.
    pub(super) norms: Vec<f64>,
    /// The largest element of `X^T X - I`.
    pub(super) skewness: f64,
}

impl Measured {
    /// Multiplies each column of `x` by the matrix. Collective: a product a column, and one
    /// reduction.
    pub(super) fn of(
        x: &MultiVector,
        values: &[f64],
        system: &System<'_>,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<Self, LinalgError> {
        let r = residuals(&multiply(x, system, comm, work)?, x, values);
        let mut pairs: Vec<_> = r.iter().map(|r| (r, r)).collect();
        for row in 0..x.columns() {
            pairs.extend((row..x.columns()).map(|col| (x.column(row), x.column(col))));
        }
        let sums = work.dots_many(x.part(), &pairs, comm)?;
        let (squares, gram) = sums.split_at(x.columns());
        let unit = (0..x.columns()).flat_map(|row| (row..x.columns()).map(move |col| row == col));
        let off = gram.iter().zip(unit).map(|(sum, is_one)| sum - if is_one { 1.0 } else { 0.0 });
        Ok(Self {
            norms: squares.iter().map(|square| square.sqrt()).collect(),
            skewness: largest(off.map(f64::abs)),
        })
    }

    /// Returns the norm that the verdict rests on, for a matrix of norm `modulus`: the largest
    /// residual norm, and what the vectors lack of being orthonormal. Without the latter, two
    /// copies of one vector would pass for two eigenvectors.
    pub(super) fn norm(&self, modulus: f64) -> f64 {
        largest(self.norms.iter().copied()) + self.skewness * modulus
    }
}

/// Returns the largest of `values`; not a number if one is not.
pub(super) fn largest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, |most, value| if value <= most { most } else { value })
}
