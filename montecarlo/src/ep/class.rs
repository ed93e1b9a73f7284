//! Sizes of the problem, and the published answers.

use std::fmt;
use std::str::FromStr;

use super::{BLOCK_PAIRS, BlockSum, EpError};

/// Largest relative error of a sum, as the benchmark defines it.
const TOLERANCE: f64 = 1e-8;

/// A size of the problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Sample: `2^24` pairs.
    S,
    /// Workstation: `2^25` pairs.
    W,
    /// `2^28` pairs.
    A,
    /// `2^30` pairs.
    B,
}

impl Class {
    /// The number of uniform pairs of this class.
    pub fn pairs(self) -> u64 {
        1 << match self {
            Self::S => 24,
            Self::W => 25,
            Self::A => 28,
            Self::B => 30,
        }
    }

    /// Blocks of [`BLOCK_PAIRS`].
    pub fn blocks(self) -> u64 {
        self.pairs() / BLOCK_PAIRS
    }

    /// Published sums `(sx, sy)`.
    pub fn published(self) -> (f64, f64) {
        match self {
            Self::S => (-3.247_834_652_034_74e3, -6.958_407_078_382_297e3),
            Self::W => (-2.863_319_731_645_753e3, -6.320_053_679_109_499e3),
            Self::A => (-4.295_875_165_629_892e3, -1.580_732_573_678_431e4),
            Self::B => (4.033_815_542_441_498e4, -2.660_669_192_809_235e4),
        }
    }

    /// Known counts, none for class B.
    pub fn counts(self) -> Option<[u64; 10]> {
        match self {
            Self::S => Some([6_140_517, 5_865_300, 1_100_361, 68_546, 1_648, 17, 0, 0, 0, 0]),
            Self::W => Some([12_281_576, 11_729_692, 2_202_726, 137_368, 3_371, 36, 0, 0, 0, 0]),
            Self::A => Some([98_257_395, 93_827_014, 17_611_549, 1_110_028, 26_536, 245, 0, 0, 0, 0]),
            Self::B => None,
        }
    }

    /// Compares the sum of all blocks of this class with the published one: sums to a relative error of `1e-8`,
    /// counts, where known, exactly.
    ///
    /// # Errors
    /// The first difference found, sums before counts.
    pub fn verify(self, total: &BlockSum) -> Result<(), EpError> {
        let (sx, sy) = self.published();
        self.verify_sum("sx", total.sx, sx)?;
        self.verify_sum("sy", total.sy, sy)?;
        let published = self.counts().unwrap_or(total.counts);
        for (size, (&computed, published)) in total.counts.iter().zip(published).enumerate() {
            if computed != published {
                return Err(EpError::WrongCount { class: self, size, computed, published });
            }
        }
        Ok(())
    }

    fn verify_sum(self, name: &'static str, computed: f64, published: f64) -> Result<(), EpError> {
        let error = ((computed - published) / published).abs();
        // Not a number is no agreement either.
        if error <= TOLERANCE {
            Ok(())
        } else {
            Err(EpError::WrongSum { class: self, name, computed, published, error, tolerance: TOLERANCE })
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::S => "S",
            Self::W => "W",
            Self::A => "A",
            Self::B => "B",
        })
    }
}

impl FromStr for Class {
    type Err = EpError;

    fn from_str(name: &str) -> Result<Self, EpError> {
        match name {
            "S" | "s" => Ok(Self::S),
            "W" | "w" => Ok(Self::W),
            "A" | "a" => Ok(Self::A),
            "B" | "b" => Ok(Self::B),
            _ => Err(EpError::UnknownClass { name: name.to_owned() }),
        }
    }
}
