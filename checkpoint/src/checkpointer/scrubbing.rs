//! Looking for damage in memory before it is needed: the checksums of what a rank holds of the committed checkpoint are taken
//! again, a little at a time, behind the computation (a scrub, as storage systems do it).
//!
//! A rank that finds damage says so when the next checkpoint is shared out. What it held is then lost for all: it is made again from
//! what the others hold, before anything of the next checkpoint is exchanged, as after a failure.

use ft_comm::Rank;
#[cfg(feature = "planted-bugs")]
use ft_proto::planted;

use super::Checkpointer;
use crate::crc::Digest;
use crate::error::CheckpointError;
use crate::placement::Placement;
use crate::region::StatePart;
use crate::store::{ShardMeta, Slot, Store};

/// Bytes that are looked at in one call.
const PIECE_BYTES: usize = 1 << 20;

/// How far a look at the committed checkpoint has come.
#[derive(Debug, Default)]
pub(super) struct Scrub {
    epoch: u32,
    /// Constant part or variable one, and which piece of memory of its slot.
    at: (usize, usize),
    /// Bytes of that piece that are done.
    done: usize,
    digest: Option<Digest>,
    /// Of this epoch something is damaged.
    found: bool,
}

impl Scrub {
    /// Looks at some more of `epoch`; gives whether damage has been found in it.
    fn go_on(&mut self, store: &Store, epoch: u32) -> bool {
        if self.epoch != epoch {
            *self = Self { epoch, ..Self::default() };
        }
        let mut left = PIECE_BYTES;
        // Once around at most: a small state is looked at once a call.
        for _ in 0..64 {
            let (part, piece) = self.at;
            let slot = if part == 0 { store.constant() } else { store.variable(epoch) };
            let Some((bytes, crc)) = slot.piece(piece) else {
                self.at = (1 - part, 0);
                if part == 1 {
                    break;
                }
                continue;
            };
            let digest = self.digest.get_or_insert_with(Digest::new);
            let some = left.min(bytes.len() - self.done);
            digest.update(&bytes[self.done..self.done + some]);
            (self.done, left) = (self.done + some, left - some);
            if self.done < bytes.len() {
                break;
            }
            self.found |= digest.finalize() != crc;
            (self.at, self.done, self.digest) = ((part, piece + 1), 0, None);
        }
        self.found
    }

    /// Whether there is damage in what is `committed`.
    pub(super) fn has_found(&self, committed: Option<u32>) -> bool {
        self.found && Some(self.epoch) == committed
    }
}

impl Checkpointer {
    /// From now on each [`Checkpointer::progress`] looks at up to 1 MiB of what this rank holds for damage.
    pub fn set_scrub(&mut self, scrubs: bool) {
        self.scrub = scrubs.then(Scrub::default);
    }

    /// A little more of the look at what is committed; nothing while a checkpoint is under way.
    pub(super) fn scrub_some(&mut self) {
        #[cfg(feature = "planted-bugs")]
        if let (None, Some(epoch)) = (&self.staging, self.ledger.committed()) {
            let (store, place) = (&mut self.places.current.store, planted::place());
            let rotting = match () {
                () if planted::has(super::defects::ROTS) => Some(store.variable_mut(epoch)),
                () if planted::has(super::defects::ROTS_FOR_GOOD) => Some(store.constant_mut()),
                () => None,
            };
            if let Some(slot) = rotting {
                slot.damage(place % 2 == 1, place);
                planted::plant("");
            }
        }
        if let (Some(scrub), None, Some(epoch)) = (&mut self.scrub, &self.staging, self.ledger.committed()) {
            scrub.go_on(&self.places.current.store, epoch);
        }
    }

    /// Makes again what these ranks hold of the committed checkpoint, as it is damaged. Collective. Where too much is damaged for that
    /// it stays as it is: the next checkpoint takes the place of the variable part, and a restore will find the rest.
    pub(super) fn mend(&mut self, damaged: &[Rank]) -> Result<(), CheckpointError> {
        let Some(epoch) = self.ledger.committed() else { return Ok(()) };
        // While ranks are missing the homes of the checkpoint are not their ranks.
        if self.places.begins_anew() || self.places.current.layout.survives(damaged).is_err() {
            return Ok(());
        }
        if self.keeps_doubles_apart() {
            return self.mend_apart(epoch);
        }
        let Placement { store, home, .. } = &mut self.places.current;
        let Some(group_comm) = home else { return Ok(()) };
        let gone: Vec<bool> = group_comm.group.members.iter().map(|rank| damaged.contains(rank)).collect();
        for part in StatePart::BOTH {
            let slot: &mut Slot = store.slot_mut(part, epoch);
            let metas: Vec<ShardMeta> = slot.members().to_vec();
            group_comm.rebuild(slot, &metas, &gone)?;
        }
        self.stats.damaged += u64::from(gone[group_comm.me]);
        self.scrub = self.scrub.as_ref().map(|_| Scrub::default());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(slot: &mut Slot, epoch: u32, len: usize) {
        slot.begin(epoch);
        slot.begin_shard(len).fill(epoch as u8);
        slot.begin_blocks([(0, len / 2), (3, 0)]);
        slot.redundancy_mut().fill(7);
        let own = ShardMeta::of(slot.shard());
        slot.seal(&[own]).unwrap();
    }

    /// Every byte of constant and variable part is looked at, in pieces.
    #[test]
    fn damage_is_found_wherever_it_is() {
        let len = PIECE_BYTES + PIECE_BYTES / 2;
        for (constant, in_block, at) in
            [(true, false, 0), (true, true, 5), (false, false, len - 1), (false, true, len / 2 - 1)]
        {
            let mut store = Store::new(0);
            fill(store.constant_mut(), 1, len);
            fill(store.variable_mut(2), 2, len);
            let mut scrub = Scrub::default();
            assert!((0..20).all(|_| !scrub.go_on(&store, 2)), "nothing is damaged");
            let slot = if constant { store.constant_mut() } else { store.variable_mut(2) };
            let (shard, redundancy) = slot.memory_mut();
            (if in_block { redundancy } else { shard })[at] ^= 4;
            assert!((0..20).any(|_| scrub.go_on(&store, 2)), "{constant} {in_block} {at}");
            assert!(scrub.go_on(&store, 2), "it stays found");
            fill(store.variable_mut(3), 3, 100);
            fill(store.constant_mut(), 1, 100);
            assert!((0..20).all(|_| !scrub.go_on(&store, 3)), "another epoch");
        }
    }
}
