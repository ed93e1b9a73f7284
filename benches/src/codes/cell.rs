//! What is measured, and how much faster it has to be.

use std::fmt;
use std::ops::RangeInclusive;

/// A code and the size of its shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cell {
    /// Size of a shard.
    pub(super) kib: usize,
    /// Data shards.
    pub(super) data: usize,
    /// Redundant blocks.
    pub(super) redundant: usize,
}

const SHAPES: [(usize, usize); 5] = [(4, 1), (4, 2), (8, 2), (8, 4), (16, 4)];
const SIZES_KIB: [usize; 3] = [64, 1024, 16384];
/// Sizes of the buffers that are added and copied.
pub(super) const XOR_MIB: [usize; 3] = [16, 64, 256];

impl Cell {
    /// All that there are bars for.
    pub(super) fn all() -> Vec<Self> {
        let cell = |kib| move |(data, redundant)| Self { kib, data, redundant };
        SIZES_KIB.into_iter().flat_map(|kib| SHAPES.map(cell(kib))).collect()
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kib, data, redundant } = self;
        match kib % 1024 {
            0 => write!(f, "{data}+{redundant} x {} MiB", kib / 1024),
            _ => write!(f, "{data}+{redundant} x {kib} KiB"),
        }
    }
}

/// What is done in a cell.
pub(super) struct Work {
    /// What it is called in the CSV.
    pub(super) name: &'static str,
    /// What it is called in tables.
    pub(super) title: &'static str,
    /// Its name in what our side and theirs print.
    pub(super) said: [&'static str; 2],
    /// With how many redundant blocks it can be done.
    redundant: RangeInclusive<usize>,
    /// The lowest ratio of speeds in a cell, and of the geometric mean over all cells.
    pub(super) bars: Option<[f64; 2]>,
}

const MANY: usize = usize::MAX;

/// All works. With one redundant block ours is the XOR, which has its peer in ISA-L's XOR too, beside its products.
#[rustfmt::skip]
pub(super) const WORKS: [Work; 4] = [
    Work { name: "Encode", title: "encode", said: ["encode"; 2], redundant: 1..=MANY, bars: Some([1.0, 1.5]) },
    Work { name: "Xor", title: "encode, beside xor_gen", said: ["encode", "xor"], redundant: 1..=1, bars: None },
    Work { name: "Rebuild1", title: "rebuild 1", said: ["rebuild1"; 2], redundant: 1..=MANY, bars: Some([1.0, 1.2]) },
    Work { name: "Rebuild2", title: "rebuild 2", said: ["rebuild2"; 2], redundant: 2..=MANY, bars: Some([1.0, 1.2]) },
];

impl Work {
    pub(super) fn is_in(&self, cell: &Cell) -> bool {
        self.redundant.contains(&cell.redundant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_names_and_works() {
        let all = Cell::all();
        assert_eq!(all.len(), 15);
        assert_eq!([all[0], all[14]].map(|cell| cell.to_string()), ["4+1 x 64 KiB", "16+4 x 16 MiB"]);
        let works =
            |cell| WORKS.iter().filter(|work| work.is_in(cell)).map(|work| work.name).collect::<Vec<_>>();
        assert_eq!(works(&all[0]), ["Encode", "Xor", "Rebuild1"]);
        assert_eq!(works(&all[1]), ["Encode", "Rebuild1", "Rebuild2"]);
    }
}
