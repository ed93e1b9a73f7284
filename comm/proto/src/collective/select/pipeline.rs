//! A pipelined broadcast in segments of a fixed number of bytes.

use crate::collective::{Cost, Step, bcast_pipeline};
use crate::rank::Rank;

/// Bytes that are passed on at once.
const SEGMENT_BYTES: usize = 64 << 10;

/// As [`bcast_pipeline()`].
pub(super) fn pipeline(rank: Rank, size: usize, root: Rank, len: usize, element_bytes: usize) -> Vec<Step> {
    let segment = (SEGMENT_BYTES / element_bytes.max(1)).max(1);
    bcast_pipeline(rank, size, root, len, segment)
}

/// Cost of a broadcast of `bytes` bytes.
pub(super) fn cost(size: usize, bytes: f64) -> Cost {
    bcast_pipeline::cost(size, bytes, SEGMENT_BYTES as f64)
}
