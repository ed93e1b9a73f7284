//! Scatter down a binomial tree (Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005, section 4).

use super::{Cost, Span, Step, tree_parts::TreeParts};
use crate::rank::Rank;

/// The buffer of each rank but the root gets its part of the root's input: that of rank `r` is
/// `starts[r]..starts[r + 1]`. A rank between them keeps the parts of its subtree in scratch.
///
/// Cost: `ceil(log2 size)` rounds; the root sends all elements but its own, in one message to each child, or two
/// where its ranks go round the end.
pub fn scatter_binomial(rank: Rank, size: usize, root: Rank, starts: &[usize]) -> Vec<Step> {
    let tree = TreeParts::new(size, root, starts);
    let position = tree.position(rank);
    let (own, parent) = tree.subtree(position);
    let mut steps = Vec::new();
    let Some(parent) = parent else {
        // The largest subtree first: it has the longest way to go.
        for child in tree.children(position).into_iter().rev() {
            let to = tree.rank(child.start);
            steps.extend(tree.places(child).map(|place| Step::send(to, Span::input(place))));
        }
        return steps;
    };
    let mine = starts[rank + 1] - starts[rank];
    let leaf = own.len() == 1;
    let part = |range| if leaf { Span::from(range) } else { Span::scratch(range) };
    // Scratch has the subtree in order of positions, without gaps.
    let at = |position: usize| tree.len(own.start..position);
    if parent == 0 {
        let mut end = 0;
        for place in tree.places(own.clone()) {
            steps.push(Step::recv(root, part(end..end + place.len())));
            end += place.len();
        }
    } else {
        steps.push(Step::recv(tree.rank(parent), part(0..at(own.end))));
    }
    for child in tree.children(position).into_iter().rev() {
        let to = tree.rank(child.start);
        steps.push(Step::send(to, Span::scratch(at(child.start)..at(child.end))));
    }
    if !leaf {
        steps.push(Step::copy(Span::scratch(0..mine), 0..mine));
    }
    steps
}

/// Cost with parts of `bytes` bytes and rank 0 as the root.
pub fn cost(size: usize, bytes: f64) -> Cost {
    let rounds = size.next_power_of_two().ilog2();
    let copied = if rounds > 1 { bytes } else { 0.0 };
    Cost { rounds: rounds.into(), bytes: (size - 1) as f64 * bytes, reduced: copied }
}
