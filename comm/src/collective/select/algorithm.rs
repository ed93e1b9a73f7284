//! Every algorithm by name, and what it demands.

use super::{Operation, Shape};
use crate::collective::*;

/// Bytes that a pipelined broadcast passes on at once.
const PIPELINE_SEGMENT_BYTES: usize = 64 << 10;

/// What an algorithm demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The number of ranks is a power of two.
    PowerOfTwo,
    /// The operands of the reduction may change places.
    Commutative,
}

/// One algorithm of one operation.
pub struct Algorithm {
    pub operation: Operation,
    pub name: &'static str,
    pub needs: &'static [Need],
    pub steps: fn(&Shape<'_>) -> Vec<Step>,
    /// From the number of ranks and the bytes that tables choose by.
    pub cost: fn(usize, f64) -> Cost,
}

impl Algorithm {
    /// The algorithm of this name.
    pub fn named(operation: Operation, name: &str) -> Option<&'static Self> {
        Self::of(operation).find(|algorithm| algorithm.name == name)
    }

    /// All algorithms of an operation; the first demands nothing.
    pub fn of(operation: Operation) -> impl Iterator<Item = &'static Self> {
        ALGORITHMS.iter().filter(move |algorithm| algorithm.operation == operation)
    }

    /// Whether its demands are met.
    pub fn fits(&self, size: usize, commutative: bool) -> bool {
        self.needs.iter().all(|need| match need {
            Need::PowerOfTwo => size.is_power_of_two(),
            Need::Commutative => commutative,
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

    Bcast "binomial" [] |s| bcast_binomial(s.root, s.len);

    Reduce "binomial" [] |s| reduce_binomial(s.root, s.len);

    Allreduce "recursive-doubling" [] |s| allreduce_recursive_doubling(s.len);
    Allreduce "ring" [Commutative] |s| allreduce_ring(s.len);




    Gather "linear" [] |s| gather_linear(s.root, s.len, s.starts);
    Gather "binomial" [] |s| gather_binomial(s.root, s.starts);

    Scatter "linear" [] |s| scatter_linear(s.root, s.len, s.starts);
    Scatter "binomial" [] |s| scatter_binomial(s.root, s.starts);

    Allgather "dissemination" [] |s| allgather_dissemination(s.starts);
    Allgather "ring" [] |s| allgather_ring(s.starts);
    Allgather "recursive-doubling" [PowerOfTwo] |s| allgather_recursive_doubling(s.starts);

    Alltoall "pairwise" [] |s| alltoall_pairwise(s.starts, s.recv_starts);
    Alltoall "linear" [] |s| alltoall_linear(s.starts, s.recv_starts);
    Alltoall "bruck" [] |s| alltoall_bruck(s.len);

    Alltoallv "pairwise" [] |s| alltoall_pairwise(s.starts, s.recv_starts);
    Alltoallv "linear" [] |s| alltoall_linear(s.starts, s.recv_starts);
};

/// Elements of a segment of a pipeline.
fn segment(shape: &Shape<'_>) -> usize {
    (PIPELINE_SEGMENT_BYTES / shape.element_bytes.max(1)).max(1)
}
