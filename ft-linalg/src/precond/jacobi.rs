//! Jacobi: `M` is the diagonal of `A`.
//!
//! Source: Saad: Iterative Methods for Sparse Linear Systems, 2nd edition, SIAM, 2003, section 10.2.

use ft_comm::Communicator;

use super::{Pointwise, Preconditioner, require_diagonal};
use crate::parallel::elements;
use crate::{LinalgError, LinearOperator, Workspace};

/// Division by the diagonal. Derived data: made again from the matrix rather than checkpointed.
#[derive(Clone, Debug, PartialEq)]
pub struct Jacobi {
    /// Reciprocals of this rank's diagonal entries.
    reciprocals: Vec<f64>,
}

impl Jacobi {
    /// From the diagonal of `a`. Collective: an allgather of five numbers per rank.
    ///
    /// # Errors
    /// [`LinalgError::BadDiagonal`] on every rank, naming the first row whose diagonal entry (or its reciprocal) is
    /// not positive and finite; [`LinalgError::Unfit`] for an operator that does not know its diagonal;
    /// [`LinalgError::Comm`].
    pub fn new(a: &dyn LinearOperator, comm: &Communicator) -> Result<Self, LinalgError> {
        let unfit = LinalgError::Unfit { what: "jacobi", needs: "the diagonal of the operator" };
        let diagonal = a.diagonal().ok_or(unfit)?;
        require_diagonal(&diagonal, a.part().range().start, comm)?;
        Ok(Self::from_diagonal(&diagonal))
    }

    /// From this rank's diagonal entries, unchecked. Not collective.
    pub(crate) fn from_diagonal(diagonal: &[f64]) -> Self {
        Self { reciprocals: diagonal.iter().map(|value| 1.0 / value).collect() }
    }
}

/// The first entry that cannot be divided by.
pub(super) fn first_bad(diagonal: &[f64]) -> Option<usize> {
    diagonal.iter().position(|value| !(*value > 0.0 && value.is_finite() && (1.0 / value).is_finite()))
}

impl Preconditioner for Jacobi {
    fn apply(
        &self,
        r: &[f64],
        z: &mut [f64],
        _: &Communicator,
        _: &mut Workspace,
    ) -> Result<(), LinalgError> {
        elements(z.len(), z, |rows, z| {
            let (r, reciprocals) = (&r[rows.clone()], &self.reciprocals[rows]);
            z.iter_mut().zip(r).zip(reciprocals).for_each(|((z, r), reciprocal)| *z = r * reciprocal);
        });
        Ok(())
    }

    fn apply_transpose(
        &self,
        r: &[f64],
        z: &mut [f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        self.apply(r, z, comm, work)
    }

    fn pointwise(&self) -> Pointwise<'_> {
        Pointwise::Scale(&self.reciprocals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_diagonals() {
        assert_eq!(first_bad(&[1.0, 2.0]), None);
        for bad in [0.0, -0.0, -1.0, f64::NAN, f64::INFINITY, 1e-320] {
            assert_eq!(first_bad(&[1.0, bad, 0.0]), Some(1), "{bad}");
        }
    }

    #[test]
    fn rows_are_divided_by_their_own_diagonal() {
        ft_sim::ranks(1, |comm| {
            let mut z = [0.0; 3];
            let jacobi = Jacobi::from_diagonal(&[1.0, 2.0, 4.0]);
            jacobi.apply(&[1.0; 3], &mut z, comm, &mut Workspace::default()).unwrap();
            assert_eq!(z, [1.0, 0.5, 0.25]);
            assert_eq!(jacobi.pointwise(), Pointwise::Scale(&z));
        });
    }
}
