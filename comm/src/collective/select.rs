//! The choice of algorithm, as one table.

use super::{Step, allreduce_recursive_doubling, allreduce_ring};
use crate::rank::Rank;

/// Identity of this table, for reports: the order of a reduction, and so its bits, depend on it.
pub const SELECTION: &str = "builtin-1";

/// From this many bytes on an allreduce goes round the ring.
const ALLREDUCE_RING_BYTES: usize = 64 << 10;

/// Allreduce of `len` elements of `element_bytes` bytes.
pub fn allreduce(rank: Rank, size: usize, len: usize, element_bytes: usize) -> Vec<Step> {
    if len * element_bytes < ALLREDUCE_RING_BYTES || len < size {
        allreduce_recursive_doubling(rank, size, len)
    } else {
        allreduce_ring(rank, size, len)
    }
}
