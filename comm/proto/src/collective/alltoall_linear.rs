//! Alltoall with everything under way at once (MPI 4.1, 6.8).

use super::{Cost, Span, Step};
use crate::rank::Rank;

/// Each rank's buffer gets a part of each other rank's input: `send_starts[r]..send_starts[r + 1]` goes to rank
/// `r`, `recv_starts[r]..recv_starts[r + 1]` comes from it. Every rank starts with the ranks next to it, so that
/// they do not all send to the same one at once.
///
/// Cost per rank: `size - 1` messages each way, with no order among them.
pub fn alltoall_linear(rank: Rank, size: usize, send_starts: &[usize], recv_starts: &[usize]) -> Vec<Step> {
    // Receives first: what arrives then has its place.
    let froms = (1..size).map(|distance| (rank + size - distance) % size);
    let recvs = froms.map(|from| Step::recv(from, recv_starts[from]..recv_starts[from + 1]));
    let tos = (1..size).map(|distance| (rank + distance) % size);
    let sends = tos.map(|to| Step::send(to, Span::input(send_starts[to]..send_starts[to + 1])));
    recvs.chain(sends).collect()
}

/// Cost with parts of `bytes` bytes.
pub fn cost(size: usize, bytes: f64) -> Cost {
    let rounds = (size - 1) as f64;
    Cost { rounds, bytes: rounds * bytes, reduced: 0.0 }
}
