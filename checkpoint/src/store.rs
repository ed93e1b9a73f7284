//! What a rank keeps in memory: its constant shard and two slots for the variable one, each with the redundant
//! blocks that it holds for others and the checksums of all members' shards.
//!
//! A slot is begun, filled and sealed. Sealing records the checksum of each held block beside those of the shards,
//! which came from their owners; [`Slot::verify`] takes them again and compares. Buffers stay with their slot, so from
//! the third epoch on no memory is taken unless shards grow.
//!
//! Checksums are CRC-64/NVME (NVM Command Set Specification 1.0, section 5.2.1.3.4): about as fast as memory is read,
//! and damage by chance goes unseen once in 2^64 times. They are no defence against whoever means harm.
//!
//! Nothing here knows what a commit is: which slot is whole, and which may be overwritten, is for
//! [`crate::protocol`].

mod error;
mod inventory;
mod legend;
mod split;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use crate::buffer::{Buffer, Memory};
use crate::crc::{combine, crc64_nvme};
use crate::region::{Note, StatePart};
pub use error::StoreError;
pub(crate) use inventory::StoreNote;
pub(crate) use legend::Legend;
pub(crate) use split::Split;

/// Blocks begin at multiples of this, a line of the cache.
const BLOCK_ALIGN: usize = 64;

/// Length and checksum of one member's shard, as its owner computed them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardMeta {
    /// Bytes of the shard.
    pub len: u64,
    /// CRC-64/NVME of the shard.
    pub crc: u64,
    /// What the bytes mean: build of the program and [`crate::fingerprint`] of the state, folded to 32 bits each; 0: just bytes.
    pub kind: u64,
}

impl ShardMeta {
    /// Bytes of [`ShardMeta::to_bytes`].
    pub const BYTES: usize = 24;

    /// Returns length and checksum of `shard`, of which nothing else is known; costs one pass over it.
    pub fn of(shard: &[u8]) -> Self {
        Self { len: shard.len() as u64, crc: crc64_nvme(shard), kind: 0 }
    }

    /// Whether `shard` has this length and this checksum; costs one pass over it.
    pub fn fits(self, shard: &[u8]) -> bool {
        self.len == shard.len() as u64 && self.crc == crc64_nvme(shard)
    }

    /// Returns the bytes that travel: length, checksum and kind, in little-endian order.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        for (word, value) in bytes.as_chunks_mut().0.iter_mut().zip([self.len, self.crc, self.kind]) {
            *word = value.to_le_bytes();
        }
        bytes
    }

    /// Reads what [`ShardMeta::to_bytes`] wrote; any bytes are valid.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let word = |at: usize| u64::from_le_bytes(bytes.as_chunks().0[at]);
        Self { len: word(0), crc: word(1), kind: word(2) }
    }

    /// Reads what several [`ShardMeta::to_bytes`] wrote one after the other; what is left at the end is ignored.
    pub fn read_all(bytes: &[u8]) -> impl Iterator<Item = Self> {
        bytes.as_chunks().0.iter().copied().map(Self::from_bytes)
    }
}

/// A redundant block that this rank holds for its group.
#[derive(Debug, Clone)]
struct Block {
    stripe: usize,
    /// Where it is among the redundancy.
    range: Range<usize>,
    crc: u64,
}

/// One part of a rank's state at one epoch, with its share of the group's redundancy.
#[derive(Debug, Clone)]
pub struct Slot {
    member: usize,
    epoch: u32,
    sealed: bool,
    /// Shared with whoever writes it to a file ([`Slot::shared`]).
    shard: Arc<Buffer>,
    /// The shard is not here: the live state of the rank is what it would be.
    live: bool,
    /// What files are to tell of the shard; else empty.
    legend: Arc<Legend>,
    /// What was noted of the state when the shard was copied from it.
    notes: Vec<Note>,
    /// The redundant blocks, one after the other.
    redundancy: Buffer,
    blocks: Vec<Block>,
    members: Vec<ShardMeta>,
    /// Of all members, where doubles are kept apart; else empty.
    splits: Vec<Split>,
    memory: Memory,
}

impl Slot {
    fn new(member: usize, memory: Memory) -> Self {
        Self {
            member,
            epoch: 0,
            sealed: false,
            shard: Arc::default(),
            live: false,
            legend: Arc::default(),
            notes: Vec::new(),
            redundancy: Buffer::default(),
            blocks: Vec::new(),
            members: Vec::new(),
            splits: Vec::new(),
            memory,
        }
    }

    /// Empties the slot for `epoch`; its buffers are kept, with their bytes until these are overwritten.
    pub fn begin(&mut self, epoch: u32) {
        self.epoch = epoch;
        self.sealed = false;
        self.live = false;
        self.legend = Arc::default();
        self.notes.clear();
        self.blocks.clear();
        self.members.clear();
        self.splits.clear();
    }

    /// Tells where the doubles of the shards of all members are kept apart, by member.
    pub(crate) fn tell_splits(&mut self, splits: Vec<Split>) {
        self.splits = splits;
    }

    /// Returns what was told with [`Slot::tell_splits`] since [`Slot::begin`].
    pub(crate) fn splits(&self) -> &[Split] {
        &self.splits
    }

    /// Returns that of the shard of this rank, if its doubles are kept apart.
    pub(crate) fn own_split(&self) -> Option<Split> {
        self.splits.get(self.member).copied()
    }

    /// As [`Slot::begin`], for redundancy of shards that are where the states of ranks are, and nowhere else so far.
    pub(crate) fn begin_live(&mut self, epoch: u32) {
        self.begin(epoch);
        self.live = true;
    }

    /// Whether the shard is where the state of the rank is, and not here.
    pub(crate) fn is_live(&self) -> bool {
        self.live
    }

    /// Takes the memory of the shard of `other`, which is of no use any more, for the one that was [live](Slot::begin_live), to be
    /// overwritten; the seal is not broken.
    pub(crate) fn settle(&mut self, other: &mut Self) -> &mut [u8] {
        self.live = false;
        other.sealed = false;
        self.shard = std::mem::take(&mut other.shard);
        let len = self.members.get(self.member).map_or(0, |own| own.len as usize);
        let (memory, sealed) = (self.memory.clone(), self.sealed);
        let shard = self.own_shard();
        memory.lengthen(shard, len);
        self.sealed = sealed;
        Arc::get_mut(&mut self.shard).expect("nobody else has it")
    }

    /// Begins the slot for `epoch` with all that it holds, of the epoch that is given back, for a shard of `len` bytes that is to be
    /// written over its own: shard and redundancy can be renewed by what differs. None, and nothing is done, if that cannot be.
    pub(crate) fn renew(&mut self, epoch: u32, len: usize) -> Option<u32> {
        let is_alone = Arc::get_mut(&mut self.shard).is_some();
        if !self.sealed || !is_alone || self.shard.len() != len {
            return None;
        }
        self.sealed = false;
        self.legend = Arc::default();
        Some(std::mem::replace(&mut self.epoch, epoch))
    }

    /// Returns the epoch given to [`Slot::begin`]; 0 before the first.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Says whether the slot is sealed; until then nothing may be restored from it.
    pub fn is_sealed(&self) -> bool {
        self.sealed
    }

    /// Returns the shard of this rank.
    pub fn shard(&self) -> &[u8] {
        &self.shard
    }

    /// Returns the shard, to be read by another thread: it stays as it is, and the slot takes other memory if it has to change.
    pub(crate) fn shared(&self) -> Arc<Buffer> {
        Arc::clone(&self.shard)
    }

    /// Takes down what was noted of the state from which the shard was copied.
    pub(crate) fn tell_notes(&mut self, notes: Vec<Note>) {
        self.notes = notes;
    }

    /// Takes what was noted, before the shard is overwritten.
    pub(crate) fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    /// Returns what was noted of the state; nothing, if the shard did not come from it.
    pub(crate) fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Returns what was told with [`Slot::tell_legend`] since [`Slot::begin`].
    pub(crate) fn legend(&self) -> Arc<Legend> {
        Arc::clone(&self.legend)
    }

    /// Tells what files are to tell of the shard.
    pub(crate) fn tell_legend(&mut self, legend: Legend) {
        self.legend = Arc::new(legend);
    }

    /// Returns the buffer of the shard, memory of this process, to be overwritten: its bytes are any; a sealed slot is sealed no more.
    pub fn shard_mut(&mut self) -> &mut Vec<u8> {
        self.own_shard().heap()
    }

    /// The shard as memory that nobody else has, to be overwritten; a sealed slot is sealed no more.
    fn own_shard(&mut self) -> &mut Buffer {
        self.sealed = false;
        self.notes.clear();
        if Arc::get_mut(&mut self.shard).is_none() {
            self.shard = Arc::default();
        }
        Arc::get_mut(&mut self.shard).expect("nobody else has it")
    }

    /// Returns (stripe, block) of each redundant block held here, in the order in which they were begun.
    pub fn blocks(&self) -> impl Iterator<Item = (usize, &[u8])> {
        self.blocks.iter().map(|block| (block.stripe, &self.redundancy[block.range.clone()]))
    }

    /// Returns the redundant block of `stripe`, if it is held here.
    pub fn block(&self, stripe: usize) -> Option<&[u8]> {
        self.block_range(stripe).map(|range| &self.redundancy[range])
    }

    /// Returns where in [`Slot::redundancy_mut`] the block of `stripe` is, if it is held here.
    pub fn block_range(&self, stripe: usize) -> Option<Range<usize>> {
        self.blocks.iter().find(|block| block.stripe == stripe).map(|block| block.range.clone())
    }

    /// Gives the slot memory of the process for its shard, if it has none; the bytes are any.
    pub(crate) fn take_memory(&mut self, memory: Vec<u8>) {
        let shard = self.own_shard();
        if shard.capacity() == 0 {
            *shard = memory.into();
        }
    }

    /// Makes the shard `len` bytes long, to be overwritten: they are any; a sealed slot is sealed no more.
    pub fn begin_shard(&mut self, len: usize) -> &mut [u8] {
        let memory = self.memory.clone();
        let shard = self.own_shard();
        memory.lengthen(shard, len);
        shard
    }

    /// Gives the shard a list of bytes at its end, in the place of the empty one with which it ends ([`Field`](crate::Field) of a `Vec<u8>`). Gives the checksum of the
    /// whole if that of the shard was `crc`; nothing else is read. Nobody shares the shard.
    pub(crate) fn end_with(&mut self, list: &[u8], crc: u64) -> u64 {
        let (memory, notes) = (self.memory.clone(), self.take_notes());
        let (len, count) = (self.shard.len(), (list.len() as u64).to_ne_bytes());
        let total = len + list.len();
        let shard = self.own_shard();
        match shard {
            Buffer::Heap(bytes) => bytes.resize(total, 0),
            Buffer::Room(..) => {
                let mut grown = Buffer::default();
                memory.lengthen(&mut grown, total);
                grown[..len].copy_from_slice(shard);
                *shard = grown;
            }
        }
        shard[len - count.len()..len].copy_from_slice(&count);
        shard[len..].copy_from_slice(list);
        self.notes = notes;
        // A checksum is linear but for a constant.
        let crc = crc ^ crc64_nvme(&[0; 8]) ^ crc64_nvme(&count);
        combine(crc, crc64_nvme(list), list.len() as u64)
    }

    /// Makes room for the redundant blocks of these stripes, with their lengths, to be overwritten: their bytes are any; a sealed
    /// slot is sealed no more.
    pub fn begin_blocks(&mut self, blocks: impl IntoIterator<Item = (usize, usize)>) {
        self.sealed = false;
        let mut end = 0;
        self.blocks.clear();
        for (stripe, len) in blocks {
            let start = end;
            self.blocks.push(Block { stripe, range: start..start + len, crc: 0 });
            end = (start + len).next_multiple_of(BLOCK_ALIGN);
        }
        self.memory.lengthen(&mut self.redundancy, end);
    }

    /// Returns all redundant blocks, to be overwritten; a sealed slot is sealed no more.
    pub fn redundancy_mut(&mut self) -> &mut [u8] {
        self.sealed = false;
        &mut self.redundancy
    }

    /// Returns shard and redundancy as they are; the seal is not broken.
    pub(crate) fn memory_mut(&mut self) -> (&mut [u8], &mut [u8]) {
        (&mut Arc::make_mut(&mut self.shard)[..], &mut self.redundancy[..])
    }

    /// Lends the shard, and a copy of the redundancy with `more` behind it, to `work`; gives what has become of `more`. The seal is not
    /// broken.
    pub(crate) fn with_more<E>(
        &self,
        more: Vec<u8>,
        work: impl FnOnce(&[u8], &mut [u8]) -> Result<(), E>,
    ) -> Result<Vec<u8>, E> {
        let mut all = self.redundancy.to_vec();
        all.extend(more);
        work(&self.shard, &mut all)?;
        Ok(all.split_off(self.redundancy.len()))
    }

    /// Takes the buffers of shard and redundancy, for an exchange under way; a sealed slot is sealed no more.
    pub(crate) fn take(&mut self) -> (Buffer, Buffer) {
        self.sealed = false;
        (Arc::unwrap_or_clone(std::mem::take(&mut self.shard)), std::mem::take(&mut self.redundancy))
    }

    /// Takes the buffer of the redundancy alone; a sealed slot is sealed no more.
    pub(crate) fn take_redundancy(&mut self) -> Buffer {
        self.sealed = false;
        std::mem::take(&mut self.redundancy)
    }

    /// Puts it back.
    pub(crate) fn put_back_redundancy(&mut self, redundancy: Buffer) {
        self.redundancy = redundancy;
    }

    /// Puts back what was taken.
    pub(crate) fn put_back(&mut self, (shard, redundancy): (Buffer, Buffer)) {
        (self.shard, self.redundancy) = (Arc::new(shard), redundancy);
    }

    /// Seals the slot with the metadata of all members of the group that have a shard, in their order.
    ///
    /// Costs one pass over the held blocks. The shard of this rank is not read: its owner has just done so.
    ///
    /// # Errors
    ///
    /// [`StoreError::Members`] if `members` is too short for this rank to be in it while it has a shard;
    /// [`StoreError::Shard`] if this rank's shard has another length there. The slot stays unsealed.
    pub fn seal(&mut self, members: &[ShardMeta]) -> Result<(), StoreError> {
        self.seal_with(members, |_| None)
    }

    /// As [`Slot::seal`], but a block is not read for whose stripe `known` gives the checksum that it has to have.
    ///
    /// # Errors
    ///
    /// Those of [`Slot::seal`].
    pub fn seal_with(
        &mut self,
        members: &[ShardMeta],
        known: impl Fn(usize) -> Option<u64>,
    ) -> Result<(), StoreError> {
        let redundancy = &self.redundancy;
        let read = |block: &Block| crc64_nvme(&redundancy[block.range.clone()]);
        let crcs = self.blocks.iter().map(|block| known(block.stripe).unwrap_or_else(|| read(block)));
        let crcs = crcs.collect();
        self.seal_blocks(members, crcs)
    }

    /// As [`Slot::seal`], of a slot that was [renewed](Slot::renew): a block of whose stripe `known` gives nothing is as it was.
    pub(crate) fn seal_renewed(
        &mut self,
        members: &[ShardMeta],
        known: impl Fn(usize) -> Option<u64>,
    ) -> Result<(), StoreError> {
        let crcs = self.blocks.iter().map(|block| known(block.stripe).unwrap_or(block.crc)).collect();
        self.seal_blocks(members, crcs)
    }

    fn seal_blocks(&mut self, members: &[ShardMeta], crcs: Vec<u64>) -> Result<(), StoreError> {
        if !self.live {
            self.own_len_matches(members)?;
        }
        self.blocks.iter_mut().zip(crcs).for_each(|(block, crc)| block.crc = crc);
        self.members.clear();
        self.members.extend_from_slice(members);
        self.sealed = true;
        Ok(())
    }

    /// Returns the checksum that the block of `stripe` has to have, if it is held here.
    pub(crate) fn block_crc(&self, stripe: usize) -> Option<u64> {
        self.blocks.iter().find(|block| block.stripe == stripe).map(|block| block.crc)
    }

    /// Returns the shard, to be written over; a slot that is renewed stays so.
    pub(crate) fn renewed_shard(&mut self) -> &mut [u8] {
        self.own_shard()
    }

    /// Returns piece `at` of what is held here, the shard first and then the blocks, with the checksum that it has to have; none
    /// beyond the last one, or if the slot is not sealed.
    pub(crate) fn piece(&self, at: usize) -> Option<(&[u8], u64)> {
        if !self.sealed {
            return None;
        }
        match (at.checked_sub(1), self.members.get(self.member)) {
            (None, Some(own)) => Some((&self.shard, own.crc)),
            (None, None) => Some((&[], crc64_nvme(&[]))),
            (Some(at), _) => self.blocks.get(at).map(|b| (&self.redundancy[b.range.clone()], b.crc)),
        }
    }

    /// Returns the checksums that the held blocks have to have.
    pub(crate) fn block_crcs(&self) -> Vec<u64> {
        self.blocks.iter().map(|block| block.crc).collect()
    }

    /// Returns what is known of the shards of all members; empty unless sealed.
    pub fn members(&self) -> &[ShardMeta] {
        &self.members
    }

    /// Takes the checksums of the shard and the held blocks again and compares; costs one pass over them.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotSealed`], or the first thing that differs, which must be treated as lost:
    /// [`StoreError::Shard`] or [`StoreError::Block`].
    pub fn verify(&self) -> Result<(), StoreError> {
        self.verify_shard()?;
        self.verify_blocks()
    }

    /// Does [`Slot::verify`] for the blocks alone.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotSealed`] or [`StoreError::Block`].
    pub fn verify_blocks(&self) -> Result<(), StoreError> {
        if !self.sealed {
            return Err(StoreError::NotSealed);
        }
        let differs = |block: &&Block| crc64_nvme(&self.redundancy[block.range.clone()]) != block.crc;
        match self.blocks.iter().find(differs) {
            Some(block) => Err(StoreError::Block { stripe: block.stripe, bytes: block.range.len() }),
            None => Ok(()),
        }
    }

    /// Does [`Slot::verify`] for the shard alone.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotSealed`] or [`StoreError::Shard`].
    pub fn verify_shard(&self) -> Result<(), StoreError> {
        if !self.sealed {
            return Err(StoreError::NotSealed);
        }
        match self.members.get(self.member) {
            Some(recorded) if !recorded.fits(&self.shard) => Err(self.differs(recorded)),
            _ => Ok(()),
        }
    }

    /// Whether `crc` is the checksum that the shard of this rank has to have; a sealed slot without a shard has any.
    pub(crate) fn has_shard_crc(&self, crc: u64) -> bool {
        self.sealed && self.members.get(self.member).is_none_or(|recorded| recorded.crc == crc)
    }

    /// The shard of this rank as it was when it was sealed; without one, that of no bytes.
    pub(crate) fn own_meta(&self) -> ShardMeta {
        self.members.get(self.member).copied().unwrap_or_else(|| ShardMeta::of(&[]))
    }

    /// What the shard of this rank was when it was sealed; none without a shard.
    pub(crate) fn kind(&self) -> Option<u64> {
        self.members.get(self.member).map(|recorded| recorded.kind)
    }

    /// Flips bit `at` of the shard, or of the held blocks, behind the back of the checksums; for tests of what they are for. Any
    /// number will do; nothing happens if there are no such bytes.
    #[cfg(feature = "planted-bugs")]
    pub(crate) fn damage(&mut self, in_block: bool, at: u64) {
        let mut bytes: Vec<&mut u8> = match in_block {
            false => Arc::make_mut(&mut self.shard).iter_mut().collect(),
            true => {
                let held = |at: &usize| self.blocks.iter().any(|block| block.range.contains(at));
                self.redundancy
                    .iter_mut()
                    .enumerate()
                    .filter(|(at, _)| held(at))
                    .map(|(_, byte)| byte)
                    .collect()
            }
        };
        if !bytes.is_empty() {
            let byte = (at / 8) as usize % bytes.len();
            *bytes[byte] ^= 1 << (at % 8);
        }
    }

    /// Flips bit `at` of the held blocks as [`Slot::damage`] does, before their checksums are taken.
    #[cfg(feature = "planted-bugs")]
    pub(crate) fn damage_unseen(&mut self, at: u64) {
        self.damage(true, at);
        for block in &mut self.blocks {
            block.crc = crc64_nvme(&self.redundancy[block.range.clone()]);
        }
    }

    /// Returns the bytes of the shard and the held blocks.
    pub fn bytes_used(&self) -> usize {
        self.shard.len() + self.blocks().map(|(_, bytes)| bytes.len()).sum::<usize>()
    }

    /// Returns the bytes of all buffers of the slot, in use or not.
    pub fn bytes_reserved(&self) -> usize {
        self.shard.capacity() + self.redundancy.capacity() + self.members.capacity() * size_of::<ShardMeta>()
    }

    /// A dedicated parity rank has no shard and no entry; every other rank must find its own length.
    fn own_len_matches(&self, members: &[ShardMeta]) -> Result<(), StoreError> {
        match members.get(self.member) {
            Some(recorded) if recorded.len != self.shard.len() as u64 => Err(self.differs(recorded)),
            None if !self.shard.is_empty() => {
                Err(StoreError::Members { given: members.len(), member: self.member })
            }
            _ => Ok(()),
        }
    }

    fn differs(&self, recorded: &ShardMeta) -> StoreError {
        StoreError::Shard { member: self.member, bytes: self.shard.len() as u64, recorded: recorded.len }
    }
}

/// Gives `bytes` the length `len`, whatever is in it. New memory comes from the system as zeros and is not touched.
pub(crate) fn lengthen(bytes: &mut Vec<u8>, len: usize) {
    if bytes.capacity() < len {
        *bytes = vec![0; len];
    } else {
        bytes.resize(len, 0);
    }
}

/// All that one rank keeps for its group.
#[derive(Debug, Clone)]
pub struct Store {
    constant: Slot,
    variable: [Slot; 2],
}

impl Store {
    /// Returns an empty store of the rank with index `member` in its group.
    pub fn new(member: usize) -> Self {
        Self::in_memory(member, &Memory::default())
    }

    /// As [`Store::new`], in this memory.
    pub(crate) fn in_memory(member: usize, memory: &Memory) -> Self {
        let slot = || Slot::new(member, memory.clone());
        Self { constant: slot(), variable: [slot(), slot()] }
    }

    /// Returns the slot of the constant part.
    pub fn constant(&self) -> &Slot {
        &self.constant
    }

    /// Returns the slot of the constant part, to be filled.
    pub fn constant_mut(&mut self) -> &mut Slot {
        &mut self.constant
    }

    /// Returns the slot that the variable part uses at `epoch`, whatever it holds now.
    pub fn variable(&self, epoch: u32) -> &Slot {
        &self.variable[epoch as usize % 2]
    }

    /// Returns the slot that the variable part uses at `epoch`, and the other one.
    pub(crate) fn variable_and_other(&mut self, epoch: u32) -> (&mut Slot, &mut Slot) {
        let [even, odd] = &mut self.variable;
        if epoch.is_multiple_of(2) { (even, odd) } else { (odd, even) }
    }

    /// Returns the slot that the variable part uses at `epoch`, to be filled: it may still hold `epoch - 2`.
    pub fn variable_mut(&mut self, epoch: u32) -> &mut Slot {
        &mut self.variable[epoch as usize % 2]
    }

    /// Returns the slot of a part at `epoch`, to be filled.
    pub(crate) fn slot_mut(&mut self, part: StatePart, epoch: u32) -> &mut Slot {
        match part {
            StatePart::Constant => self.constant_mut(),
            StatePart::Variable => self.variable_mut(epoch),
        }
    }

    /// Returns the bytes of all shards and held blocks.
    pub fn bytes_used(&self) -> usize {
        self.slots().map(Slot::bytes_used).sum()
    }

    /// Returns the bytes of all buffers, in use or not.
    pub fn bytes_reserved(&self) -> usize {
        self.slots().map(Slot::bytes_reserved).sum()
    }

    /// Lengths of all buffers.
    pub(crate) fn lens(&self) -> impl Iterator<Item = u64> {
        self.slots().flat_map(|slot| [slot.shard.len() as u64, slot.redundancy.len() as u64])
    }

    fn slots(&self) -> impl Iterator<Item = &Slot> {
        std::iter::once(&self.constant).chain(&self.variable)
    }
}
