//! Shards of two strings, exact bytes and doubles ([`crate::coding::apart`]): what is lost of them comes back.

use std::cell::RefCell;
use std::rc::Rc;

use ft_comm::Tag;

use super::{Account, GroupComm, lens, schedule};
use crate::coding::apart::{Lens, Views, Within, within};
use crate::coding::choices::Missing;
use crate::coding::restoring;
use crate::crc::crc64_nvme;
use crate::error::CheckpointError;
use crate::region::largest;
use crate::store::{ShardMeta, Slot, Split};

/// Tag of what is told of shards with doubles to members that are rebuilt.
const SPLITS: Tag = u32::MAX - 1;

impl GroupComm {
    /// `splits` says it of shards that have doubles apart; empty: none has.
    pub(super) fn lens_of(&self, metas: &[ShardMeta], splits: &[Split]) -> Lens {
        Lens::new(lens(metas), self.sums.as_deref(), splits, self.me)
    }

    pub(super) fn views<'b>(&'b self, lens: &'b Lens) -> Views<'b> {
        Views::new(&self.group, &*self.code, self.sums.as_deref(), self.me, lens)
    }

    /// What is known of the doubles of all members, as [`GroupComm::share_metas`] shares it.
    pub(crate) fn share_splits(&self, own: &[Split], held: &[bool]) -> Result<Vec<Split>, CheckpointError> {
        let bytes = || own.iter().flat_map(|split| split.to_bytes()).collect();
        let len = self.group.computing * Split::BYTES;
        let told = self.share(held, bytes, len, SPLITS)?;
        Ok(told.map_or_else(|| own.to_vec(), |told| Split::read_all(&told).collect()))
    }

    /// How near the doubles of the members that are missing come back, where they are protected by sums.
    pub(crate) fn within(
        &self,
        splits: &[Split],
        missing: Missing<'_>,
    ) -> Result<Vec<Within>, CheckpointError> {
        self.sums.as_deref().map_or(Ok(vec![]), |sums| within(&self.group, sums, splits, missing))
    }

    /// Rebuilds the shards that are missing, into the slots of their owners, which are to be checked and sealed then; no redundant block is
    /// rebuilt. Nothing changes at the others. Collective over all groups.
    pub(crate) fn rebuild_shards(
        &self,
        slot: &mut Slot,
        metas: &[ShardMeta],
        missing: Missing<'_>,
    ) -> Result<(), CheckpointError> {
        let lens = self.lens_of(metas, slot.splits());
        let views = self.views(&lens);
        let is_missing = missing.shards[self.me];
        if is_missing {
            let padding = slot.own_split().map(|split| split.strings().exact..split.strings().start());
            slot.begin_shard(metas[self.me].len as usize)[padding.unwrap_or(0..0)].fill(0);
            slot.begin_blocks([]);
        }
        let block = |stripe| slot.block_range(stripe).expect("a group uses the blocks that are there only");
        let recipe = views.recipe(block, |view, block| restoring(view, missing, block))?;
        let (shard, redundancy) = slot.memory_mut();
        let (input, buffer) = if is_missing { (&[][..], shard) } else { (&*shard, redundancy) };
        let account = Rc::new(RefCell::new(Account::default()));
        Ok(self.comm.run_schedule(&schedule(recipe, &account, self.clock), input, buffer)?)
    }
}

/// Lays out the redundant blocks that are held; their bytes are any, but for the padding between their parts.
pub(super) fn begin_blocks(views: Views<'_>, slot: &mut Slot) {
    let held = views.held();
    slot.begin_blocks(held.iter().map(|(stripe, len, _)| (*stripe, *len)));
    clear_padding(views, slot);
}

/// Nothing is between the parts of the blocks that are held; the seal is not broken.
pub(super) fn clear_padding(views: Views<'_>, slot: &mut Slot) {
    for (stripe, _, padding) in views.held().into_iter().filter(|(.., padding)| !padding.is_empty()) {
        let at = slot.block_range(stripe).expect("it was begun").start;
        slot.memory_mut().1[at + padding.start..at + padding.end].fill(0);
    }
}

/// Seals the slot of this rank, whose shard was rebuilt, if that is what its owner had: exact bytes by their checksum, doubles that are only `within`
/// so much of what they were as far as can be seen, by their magnitudes, of which none can be more than that above the largest. Gives
/// whether it is.
pub(crate) fn seal_rebuilt(
    slot: &mut Slot,
    mut metas: Vec<ShardMeta>,
    me: usize,
    within: Option<f64>,
) -> Result<bool, CheckpointError> {
    let shard = slot.shard();
    let own = &mut metas[me];
    let is_right = match slot.own_split().zip(within) {
        None => own.fits(shard),
        Some((split, within)) => {
            let strings = split.strings();
            own.crc = crc64_nvme(shard);
            shard.len() == strings.bytes()
                && crc64_nvme(&shard[..strings.exact]) == split.crc
                && largest(&shard[strings.start()..]) <= (split.largest + within) * (1.0 + f64::EPSILON)
        }
    };
    if is_right {
        slot.seal(&metas)?;
    }
    Ok(is_right)
}
