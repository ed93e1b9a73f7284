//! Neighbors by list.

use super::TopologyError;
use crate::rank::Rank;

/// The edges of one rank in a directed graph (`MPI_Dist_graph_create_adjacent`): whom it hears and whom it tells.
///
/// The order is that of the neighbors in neighborhood collectives. A rank may be its own neighbor, and the same
/// neighbor several times. An edge is known to both its ends: for each time that a rank names another as a
/// destination, that one names it as a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    sources: Vec<Rank>,
    destinations: Vec<Rank>,
}

impl Graph {
    /// The edges of one of `size` ranks.
    ///
    /// # Errors
    /// [`TopologyError::RankOutOfRange`].
    pub fn new(size: usize, sources: Vec<Rank>, destinations: Vec<Rank>) -> Result<Self, TopologyError> {
        match sources.iter().chain(&destinations).find(|rank| **rank >= size) {
            Some(&rank) => Err(TopologyError::RankOutOfRange { rank, size }),
            None => Ok(Self { sources, destinations }),
        }
    }

    /// Ranks that this one hears, in order.
    pub fn sources(&self) -> &[Rank] {
        &self.sources
    }

    /// Ranks that this one tells, in order.
    pub fn destinations(&self) -> &[Rank] {
        &self.destinations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbors_exist_and_keep_their_order() {
        let graph = Graph::new(4, vec![3, 0, 0], vec![2, 1]).unwrap();
        assert_eq!((graph.sources(), graph.destinations()), (&[3, 0, 0][..], &[2, 1][..]));
        let out = |rank| Err(TopologyError::RankOutOfRange { rank, size: 4 });
        assert_eq!(Graph::new(4, vec![1, 4], vec![]), out(4));
        assert_eq!(Graph::new(4, vec![1], vec![0, 7]), out(7));
        assert!(Graph::new(0, vec![], vec![]).is_ok());
    }
}
