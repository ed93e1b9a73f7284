//! Collective operations as data: an algorithm is a pure function from rank, size and length to the steps of
//! one rank; one executor (`Communicator`) runs them, and is the only place that meets failures.

pub mod allgather_dissemination;
pub mod allgather_recursive_doubling;
pub mod allgather_ring;
pub mod allreduce_recursive_doubling;
pub mod allreduce_ring;
pub mod alltoall_bruck;
pub mod alltoall_linear;
pub mod alltoall_pairwise;
pub mod barrier_dissemination;
pub mod bcast_binomial;
mod cost;
mod fold;
pub mod gather_binomial;
pub mod gather_linear;
mod hazard;
pub mod neighbor_linear;
pub mod reduce_binomial;
pub mod scatter_binomial;
pub mod scatter_linear;
mod select;
mod step;
mod tree_parts;

pub use allgather_dissemination::allgather_dissemination;
pub use allgather_recursive_doubling::allgather_recursive_doubling;
pub use allgather_ring::allgather_ring;
pub use allreduce_recursive_doubling::allreduce_recursive_doubling;
pub use allreduce_ring::allreduce_ring;
pub use alltoall_bruck::alltoall_bruck;
pub use alltoall_linear::alltoall_linear;
pub use alltoall_pairwise::alltoall_pairwise;
pub use barrier_dissemination::barrier_dissemination;
pub use bcast_binomial::bcast_binomial;
pub use cost::Cost;
pub use gather_binomial::gather_binomial;
pub use gather_linear::gather_linear;
pub use neighbor_linear::neighbor_linear;
pub use reduce_binomial::reduce_binomial;
pub use scatter_binomial::scatter_binomial;
pub use scatter_linear::scatter_linear;
pub use select::{Operation, SELECTION, Selection, SelectionError, Shape, cost, equal_starts, steps};
pub use step::{Order, Part, Space, Step};

#[cfg(test)]
mod interpreter;
#[cfg(test)]
mod tests;
