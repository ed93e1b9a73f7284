//! Allgather round a ring, for long parts (Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005, section 4.1).

use super::{Cost, Step};
use crate::rank::Rank;

/// All buffers get all parts; rank `r`'s part are the elements `starts[r]..starts[r + 1]`, and its own is in
/// place already.
///
/// Cost per rank: `size - 1` rounds of one part each way, between neighbors only.
pub fn allgather_ring(rank: Rank, size: usize, starts: &[usize]) -> Vec<Step> {
    let (left, right) = ((rank + size - 1) % size, (rank + 1) % size);
    let part = |back: usize| {
        let owner = (rank + size - back) % size;
        starts[owner]..starts[owner + 1]
    };
    let round = |round: usize| [Step::send(right, part(round)), Step::recv(left, part(round + 1))];
    (0..size - 1).flat_map(round).collect()
}

/// Cost with parts of `bytes` bytes.
pub fn cost(size: usize, bytes: f64) -> Cost {
    let rounds = (size - 1) as f64;
    Cost { rounds, bytes: rounds * bytes, reduced: 0.0 }
}
