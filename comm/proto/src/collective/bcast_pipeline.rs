//! Broadcast down a chain, in segments that follow each other (J. Watts, R. van de Geijn, A pipelined broadcast for
//! multidimensional meshes, Parallel Processing Letters 5(2), 1995).

use super::{Cost, Step};
use crate::rank::Rank;

/// All ranks get the `len` elements of `root`, in messages of `segment` elements.
///
/// Cost: with `s = ceil(len / segment)` segments, `size - 2 + s` rounds of one segment; every rank sends and receives
/// `len` elements at most once.
///
/// # Panics
/// `segment` is 0.
pub fn bcast_pipeline(rank: Rank, size: usize, root: Rank, len: usize, segment: usize) -> Vec<Step> {
    assert!(segment > 0, "a segment has elements");
    let relative = (rank + size - root) % size;
    let from = (relative > 0).then_some((rank + size - 1) % size);
    let to = (relative + 1 < size).then_some((rank + 1) % size);
    let mut steps = Vec::new();
    for start in (0..len).step_by(segment) {
        let part = start..len.min(start + segment);
        steps.extend(from.map(|from| Step::recv(from, part.clone())));
        steps.extend(to.map(|to| Step::send(to, part)));
    }
    steps
}

/// Cost of [`bcast_pipeline`] of `bytes` bytes in segments of `segment` bytes.
pub fn cost(size: usize, bytes: f64, segment: f64) -> Cost {
    if size == 1 {
        return Cost::default();
    }
    let rounds = (size - 2) as f64 + (bytes / segment).ceil();
    Cost { rounds, bytes: bytes + (size - 2) as f64 * segment.min(bytes), reduced: 0.0 }
}
