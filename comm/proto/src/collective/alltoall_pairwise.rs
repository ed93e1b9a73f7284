//! Alltoall in rounds of one partner, for long parts (Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005, section 4).

use super::{Cost, Span, Step};
use crate::rank::Rank;

/// Each rank's buffer gets a part of each other rank's input: `send_starts[r]..send_starts[r + 1]` goes to rank
/// `r`, `recv_starts[r]..recv_starts[r + 1]` comes from it. A rank has one message each way under way: of a power
/// of two ranks, pairs exchange; of others, each sends so far up as it receives from below.
///
/// Cost per rank: `size - 1` rounds of one part each way.
pub fn alltoall_pairwise(rank: Rank, size: usize, send_starts: &[usize], recv_starts: &[usize]) -> Vec<Step> {
    let mut steps = Vec::with_capacity(3 * size);
    for round in 1..size {
        let (to, from) = if size.is_power_of_two() {
            (rank ^ round, rank ^ round)
        } else {
            ((rank + round) % size, (rank + size - round) % size)
        };
        if round > 1 {
            steps.push(Step::Fence);
        }
        steps.push(Step::recv(from, recv_starts[from]..recv_starts[from + 1]));
        steps.push(Step::send(to, Span::input(send_starts[to]..send_starts[to + 1])));
    }
    steps
}

/// Cost with parts of `bytes` bytes.
pub fn cost(size: usize, bytes: f64) -> Cost {
    let rounds = (size - 1) as f64;
    Cost { rounds, bytes: rounds * bytes, reduced: 0.0 }
}
