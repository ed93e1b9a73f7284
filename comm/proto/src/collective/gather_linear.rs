//! Gather, every rank straight to the root (MPI 4.1, 6.5).

use super::{Cost, Span, Step};
use crate::rank::Rank;

/// The root's buffer gets the `len` elements of each other rank's input: those of rank `r` at
/// `starts[r]..starts[r + 1]`. The root's own part is there already. `starts` is read at the root alone, and may
/// be empty elsewhere.
///
/// Cost: `size - 1` messages into the root, all elements but its own.
pub fn gather_linear(rank: Rank, size: usize, root: Rank, len: usize, starts: &[usize]) -> Vec<Step> {
    if rank != root {
        return vec![Step::send(root, Span::input(0..len))];
    }
    let others = (0..size).filter(|&from| from != root);
    others.map(|from| Step::recv(from, starts[from]..starts[from + 1])).collect()
}

/// Cost with parts of `bytes` bytes.
pub fn cost(size: usize, bytes: f64) -> Cost {
    let others = (size - 1) as f64;
    Cost { rounds: others, bytes: others * bytes, reduced: 0.0 }
}
