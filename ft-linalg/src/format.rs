//! How the rows of a block are stored for the product, and which way is the fastest for a matrix.
//!
//! Every format adds up a row entry after entry in ascending column, with one accumulator a row and without fused
//! multiply-add, so `y` has the same bits in all of them. What differs is how many rows are in hand at once, and what
//! has to be read for an entry:
//!
//! | format | rows in hand | read for an entry, bytes | suits |
//! |---|---|---|---|
//! | [`Format::Csr`] | 1 | 12 | short rows of any pattern |
//! | [`Format::Abreast`] | 3 neighbors | 12 | long rows of any pattern |
//! | [`Format::Inodes`] | up to 8 with the same columns | 8 + 4 / rows | several unknowns at a node |
//! | [`Format::Runs`] | up to 16 whose columns move along with the row | 8; 0 where values are equal too | grids |
//!
//! The choice is by the clock (`fastest`), as it depends on the processor as much as on the matrix. It may differ between
//! ranks and between runs; no answer depends on it.

mod csr;
mod groups;
mod inodes;
mod runs;
mod stencil;

use std::fmt;

use ft_checkpoint::Protect;
use ft_comm::time::Clock;

use csr::Csr;
use inodes::Inodes;
use runs::Runs;
pub(crate) use stencil::{Couplings, StencilRows};

/// A way to store rows for the product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Protect)]
#[non_exhaustive]
pub enum Format {
    /// Compressed sparse rows, one row after the other.
    Csr,
    /// Compressed sparse rows, three rows at once. The additions of a row wait for each other; those of three do not.
    Abreast,
    /// Neighboring rows with the same columns share one list of these, and are summed together.
    Inodes,
    /// Neighboring rows whose columns are the same relative to the diagonal share one list of these, as those of a grid
    /// do; where the values are the same too they share one list of values.
    Runs,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 4] = [Self::Csr, Self::Abreast, Self::Inodes, Self::Runs];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Csr => "csr",
            Self::Abreast => "abreast",
            Self::Inodes => "inodes",
            Self::Runs => "runs",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Rows as they are before they have a format: columns count from the first element of the vector that they are read from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entries<'a> {
    /// Entries of each row.
    pub(crate) lens: &'a [u32],
    /// Columns of all entries, row by row, ascending in a row.
    pub(crate) cols: &'a [u32],
    /// Values of all entries, row by row.
    pub(crate) vals: &'a [f64],
}

impl<'a> Entries<'a> {
    /// Columns and values, row by row.
    fn rows(self) -> impl Iterator<Item = (&'a [u32], &'a [f64])> {
        let Self { lens, mut cols, mut vals } = self;
        lens.iter().map(move |&len| {
            let len = len as usize;
            let (row_cols, row_vals);
            (row_cols, cols) = cols.split_at(len);
            (row_vals, vals) = vals.split_at(len);
            (row_cols, row_vals)
        })
    }
}

/// Rows in a format.
#[derive(Clone, Debug)]
pub(crate) enum Stored {
    Csr(Csr),
    Abreast(Csr),
    Inodes(Inodes),
    Runs(Runs),
    Stencil(StencilRows),
}

impl Stored {
    pub(crate) fn new(format: Format, entries: Entries<'_>) -> Self {
        match format {
            Format::Csr => Self::Csr(Csr::new(entries)),
            Format::Abreast => Self::Abreast(Csr::new(entries)),
            Format::Inodes => Self::Inodes(Inodes::new(entries)),
            Format::Runs => Self::Runs(Runs::new(entries)),
        }
    }

    /// `y = A x`. `vals` are the values that the rows were made of; formats that can read them as they are keep no others.
    ///
    /// # Panics
    /// If `x` is shorter than a column says, or lengths are not those of the rows.
    pub(crate) fn product(&self, vals: &[f64], x: &[f64], y: &mut [f64]) {
        match self {
            Self::Csr(rows) => rows.product::<1>(vals, x, y),
            Self::Abreast(rows) => rows.product::<3>(vals, x, y),
            Self::Inodes(rows) => rows.product(x, y),
            Self::Runs(rows) => rows.product(x, y),
            Self::Stencil(rows) => rows.product(x, y),
        }
    }
}

/// How often each format is tried. The best time counts: whatever disturbs makes it longer.
const ROUNDS: usize = 4;

/// The format in which the product of `blocks` takes the least time: rows, each with the `x` that it is to be read with.
///
/// The time is that of a few products and of storing the rows in every format.
pub(crate) fn fastest(blocks: &[(Entries<'_>, &[f64])]) -> Format {
    let candidates = Format::ALL.map(|format| {
        let stored: Vec<Stored> = blocks.iter().map(|(rows, _)| Stored::new(format, *rows)).collect();
        (format, stored)
    });
    let longest = blocks.iter().map(|(rows, _)| rows.lens.len()).max().unwrap_or(0);
    let (mut y, mut best) = (vec![0.0; longest], [u64::MAX; Format::ALL.len()]);
    // In turn, so that a disturbance meets all of them.
    for _ in 0..ROUNDS {
        for ((_, stored), best) in candidates.iter().zip(&mut best) {
            let mut product = || {
                for (stored, (rows, x)) in stored.iter().zip(blocks) {
                    stored.product(rows.vals, x, &mut y[..rows.lens.len()]);
                }
            };
            // The first fetches into caches what another format has left elsewhere.
            product();
            let clock = Clock::start();
            product();
            *best = clock.now().0.min(*best);
        }
    }
    let (fastest, _) =
        candidates.iter().zip(best).min_by_key(|(_, best)| *best).expect("rows can always be stored as csr");
    fastest.0
}

#[cfg(test)]
mod tests;
