//! Gather up a binomial tree (Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005, section 4).

use super::{Cost, Span, Step, tree_parts::TreeParts};
use crate::rank::Rank;

/// The root's buffer gets each other rank's input: that of rank `r` at `starts[r]..starts[r + 1]`. The root's own
/// part is there already. A rank between them keeps the parts of its subtree in scratch.
///
/// Cost: `ceil(log2 size)` rounds; the root receives all elements but its own, in one message from each child, or
/// two where its ranks go round the end.
pub fn gather_binomial(rank: Rank, size: usize, root: Rank, starts: &[usize]) -> Vec<Step> {
    let tree = TreeParts::new(size, root, starts);
    let position = tree.position(rank);
    let (own, parent) = tree.subtree(position);
    let mut steps = Vec::new();
    let Some(parent) = parent else {
        for child in tree.children(position) {
            let from = tree.rank(child.start);
            steps.extend(tree.places(child).map(|place| Step::recv(from, place)));
        }
        return steps;
    };
    let mine = starts[rank + 1] - starts[rank];
    let leaf = own.len() == 1;
    if !leaf {
        steps.push(Step::copy(Span::input(0..mine), Span::scratch(0..mine)));
    }
    // Scratch has the subtree in order of positions, without gaps.
    let at = |position: usize| tree.len(own.start..position);
    for child in tree.children(position) {
        let from = tree.rank(child.start);
        steps.push(Step::recv(from, Span::scratch(at(child.start)..at(child.end))));
    }
    let part = |range| if leaf { Span::input(range) } else { Span::scratch(range) };
    if parent == 0 {
        let mut end = 0;
        for place in tree.places(own) {
            steps.push(Step::send(root, part(end..end + place.len())));
            end += place.len();
        }
    } else {
        steps.push(Step::send(tree.rank(parent), part(0..at(own.end))));
    }
    steps
}

/// Cost with parts of `bytes` bytes and rank 0 as the root.
pub fn cost(size: usize, bytes: f64) -> Cost {
    let rounds = size.next_power_of_two().ilog2();
    let copied = if rounds > 1 { bytes } else { 0.0 };
    Cost { rounds: rounds.into(), bytes: (size - 1) as f64 * bytes, reduced: copied }
}
