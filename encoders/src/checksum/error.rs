//! Why a checksum code could not be made, used, or trusted.

use thiserror::Error;

use super::bound::Bound;
use crate::CodeError;

/// What can go wrong with a checksum code. Every error leaves all shards and blocks as they were.
///
/// Blocks of a stripe are numbered as everywhere: `0..k` are data members, `k..k + m` checksum blocks.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum ChecksumError {
    /// The call does not fit to the code, or more blocks are lost than it survives.
    #[error(transparent)]
    Code(#[from] CodeError),
    /// There are no well-conditioned weights for so many. Use smaller groups, or a code that is exact.
    #[error(
        "no weights for a checksum code ({data}+{redundant}): they go to {data_max} data members and {redundant_max} checksum \
         blocks; use smaller groups, or an exact code such as rs"
    )]
    NoWeights {
        /// Data members asked for.
        data: usize,
        /// Checksum blocks asked for.
        redundant: usize,
        /// Most data members that there are weights for.
        data_max: usize,
        /// Most checksum blocks that there are weights for.
        redundant_max: usize,
    },
    /// A sum with an infinity or a NaN in it says nothing of the other members. Protect such data by an exact code.
    #[error(
        "element {at} of block {block} is infinite or not a number, so no sum with it can be solved; \
         use an exact code such as rs"
    )]
    NotFinite {
        /// The block, counted over data members and checksum blocks.
        block: usize,
        /// The first such element of the slice, counted from 0.
        at: usize,
    },
    /// Numbers are so large that sums of them are beyond the range of doubles. Scale the data, or use an exact code.
    #[error(
        "sums for block {block} could exceed {max:e}, the largest double; scale the data, or use an exact code such as rs",
        max = f64::MAX
    )]
    Overflow {
        /// The block to be computed, counted over data members and checksum blocks.
        block: usize,
    },
    /// What can be computed is not as near to what was lost as the caller wants it. Look for another copy of the data, such as
    /// an older checkpoint, or allow more.
    #[error(
        "block {block} would be rebuilt with errors of up to {bound}, the limit is {limit}; raise the limit, \
         restore an older checkpoint, or use an exact code such as rs"
    )]
    BeyondLimit {
        /// The block, counted over data members and checksum blocks.
        block: usize,
        /// The bound of its errors.
        bound: Bound,
        /// The limit of the caller.
        limit: Bound,
    },
}
