//! Broadcast down a binomial tree.

use super::{Cost, Step};
use crate::rank::Rank;

/// All ranks get the `len` elements of `root`.
///
/// Cost: `ceil(log2 size)` rounds; every rank receives `len` elements once, the root sends
/// `len ceil(log2 size)`.
pub fn bcast_binomial(rank: Rank, size: usize, root: Rank, len: usize) -> Vec<Step> {
    let real = |relative: usize| (relative + root) % size;
    let relative = (rank + size - root) % size;
    let mut steps = Vec::new();
    let mut bit = 1;
    while bit < size {
        if relative & bit != 0 {
            steps.push(Step::recv(real(relative - bit), 0..len));
            break;
        }
        bit *= 2;
    }
    // Children lie at the smaller bits, the largest subtree first.
    bit /= 2;
    while bit > 0 {
        if relative + bit < size {
            steps.push(Step::send(real(relative + bit), 0..len));
        }
        bit /= 2;
    }
    steps
}

/// Cost of [`bcast_binomial`] of `bytes` bytes.
pub fn cost(size: usize, bytes: f64) -> Cost {
    let rounds = f64::from(size.next_power_of_two().ilog2());
    Cost { rounds, bytes: rounds * bytes, reduced: 0.0 }
}
