//! Broadcast straight from the root, for two or three ranks.

use super::{Cost, Step};
use crate::rank::Rank;

/// All ranks get the `len` elements of `root`.
///
/// Cost: the root sends `size - 1` messages of `len` elements.
pub fn bcast_linear(rank: Rank, size: usize, root: Rank, len: usize) -> Vec<Step> {
    if rank != root {
        return vec![Step::recv(root, 0..len)];
    }
    // Everybody starts at another rank, so that roots that change do not all wait for rank 0.
    (1..size).map(|distance| Step::send((root + distance) % size, 0..len)).collect()
}

/// Cost of [`bcast_linear`] of `bytes` bytes.
pub fn cost(size: usize, bytes: f64) -> Cost {
    let rounds = (size - 1) as f64;
    Cost { rounds, bytes: rounds * bytes, reduced: 0.0 }
}
