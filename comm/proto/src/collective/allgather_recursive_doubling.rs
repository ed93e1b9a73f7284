//! Allgather by recursive doubling (Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005, section 4.1).

use super::{Cost, Step};
use crate::rank::Rank;

/// All buffers get all parts; rank `r`'s part are the elements `starts[r]..starts[r + 1]`, and its own is in
/// place already.
///
/// Cost per rank: `log2 size` rounds of one message, all elements but its own in.
///
/// # Panics
/// `size` is no power of two.
pub fn allgather_recursive_doubling(rank: Rank, size: usize, starts: &[usize]) -> Vec<Step> {
    assert!(size.is_power_of_two(), "recursive doubling of {size} ranks");
    let mut steps = Vec::new();
    let mut held = 1;
    while held < size {
        // Both hold the parts of the `held` ranks that differ from them in lower bits only.
        let partner = rank ^ held;
        let block = |of: Rank| starts[of & !(held - 1)]..starts[(of & !(held - 1)) + held];
        steps.push(Step::send(partner, block(rank)));
        steps.push(Step::recv(partner, block(partner)));
        held *= 2;
    }
    steps
}

/// Cost with parts of `bytes` bytes.
pub fn cost(size: usize, bytes: f64) -> Cost {
    Cost { rounds: size.ilog2().into(), bytes: (size - 1) as f64 * bytes, reduced: 0.0 }
}
