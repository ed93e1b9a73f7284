//! What every code can do.
//!
//! The primitive is the contribution of one data member to one redundant block. Encoding in one place is a
//! loop over it ([`encode`]), encoding across processes is a reduction with it, and replacing one shard is
//! two of it (the old one, which takes it out, and the new one).

use crate::CodeError;

/// An erasure code of `k` data members and `m` redundant blocks that survives the loss of any `m` blocks.
pub trait Code: Send + Sync + std::fmt::Debug {
    /// `k`, the data members of a stripe.
    fn data(&self) -> usize;

    /// `m`, the redundant blocks of a stripe, which is also the number of losses survived.
    fn redundant(&self) -> usize;

    /// Adds `shard` of data member `member` (`0..k`) to redundant block `block` (`0..m`).
    ///
    /// A fresh redundant block is all zeros, and the members may be added in any order. The shard may be shorter
    /// than `into`: it counts as padded with zeros. Addition is XOR in every code, so adding the same shard
    /// twice takes it out again, and adding `old ^ new` turns a block over `old` into one over `new`.
    ///
    /// # Errors
    ///
    /// When `member` or `block` is out of range, or the shard is longer than `into`. Nothing is changed on
    /// error.
    fn accumulate(&self, block: usize, member: usize, shard: &[u8], into: &mut [u8])
    -> Result<(), CodeError>;

    /// Fills in every missing block: `shards` holds the `k` data shards, then the `m` redundant blocks.
    ///
    /// All present ones have equal length (ragged shards are padded with zeros by the caller, who knows their
    /// lengths). Present ones are not checked against each other and never changed.
    ///
    /// # Errors
    ///
    /// When the number of shards is not `k + m`, their lengths differ, or more than `m` are missing. Nothing
    /// is changed on error.
    fn recover(&self, shards: &mut [Option<Vec<u8>>]) -> Result<(), CodeError>;
}

/// Computes all redundant blocks of the shards of one stripe, `data[i]` being that of member `i`.
///
/// The shards may have different lengths: the redundant blocks are as long as the longest, and shorter
/// shards count as padded with zeros.
///
/// # Errors
///
/// When there are not exactly `k` shards.
pub fn encode<C: Code + ?Sized>(code: &C, data: &[&[u8]]) -> Result<Vec<Vec<u8>>, CodeError> {
    if data.len() != code.data() {
        return Err(CodeError::WrongShardCount {
            given: data.len(),
            taken: code.data(),
            data: code.data(),
            redundant: code.redundant(),
        });
    }
    let block_bytes = data.iter().map(|shard| shard.len()).max().unwrap_or(0);
    let mut blocks = vec![vec![0; block_bytes]; code.redundant()];
    for (block, into) in blocks.iter_mut().enumerate() {
        for (member, shard) in data.iter().enumerate() {
            code.accumulate(block, member, shard, into)?;
        }
    }
    Ok(blocks)
}
