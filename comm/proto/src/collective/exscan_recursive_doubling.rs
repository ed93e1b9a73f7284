//! Exclusive scan by recursive doubling (W. D. Hillis, G. L. Steele, Data parallel algorithms, CACM 29(12), 1986), with
//! the rank's own buffer left out of a second sum, as in MPICH.

use super::{Cost, Order, Span, Step};
use crate::rank::Rank;

/// The buffer of rank `r > 0` becomes the reduction of the buffers of ranks `0..r`, of `len` elements; that of rank 0
/// stays as it is. Keeps the order of ranks.
///
/// Before the round of distance `d` the buffer is the reduction of the `d` ranks up to this one, and scratch the same
/// without this one.
///
/// Cost: `ceil(log2 size)` rounds of `len` elements each way, two reductions each but in the first and the last.
pub fn exscan_recursive_doubling(rank: Rank, size: usize, len: usize) -> Vec<Step> {
    let (without, incoming) = (Span::scratch(0..len), Span::scratch(len..2 * len));
    let mut steps = Vec::new();
    let mut distance = 1;
    while distance < size {
        if rank + distance < size {
            steps.push(Step::send(rank + distance, 0..len));
        }
        if rank >= distance {
            let from = rank - distance;
            let sends_again = rank + 2 * distance < size;
            let arrived = if distance == 1 { &without } else { &incoming };
            match (distance, sends_again) {
                (1, _) | (_, true) => steps.push(Step::recv(from, arrived.clone())),
                _ => steps.push(Step::recv_reduce(from, without.clone(), Order::OtherFirst)),
            }
            if sends_again {
                steps.push(Step::reduce(arrived.clone(), 0..len, Order::OtherFirst));
                if distance > 1 {
                    steps.push(Step::reduce(arrived.clone(), without.clone(), Order::OtherFirst));
                }
            }
        }
        distance *= 2;
    }
    if rank > 0 {
        steps.push(Step::copy(without, 0..len));
    }
    steps
}

/// Cost of [`exscan_recursive_doubling`] of `bytes` bytes.
pub fn cost(size: usize, bytes: f64) -> Cost {
    let rounds = f64::from(size.next_power_of_two().ilog2());
    Cost { rounds, bytes: rounds * bytes, reduced: (2.0 * rounds - 1.0).max(0.0) * bytes }
}
