//! What can go wrong. Every error leaves all shards and blocks as they were.

use thiserror::Error;

use crate::KernelError;

/// Why a code could not be made, a shard not added, or a block not computed.
///
/// `data` and `redundant` are the `k` and `m` of the code that was asked; texts call it `(k+m)`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
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
    /// The slice of redundant blocks does not have `m` of them: the caller's mistake.
    #[error("{given} redundant blocks given, this code ({data}+{redundant}) makes {redundant}")]
    WrongBlockCount {
        /// Blocks in the slice.
        given: usize,
        /// Data members of the code.
        data: usize,
        /// Redundant blocks of the code.
        redundant: usize,
    },
    /// The blocks to be computed together differ in length: the caller's mistake. They are as long as the longest shard.
    #[error("block {index} has {bytes} bytes, the first one has {first_bytes}")]
    UnequalLengths {
        /// The first block that does not fit, counted over those given.
        index: usize,
        /// Its length.
        bytes: usize,
        /// The length of the first one.
        first_bytes: usize,
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
    /// A stripe has no such block: the caller's mistake.
    #[error(
        "block {index} of a stripe ({data}+{redundant}) of {total} blocks, counted from 0",
        total = data + redundant
    )]
    IndexOutOfRange {
        /// The block asked for, counted over data shards and redundant blocks.
        index: usize,
        /// Data members of the code.
        data: usize,
        /// Redundant blocks of the code.
        redundant: usize,
    },
    /// The present blocks do not say what the wanted one is. No code of this crate has such a pattern of losses.
    #[error("block {index} of a stripe ({data}+{redundant}) does not follow from those that are present")]
    Undetermined {
        /// The block asked for, counted over data shards and redundant blocks.
        index: usize,
        /// Data members of the code.
        data: usize,
        /// Redundant blocks of the code.
        redundant: usize,
    },
    /// A combination reads and makes as many blocks as it says: the caller's mistake.
    #[error("{given} blocks given, this combination takes {taken}")]
    WrongSourceCount {
        /// Blocks in the slice.
        given: usize,
        /// Blocks that the combination reads or makes.
        taken: usize,
    },
    /// A combination has no such source: the caller's mistake.
    #[error("source {at} of a combination with {sources} sources, counted from 0")]
    NoSuchSource {
        /// The source asked for.
        at: usize,
        /// Sources of the combination.
        sources: usize,
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
    /// The environment asks for a kernel that is not there. Leave `FT_KERNEL` out, or name another one.
    #[error(transparent)]
    Kernel(#[from] KernelError),
}
