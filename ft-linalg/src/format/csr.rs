//! Compressed sparse rows with 32-bit columns, over the values as the matrix has them.

use super::{Entries, groups};

#[derive(Clone, Debug)]
pub(crate) struct Csr {
    lens: Vec<u32>,
    cols: Vec<u32>,
}

impl Csr {
    pub(super) fn new(entries: Entries<'_>) -> Self {
        Self { lens: entries.lens.to_vec(), cols: entries.cols.to_vec() }
    }

    /// `y = A x`, `ABREAST` rows at once.
    pub(super) fn product<const ABREAST: usize>(&self, vals: &[f64], x: &[f64], y: &mut [f64]) {
        groups::product::<1, ABREAST>(&self.lens, &self.cols, vals, x, y);
    }
}
