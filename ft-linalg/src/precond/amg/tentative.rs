//! The tentative prolongator of a domain: near-null vectors cut at its aggregates, orthonormal in each.

use std::ops::Range;

use super::aggregates::{Aggregates, NONE};
use crate::CsrRows;
use crate::vector::axpy;

/// A vector of which so much is left depends on those before it.
const DEPENDENT: f64 = 1e-10;

/// `T` of a domain, and the near-null vectors of its coarse rows.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tentative {
    /// Of each row of the domain: the first coarse row of its aggregate (counted in the domain), and its values.
    rows: Vec<(usize, Vec<f64>)>,
    /// By vector.
    near_null: Vec<Vec<f64>>,
    /// Coarse rows of each aggregate.
    widths: Vec<usize>,
}

impl Tentative {
    /// For the local rows `domain`. `nodes` are the first local rows of all nodes.
    pub(super) fn new(
        domain: Range<usize>,
        nodes: &[usize],
        aggregates: &Aggregates,
        vectors: &[Vec<f64>],
    ) -> Self {
        let first_node = nodes.partition_point(|&start| start < domain.start);
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); aggregates.count];
        for (node, &aggregate) in aggregates.of_node.iter().enumerate().filter(|(_, of)| **of != NONE) {
            members[aggregate as usize].extend(nodes[first_node + node]..nodes[first_node + node + 1]);
        }
        let mut rows = vec![(0, Vec::new()); domain.len()];
        let (mut near_null, mut widths) = (vec![Vec::new(); vectors.len()], Vec::new());
        let mut next = 0;
        for members in members {
            let local =
                vectors.iter().map(|vector| members.iter().map(|&row| vector[row]).collect()).collect();
            let (basis, coefficients) = orthonormal(local);
            near_null.iter_mut().zip(coefficients).for_each(|(vector, of)| vector.extend(&of[..basis.len()]));
            for (at, &row) in members.iter().enumerate() {
                rows[row - domain.start] = (next, basis.iter().map(|column| column[at]).collect());
            }
            next += basis.len();
            widths.push(basis.len());
        }
        Self { rows, near_null, widths }
    }

    pub(super) fn coarse_rows(&self) -> usize {
        self.widths.iter().sum()
    }

    /// Of near-null vector `k`, the elements of the coarse rows.
    pub(super) fn near_null(&self, k: usize) -> &[f64] {
        &self.near_null[k]
    }

    /// `T` of a rank's domains, whose coarse rows begin at `first`; all domains together have `len` rows.
    pub(super) fn rows_of(domains: &[Self], first: usize, len: usize) -> CsrRows {
        let starts = domains.iter().scan(first, |next, domain| {
            let start = *next;
            *next += domain.coarse_rows();
            Some(start)
        });
        let starts: Vec<usize> = starts.collect();
        let mut rows = domains
            .iter()
            .zip(starts)
            .flat_map(|(domain, start)| domain.rows.iter().map(move |(at, values)| (start + at, values)));
        CsrRows::build(0..len, 1, |_, cols, vals| {
            let (start, values) = rows.next().expect("the domains together have all rows");
            cols.extend((start as u64..).take(values.len()));
            vals.extend(values);
        })
    }

    /// The aggregates as nodes of the coarse level: where each begins, and the number of coarse rows.
    pub(super) fn nodes_of(domains: &[Self]) -> Vec<usize> {
        let mut nodes = vec![0];
        for width in domains.iter().flat_map(|domain| &domain.widths).filter(|width| **width > 0) {
            nodes.push(nodes[nodes.len() - 1] + width);
        }
        nodes
    }
}

/// An orthonormal basis of `vectors`, and each of these in terms of it; by Gram and Schmidt, twice.
fn orthonormal(vectors: Vec<Vec<f64>>) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).fold(0.0, |sum, (x, y)| sum + x * y);
    let (count, mut basis): (usize, Vec<Vec<f64>>) = (vectors.len(), Vec::new());
    let mut coefficients = vec![vec![0.0; count]; count];
    for (mut vector, of) in vectors.into_iter().zip(&mut coefficients) {
        let before = dot(&vector, &vector).sqrt();
        for _ in 0..2 {
            for (column, of) in basis.iter().zip(&mut *of) {
                let part = dot(column, &vector);
                *of += part;
                axpy(-part, column, &mut vector);
            }
        }
        let norm = dot(&vector, &vector).sqrt();
        if norm > DEPENDENT * before {
            of[basis.len()] = norm;
            vector.iter_mut().for_each(|value| *value /= norm);
            basis.push(vector);
        }
    }
    (basis, coefficients)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_null_vectors_are_in_the_range_also_where_they_depend_on_each_other() {
        let vectors = [vec![1.0; 6], (0..6).map(f64::from).collect(), vec![2.0; 6]];
        // Rows 0 and 1; 2, 3 and 5; row 4 is in no aggregate.
        let aggregates = Aggregates { of_node: vec![0, 0, 1, 1, NONE, 1], count: 2 };
        let t = Tentative::new(0..6, &[0, 1, 2, 3, 4, 5, 6], &aggregates, &vectors);
        assert_eq!((t.coarse_rows(), Tentative::nodes_of(std::slice::from_ref(&t))), (4, vec![0, 2, 4]));
        let rows = Tentative::rows_of(std::slice::from_ref(&t), 10, 6);
        assert_eq!(rows.row(3).0, [12, 13]);
        for (k, vector) in vectors.iter().enumerate() {
            let coarse: Vec<f64> = [0.0; 10].iter().chain(t.near_null(k)).copied().collect();
            let mut back = [0.0; 6];
            rows.product_serial(&coarse, &mut back);
            for (row, (back, exact)) in back.iter().zip(vector).enumerate() {
                let exact = if row == 4 { 0.0 } else { *exact };
                assert!((back - exact).abs() < 1e-14, "vector {k}, row {row}: {back}");
            }
        }
    }
}
