//! Where damage was found in what a group holds: shards from one selection of redundant blocks after the other, and all redundancy
//! anew.

use std::cell::RefCell;
use std::rc::Rc;

use super::{Account, Circle, lens, places, schedule};
use crate::candidates::Candidates;
use crate::coding::choices::Missing;
use crate::coding::{encoding, trying};
use crate::error::{CheckpointError, StoreError};
use crate::store::{ShardMeta, Slot};

impl Circle<'_> {
    /// What this member's shard may be, of which nothing is known yet but what its owner wrote down.
    pub(crate) fn own_candidates(&self, slot: &Slot) -> Result<Candidates, CheckpointError> {
        let own = slot.members().get(self.me).ok_or(StoreError::NotSealed)?;
        Ok(self.candidates(*own))
    }

    /// What a shard may be of which this is known.
    pub(crate) fn candidates(&self, meta: ShardMeta) -> Candidates {
        let chunk = |at: usize| self.group.chunk_range(meta.len as usize, at);
        Candidates::new((0..self.group.chunks).map(chunk).collect(), meta.crc)
    }

    /// Computes the missing shards by the `choice`-th selection of redundant blocks; gives whether that of this member, if it is
    /// missing, is found. Nothing changes in any slot. Collective over all groups.
    pub(crate) fn try_choice(
        &self,
        slot: &mut Slot,
        missing: Missing<'_>,
        choice: usize,
        candidates: Option<&mut Candidates>,
    ) -> Result<bool, CheckpointError> {
        let lens = lens(slot.members());
        let view = self.view(&lens);
        let recipe = trying(view, missing, choice, places(view, slot))?;
        let schedule = schedule(recipe, &Rc::new(RefCell::new(Account::default())), self.clock);
        let (shard, redundancy) = slot.memory_mut();
        match candidates.filter(|_| missing.shards[self.me]) {
            Some(candidates) => {
                let mut room = candidates.room();
                self.comm.run_schedule(&schedule, redundancy, &mut room)?;
                Ok(candidates.add(room))
            }
            None => {
                self.comm.run_schedule(&schedule, shard, redundancy)?;
                Ok(true)
            }
        }
    }

    /// Makes all redundant blocks again from the shards, which are known to be right; gives whether one of this member's was another.
    /// Collective over all groups.
    pub(crate) fn encode_again(&self, slot: &mut Slot) -> Result<bool, CheckpointError> {
        let (metas, before) = (slot.members().to_vec(), slot.block_crcs());
        let lens = lens(&metas);
        let view = self.view(&lens);
        let recipe = encoding(view, places(view, slot), 0..view.segments());
        let account = Rc::new(RefCell::new(Account::default()));
        let (shard, redundancy) = slot.memory_mut();
        self.comm.run_schedule(&schedule(recipe, &account, self.clock), shard, redundancy)?;
        account.borrow_mut().seal(slot, self.group, &metas)?;
        Ok(slot.block_crcs() != before)
    }
}
