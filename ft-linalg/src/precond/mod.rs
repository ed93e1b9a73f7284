//! Preconditioners: `z = M^-1 r` with a matrix `M` that is like `A` and easy to solve with.

use ft_comm::Communicator;

use crate::error::EntryFault;
use crate::{DistMatrix, Global, LinalgError, LinearOperator, Workspace};

mod amg;
mod block;
mod chebyshev;
mod compact;
mod dense;
mod domains;
mod fetch;
mod ic0;
mod ilu0;
mod inner;
mod jacobi;
mod kind;
mod ldu;
mod schwarz;
mod spectrum;
mod ssor;

pub use amg::{Amg, AmgOptions};
use block::Fault;
pub use chebyshev::Chebyshev;
pub use domains::{DOMAINS, Domains};
pub use inner::Inner;
pub use jacobi::Jacobi;
pub use kind::{FORMS, Precond};
pub use schwarz::{Schwarz, SchwarzOptions};

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

/// The preconditioner that does nothing: `M = 1`.
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

/// The stored matrix of `a`, for `what`, with entries that are finite. Collective.
fn matrix_of<'a>(
    a: &'a dyn LinearOperator,
    what: &'static str,
    comm: &Communicator,
) -> Result<&'a DistMatrix, LinalgError> {
    let matrix = a.matrix().ok_or(LinalgError::Unfit { what, needs: "a stored matrix" })?;
    let (part, rows) = (matrix.part(), matrix.rows());
    EntryFault::agree(rows.fault(Global(part.range().start)), part.n(), part.n(), comm)?;
    Ok(matrix)
}

/// Makes the fault of the lowest rank that has one, with its global row, the error of all. Collective: an allgather of five
/// words.
fn agree_on_fault<T>(mine: Result<T, (usize, Fault)>, comm: &Communicator) -> Result<T, LinalgError> {
    // Kind, row, and what is known of it.
    let words = match &mine {
        Ok(_) => [0; 5],
        Err((row, Fault::Diagonal(value))) => [1, *row as u64, value.to_bits(), 0, 0],
        Err((row, Fault::Pivot { value, shifts })) => {
            [2, *row as u64, value.to_bits(), u64::from(*shifts), 0]
        }
        Err((row, Fault::Mirror { col, value, mirrored })) => {
            [3, *row as u64, value.to_bits(), mirrored.to_bits(), *col as u64]
        }
    };
    let mut all = vec![0; 5 * comm.size()];
    comm.allgather(&words, &mut all)?;
    let [kind, row, value, more, col] =
        match (mine, all.as_chunks::<5>().0.iter().find(|words| words[0] != 0)) {
            (_, Some(first)) => *first,
            (Ok(good), None) => return Ok(good),
            (Err(_), None) => unreachable!("an own fault is among those of all"),
        };
    let (row, value) = (row as usize, f64::from_bits(value));
    Err(match kind {
        1 => LinalgError::BadDiagonal { row, value },
        2 => LinalgError::BadPivot { row, value, shifts: more as u32 },
        _ => LinalgError::NotSymmetric { row, col: col as usize, value, mirrored: f64::from_bits(more) },
    })
}

/// Checks that `diagonal`, the entries of this rank's rows from `first` on, is positive and finite on all ranks. Collective.
fn require_diagonal(diagonal: &[f64], first: usize, comm: &Communicator) -> Result<(), LinalgError> {
    let bad = jacobi::first_bad(diagonal);
    let verdict = bad.map_or(Ok(()), |row| Err((first + row, Fault::Diagonal(diagonal[row]))));
    agree_on_fault(verdict, comm)
}
