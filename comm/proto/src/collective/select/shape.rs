//! What a step list depends on.

use super::Operation;
use crate::rank::Rank;

/// One call of a collective operation on one rank. Each operation reads the fields that it has a use for.
#[derive(Clone, Copy, Debug)]
pub struct Shape<'a> {
    /// The rank that the list is for.
    pub rank: Rank,
    /// Number of ranks.
    pub size: usize,
    /// The root, of bcast, reduce, gather and scatter.
    pub root: Rank,
    /// Elements: all of them for bcast, reduce, allreduce, scan and exscan, those of one part for alltoall.
    pub len: usize,
    /// Bytes of an element.
    pub element_bytes: usize,
    /// Whether operands of the reduction may change places.
    pub commutative: bool,
    /// Where the part of each rank starts and, at the end, the number of all elements: the same on all ranks for
    /// gather, scatter, allgather and reduce-scatter; where the parts to send start for alltoallv.
    pub starts: &'a [usize],
    /// Where the received parts start, of alltoallv.
    pub recv_starts: &'a [usize],
    /// By rank a label that tells its host apart, the same on all ranks; empty where all ranks are on one.
    pub hosts: &'a [usize],
}

impl Shape<'_> {
    /// Nothing but a rank among `size`: root 0, no elements, a commutative operator.
    pub fn new(rank: Rank, size: usize) -> Self {
        Shape {
            rank,
            size,
            root: 0,
            len: 0,
            element_bytes: 1,
            commutative: true,
            starts: &[],
            recv_starts: &[],
            hosts: &[],
        }
    }

    /// Whether ranks are on several hosts, and some of them share one.
    pub(super) fn has_levels(&self) -> bool {
        let mut labels = self.hosts.to_vec();
        labels.sort_unstable();
        labels.dedup();
        (2..self.hosts.len()).contains(&labels.len())
    }

    /// The bytes that a table chooses by, the same on all ranks: the whole buffer for bcast and reductions, one part
    /// (of unequal ones the mean) for gather, scatter, allgather and alltoall, 0 where there is nothing to choose by.
    pub fn bytes(&self, operation: Operation) -> usize {
        let all = self.starts.last().copied().unwrap_or(0);
        let elements = match operation {
            Operation::Barrier | Operation::Alltoallv => 0,
            Operation::ReduceScatter => all,
            Operation::Gather | Operation::Scatter | Operation::Allgather => {
                return all.saturating_mul(self.element_bytes) / self.size;
            }
            Operation::Bcast
            | Operation::Reduce
            | Operation::Allreduce
            | Operation::Scan
            | Operation::Exscan
            | Operation::Alltoall => self.len,
        };
        elements.saturating_mul(self.element_bytes)
    }
}

/// Where the parts of `size` ranks with `len` elements each start, and the end of the last.
pub fn equal_starts(size: usize, len: usize) -> Vec<usize> {
    (0..=size).map(|rank| rank * len).collect()
}
