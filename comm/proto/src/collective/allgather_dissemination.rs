//! Allgather of parts of any lengths in a logarithmic number of rounds, after Bruck et al. (IEEE TPDS 8(11),
//! 1997), without the final rotation: parts travel to their place at once.

use super::{Cost, Step};
use crate::rank::Rank;

/// All buffers get all parts; rank `r`'s part are the elements `starts[r]..starts[r + 1]`, and its own is in
/// place already.
///
/// Cost per rank: `ceil(log2 size)` rounds of one or two messages, all elements but its own in.
pub fn allgather_dissemination(rank: Rank, size: usize, starts: &[usize]) -> Vec<Step> {
    let mut steps = Vec::new();
    // Before a round this rank holds the parts of `held` ranks from itself upwards, cyclic.
    let mut held = 1;
    while held < size {
        let count = held.min(size - held);
        let (to, from) = ((rank + size - held) % size, (rank + held) % size);
        for (first, last) in pieces(rank, count, size) {
            steps.push(Step::send(to, starts[first]..starts[last]));
        }
        for (first, last) in pieces(from, count, size) {
            steps.push(Step::recv(from, starts[first]..starts[last]));
        }
        held += count;
    }
    steps
}

/// The cyclic range of `count` ranks from `first` as one or two plain ones.
fn pieces(first: Rank, count: usize, size: usize) -> impl Iterator<Item = (usize, usize)> {
    let end = first + count;
    let wrapped = (end > size).then(|| (0, end - size));
    std::iter::once((first, end.min(size))).chain(wrapped)
}

/// Cost with parts of `bytes` bytes. In every round but the first, what some rank sends goes round the end, in two
/// messages.
pub fn cost(size: usize, bytes: f64) -> Cost {
    let rounds = size.next_power_of_two().ilog2();
    let messages = (2 * rounds).saturating_sub(1);
    Cost { rounds: messages.into(), bytes: (size - 1) as f64 * bytes, reduced: 0.0 }
}
