//! Neighbors by list.

use std::collections::HashMap;

use super::{Grid, TopologyError};
use crate::rank::Rank;

/// The edges of one rank in a directed graph (`MPI_Dist_graph_create_adjacent`): whom it hears and whom it tells.
///
/// The order is that of the neighbors in neighborhood collectives. A rank may be its own neighbor, and the same
/// neighbor several times. An edge is known to both its ends: for each time that a rank names another as a
/// destination, that one names it as a source. Several edges from one rank to another match in
/// order: the first destination is the first source. On a communicator with a grid they match by
/// direction where they are the edges of the grid ([`Graph::in_order_of_arrival`]).
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

    /// The positions of the sources of rank `me` in the order in which their messages arrive.
    ///
    /// Without a grid, and for a source that is named once, that is the order of the list. In a
    /// periodic dimension of one or two ranks of `grid` the rank below is the rank above as well:
    /// this rank names it first for the edge down, then for the edge up, and receives its message
    /// up from below (MPI 4.1, section 8.6). That holds for a rank that is as often a source and a
    /// destination as it is a neighbor in `grid`, so both ends of an edge agree on it.
    ///
    /// # Panics
    /// `grid` has no rank `me`.
    pub fn in_order_of_arrival(&self, grid: Option<&Grid>, me: Rank) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.sources.len()).collect();
        let Some(grid) = grid else { return order };
        let times = |ranks: &[Rank]| {
            let mut times = HashMap::<Rank, usize>::new();
            ranks.iter().for_each(|rank| *times.entry(*rank).or_default() += 1);
            times
        };
        let in_grid = times(&grid.neighbors(me).into_iter().flatten().collect::<Vec<_>>());
        let (from, to) = (times(&self.sources), times(&self.destinations));
        // Where the first of two edges of one dimension stands, while the second one has not come
        // by.
        let mut down = HashMap::<Rank, usize>::new();
        for (at, rank) in self.sources.iter().enumerate() {
            let is_of_grid = in_grid.get(rank).is_some_and(|times| times.is_multiple_of(2))
                && [&from, &to].iter().all(|times| times.get(rank) == in_grid.get(rank));
            if is_of_grid {
                match down.remove(rank) {
                    Some(first) => order.swap(first, at),
                    None => drop(down.insert(*rank, at)),
                }
            }
        }
        order
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

    /// The neighbors of a rank in a grid, as a graph.
    fn of_grid(grid: &Grid, rank: Rank) -> Graph {
        let neighbors: Vec<Rank> = grid.neighbors(rank).into_iter().flatten().collect();
        Graph::new(grid.size(), neighbors.clone(), neighbors).unwrap()
    }

    /// For every grid with dimensions of one to three ranks: the message that a rank receives in a
    /// direction is the one that its neighbor has sent in the opposite direction.
    #[test]
    fn edges_of_a_grid_between_the_same_two_ranks_match_by_direction() {
        for shape in 0..27 {
            let lengths = [shape / 9 + 1, shape / 3 % 3 + 1, shape % 3 + 1];
            for periodic in (0..8).map(|mask| [mask & 4 > 0, mask & 2 > 0, mask & 1 > 0]) {
                let grid = Grid::new(&lengths, &periodic).unwrap();
                let slots = |rank| -> Vec<usize> {
                    let neighbors = grid.neighbors(rank);
                    (0..neighbors.len()).filter(|slot| neighbors[*slot].is_some()).collect()
                };
                for me in 0..grid.size() {
                    let (graph, mine) = (of_grid(&grid, me), slots(me));
                    let order = graph.in_order_of_arrival(Some(&grid), me);
                    let mut due = graph.sources().to_vec();
                    due.sort_unstable();
                    due.dedup();
                    for from in due {
                        let sends = of_grid(&grid, from).destinations().to_vec();
                        let theirs: Vec<usize> = slots(from)
                            .into_iter()
                            .zip(sends)
                            .filter(|(_, to)| *to == me)
                            .map(|(slot, _)| slot)
                            .collect();
                        let received = order.iter().filter(|at| graph.sources()[**at] == from);
                        let received: Vec<usize> = received.map(|at| mine[*at] ^ 1).collect();
                        assert_eq!(received, theirs, "{from} to {me} in {grid:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn edges_of_a_graph_between_the_same_two_ranks_match_in_order() {
        let ring = Grid::new(&[2], &[true]).unwrap();
        let twice = of_grid(&ring, 0);
        assert_eq!(twice.in_order_of_arrival(None, 0), [0, 1], "no grid");
        assert_eq!(twice.in_order_of_arrival(Some(&ring), 0), [1, 0]);
        let three = Graph::new(2, vec![1, 0, 1, 1], vec![1, 1, 0, 1]).unwrap();
        assert_eq!(three.in_order_of_arrival(Some(&ring), 0), [0, 1, 2, 3], "not those of the grid");
        let lopsided = Graph::new(2, vec![1, 1], vec![1]).unwrap();
        assert_eq!(lopsided.in_order_of_arrival(Some(&ring), 0), [0, 1]);
    }
}
