//! What is measured.

use std::path::PathBuf;

use ft_comm::collective::{Operation, Shape, equal_starts, steps};

/// Sizes that a table is made of, in bytes.
pub(crate) const SIZES: [usize; 10] =
    [8, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];
/// Bytes that all ranks together get from others in one call, at most, where each of them has a part for each.
const TRAFFIC: usize = 64 << 20;

/// What is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// `ftrun`.
    pub program: PathBuf,
    /// Numbers of ranks, rising.
    pub ranks: Vec<usize>,
    /// Seconds for each algorithm with each size in each round, about.
    pub time_s: f64,
    /// How often everything is measured.
    pub rounds: usize,
    /// `--transport` of the jobs.
    pub transport: String,
    /// Options of the jobs that say on which hosts they are; none: on this one.
    pub places: Vec<String>,
}

/// Whether an operation is timed with this many ranks and bytes: not where it moves so much that it says nothing new.
pub fn is_offered(operation: Operation, ranks: usize, bytes: usize) -> bool {
    let parts = match operation {
        Operation::Gather | Operation::Scatter => ranks,
        Operation::Allgather | Operation::Alltoall | Operation::Alltoallv => ranks * ranks,
        _ => 1,
    };
    parts.saturating_mul(bytes) <= TRAFFIC
}

/// Whether an algorithm fits this many ranks, operands that may change places or not, and the `hosts` of the ranks (empty: all are on one).
pub fn fits(operation: Operation, algorithm: &str, ranks: usize, commutative: bool, hosts: &[usize]) -> bool {
    let starts = equal_starts(ranks, 0);
    let shape = Shape { commutative, starts: &starts, recv_starts: &starts, hosts, ..Shape::new(0, ranks) };
    steps(operation, algorithm, shape).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demands_of_algorithms() {
        assert!(fits(Operation::Allgather, "recursive-doubling", 4, true, &[]));
        assert!(!fits(Operation::Allgather, "recursive-doubling", 6, true, &[]));
        assert!(fits(Operation::Allreduce, "ring", 3, true, &[]));
        assert!(!fits(Operation::Allreduce, "ring", 3, false, &[]));
        assert!(!fits(Operation::Allreduce, "magic", 3, true, &[]));
        assert!(!fits(Operation::Allreduce, "two-level", 3, true, &[]));
        assert!(fits(Operation::Allreduce, "two-level", 3, false, &[0, 1, 0]));
    }

    #[test]
    fn too_much_is_left_out() {
        assert!(is_offered(Operation::Allreduce, 16, 4 << 20));
        assert!(is_offered(Operation::Alltoall, 4, 4 << 20));
        assert!(!is_offered(Operation::Alltoall, 8, 4 << 20));
        assert!(is_offered(Operation::Gather, 8, 4 << 20));
    }
}
