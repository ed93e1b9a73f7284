//! Broadcast of long vectors: a scatter down a binomial tree, then an allgather round the ring (M. Barnett, L. Shuler,
//! R. van de Geijn, S. Gupta, D. Payne, J. Watts, Interprocessor collective communication library (InterCom), SHPCC
//! 1994).

use std::ops::Range;

use super::{Cost, Step};
use crate::rank::Rank;

/// All ranks get the `len` elements of `root`.
///
/// A rank gets the chunks of its whole subtree in the scatter; round the ring it is not sent these again.
///
/// Cost: `ceil(log2 size) + size - 1` rounds, about `2 len (size - 1) / size` elements in and out.
pub fn bcast_scatter_allgather(rank: Rank, size: usize, root: Rank, len: usize) -> Vec<Step> {
    let real = |relative: usize| (relative + root) % size;
    let relative = (rank + size - root) % size;
    let chunks = |chunks: Range<usize>| chunks.start * len / size..chunks.end * len / size;
    let mut steps = Vec::new();

    let mut bit = lowest_bit(relative, size);
    if relative != 0 {
        steps.push(Step::recv(real(relative - bit), chunks(subtree(relative, size))));
    }
    while bit > 1 {
        bit /= 2;
        if relative + bit < size {
            steps.push(Step::send(real(relative + bit), chunks(subtree(relative + bit, size))));
        }
    }

    let (left, right) = ((relative + size - 1) % size, (relative + 1) % size);
    for round in 0..size - 1 {
        let out = (relative + size - round) % size;
        let comes = (left + size - round) % size;
        if !subtree(right, size).contains(&out) {
            steps.push(Step::send(real(right), chunks(out..out + 1)));
        }
        if !subtree(relative, size).contains(&comes) {
            steps.push(Step::recv(real(left), chunks(comes..comes + 1)));
        }
    }
    steps
}

/// Ranks in the subtree of a rank, both relative to the root.
fn subtree(relative: usize, size: usize) -> Range<usize> {
    relative..size.min(relative + lowest_bit(relative, size))
}

/// The distance to the parent in the tree; for the root what it would be in a larger tree.
fn lowest_bit(relative: usize, size: usize) -> usize {
    if relative == 0 { size.next_power_of_two() } else { relative & relative.wrapping_neg() }
}

/// Cost of [`bcast_scatter_allgather`] of `bytes` bytes.
pub fn cost(size: usize, bytes: f64) -> Cost {
    let others = (size - 1) as f64;
    let rounds = f64::from(size.next_power_of_two().ilog2()) + others;
    Cost { rounds, bytes: 2.0 * bytes * others / size as f64, reduced: 0.0 }
}
