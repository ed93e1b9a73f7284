//! Collective operations as data: an algorithm is a pure function from rank, size and length to the steps of
//! one rank; one executor (`Communicator`) runs them, and is the only place that meets failures.

mod allgather_dissemination;
mod allreduce_recursive_doubling;
mod allreduce_ring;
mod barrier_dissemination;
mod bcast_binomial;
mod gather_linear;
mod reduce_binomial;
mod select;
mod step;

pub use allgather_dissemination::allgather_dissemination;
pub use allreduce_recursive_doubling::allreduce_recursive_doubling;
pub use allreduce_ring::allreduce_ring;
pub use barrier_dissemination::barrier_dissemination;
pub use bcast_binomial::bcast_binomial;
pub use gather_linear::gather_linear;
pub use reduce_binomial::reduce_binomial;
pub use select::{SELECTION, Selection};
pub use step::{Order, Part, Space, Step};

#[cfg(test)]
mod tests;
