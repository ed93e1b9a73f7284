//! Collective operations as data: an algorithm is a pure function from rank, size and length to the steps of
//! one rank; one executor (`Communicator`) runs them, and is the only place that meets failures.

pub mod allgather_dissemination;
pub mod allreduce_recursive_doubling;
pub mod allreduce_ring;
pub mod barrier_dissemination;
pub mod bcast_binomial;
mod cost;
mod fold;
pub mod gather_linear;
mod hazard;
pub mod reduce_binomial;
mod select;
mod step;

pub use allgather_dissemination::allgather_dissemination;
pub use allreduce_recursive_doubling::allreduce_recursive_doubling;
pub use allreduce_ring::allreduce_ring;
pub use barrier_dissemination::barrier_dissemination;
pub use bcast_binomial::bcast_binomial;
pub use cost::Cost;
pub use gather_linear::gather_linear;
pub use reduce_binomial::reduce_binomial;
pub use select::{SELECTION, allreduce};
pub use step::{Order, Part, Space, Step};

#[cfg(test)]
mod interpreter;
#[cfg(test)]
mod tests;
