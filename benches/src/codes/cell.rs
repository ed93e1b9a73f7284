//! What is measured.

use std::fmt;

/// A code and the size of its shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// Size of a shard.
    pub kib: usize,
    /// Data shards.
    pub data: usize,
    /// Redundant blocks.
    pub redundant: usize,
}

const SHAPES: [(usize, usize); 5] = [(4, 1), (4, 2), (8, 2), (8, 4), (16, 4)];
const SIZES_KIB: [usize; 3] = [64, 1024, 16384];

impl Cell {
    /// All that there are bars for.
    pub fn all() -> Vec<Self> {
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

/// What is done in a cell, as both sides name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Work {
    Encode,
    /// Encoding 1 block, beside ISA-L's XOR instead of its products.
    Xor,
    Rebuild1,
    Rebuild2,
}

impl Work {
    pub(super) const ALL: [Self; 4] = [Self::Encode, Self::Xor, Self::Rebuild1, Self::Rebuild2];

    pub(super) fn is_in(self, cell: &Cell) -> bool {
        match self {
            Self::Encode | Self::Rebuild1 => true,
            Self::Xor => cell.redundant == 1,
            Self::Rebuild2 => cell.redundant >= 2,
        }
    }

    /// Its name in what our side and theirs print.
    pub(super) fn names(self) -> [&'static str; 2] {
        match self {
            Self::Encode => ["encode"; 2],
            Self::Xor => ["encode", "xor"],
            Self::Rebuild1 => ["rebuild1"; 2],
            Self::Rebuild2 => ["rebuild2"; 2],
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Encode => "encode",
            Self::Xor => "encode, beside xor_gen",
            Self::Rebuild1 => "rebuild 1",
            Self::Rebuild2 => "rebuild 2",
        }
    }

    /// The lowest ratio of speeds in a cell, and of the geometric mean over all cells.
    pub(super) fn bars(self) -> Option<(f64, f64)> {
        match self {
            Self::Encode => Some((1.0, 1.5)),
            Self::Xor => None,
            Self::Rebuild1 | Self::Rebuild2 => Some((1.0, 1.2)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_names_and_works() {
        let all = Cell::all();
        assert_eq!(all.len(), 15);
        assert_eq!(all[0].to_string(), "4+1 x 64 KiB");
        assert_eq!(all[14].to_string(), "16+4 x 16 MiB");
        let works = |cell: &Cell| Work::ALL.into_iter().filter(|work| work.is_in(cell)).collect::<Vec<_>>();
        assert_eq!(works(&all[0]), [Work::Encode, Work::Xor, Work::Rebuild1]);
        assert_eq!(works(&all[1]), [Work::Encode, Work::Rebuild1, Work::Rebuild2]);
    }
}
