//! Neighboring rows with the same columns as one: a list of columns for all, and for each column the values of all.
//!
//! PETSc calls such rows an inode: the unknowns of one node of a mesh meet the same neighbors.

use super::{Entries, groups};

/// Most rows of a node: their sums are to stay in registers.
const MOST: usize = 8;

#[derive(Clone, Debug, Default)]
pub(crate) struct Inodes {
    /// Nodes in a row that have equally many rows.
    stretches: Vec<Stretch>,
    /// Columns of each node.
    lens: Vec<u32>,
    cols: Vec<u32>,
    /// For each column of a node the values of its rows.
    vals: Vec<f64>,
}

#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// Rows of a node.
    rows: usize,
    nodes: usize,
    /// Columns of all its nodes.
    cols: usize,
}

impl Inodes {
    pub(super) fn new(entries: Entries<'_>) -> Self {
        let mut inodes = Self { vals: Vec::with_capacity(entries.vals.len()), ..Self::default() };
        let rows: Vec<_> = entries.rows().collect();
        let mut rest = &rows[..];
        while let Some((cols, _)) = rest.first() {
            let same = rest.iter().take(MOST).take_while(|row| row.0 == *cols).count();
            let node;
            (node, rest) = rest.split_at(same);
            match inodes.stretches.last_mut() {
                Some(stretch) if stretch.rows == same => {
                    stretch.nodes += 1;
                    stretch.cols += cols.len();
                }
                _ => inodes.stretches.push(Stretch { rows: same, nodes: 1, cols: cols.len() }),
            }
            inodes.lens.push(cols.len() as u32);
            inodes.cols.extend(*cols);
            for k in 0..cols.len() {
                inodes.vals.extend(node.iter().map(|(_, vals)| vals[k]));
            }
        }
        inodes
    }

    /// How many nodes and columns there are.
    #[cfg(test)]
    pub(super) fn stored(&self) -> (usize, usize) {
        (self.lens.len(), self.cols.len())
    }

    /// `y = A x`.
    pub(super) fn product(&self, x: &[f64], mut y: &mut [f64]) {
        let (mut lens, mut cols, mut vals) = (&self.lens[..], &self.cols[..], &self.vals[..]);
        for stretch in &self.stretches {
            let (here_lens, here_cols, here_vals, here_y);
            (here_lens, lens) = lens.split_at(stretch.nodes);
            (here_cols, cols) = cols.split_at(stretch.cols);
            (here_vals, vals) = vals.split_at(stretch.cols * stretch.rows);
            (here_y, y) = y.split_at_mut(stretch.nodes * stretch.rows);
            match stretch.rows {
                1 => groups::product::<1, 3>(here_lens, here_cols, here_vals, x, here_y),
                2 => groups::product::<2, 2>(here_lens, here_cols, here_vals, x, here_y),
                3 => groups::product::<3, 2>(here_lens, here_cols, here_vals, x, here_y),
                4 => groups::product::<4, 1>(here_lens, here_cols, here_vals, x, here_y),
                5 => groups::product::<5, 1>(here_lens, here_cols, here_vals, x, here_y),
                6 => groups::product::<6, 1>(here_lens, here_cols, here_vals, x, here_y),
                7 => groups::product::<7, 1>(here_lens, here_cols, here_vals, x, here_y),
                _ => groups::product::<MOST, 1>(here_lens, here_cols, here_vals, x, here_y),
            }
        }
    }
}
