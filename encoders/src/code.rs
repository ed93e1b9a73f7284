//! What every code can do, over what each of them is: a table of weights.

use crate::kernel::Kernel;
use crate::shape::{Shape, check_lengths};
use crate::{CodeError, Combination};

/// A linear erasure code of `k` data members and `m` redundant blocks that survives the loss of any `m` blocks.
///
/// Redundant block `j` is the sum of the data shards, each multiplied by [`Code::weight`], over GF(2^8). All else follows:
/// [`Code::encode`] makes the blocks where the shards are in one place, [`Code::accumulate`] adds one shard to one block, as
/// a reduction across processes does it, [`Code::update`] replaces a shard, and [`Code::combination`] says how a lost block is computed.
pub trait Code: Send + Sync + std::fmt::Debug {
    /// `k`, the data members of a stripe.
    fn data(&self) -> usize;

    /// `m`, the redundant blocks of a stripe, which is also the number of losses survived.
    fn redundant(&self) -> usize;

    /// What the shard of data member `member` (`0..k`) is multiplied by in redundant block `block` (`0..m`).
    ///
    /// # Panics
    /// There may be none when one of them is out of range.
    fn weight(&self, block: usize, member: usize) -> u8;

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
    fn accumulate(
        &self,
        block: usize,
        member: usize,
        shard: &[u8],
        into: &mut [u8],
    ) -> Result<(), CodeError> {
        Shape::of(self).check_block(block)?;
        Shape::of(self).check_member(member)?;
        accumulate(self.weight(block, member), shard, into)
    }

    /// Computes all redundant blocks: `data[i]` is the shard of member `i`, `blocks[j]` becomes redundant block `j`.
    ///
    /// Shards may have different lengths, up to that of the blocks: they count as padded with zeros. What the blocks held
    /// is replaced. Every shard is read once for up to 4 blocks.
    ///
    /// # Errors
    ///
    /// When there are not `k` shards and `m` blocks, the blocks differ in length, or a shard is longer than they are.
    /// Nothing is changed on error.
    fn encode(&self, data: &[&[u8]], blocks: &mut [&mut [u8]]) -> Result<(), CodeError> {
        Shape::of(self).check_data(data.len())?;
        Shape::of(self).check_blocks(blocks, data)?;
        Kernel::current().combine(|block, member| self.weight(block, member), data, blocks, false);
        Ok(())
    }

    /// Replaces the shard `old` of data member `member` by `new` in all redundant blocks.
    ///
    /// The two may have different lengths, up to that of the blocks, and be any range of the shard, `blocks` being the
    /// same range of the blocks.
    ///
    /// # Errors
    ///
    /// When `member` is out of range, there are not `m` blocks, they differ in length, or a shard is longer than they are.
    /// Nothing is changed on error.
    fn update(
        &self,
        member: usize,
        old: &[u8],
        new: &[u8],
        blocks: &mut [&mut [u8]],
    ) -> Result<(), CodeError> {
        Shape::of(self).check_member(member)?;
        Shape::of(self).check_blocks(blocks, &[old, new])?;
        Kernel::current().combine(|block, _| self.weight(block, member), &[old, new], blocks, true);
        Ok(())
    }

    /// How block `wanted` is computed from those with `present[i]`; indices are `0..k` for data, `k..k + m` for redundant blocks.
    ///
    /// A block that is present is its own source.
    ///
    /// # Errors
    ///
    /// When `present` has not `k + m` entries, `wanted` is none of them, or more than `m` blocks are missing.
    fn combination(&self, present: &[bool], wanted: usize) -> Result<Combination, CodeError> {
        Combination::new(self, present, wanted)
    }
}

/// `into[j] (^)= XOR_i weight(j, i) * sources[i]` over GF(2^8), what all codes are made of; with `add` the blocks keep what they
/// have, else it is replaced.
///
/// Sources count as padded with zeros to the length of the blocks; what they have beyond it is not looked at. Every source is read
/// once for up to 4 blocks.
///
/// # Errors
///
/// When the blocks differ in length. Nothing is changed then.
pub fn combine(
    weight: impl Fn(usize, usize) -> u8 + Sync,
    sources: &[&[u8]],
    into: &mut [&mut [u8]],
    add: bool,
) -> Result<(), CodeError> {
    check_lengths(into)?;
    Kernel::current().combine(weight, sources, into, add);
    Ok(())
}

/// Copies `src` to `into` past the caches, where the processor can: for the pieces of a copy that is larger than they are. What is in
/// the caches stays there.
///
/// # Panics
///
/// The two differ in length.
pub fn copy_past_caches(src: &[u8], into: &mut [u8]) {
    assert_eq!(src.len(), into.len(), "a copy has the length of its original");
    Kernel::current().stream(src, into);
}

/// `into ^= coefficient * src` over GF(2^8): one hop of a reduction. `src` may be shorter than `into`.
///
/// # Errors
///
/// When `src` is longer than `into`. Nothing is changed then.
pub fn accumulate(coefficient: u8, src: &[u8], into: &mut [u8]) -> Result<(), CodeError> {
    if src.len() > into.len() {
        return Err(CodeError::ShardTooLong { shard_bytes: src.len(), block_bytes: into.len() });
    }
    Kernel::current().combine(|_, _| coefficient, &[src], &mut [into], true);
    Ok(())
}
