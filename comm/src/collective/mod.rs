//! Collective operations as data: an algorithm is a pure function from rank, size and length to the steps of
//! one rank; one executor (`Communicator`) runs them, and is the only place that meets failures.
//!
//! Parts are ranges of elements of the rank's own buffer. Sends of a step list may be under way together;
//! a step that changes a part waits until sends of that part have left.

use std::ops::Range;

use crate::rank::Rank;

mod allgather_dissemination;
mod allreduce_recursive_doubling;
mod allreduce_ring;
mod barrier_dissemination;
mod bcast_binomial;
mod gather_linear;
mod reduce_binomial;
mod select;

pub use allgather_dissemination::allgather_dissemination;
pub use allreduce_recursive_doubling::allreduce_recursive_doubling;
pub use allreduce_ring::allreduce_ring;
pub use barrier_dissemination::barrier_dissemination;
pub use bcast_binomial::bcast_binomial;
pub use gather_linear::gather_linear;
pub use reduce_binomial::reduce_binomial;
pub use select::{SELECTION, allreduce};

/// What one rank does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Sends `part` to a rank.
    Send {
        /// Receiver.
        to: Rank,
        /// Elements of the own buffer.
        part: Range<usize>,
    },
    /// `part` = incoming.
    Recv {
        /// Sender.
        from: Rank,
        /// Elements of the own buffer.
        part: Range<usize>,
    },
    /// `part[i] = op(part[i], incoming[i])`.
    RecvReduce {
        /// Sender.
        from: Rank,
        /// Elements of the own buffer.
        part: Range<usize>,
    },
}

#[cfg(test)]
mod tests;
