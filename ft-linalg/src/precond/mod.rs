//! Preconditioners: `z = M^-1 r` with a matrix `M` that is like `A` and easy to solve with.

use ft_comm::Communicator;

use crate::{LinalgError, LinearOperator, Workspace};

mod jacobi;
mod kind;

pub use jacobi::Jacobi;
pub use kind::Precond;

/// `M`, as a solver sees it. Derived data: made of the operator at the start and again after a restore.
///
/// For an answer that does not depend on the number of ranks, `M` must not either: what is made from a rank's own rows
/// alone changes with the partition. Conjugate gradients need one that is symmetric positive definite.
pub trait Preconditioner: Sync {
    /// `z = M^-1 r`, own rows. Collective.
    ///
    /// # Errors
    /// [`LinalgError::Comm`], and what the preconditioner says.
    fn apply(
        &self,
        r: &[f64],
        z: &mut [f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError>;

    /// `z = M^-T r`. Collective. As [`Preconditioner::apply`] where `M` is symmetric.
    ///
    /// # Errors
    /// As [`Preconditioner::apply`]; [`LinalgError::NoTranspose`].
    fn apply_transpose(
        &self,
        _r: &[f64],
        _z: &mut [f64],
        _comm: &Communicator,
        _work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        Err(LinalgError::NoTranspose)
    }

    /// Whether a solver may apply it row by row, while rows are in cache.
    fn pointwise(&self) -> Pointwise<'_> {
        Pointwise::No
    }
}

/// What a preconditioner does to a row, if it needs no other row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pointwise<'a> {
    /// Nothing: `M = 1`.
    Identity,
    /// It multiplies by these factors, one for each of this rank's rows.
    Scale(&'a [f64]),
    /// It needs others.
    No,
}

/// What a preconditioner is made by: one of [`Precond`], or a function of one's own
/// `fn(&dyn LinearOperator, &Communicator) -> Result<Box<dyn Preconditioner>, LinalgError>`.
pub trait MakePreconditioner {
    /// The preconditioner for `a`. Collective.
    ///
    /// # Errors
    /// [`LinalgError::Comm`]; what of `a` is unfit for it.
    fn make(
        &self,
        a: &dyn LinearOperator,
        comm: &Communicator,
    ) -> Result<Box<dyn Preconditioner>, LinalgError>;
}

impl<F> MakePreconditioner for F
where
    F: Fn(&dyn LinearOperator, &Communicator) -> Result<Box<dyn Preconditioner>, LinalgError>,
{
    fn make(
        &self,
        a: &dyn LinearOperator,
        comm: &Communicator,
    ) -> Result<Box<dyn Preconditioner>, LinalgError> {
        self(a, comm)
    }
}

/// No preconditioner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity;

impl Preconditioner for Identity {
    fn apply(
        &self,
        r: &[f64],
        z: &mut [f64],
        _: &Communicator,
        _: &mut Workspace,
    ) -> Result<(), LinalgError> {
        z.copy_from_slice(r);
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
        Pointwise::Identity
    }
}
