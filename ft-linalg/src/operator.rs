//! Linear operators: whatever maps a distributed vector to another one, linearly.
//!
//! A solver asks for products and, if it must, for the diagonal; a preconditioner may ask for the rows. A stored matrix
//! ([`crate::DistMatrix`]) is one kind, a stencil that stores nothing another, and [`FromFn`] makes one of a closure.

use std::fmt;
use std::ops::Range;

use ft_comm::Communicator;

use crate::{DistMatrix, LinalgError, Partition, Workspace};

mod stored;

/// Sums over a block of rows, side by side, of which a call uses as many as it needs.
pub type Sums = [f64; 4];

/// `A`, as a solver sees it. `x` and `y` are local parts: one element for each own column, or row.
///
/// For an answer that does not depend on the number of ranks, neither may an element of `A x`: each is to be summed in an
/// order that all numbers of ranks have in common, such as that of global columns.
pub trait LinearOperator: Sync {
    /// How the elements of `A x` are spread.
    fn part(&self) -> &Partition;

    /// How the elements of `x` are: as the rows, unless the operator is rectangular.
    fn col_part(&self) -> &Partition {
        self.part()
    }

    /// `y = A x`. Collective.
    ///
    /// # Errors
    /// [`LinalgError::Comm`], [`LinalgError::Length`], [`LinalgError::NotRebuilt`], [`LinalgError::WrongCommunicator`].
    fn apply(
        &self,
        x: &[f64],
        y: &mut [f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError>;

    /// `y = A x`, and of each block of rows what `sum` makes of the rows and their elements of `y`, while these are in cache.
    /// `sums` has an element for each of this rank's blocks. Collective.
    ///
    /// # Errors
    /// As [`LinearOperator::apply`].
    fn apply_and_sum(
        &self,
        x: &[f64],
        y: &mut [f64],
        sum: BlockSum<'_>,
        sums: &mut [Sums],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        self.apply(x, y, comm, work)?;
        for (rows, sums) in self.part().local_blocks().zip(sums) {
            *sums = sum(rows.clone(), &y[rows]);
        }
        Ok(())
    }

    /// `y = A^T x`; here `x` is spread as the rows, `y` as the columns. Collective.
    ///
    /// # Errors
    /// As [`LinearOperator::apply`]; [`LinalgError::NoTranspose`] unless the operator has one.
    fn apply_transpose(
        &self,
        _x: &[f64],
        _y: &mut [f64],
        _comm: &Communicator,
        _work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        Err(LinalgError::NoTranspose)
    }

    /// The diagonal entries of this rank's rows, where they are known.
    fn diagonal(&self) -> Option<Vec<f64>> {
        None
    }

    /// The stored matrix, where there is one: for preconditioners that are made of rows.
    fn matrix(&self) -> Option<&DistMatrix> {
        None
    }
}

/// What is summed over a block of rows: from the rows, and what the product is there. Several threads may call it at once.
pub type BlockSum<'a> = &'a (dyn Fn(Range<usize>, &[f64]) -> Sums + Sync);

/// A closure as an operator: `apply(x, y, comm, work)` sets `y = A x`, collectively.
pub struct FromFn<F> {
    part: Partition,
    apply: F,
}

impl<F> FromFn<F>
where
    F: Fn(&[f64], &mut [f64], &Communicator, &mut Workspace) -> Result<(), LinalgError> + Sync,
{
    /// A square operator whose rows are spread as `part`.
    pub fn new(part: Partition, apply: F) -> Self {
        Self { part, apply }
    }
}

impl<F> fmt::Debug for FromFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromFn").field("part", &self.part).finish_non_exhaustive()
    }
}

impl<F> LinearOperator for FromFn<F>
where
    F: Fn(&[f64], &mut [f64], &Communicator, &mut Workspace) -> Result<(), LinalgError> + Sync,
{
    fn part(&self) -> &Partition {
        &self.part
    }

    fn apply(
        &self,
        x: &[f64],
        y: &mut [f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        self.part.require(comm)?;
        self.part.require_len("vector", x.len())?;
        (self.apply)(x, y, comm, work)
    }
}
