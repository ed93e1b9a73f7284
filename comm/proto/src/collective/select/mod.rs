//! The choice of algorithm, as one table: `builtin.rs`, or a text like it.

mod algorithm;
mod builtin;
mod line;
mod operation;
mod pipeline;
mod shape;
mod table;

pub use builtin::SELECTION;
pub use operation::Operation;
pub use shape::{Shape, equal_starts};
pub use table::{Selection, SelectionError};

use self::algorithm::Algorithm;
use super::{Cost, Step};

impl Operation {
    /// Names of its algorithms. The first one fits every number of ranks and every operator.
    pub fn algorithms(self) -> impl Iterator<Item = &'static str> {
        Algorithm::of(self).map(|algorithm| algorithm.name)
    }
}

/// The steps of a named algorithm for one rank; nothing where there is none of this name, or it does not fit the
/// number of ranks, the operator or the hosts.
pub fn steps(operation: Operation, algorithm: &str, shape: Shape<'_>) -> Option<Vec<Step>> {
    let algorithm = Algorithm::named(operation, algorithm)?;
    algorithm.fits(&shape).then(|| (algorithm.steps)(&shape))
}

/// The cost of a named algorithm, as a function of the number of ranks and the bytes of [`Shape::bytes`]; of `two-level` on two hosts with
/// half of the ranks each.
pub fn cost(operation: Operation, algorithm: &str) -> Option<fn(usize, f64) -> Cost> {
    Algorithm::named(operation, algorithm).map(|algorithm| algorithm.cost)
}

#[cfg(test)]
mod tests;
