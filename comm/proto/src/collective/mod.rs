//! Collective operations as data: an algorithm is a pure function from rank, size and length to the steps of
//! one rank; one executor (`Communicator`) runs them, and is the only place that meets failures.
//!
//! Each algorithm is a module with the function of its name and a function `cost`, which says what it costs by
//! formula. Tests hold the formulas against a clock for step lists.

pub mod allgather_dissemination;
pub mod allgather_recursive_doubling;
pub mod allgather_ring;
pub mod allgather_two_level;
pub mod allreduce_halving_doubling;
pub mod allreduce_linear;
pub mod allreduce_recursive_doubling;
pub mod allreduce_ring;
pub mod allreduce_tree;
pub mod allreduce_two_level;
pub mod alltoall_bruck;
pub mod alltoall_linear;
pub mod alltoall_pairwise;
pub mod barrier_dissemination;
pub mod barrier_linear;
pub mod barrier_tree;
pub mod barrier_two_level;
pub mod bcast_binomial;
pub mod bcast_linear;
pub mod bcast_pipeline;
pub mod bcast_scatter_allgather;
pub mod bcast_two_level;
mod combining;
mod cost;
pub mod exscan_linear;
pub mod exscan_recursive_doubling;
mod fold;
pub mod gather_binomial;
pub mod gather_linear;
mod halving;
pub mod hazard;
mod hosts;
pub mod neighbor_linear;
pub mod reduce_binomial;
pub mod reduce_scatter_gather;
pub mod reduce_scatter_halving;
pub mod reduce_scatter_pairwise;
pub mod reduce_two_level;
pub mod scan_linear;
pub mod scan_recursive_doubling;
pub mod scatter_binomial;
pub mod scatter_linear;
mod select;
mod step;
mod tree_parts;

pub use allgather_dissemination::allgather_dissemination;
pub use allgather_recursive_doubling::allgather_recursive_doubling;
pub use allgather_ring::allgather_ring;
pub use allgather_two_level::allgather_two_level;
pub use allreduce_halving_doubling::allreduce_halving_doubling;
pub use allreduce_linear::allreduce_linear;
pub use allreduce_recursive_doubling::allreduce_recursive_doubling;
pub use allreduce_ring::allreduce_ring;
pub use allreduce_tree::allreduce_tree;
pub use allreduce_two_level::allreduce_two_level;
pub use alltoall_bruck::alltoall_bruck;
pub use alltoall_linear::alltoall_linear;
pub use alltoall_pairwise::alltoall_pairwise;
pub use barrier_dissemination::barrier_dissemination;
pub use barrier_linear::barrier_linear;
pub use barrier_tree::barrier_tree;
pub use barrier_two_level::barrier_two_level;
pub use bcast_binomial::bcast_binomial;
pub use bcast_linear::bcast_linear;
pub use bcast_pipeline::bcast_pipeline;
pub use bcast_scatter_allgather::bcast_scatter_allgather;
pub use bcast_two_level::bcast_two_level;
pub use cost::Cost;
pub use exscan_linear::exscan_linear;
pub use exscan_recursive_doubling::exscan_recursive_doubling;
pub use gather_binomial::gather_binomial;
pub use gather_linear::gather_linear;
pub use neighbor_linear::neighbor_linear;
pub use reduce_binomial::reduce_binomial;
pub use reduce_scatter_gather::reduce_scatter_gather;
pub use reduce_scatter_halving::reduce_scatter_halving;
pub use reduce_scatter_pairwise::reduce_scatter_pairwise;
pub use reduce_two_level::reduce_two_level;
pub use scan_linear::scan_linear;
pub use scan_recursive_doubling::scan_recursive_doubling;
pub use scatter_binomial::scatter_binomial;
pub use scatter_linear::scatter_linear;
pub use select::{Operation, SELECTION, Selection, SelectionError, Shape, cost, equal_starts, steps};
pub use step::{Order, Space, Span, Step};

#[cfg(test)]
mod interpreter;
#[cfg(test)]
mod tests;
