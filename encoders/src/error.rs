//! What can go wrong. Every error leaves all shards and blocks as they were.

use thiserror::Error;

/// Why a code could not be made, a shard not added, or a stripe not recovered.
///
/// `data` and `redundant` are the `k` and `m` of the code that was asked; texts call it `(k+m)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CodeError {
    /// More blocks are missing than the code can survive. Look for another copy of the data, such as an older
    /// checkpoint or another level of redundancy.
    #[error(
        "{lost} of {total} blocks lost, this code ({data}+{redundant}) survives at most {redundant}",
        total = data + redundant
    )]
    TooManyLost {
        /// Missing blocks, data and redundant together.
        lost: usize,
        /// Data members of the code.
        data: usize,
        /// Redundant blocks of the code.
        redundant: usize,
    },
    /// The slice of shards does not have the length that the call takes: the caller's mistake.
    #[error("{given} shards given, this code ({data}+{redundant}) takes {taken}")]
    WrongShardCount {
        /// Shards in the slice, present or missing.
        given: usize,
        /// Shards that the call takes.
        taken: usize,
        /// Data members of the code.
        data: usize,
        /// Redundant blocks of the code.
        redundant: usize,
    },
    /// Two present shards differ in length. Pad the shorter ones with zeros, as `accumulate` did.
    #[error("shard {index} has {bytes} bytes, shard {other_index} has {other_bytes}")]
    UnequalLengths {
        /// The first shard that does not fit, counted over data shards and redundant blocks.
        index: usize,
        /// Its length.
        bytes: usize,
        /// The first shard present.
        other_index: usize,
        /// Its length.
        other_bytes: usize,
    },
    /// The shard does not fit into the redundant block: the caller's mistake. A block must be as long as the
    /// longest shard of its stripe.
    #[error("shard of {shard_bytes} bytes is longer than its redundant block of {block_bytes}")]
    ShardTooLong {
        /// Length of the shard.
        shard_bytes: usize,
        /// Length of the redundant block.
        block_bytes: usize,
    },
    /// There is no such data member: the caller's mistake.
    #[error("member {member} of a code ({data}+{redundant}) with {data} data members, counted from 0")]
    MemberOutOfRange {
        /// The member asked for.
        member: usize,
        /// Data members of the code.
        data: usize,
        /// Redundant blocks of the code.
        redundant: usize,
    },
    /// There is no such redundant block: the caller's mistake.
    #[error("block {block} of a code ({data}+{redundant}) with {redundant} redundant blocks, counted from 0")]
    BlockOutOfRange {
        /// The redundant block asked for.
        block: usize,
        /// Data members of the code.
        data: usize,
        /// Redundant blocks of the code.
        redundant: usize,
    },
    /// A code needs at least one data member and one redundant block. Ask for another code.
    #[error("a code ({data}+{redundant}) is impossible, both numbers must be at least 1")]
    Empty {
        /// Data members asked for.
        data: usize,
        /// Redundant blocks asked for.
        redundant: usize,
    },
    /// The field has no more elements to tell the blocks apart. Use smaller groups.
    #[error(
        "a code ({data}+{redundant}) is impossible, {data} + {redundant} is more than {blocks_max} blocks"
    )]
    TooManyBlocks {
        /// Data members asked for.
        data: usize,
        /// Redundant blocks asked for.
        redundant: usize,
        /// Most blocks, data and redundant together, that this code can have.
        blocks_max: usize,
    },
}
