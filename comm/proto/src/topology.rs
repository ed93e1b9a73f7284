//! Virtual topologies: who is whose neighbor (MPI 4.1, chapter 8, "Virtual topologies for MPI processes").
//!
//! Values of this process, without messages: [`Grid`] is known to all ranks as a whole, of a [`Graph`] each rank
//! knows its own edges. [`dims_create`] finds a good shape for a grid.

mod dims;
mod graph;
mod grid;

pub use dims::dims_create;
pub use graph::Graph;
pub use grid::{Grid, Sub};

use crate::rank::Rank;

/// Why there is no such topology.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// A grid with these lengths cannot be filled by this number of ranks.
    #[error("{ranks} ranks cannot fill a grid with lengths {dims:?}, where 0 is free")]
    Shape {
        /// Number of ranks.
        ranks: usize,
        /// Lengths; 0 is one to be chosen.
        dims: Vec<usize>,
    },
    /// A length of a grid is zero.
    #[error("dimension {dimension} of the grid has no ranks")]
    Empty {
        /// Which one.
        dimension: usize,
    },
    /// A grid has more than `isize::MAX` ranks.
    #[error("the grid has more ranks than can be counted")]
    TooLarge,
    /// A list has not one entry for each dimension.
    #[error("{given} values for a grid of {dimensions} dimensions")]
    Dimensions {
        /// Entries of the list.
        given: usize,
        /// Dimensions of the grid.
        dimensions: usize,
    },
    /// There is no such rank.
    #[error("rank {rank} does not exist among {size} ranks")]
    RankOutOfRange {
        /// The rank.
        rank: Rank,
        /// Number of ranks.
        size: usize,
    },
}
