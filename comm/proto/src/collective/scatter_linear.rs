//! Scatter, the root straight to every rank (MPI 4.1, 6.6).

use super::{Cost, Span, Step};
use crate::rank::Rank;

/// The buffer of each rank but the root gets `len` elements of the root's input: those of rank `r` are
/// `starts[r]..starts[r + 1]`. `starts` is read at the root alone, and may be empty elsewhere.
///
/// Cost: `size - 1` messages out of the root, all elements but its own.
pub fn scatter_linear(rank: Rank, size: usize, root: Rank, len: usize, starts: &[usize]) -> Vec<Step> {
    if rank != root {
        return vec![Step::recv(root, 0..len)];
    }
    let others = (0..size).filter(|&to| to != root);
    others.map(|to| Step::send(to, Span::input(starts[to]..starts[to + 1]))).collect()
}

/// Cost with parts of `bytes` bytes.
pub fn cost(size: usize, bytes: f64) -> Cost {
    let others = (size - 1) as f64;
    Cost { rounds: others, bytes: others * bytes, reduced: 0.0 }
}
