//! Preconditioners: `z = M^-1 r` with a matrix `M` that is like `A` and easy to solve with.

use std::ops::Range;

mod jacobi;

pub use jacobi::Jacobi;

/// How much of a residual a preconditioner has to see at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coupling {
    /// None: `M = 1`, and `apply` is never called.
    Identity,
    /// `M` is diagonal; a solver may apply it to any range of rows, and does so while they are in cache.
    Pointwise,
    /// `M` couples the rows of this rank; `apply` gets all of them at once.
    Rank,
}

/// A symmetric positive definite preconditioner without communication.
///
/// For an answer that does not depend on the number of ranks, `M` must not either: a preconditioner that is built
/// from the rank's own rows alone (such as block-Jacobi) changes with the partition.
pub trait Preconditioner {
    /// What [`Preconditioner::apply`] has to see at a time.
    fn coupling(&self) -> Coupling;

    /// `z = M^-1 r` for the local rows `rows`; `r` and `z` hold those rows only.
    fn apply(&self, rows: Range<usize>, r: &[f64], z: &mut [f64]);
}

/// No preconditioner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity;

impl Preconditioner for Identity {
    fn coupling(&self) -> Coupling {
        Coupling::Identity
    }

    fn apply(&self, _rows: Range<usize>, r: &[f64], z: &mut [f64]) {
        z.copy_from_slice(r);
    }
}
