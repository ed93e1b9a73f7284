//! Where damage was found in what a group holds: shards from one selection of redundant blocks after the other, and all redundancy
//! anew.

use std::cell::RefCell;
use std::rc::Rc;

use super::{Account, GroupComm, apart, lens, places, schedule};
use crate::candidates::Candidates;
use crate::coding::choices::Missing;
use crate::coding::{encoding, trying};
use crate::error::CheckpointError;
use crate::store::StoreError;
use crate::store::{ShardMeta, Slot};

impl GroupComm {
    /// The members whose shards are missing and come here, and what these may be.
    pub(crate) fn wanted(
        &self,
        metas: &[ShardMeta],
        missing: &[bool],
    ) -> Result<Vec<(usize, Candidates)>, CheckpointError> {
        let here = (0..self.group.computing).filter(|member| missing[*member] && self.is_here(*member));
        let candidates = |member: usize| {
            let meta = metas.get(member).ok_or(StoreError::NotSealed)?;
            let chunk = |at: usize| self.group.chunk_range(meta.len as usize, at);
            Ok((member, Candidates::new((0..self.group.chunks).map(chunk).collect(), meta.crc)))
        };
        here.map(candidates).collect()
    }

    /// Computes the missing shards by the `choice`-th selection of redundant blocks, each where its member is spoken for: there
    /// `wanted` names it. Gives whether all of `wanted` are found. Nothing changes in any slot. Collective over all groups.
    pub(crate) fn try_choice(
        &self,
        slot: &mut Slot,
        metas: &[ShardMeta],
        missing: Missing<'_>,
        choice: usize,
        wanted: &mut [(usize, Candidates)],
    ) -> Result<bool, CheckpointError> {
        let lens = lens(metas);
        let view = self.view(&lens);
        let (mut rooms, mut more) = (vec![], vec![]);
        for (member, candidates) in &*wanted {
            rooms.push((*member, slot.memory_mut().1.len() + more.len()));
            more.extend(candidates.room());
        }
        let room = |member: usize| {
            let found = rooms.iter().find(|(other, _)| *other == member);
            found.expect("every shard that is missing here is wanted").1
        };
        let recipe = trying(view, missing, choice, places(view, slot), room)?;
        let schedule = schedule(recipe, &Rc::new(RefCell::new(Account::default())), self.clock);
        let run = |shard: &[u8], buffer: &mut [u8]| self.comm.run_schedule(&schedule, shard, buffer);
        let mut found = slot.with_more(more, run)?;
        let mut fits = true;
        for (member, candidates) in wanted {
            let rest = found.split_off(lens[*member]);
            fits &= candidates.add(std::mem::replace(&mut found, rest));
        }
        Ok(fits)
    }

    /// Makes all redundant blocks again from the shards, which are known to be right; gives whether one of this member's was another.
    /// Collective over all groups.
    pub(crate) fn encode_again(&self, slot: &mut Slot) -> Result<bool, CheckpointError> {
        let (metas, before) = (slot.members().to_vec(), slot.block_crcs());
        let lens = self.lens_of(&metas, slot.splits());
        let views = self.views(&lens);
        apart::clear_padding(views, slot);
        let block = |stripe| slot.block_range(stripe).expect("a group stores the blocks of its stripes only");
        let recipe = views.recipe(block, |view, block| Ok(encoding(view, block, 0..view.segments())))?;
        let account = Rc::new(RefCell::new(Account::default()));
        let (shard, redundancy) = slot.memory_mut();
        self.comm.run_schedule(&schedule(recipe, &account, self.clock), shard, redundancy)?;
        account.borrow_mut().seal(slot, &self.group, &metas, false)?;
        Ok(slot.block_crcs() != before)
    }
}
