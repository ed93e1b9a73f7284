//! Gather, every rank straight to the root.

use super::Step;
use crate::rank::Rank;

/// The root's buffer of `size len` elements gets rank `r`'s `len` elements at `r len`; its own are there
/// already. The buffer of another rank is its own `len` elements.
///
/// Cost: one round; the root receives `(size - 1) len` elements.
pub fn gather_linear(rank: Rank, size: usize, root: Rank, len: usize) -> Vec<Step> {
    if rank != root {
        return vec![Step::send(root, 0..len)];
    }
    let others = (0..size).filter(|&from| from != root);
    others.map(|from| Step::recv(from, from * len..(from + 1) * len)).collect()
}
