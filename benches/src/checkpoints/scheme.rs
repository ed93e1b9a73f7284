//! Where the redundancy of a checkpoint lies.

use std::fmt;

use clap::ValueEnum;

/// What is done with the state of each rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Scheme {
    /// A copy in the own memory, and nothing else
    Copy,
    /// A copy at the next rank
    Neighbor,
    /// XOR over all ranks, rotated
    Xor,
    /// Reed-Solomon with two redundant blocks over all ranks, rotated
    Rs,
    /// XOR of all ranks at a rank of its own
    XorDedicated,
    /// Reed-Solomon of all ranks at two ranks of their own
    RsDedicated,
    /// A file for each rank, synchronized
    File,
}

/// Those with redundancy in the memory of others.
pub(super) const IN_MEMORY: [Scheme; 5] =
    [Scheme::Neighbor, Scheme::Xor, Scheme::Rs, Scheme::XorDedicated, Scheme::RsDedicated];

impl Scheme {
    /// Ranks that hold redundancy only.
    pub fn parity_ranks(self) -> usize {
        match self {
            Self::XorDedicated => 1,
            Self::RsDedicated => 2,
            _ => 0,
        }
    }

    /// Data chunks and redundant blocks of a stripe, with so many ranks that compute; none without redundancy.
    pub fn code(self, ranks: usize) -> Option<(usize, usize)> {
        match self {
            Self::Copy | Self::File => None,
            Self::Neighbor => Some((1, 1)),
            Self::Xor => Some((ranks - 1, 1)),
            Self::Rs => Some((ranks - 2, 2)),
            Self::XorDedicated => Some((ranks, 1)),
            Self::RsDedicated => Some((ranks, 2)),
        }
    }

    /// The options of `ftrun` for it, with so many ranks that compute; none without redundancy in memory.
    pub(super) fn options(self, ranks: usize) -> Option<String> {
        let (data, redundant) = self.code(ranks)?;
        let scheme = match self {
            Self::Neighbor => "neighbor".to_owned(),
            Self::Xor | Self::XorDedicated => format!("xor:{}", data + redundant),
            _ => format!("rs:{data}+{redundant}"),
        };
        let parity = match self.parity_ranks() {
            0 => String::new(),
            count => format!(" --parity-ranks {count}"),
        };
        Some(format!("-n {ranks} --scheme {scheme}{parity}"))
    }

    /// As the command line has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Neighbor => "neighbor",
            Self::Xor => "xor",
            Self::Rs => "rs",
            Self::XorDedicated => "xor-dedicated",
            Self::RsDedicated => "rs-dedicated",
            Self::File => "file",
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_command_line() {
        for scheme in Scheme::value_variants() {
            assert_eq!(Scheme::from_str(scheme.name(), false), Ok(*scheme));
        }
    }

    #[test]
    fn options_of_the_launcher() {
        let line = |scheme: Scheme| scheme.options(8);
        assert_eq!(line(Scheme::Copy), None);
        assert_eq!(line(Scheme::Neighbor).unwrap(), "-n 8 --scheme neighbor");
        assert_eq!(line(Scheme::Xor).unwrap(), "-n 8 --scheme xor:8");
        assert_eq!(line(Scheme::Rs).unwrap(), "-n 8 --scheme rs:6+2");
        assert_eq!(line(Scheme::XorDedicated).unwrap(), "-n 8 --scheme xor:9 --parity-ranks 1");
        assert_eq!(line(Scheme::RsDedicated).unwrap(), "-n 8 --scheme rs:8+2 --parity-ranks 2");
    }
}
