//! Every algorithm by name, and what it demands.

use super::pipeline::{self, pipeline};
use super::{Operation, Shape};
use crate::collective::*;

/// What an algorithm demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// The number of ranks is a power of two.
    PowerOfTwo,
    /// The operands of the reduction may change places.
    Commutative,
    /// Ranks are on several hosts, and some of them share one.
    Levels,
}

/// One algorithm of one operation.
pub(super) struct Algorithm {
    pub(super) operation: Operation,
    pub(super) name: &'static str,
    pub(super) needs: &'static [Need],
    pub(super) steps: fn(&Shape<'_>) -> Vec<Step>,
    /// From the number of ranks and the bytes that tables choose by.
    pub(super) cost: fn(usize, f64) -> Cost,
}

impl Algorithm {
    /// The algorithm of this name.
    pub(super) fn named(operation: Operation, name: &str) -> Option<&'static Self> {
        Self::of(operation).find(|algorithm| algorithm.name == name)
    }

    /// All algorithms of an operation; the first demands nothing.
    pub(super) fn of(operation: Operation) -> impl Iterator<Item = &'static Self> {
        ALGORITHMS.iter().filter(move |algorithm| algorithm.operation == operation)
    }

    /// The algorithm of one level that gives the bits of a reduction of two levels: what stands in for it where ranks have no levels, as
    /// they may be on other hosts after a failure.
    pub(super) fn of_one_level(&self) -> Option<&'static Self> {
        let name = match (self.operation, self.name) {
            (Operation::Allreduce, "two-level") => "recursive-doubling",
            (Operation::Reduce, "two-level") => "binomial",
            _ => return None,
        };
        Self::named(self.operation, name)
    }

    /// Whether its demands are met.
    pub(super) fn fits(&self, shape: &Shape<'_>) -> bool {
        self.needs.iter().all(|need| match need {
            Need::PowerOfTwo => shape.size.is_power_of_two(),
            Need::Commutative => shape.commutative,
            Need::Levels => shape.has_levels(),
        })
    }
}

impl PartialEq for Algorithm {
    fn eq(&self, other: &Self) -> bool {
        (self.operation, self.name) == (other.operation, other.name)
    }
}

impl std::fmt::Debug for Algorithm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.operation, self.name)
    }
}

/// The lines of [`ALGORITHMS`]: `OPERATION "NAME" [NEEDS] module(arguments)`.
macro_rules! algorithms {
    ($($operation:ident $name:literal [$($need:ident)*] |$shape:ident| $module:ident($($argument:expr),*);)*) => {
        &[$(Algorithm {
            operation: Operation::$operation,
            name: $name,
            needs: &[$(Need::$need),*],
            steps: |$shape| $module($shape.rank, $shape.size, $($argument),*),
            cost: $module::cost,
        }),*]
    };
}

/// All of them; the first of an operation demands nothing.
static ALGORITHMS: &[Algorithm] = algorithms! {
    Barrier "dissemination" [] |s| barrier_dissemination();
    Barrier "tree" [] |s| barrier_tree();
    Barrier "linear" [] |s| barrier_linear();
    Barrier "two-level" [Levels] |s| barrier_two_level(s.hosts);

    Bcast "binomial" [] |s| bcast_binomial(s.root, s.len);
    Bcast "linear" [] |s| bcast_linear(s.root, s.len);
    Bcast "scatter-allgather" [] |s| bcast_scatter_allgather(s.root, s.len);
    Bcast "pipeline" [] |s| pipeline(s.root, s.len, s.element_bytes);
    Bcast "two-level" [Levels] |s| bcast_two_level(s.root, s.len, s.hosts);

    Reduce "binomial" [] |s| reduce_binomial(s.root, s.len);
    Reduce "scatter-gather" [] |s| reduce_scatter_gather(s.root, s.len);
    Reduce "two-level" [Levels] |s| reduce_two_level(s.root, s.len, s.hosts);

    Allreduce "recursive-doubling" [] |s| allreduce_recursive_doubling(s.len);
    Allreduce "halving-doubling" [] |s| allreduce_halving_doubling(s.len);
    Allreduce "tree" [] |s| allreduce_tree(s.len);
    Allreduce "linear" [] |s| allreduce_linear(s.len);
    Allreduce "ring" [Commutative] |s| allreduce_ring(s.len);
    Allreduce "two-level" [Levels] |s| allreduce_two_level(s.len, s.hosts);

    Scan "recursive-doubling" [] |s| scan_recursive_doubling(s.len);
    Scan "linear" [] |s| scan_linear(s.len);

    Exscan "recursive-doubling" [] |s| exscan_recursive_doubling(s.len);
    Exscan "linear" [] |s| exscan_linear(s.len);

    ReduceScatter "pairwise" [] |s| reduce_scatter_pairwise(s.starts);
    ReduceScatter "halving" [Commutative] |s| reduce_scatter_halving(s.starts);

    Gather "linear" [] |s| gather_linear(s.root, s.len, s.starts);
    Gather "binomial" [] |s| gather_binomial(s.root, s.starts);

    Scatter "linear" [] |s| scatter_linear(s.root, s.len, s.starts);
    Scatter "binomial" [] |s| scatter_binomial(s.root, s.starts);

    Allgather "dissemination" [] |s| allgather_dissemination(s.starts);
    Allgather "ring" [] |s| allgather_ring(s.starts);
    Allgather "recursive-doubling" [PowerOfTwo] |s| allgather_recursive_doubling(s.starts);
    Allgather "two-level" [Levels] |s| allgather_two_level(s.starts, s.hosts);

    Alltoall "pairwise" [] |s| alltoall_pairwise(s.starts, s.recv_starts);
    Alltoall "linear" [] |s| alltoall_linear(s.starts, s.recv_starts);
    Alltoall "bruck" [] |s| alltoall_bruck(s.len);

    Alltoallv "pairwise" [] |s| alltoall_pairwise(s.starts, s.recv_starts);
    Alltoallv "linear" [] |s| alltoall_linear(s.starts, s.recv_starts);
};
