//! Allreduce by one rank that hears from all and tells all, for few bytes and more ranks than cores: each of the others waits once.

use super::fold::Fold;
use super::{Cost, Order, Span, Step};
use crate::rank::Rank;

/// All buffers of `len` elements become the reduction of all buffers. Keeps the order of ranks.
///
/// Rank 0 combines in the order of [`allreduce_recursive_doubling`](super::allreduce_recursive_doubling()), so the bits are those that it gives.
///
/// Cost: `size - 1` messages of `len` elements into rank 0, and as many out of it.
pub fn allreduce_linear(rank: Rank, size: usize, len: usize) -> Vec<Step> {
    if rank != 0 {
        return vec![Step::send(0, 0..len), Step::recv(0, 0..len)];
    }
    let part = |of: Rank| match of {
        0 => Span::from(0..len),
        other => Span::scratch((other - 1) * len..other * len),
    };
    let mut steps: Vec<Step> = (1..size).map(|from| Step::recv(from, part(from))).collect();
    let order = Fold::new(size).order().into_iter();
    steps.extend(order.map(|(low, high)| Step::reduce(part(high), part(low), Order::MineFirst)));
    steps.extend((1..size).map(|to| Step::send(to, 0..len)));
    steps
}

/// Cost of [`allreduce_linear`] of `bytes` bytes.
pub fn cost(size: usize, bytes: f64) -> Cost {
    let others = (size - 1) as f64;
    Cost { rounds: 2.0 * others, bytes: 2.0 * others * bytes, reduced: others * bytes }
}
