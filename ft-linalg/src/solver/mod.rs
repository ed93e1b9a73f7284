//! Iterative solvers for `A x = b`.

use ft_comm::Communicator;

use crate::{DistMatrix, DistVector, LinalgError, StopReason, stop::relative, vector};

mod cg;
mod protected;

pub use cg::{Cg, CgScratch, CgState};
pub use protected::{CgJob, Preconditioning, Problem, Protected, Solved};

/// What one iteration came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Call again.
    Continue,
    /// It is over. Calling again changes nothing and gives the same answer.
    Done(StopReason),
}

/// What a solver says when it is done. The answer itself is in the vector that was passed in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Solution {
    /// Why it stopped, and after how many iterations; converged only if `relative_residual` says so too.
    pub reason: StopReason,
    /// `||r|| / ||b||` with the residual that the recurrence carries.
    pub recurred_relative_residual: f64,
    /// `||b - A x|| / ||b||`, computed from the answer.
    pub relative_residual: f64,
}

/// `||b - A x|| / ||b||`, from scratch; `||A x||` where `b` is zero. Collective: one product, two reductions.
///
/// # Errors
/// As [`DistMatrix::multiply`].
pub fn relative_residual(
    a: &DistMatrix,
    x: &DistVector,
    b: &DistVector,
    comm: &Communicator,
) -> Result<f64, LinalgError> {
    Ok(relative(residual_norm(a, x, b, comm)?, b.norm2(comm)?))
}

/// `||b - A x||`. Collective.
fn residual_norm(
    a: &DistMatrix,
    x: &DistVector,
    b: &DistVector,
    comm: &Communicator,
) -> Result<f64, LinalgError> {
    a.part().require_len("right-hand side", b.local().len())?;
    let mut residual = a.multiply(x, comm)?;
    vector::axpy(-1.0, b.local(), residual.local_mut());
    residual.norm2(comm)
}
