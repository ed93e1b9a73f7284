//! Aggregates: groups of nodes around a middle one, all strongly coupled to it.
//!
//! Two nodes are strongly coupled where `|A_ij|^2 > threshold^2 |A_ii| |A_jj|`, with Frobenius norms of their blocks. Three
//! passes over the nodes of a domain, in order (Vanek, Mandel, Brezina, algorithm 5.1): a node whose neighbors are all free
//! makes an aggregate with them; a free node joins the neighbor to which it is coupled most; what is left makes
//! aggregates of free neighbors. A node that is coupled to none is in no aggregate: smoothing is enough for it.

use std::ops::Range;

use crate::CsrRows;
use crate::precond::compact::Compact;

/// The aggregate of each node of a domain; [`NONE`] for a node that is in none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Aggregates {
    pub(super) of_node: Vec<u32>,
    pub(super) count: usize,
}

pub(super) const NONE: u32 = u32::MAX;

/// The aggregates of the domain of local rows `domain`. `rows` are those from global row `first` on, `nodes` the first local
/// row of each node.
pub(super) fn aggregates(
    rows: &CsrRows,
    first: usize,
    domain: Range<usize>,
    nodes: &[usize],
    threshold: f64,
) -> Aggregates {
    grouped(&strong(rows, first, domain, nodes, threshold))
}

/// For each node of the domain, the nodes that it is coupled to strongly, and how strongly; numbers count from its first.
fn strong(rows: &CsrRows, first: usize, domain: Range<usize>, nodes: &[usize], threshold: f64) -> Compact {
    let first_node = nodes.partition_point(|&start| start < domain.start);
    let last_node = nodes.partition_point(|&start| start < domain.end);
    let nodes = &nodes[first_node..=last_node];
    let count = nodes.len() - 1;
    let mut node_of = vec![0u32; domain.len()];
    for (node, pair) in nodes.windows(2).enumerate() {
        node_of[pair[0] - domain.start..pair[1] - domain.start].fill(node as u32);
    }
    let globals = (first + domain.start) as u64..(first + domain.end) as u64;
    let (mut squares, mut place) = (Compact::new(count, 0), vec![NONE; count]);
    let mut diagonal = vec![0.0; count];
    for (node, pair) in nodes.windows(2).enumerate() {
        let mut entries: Vec<(u32, f64)> = Vec::new();
        for row in pair[0]..pair[1] {
            let (cols, vals) = rows.row(row);
            for (&col, val) in cols.iter().zip(vals).filter(|(col, _)| globals.contains(col)) {
                let other = node_of[(col - globals.start) as usize];
                let at = &mut place[other as usize];
                if *at == NONE {
                    *at = entries.len() as u32;
                    entries.push((other, 0.0));
                }
                entries[*at as usize].1 += val * val;
            }
        }
        for &(other, square) in &entries {
            place[other as usize] = NONE;
            if other as usize == node {
                diagonal[node] = square;
            } else {
                squares.push(other, square);
            }
        }
        squares.end_row();
    }
    let mut strong = Compact::new(count, squares.nnz());
    for (node, (others, squares)) in squares.rows().enumerate() {
        for (&other, &square) in others.iter().zip(squares) {
            let weight = square / (diagonal[node] * diagonal[other as usize]).sqrt();
            if weight > threshold * threshold {
                strong.push(other, weight);
            }
        }
        strong.end_row();
    }
    strong
}

fn grouped(strong: &Compact) -> Aggregates {
    let mut of_node = vec![NONE; strong.len()];
    let mut count = 0u32;
    for (node, (others, _)) in strong.rows().enumerate() {
        let free = |node: usize| of_node[node] == NONE;
        if !others.is_empty() && free(node) && others.iter().all(|&other| free(other as usize)) {
            of_node[node] = count;
            others.iter().for_each(|&other| of_node[other as usize] = count);
            count += 1;
        }
    }
    let first_pass = of_node.clone();
    for (node, (others, weights)) in strong.rows().enumerate().filter(|(node, _)| first_pass[*node] == NONE) {
        let mut best = (0.0, NONE);
        for (&other, &weight) in others.iter().zip(weights) {
            if first_pass[other as usize] != NONE && weight > best.0 {
                best = (weight, first_pass[other as usize]);
            }
        }
        of_node[node] = best.1;
    }
    for (node, (others, _)) in strong.rows().enumerate() {
        if of_node[node] == NONE && !others.is_empty() {
            of_node[node] = count;
            for &other in others.iter().filter(|&&other| first_pass[other as usize] == NONE) {
                let other = &mut of_node[other as usize];
                *other = if *other == NONE { count } else { *other };
            }
            count += 1;
        }
    }
    Aggregates { of_node, count: count as usize }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Poisson;

    #[test]
    fn a_chain_falls_into_threes() {
        let rows = Poisson::new_2d(10, 1).unwrap().rows(0..10);
        let nodes: Vec<usize> = (0..=10).collect();
        // The first node has one neighbor; then each middle one takes two with it, and the last is left to join.
        let found = aggregates(&rows, 0, 0..10, &nodes, 0.08);
        assert_eq!(found, Aggregates { of_node: vec![0, 0, 1, 1, 1, 2, 2, 2, 3, 3], count: 4 });
        // Nothing is strong.
        assert_eq!(aggregates(&rows, 0, 0..10, &nodes, 0.3).count, 0);
        // Half of it: couplings that leave the domain do not count.
        assert_eq!(aggregates(&rows, 0, 5..8, &nodes, 0.08).of_node, [0, 0, 0]);
        // Rows in pairs.
        let pairs = aggregates(&rows, 0, 0..10, &[0, 2, 4, 6, 8, 10], 0.08);
        assert_eq!(pairs.of_node, [0, 0, 1, 1, 1]);
    }
}
