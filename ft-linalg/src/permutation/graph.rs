//! The pattern of a matrix as a graph, and orders of its vertices. Pure, but for the gathering.

use ft_comm::Communicator;

use crate::{DistRows, LinalgError};

/// Rows are vertices; those that any of a(i,j), a(j,i) joins are neighbors.
pub(super) struct Graph {
    starts: Vec<usize>,
    neighbors: Vec<u32>,
}

/// The vertices of a breadth-first traversal, and where each of its levels starts.
struct Levels {
    vertices: Vec<u32>,
    starts: Vec<usize>,
}

/// Which part of the graph a traversal keeps to, and what it has seen.
struct Region {
    /// By vertex, the part that it is in.
    part: Vec<u32>,
    /// By vertex, the last traversal that came by.
    seen: Vec<u32>,
    traversals: u32,
}

impl Graph {
    /// The graph of `A + A^T` without the diagonal, on rank 0. Collective: two gathers.
    pub(super) fn gather(a: &DistRows, comm: &Communicator) -> Result<Option<Self>, LinalgError> {
        let rows = a.rows();
        let mut nnz = vec![0; comm.size()];
        comm.allgather(&[rows.nnz()], &mut nnz)?;
        let lengths: Vec<u32> = rows.row_ptr().windows(2).map(|row| (row[1] - row[0]) as u32).collect();
        let counts: Vec<usize> = (0..comm.size()).map(|rank| a.part().range_of(rank).len()).collect();
        let lengths = comm.gatherv(&lengths, &counts, 0)?;
        let cols: Vec<u32> = rows.cols().iter().map(|col| *col as u32).collect();
        let cols = comm.gatherv(&cols, &nnz, 0)?;
        Ok(lengths.zip(cols).map(|(lengths, cols)| Self::symmetric(&lengths, &cols)))
    }

    /// From rows of so many columns each.
    fn symmetric(lengths: &[u32], cols: &[u32]) -> Self {
        let n = lengths.len();
        let edges = || {
            let mut rest = cols;
            lengths.iter().enumerate().flat_map(move |(row, length)| {
                let (mine, others) = rest.split_at(*length as usize);
                rest = others;
                mine.iter().map(move |col| (row as u32, *col)).filter(|(row, col)| row != col)
            })
        };
        let mut starts = vec![0; n + 1];
        for (row, col) in edges() {
            starts[row as usize + 1] += 1;
            starts[col as usize + 1] += 1;
        }
        (0..n).for_each(|row| starts[row + 1] += starts[row]);
        let mut places = starts.clone();
        let mut both = vec![0; starts[n]];
        let mut put = |at: u32, neighbor: u32| {
            both[places[at as usize]] = neighbor;
            places[at as usize] += 1;
        };
        for (row, col) in edges() {
            put(row, col);
            put(col, row);
        }
        let (mut ends, mut neighbors) = (vec![0], Vec::with_capacity(both.len() / 2));
        for row in starts.windows(2) {
            let row = &mut both[row[0]..row[1]];
            row.sort_unstable();
            neighbors.extend(row.chunk_by(|a, b| a == b).map(|same| same[0]));
            ends.push(neighbors.len());
        }
        Self { starts: ends, neighbors }
    }

    fn len(&self) -> usize {
        self.starts.len() - 1
    }

    fn of(&self, vertex: u32) -> &[u32] {
        &self.neighbors[self.starts[vertex as usize]..self.starts[vertex as usize + 1]]
    }

    fn degree(&self, vertex: u32) -> usize {
        self.of(vertex).len()
    }

    pub(super) fn reverse_cuthill_mckee(&self) -> Vec<u32> {
        let all: Vec<u32> = (0..self.len() as u32).collect();
        let mut order = self.traverse(&all, &mut Region::new(self.len()));
        order.reverse();
        order
    }

    pub(super) fn nested_bisection(&self, parts: usize) -> Vec<u32> {
        let mut region = Region::new(self.len());
        let mut groups = vec![(0..self.len() as u32).collect::<Vec<u32>>()];
        for _ in 0..parts.max(1).next_power_of_two().ilog2() {
            let halves = groups.iter().flat_map(|group| {
                let mut order = self.traverse(group, &mut region);
                let weight = |vertex: &u32| self.degree(*vertex) as u64 + 1;
                let half = order.iter().map(weight).sum::<u64>() / 2;
                let mut sum = 0;
                let cut = order.iter().take_while(|vertex| {
                    sum += weight(vertex);
                    sum <= half
                });
                let cut = cut.count();
                let back = order.split_off(cut);
                [order, back]
            });
            groups = halves.collect();
            for (part, group) in groups.iter().enumerate() {
                group.iter().for_each(|vertex| region.part[*vertex as usize] = part as u32);
            }
        }
        groups
            .iter()
            .flat_map(|group| {
                let mut order = self.traverse(group, &mut region);
                order.reverse();
                order
            })
            .collect()
    }

    /// The order of Cuthill and McKee of `vertices`, which are a part of their own in `region`.
    fn traverse(&self, vertices: &[u32], region: &mut Region) -> Vec<u32> {
        // The vertex of lowest degree, of lowest index, starts each connected piece.
        let mut starts = vertices.to_vec();
        starts.sort_unstable_by_key(|vertex| (self.degree(*vertex), *vertex));
        let mut done = vec![false; self.len()];
        let mut order = Vec::with_capacity(vertices.len());
        for start in starts {
            if done[start as usize] {
                continue;
            }
            let piece = self.levels(self.edge(start, region), region).vertices;
            piece.iter().for_each(|vertex| done[*vertex as usize] = true);
            order.extend(piece);
        }
        order
    }

    /// A vertex that is far from others: from `start` on, the one of lowest degree in the last level, until there are no
    /// more levels than before.
    fn edge(&self, start: u32, region: &mut Region) -> u32 {
        let mut vertex = start;
        let mut levels = self.levels(vertex, region);
        loop {
            let last = &levels.vertices[levels.starts[levels.starts.len() - 1]..];
            let Some(&far) = last.iter().min_by_key(|vertex| (self.degree(**vertex), **vertex)) else {
                return vertex;
            };
            let further = self.levels(far, region);
            if further.starts.len() <= levels.starts.len() {
                return vertex;
            }
            (vertex, levels) = (far, further);
        }
    }

    /// All vertices of the part of `start` that can be reached, level by level; neighbors by degree, then by index.
    fn levels(&self, start: u32, region: &mut Region) -> Levels {
        let part = region.part[start as usize];
        region.traversals += 1;
        region.seen[start as usize] = region.traversals;
        let mut levels = Levels { vertices: vec![start], starts: vec![0] };
        let mut next = 0;
        while next < levels.vertices.len() {
            let end = levels.vertices.len();
            while next < end {
                let before = levels.vertices.len();
                for &neighbor in self.of(levels.vertices[next]) {
                    let seen = &mut region.seen[neighbor as usize];
                    if region.part[neighbor as usize] == part && *seen != region.traversals {
                        *seen = region.traversals;
                        levels.vertices.push(neighbor);
                    }
                }
                levels.vertices[before..].sort_by_key(|vertex| self.degree(*vertex));
                next += 1;
            }
            if levels.vertices.len() > end {
                levels.starts.push(end);
            }
        }
        levels
    }
}

impl Region {
    fn new(n: usize) -> Self {
        Self { part: vec![0; n], seen: vec![0; n], traversals: 0 }
    }
}
