//! Reduce-scatter by pairwise exchange, for long vectors and operations that are not commutative (R. Thakur,
//! R. Rabenseifner, W. Gropp, Optimization of collective communication operations in MPICH, IJHPCA 19(1), 2005).

use super::{Cost, Order, Span, Step};
use crate::rank::Rank;

/// Elements `starts[r]..starts[r + 1]` of the buffer of rank `r` become the reduction over all ranks; the other elements
/// are unspecified afterwards. Keeps the order of ranks.
///
/// Messages come from the ranks below, downwards, then from those above, downwards: these meet in scratch first.
///
/// Cost: `size - 1` rounds; a rank sends all parts but its own, and reduces its own `size - 1` times.
pub fn reduce_scatter_pairwise(rank: Rank, size: usize, starts: &[usize]) -> Vec<Step> {
    let part = |rank: Rank| starts[rank]..starts[rank + 1];
    let (own, above) = (part(rank), Span::scratch(0..part(rank).len()));
    let mut steps = Vec::new();
    for distance in 1..size {
        let to = (rank + distance) % size;
        let from = (rank + size - distance) % size;
        steps.push(Step::send(to, part(to)));
        steps.push(match from {
            from if from < rank => Step::recv_reduce(from, own.clone(), Order::OtherFirst),
            from if from == size - 1 => Step::recv(from, above.clone()),
            from => Step::recv_reduce(from, above.clone(), Order::OtherFirst),
        });
    }
    if rank + 1 < size {
        steps.push(Step::reduce(above, own, Order::MineFirst));
    }
    steps
}

/// Cost of [`reduce_scatter_pairwise`] of `bytes` bytes in equal parts.
pub fn cost(size: usize, bytes: f64) -> Cost {
    let rounds = (size - 1) as f64;
    let part = bytes / size as f64;
    Cost { rounds, bytes: rounds * part, reduced: rounds * part }
}
