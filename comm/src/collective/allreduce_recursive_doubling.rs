//! Allreduce by recursive doubling, for short vectors (Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005).

use super::{Order, Step};
use crate::rank::Rank;

/// All buffers become the reduction of all buffers, with the same bits everywhere.
///
/// With `p` the largest power of two up to `size`, the `size - p` ranks above first fold their buffers into
/// ranks `0..size - p`, and get the result back at the end.
///
/// Cost per rank: `log2 p` rounds of `len` elements each way, two more if `size` is no power of two.
pub fn allreduce_recursive_doubling(rank: Rank, size: usize, len: usize) -> Vec<Step> {
    let power = 1 << size.ilog2();
    let part = 0..len;
    if rank >= power {
        let partner = rank - power;
        return vec![Step::send(partner, part.clone()), Step::recv(partner, part)];
    }
    let folded = (rank + power < size).then_some(rank + power);
    let mut steps = Vec::new();
    if let Some(from) = folded {
        steps.push(Step::recv_reduce(from, part.clone(), Order::MineFirst));
    }
    let mut bit = 1;
    while bit < power {
        steps.push(Step::send(rank ^ bit, part.clone()));
        steps.push(Step::recv_reduce(rank ^ bit, part.clone(), Order::of(rank, rank ^ bit)));
        bit *= 2;
    }
    if let Some(to) = folded {
        steps.push(Step::send(to, part));
    }
    steps
}
