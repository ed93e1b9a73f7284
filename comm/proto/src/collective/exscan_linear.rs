//! Exclusive scan from rank to rank: the fewest messages.

use super::{Cost, Order, Span, Step};
use crate::rank::Rank;

/// The buffer of rank `r > 0` becomes the reduction of the buffers of ranks `0..r`, of `len` elements; that of rank 0
/// stays as it is. Keeps the order of ranks.
///
/// Cost: `size - 1` rounds of `len` elements; `size - 1` messages in all.
pub fn exscan_linear(rank: Rank, size: usize, len: usize) -> Vec<Step> {
    let without = Span::scratch(0..len);
    let mut steps = Vec::new();
    if rank > 0 {
        steps.push(Step::recv(rank - 1, without.clone()));
        if rank + 1 < size {
            steps.push(Step::reduce(without.clone(), 0..len, Order::OtherFirst));
        }
    }
    if rank + 1 < size {
        steps.push(Step::send(rank + 1, 0..len));
    }
    if rank > 0 {
        steps.push(Step::copy(without, 0..len));
    }
    steps
}

/// Cost of [`exscan_linear`] of `bytes` bytes.
pub fn cost(size: usize, bytes: f64) -> Cost {
    let rounds = (size - 1) as f64;
    Cost { rounds, bytes: rounds * bytes, reduced: rounds * bytes }
}
