//! Checkpoints whose doubles are kept apart and come back with rounding, under a checksum scheme.
//!
//! What holds for them, where other schemes hold more:
//!
//! - Where ranks of a group have doubles of so different magnitudes that some could come back too far off, all is exact in that checkpoint
//!   ([`are_summed`](crate::coding::apart::are_summed)).
//! - A rank whose doubles are not all finite, or so large that sums of them could overflow, has an exact copy as a whole in that
//!   checkpoint.
//! - A rebuilt shard has no checksum to be held against, but for its exact bytes. So all that it is rebuilt from is checked before; what is damaged
//!   counts as lost.
//! - What was rebuilt is near to what the others have sums of, not equal to it. So it is nobody's redundancy: the rank that has it says that
//!   it has nothing of the epoch ([`Event::PassedBy`]), and a restore after the next failure rebuilds from what was encoded. The next checkpoint begins
//!   anew on all ranks.

use std::time::Duration;

use ft_comm::{Rank, World};
use ft_proto::planted;

use super::defects::{DENIES_ROUNDING, TRUSTS_ROUNDED};
use super::holdings::{Holdings, all, look_at_all, say};
use super::scrubbing::Scrub;
use super::{Checkpointer, Event};
use crate::coding::apart::{ERROR_MAX, Within};
use crate::coding::choices::Missing;
use crate::error::CheckpointError;
use crate::exchange::apart::seal_rebuilt;
use crate::placement::Placement;
use crate::region::{
    Live, LiveApart, LivePart, Protect, ProtectError, StatePart, Strings, largest, save_apart,
    save_into_with_crc, size, size_apart, take_stock,
};
use crate::scheme::Scheme;
use crate::stats::RebuiltDoubles;
use crate::store::{Slot, Split};

/// How far rebuilt doubles may be from what they were, relative to the largest of a rank, where nothing else is said. What could be further
/// off is kept exactly, so a larger limit changes nothing.
pub const CHECKSUM_LIMIT: f64 = ERROR_MAX;

/// The largest magnitude that is protected by sums: none of all that is computed with weights is beyond the range of doubles then.
const LARGEST: f64 = 1e290;

/// What a restore has rebuilt.
#[derive(Debug, Default)]
pub(super) struct RebuiltApart {
    pub(super) doubles: Vec<RebuiltDoubles>,
    /// Somebody lacks something.
    pub(super) owes: bool,
    /// This rank lacks a shard.
    pub(super) lacks: bool,
    pub(super) spent: Duration,
}

/// Copies the variable part of `state` into `slot`; gives the checksum of the copy.
pub(super) fn copy_apart<S: Protect>(
    state: &mut S,
    slot: &mut Slot,
    epoch: u32,
) -> Result<(u64, Split), ProtectError> {
    let part = StatePart::Variable;
    slot.begin(epoch);
    let strings: Strings = size_apart(state, part)?;
    let shard = slot.begin_shard(strings.bytes());
    let crcs = save_apart(state, part, shard, strings)?;
    let largest = largest(&shard[strings.start()..]);
    if largest <= LARGEST {
        return Ok((crcs.shard, Split::new(strings, crcs.exact, largest)));
    }
    let len = size(state, part)?;
    let crc = save_into_with_crc(state, part, slot.begin_shard(len), None)?;
    Ok((crc, Split::exact(len as u64, crc)))
}

/// Takes down what the variable part of `state` is as a shard, which nobody makes; gives its length and checksum.
pub(super) fn stock_apart<S: Protect>(state: &mut S) -> Result<(usize, u64, Split), ProtectError> {
    let stock = take_stock(state, StatePart::Variable)?;
    if stock.largest <= LARGEST {
        let split = Split::new(stock.strings, stock.crcs.exact, stock.largest);
        return Ok((stock.strings.bytes(), stock.crcs.shard, split));
    }
    let (len, crc) = LivePart(state, StatePart::Variable).digest()?;
    Ok((len, crc, Split::exact(len as u64, crc)))
}

/// The variable part of `state` as the shard of which `split` says where its doubles are, if they are kept apart.
pub(super) fn live<S: Protect>(state: &mut S, split: Option<Split>) -> Box<dyn Live + '_> {
    match split.map(Split::strings).filter(|strings| strings.doubles > 0) {
        Some(strings) => Box::new(LiveApart(state, strings)),
        None => Box::new(LivePart(state, StatePart::Variable)),
    }
}

impl Checkpointer {
    /// Under a checksum scheme: doubles that can only be rebuilt with errors of more than this are not, and the job ends. Relative to the
    /// largest of a rank; more than [`CHECKSUM_LIMIT`] is never the case. The same on all ranks.
    pub fn set_checksum_limit(&mut self, limit: f64) {
        self.checksum_limit = limit;
    }

    /// Whether something was rebuilt with rounding, so that the next checkpoint begins anew, whatever is asked for. Until it is committed what the
    /// rank lacks counts as lost.
    pub fn owes_fresh(&self) -> bool {
        self.owes_fresh
    }

    pub(super) fn keeps_doubles_apart(&self) -> bool {
        matches!(self.scheme, Scheme::Checksum { .. })
    }

    /// Rebuilds all shards of `epoch` that are lost or damaged; `held` says which ranks held it. Collective.
    pub(super) fn rebuild_apart(
        &mut self,
        epoch: u32,
        held: &[bool],
    ) -> Result<RebuiltApart, CheckpointError> {
        let (me, started) = (self.comm.rank(), self.clock.now());
        let mine = if held[me] { look_at_all(&self.places.current.store, epoch) } else { 0 };
        let holdings = Holdings { held: held.to_vec(), said: say(&self.comm, mine)? };
        let damaged = holdings.damaged();
        self.stats.damaged += u64::from(held[me] && damaged.contains(&me));
        if damaged.is_empty() {
            return Ok(RebuiltApart::default());
        }
        let place = &mut self.places.current;
        let is_decodable = |(shards, blocks): (Vec<bool>, Vec<bool>), group| {
            Missing { shards: &shards, blocks: &blocks }.choices(group).is_some()
        };
        if !place.layout.groups.iter().all(|group| is_decodable(holdings.of_apart(group), group)) {
            return Err(place.beyond_help(&holdings));
        }
        let (is_right, within) = place.rebuild_shards(epoch, &holdings)?;
        let doubles = self.agree_on_doubles(is_right, within)?;
        let lacks = !holdings.is_sound(me);
        Ok(RebuiltApart { doubles, owes: true, lacks, spent: self.clock.now().since(started) })
    }

    /// All tell what has become of what each has rebuilt: that has to be right, and near enough.
    fn agree_on_doubles(
        &self,
        is_right: bool,
        within: Option<Within>,
    ) -> Result<Vec<RebuiltDoubles>, CheckpointError> {
        let numbers = within.map_or([-1.0; 2], |within| [within.absolute, within.relative]);
        let mut told = vec![0.0; 2 * self.comm.size()];
        self.comm.allgather(&numbers, &mut told)?;
        let sound = all(&self.comm, is_right)?;
        let ranks: Vec<Rank> = (0..sound.len()).filter(|rank| !sound[*rank]).collect();
        if !ranks.is_empty() {
            return Err(CheckpointError::Unsound { ranks });
        }
        let all = told.as_chunks().0.iter().enumerate();
        let rebuilt = all.filter(|(_, [within, _])| *within >= 0.0);
        let doubles: Vec<RebuiltDoubles> =
            rebuilt.map(|(rank, &[within, relative])| RebuiltDoubles { rank, within, relative }).collect();
        let limit = self.checksum_limit;
        let worst = doubles.iter().max_by(|one, other| one.relative.total_cmp(&other.relative));
        match worst.filter(|worst| worst.relative > limit) {
            Some(&RebuiltDoubles { rank, within, relative }) => {
                Err(CheckpointError::Inexact { rank, within, relative, limit })
            }
            None => Ok(doubles),
        }
    }

    /// Makes again what is damaged of `epoch`, as far as that is exact: all of the constant part, and redundancy of shards that are sound. A damaged
    /// shard with doubles counts as lost until the next checkpoint takes its place, as what comes back with rounding is no redundancy of
    /// anything. Collective.
    pub(super) fn mend_apart(&mut self, epoch: u32) -> Result<(), CheckpointError> {
        let said = say(&self.comm, look_at_all(&self.places.current.store, epoch))?;
        let holdings = Holdings { held: vec![true; said.len()], said };
        let damaged = holdings.damaged();
        self.stats.damaged += u64::from(damaged.contains(&self.comm.rank()));
        self.scrub = self.scrub.as_ref().map(|_| Scrub::default());
        let Placement { layout, store, home, .. } = &mut self.places.current;
        let Some(home) = home.as_ref().filter(|_| layout.survives(&damaged).is_ok()) else { return Ok(()) };
        let (gone, _) = holdings.damage_of(&home.group, 0);
        let slot = store.constant_mut();
        let metas = slot.members().to_vec();
        home.rebuild(slot, &metas, &gone)?;
        // The same on all ranks, as all groups take part.
        let is_mended = |group| !holdings.damage_of(group, 1).1.contains(&true);
        if layout.groups.iter().all(is_mended) {
            home.encode_again(store.variable_mut(epoch))?;
        }
        Ok(())
    }

    /// After a restore of `epoch`: who lacks a shard of it, but for what was rebuilt, says so from now on.
    pub(super) fn settle_apart(
        &mut self,
        world: &World,
        epoch: u32,
        rebuilt: &RebuiltApart,
    ) -> Result<(), CheckpointError> {
        if planted::has(TRUSTS_ROUNDED) {
            return self.settle(world, Some(epoch));
        }
        if rebuilt.lacks {
            self.ledger.apply(Event::PassedBy(epoch))?;
            self.places.restored(Some(epoch));
            self.spill_restored(epoch);
            self.stats.committed = epoch;
            self.legacy.is_heir = false;
            self.enter(world.generation(), false, false);
        } else {
            self.settle(world, Some(epoch))?;
        }
        self.owes_fresh = rebuilt.owes;
        Ok(())
    }
}

impl Placement {
    /// Rebuilds what is missing in the groups. Gives whether what comes here is what its owner had, and how near its doubles are.
    fn rebuild_shards(
        &mut self,
        epoch: u32,
        holdings: &Holdings,
    ) -> Result<(bool, Option<Within>), CheckpointError> {
        let Some(home) = self.home.clone() else { return Err(self.beyond_help(holdings)) };
        let (shards, blocks) = holdings.of_apart(&home.group);
        let missing = Missing { shards: &shards, blocks: &blocks };
        let held: Vec<bool> = shards.iter().map(|is_missing| !is_missing).collect();
        let metas = home.share_metas(&self.store, epoch, &held)?;
        let splits = home.share_splits(self.store.variable(epoch).splits(), &held)?;
        let within = home.within(&splits, missing)?;
        let own = within.into_iter().find(|within| within.member == home.me);
        let mut is_right = true;
        for (part, metas) in StatePart::BOTH.into_iter().zip(metas) {
            let slot = self.store.slot_mut(part, epoch);
            if shards[home.me] {
                slot.begin(epoch);
            }
            if shards[home.me] && part == StatePart::Variable {
                slot.tell_splits(splits.clone());
            }
            home.rebuild_shards(slot, &metas, missing)?;
            if shards[home.me] {
                is_right &= seal_rebuilt(slot, metas, home.me, own.map(|own| own.absolute))?;
            }
        }
        if planted::has(DENIES_ROUNDING) {
            let exact = |own: Within| Within { absolute: 0.0, relative: 0.0, ..own };
            return Ok((is_right, own.map(exact)));
        }
        Ok((is_right, own))
    }
}
