//! Ring allreduce, for long vectors (Patarasuk, Yuan, JPDC 69(2), 2009).

use super::{Cost, Order, Step};
use crate::rank::Rank;

/// All buffers become the reduction of all buffers, with the same bits everywhere.
///
/// Cost per rank: `2 (size - 1)` rounds, about `2 len (size - 1) / size` elements each way.
pub fn allreduce_ring(rank: Rank, size: usize, len: usize) -> Vec<Step> {
    let (left, right) = ((rank + size - 1) % size, (rank + 1) % size);
    let part = |back: usize| {
        let chunk = (rank + 2 * size - back) % size;
        chunk * len / size..(chunk + 1) * len / size
    };
    let mut steps = Vec::with_capacity(4 * (size - 1));
    for round in 0..size - 1 {
        steps.push(Step::send(right, part(round)));
        steps.push(Step::recv_reduce(left, part(round + 1), Order::OtherFirst));
    }
    // This rank owns the reduced chunk `rank + 1` now.
    for round in 0..size - 1 {
        steps.push(Step::send(right, part(round + size - 1)));
        steps.push(Step::recv(left, part(round + size)));
    }
    steps
}

/// Cost of [`allreduce_ring`] of `bytes` bytes.
pub fn cost(size: usize, bytes: f64) -> Cost {
    let (others, part) = ((size - 1) as f64, bytes / size as f64);
    Cost { rounds: 2.0 * others, bytes: 2.0 * others * part, reduced: others * part }
}
