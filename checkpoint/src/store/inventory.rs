//! Where the slots of a store lie in an estate, as a successor has to know it.

use serde::{Deserialize, Serialize};

use super::{Block, ShardMeta, Slot, Split, Store};
use crate::buffer::{Buffer, Memory};

/// Of a store; slots without contents are empty.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StoreNote([SlotNote; 3]);

/// Of a sealed slot, or of none.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct SlotNote {
    epoch: u32,
    /// Where shard and redundancy are, and how long; none if the slot is not sealed.
    places: Option<[(u64, u64); 2]>,
    /// Stripe, place and checksum.
    blocks: Vec<(usize, (usize, usize), u64)>,
    members: Vec<[u8; ShardMeta::BYTES]>,
    splits: Vec<Split>,
}

impl Slot {
    /// None if it is sealed and not in the estate; nothing of one that ends with the process.
    fn note(&self) -> Option<SlotNote> {
        if !self.sealed || self.live {
            return Some(SlotNote::default());
        }
        let block = |block: &Block| (block.stripe, (block.range.start, block.range.end), block.crc);
        Some(SlotNote {
            epoch: self.epoch,
            places: Some([self.shard.place()?, self.redundancy.place()?]),
            blocks: self.blocks.iter().map(block).collect(),
            members: self.members.iter().map(|meta| meta.to_bytes()).collect(),
            splits: self.splits.clone(),
        })
    }

    /// Takes up what a note says; nothing if it says nothing. False if that is not there.
    fn take_up(&mut self, note: &SlotNote) -> bool {
        let Some([shard, redundancy]) = note.places else { return true };
        let (Some(shard), Some(redundancy)) = (self.memory.reopen(shard), self.memory.reopen(redundancy))
        else {
            return false;
        };
        let block = |(stripe, (start, end), crc): &(usize, (usize, usize), u64)| {
            (start <= end && *end <= redundancy.len()).then_some(Block {
                stripe: *stripe,
                range: *start..*end,
                crc: *crc,
            })
        };
        let Some(blocks) = note.blocks.iter().map(block).collect() else { return false };
        (self.epoch, self.live) = (note.epoch, false);
        self.members = note.members.iter().copied().map(ShardMeta::from_bytes).collect();
        self.splits.clone_from(&note.splits);
        (self.shard, self.redundancy, self.blocks) = (shard.into(), redundancy, blocks);
        self.sealed = true;
        true
    }
}

impl Store {
    /// None if something of it is not in the estate.
    pub(crate) fn note(&self) -> Option<StoreNote> {
        let [even, odd] = &self.variable;
        Some(StoreNote([self.constant.note()?, even.note()?, odd.note()?]))
    }

    /// The store that was noted, with the variable parts of these epochs alone. None if it is not there.
    pub(crate) fn reopen(
        StoreNote([constant, even, odd]): &StoreNote,
        member: usize,
        memory: &Memory,
        wants: impl Fn(u32) -> bool,
    ) -> Option<Self> {
        let mut store = Self::in_memory(member, memory);
        let is_there = |slot: &mut Slot, note: &SlotNote| !wants(note.epoch) || slot.take_up(note);
        let [even_slot, odd_slot] = &mut store.variable;
        let is_whole =
            store.constant.take_up(constant) && is_there(even_slot, even) && is_there(odd_slot, odd);
        is_whole.then_some(store)
    }
}

impl Memory {
    /// What is `len` bytes long at a place of the estate; none if it cannot be opened.
    fn reopen(&self, (at, len): (u64, u64)) -> Option<Buffer> {
        let len = usize::try_from(len).ok()?;
        if len == 0 && at == 0 {
            return Some(Buffer::default());
        }
        let room = self.estate()?.open(at, len).ok()??;
        Some(Buffer::Room(room, len))
    }
}
