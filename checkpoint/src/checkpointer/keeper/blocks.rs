//! Redundant blocks in the memory of the other ranks of a group; without a group there is nothing but the own copies.

use std::ops::Range;

use ft_comm::{Rank, ScheduleRequest};
#[cfg(feature = "planted-bugs")]
use ft_proto::planted;

use super::Keeper;
use crate::buffer::Buffer;
#[cfg(feature = "planted-bugs")]
use crate::checkpointer::defects::DAMAGED_ON_THE_WAY;
use crate::checkpointer::holdings::Holdings;
use crate::checkpointer::under_way::Staging;
use crate::error::CheckpointError;
use crate::exchange::{Rebuilt, Round};
use crate::placement::Placement;
use crate::region::{LiveRef, StatePart};

/// See the module.
pub(in crate::checkpointer) struct Blocks;

impl Keeper for Blocks {
    fn start(
        &self,
        place: &mut Placement,
        part: StatePart,
        staging: &mut Staging,
        round: Round,
        live: LiveRef<'_, '_>,
    ) -> Result<Option<ScheduleRequest<Buffer>>, CheckpointError> {
        let slot = place.store.slot_mut(part, staging.epoch);
        let Some(group_comm) = &place.home else {
            slot.seal(&[staging.own(part)])?;
            return Ok(None);
        };
        let metas = staging.metas_of(&group_comm.group, part);
        if round.number == 0 {
            slot.tell_splits(staging.splits_of(&group_comm.group, part));
        }
        if part == StatePart::Variable && staging.is_increment(&group_comm.group) {
            // It is not much, and done in one round.
            if round.number > 0 {
                return Ok(None);
            }
            let packed =
                staging.delta.as_mut().map_or_else(Vec::new, |delta| std::mem::take(&mut delta.packed));
            let pages = staging.pages_of(&group_comm.group);
            return group_comm.start_update(slot, &metas, &pages, packed, &staging.account).map(Some);
        }
        let Some(live) = live else {
            return group_comm.start_encoding(slot, &metas, &staging.account, round).map(Some);
        };
        let mut refused = Ok(());
        let pieces = |ranges: &[Range<usize>]| {
            // Who cannot write its state down votes against it, and takes part until then.
            live.pieces(ranges).unwrap_or_else(|error| {
                refused = Err(error.into());
                vec![0; ranges.iter().map(ExactSizeIterator::len).sum()]
            })
        };
        let request = group_comm.start_window(slot, &metas, &staging.account, round, pieces)?;
        staging.copied = std::mem::replace(&mut staging.copied, Ok(())).and(refused);
        Ok(Some(request))
    }

    fn finish(
        &self,
        place: &mut Placement,
        part: StatePart,
        staging: &mut Staging,
        is_last: bool,
        request: ScheduleRequest<Buffer>,
    ) -> Result<(), CheckpointError> {
        let slot = place.store.slot_mut(part, staging.epoch);
        let memory = request.wait()?;
        let Some(group_comm) = &place.home else { return Ok(()) };
        let is_increment = part == StatePart::Variable && staging.is_increment(&group_comm.group);
        if is_increment {
            let (mut packed, redundancy) = memory;
            slot.put_back_redundancy(redundancy);
            staging.delta.iter_mut().for_each(|delta| delta.packed = std::mem::take(packed.heap()));
        } else if slot.is_live() {
            slot.put_back_redundancy(memory.1);
        } else {
            slot.put_back(memory);
        }
        if is_last || is_increment {
            let sealing = group_comm.clock.now();
            let (mut account, group) = (staging.account.borrow_mut(), &group_comm.group);
            account.seal(slot, group, &staging.metas_of(group, part), is_increment)?;
            account.computing += group_comm.clock.now().since(sealing);
            #[cfg(feature = "planted-bugs")]
            if planted::has(DAMAGED_ON_THE_WAY) {
                slot.damage_unseen(planted::place());
            }
        }
        Ok(())
    }

    fn rebuild(&self, place: &mut Placement, epoch: u32, lost: &[Rank]) -> Result<Rebuilt, CheckpointError> {
        let Placement { store, home, .. } = place;
        let Some(group_comm) = home else { return Ok(Rebuilt::default()) };
        let held: Vec<bool> = group_comm.group.members.iter().map(|rank| !lost.contains(rank)).collect();
        let gone: Vec<bool> = held.iter().map(|held| !held).collect();
        let metas = group_comm.share_metas(store, epoch, &held)?;
        let mut spent = Rebuilt::default();
        for (part, metas) in StatePart::BOTH.into_iter().zip(&metas) {
            let slot = store.slot_mut(part, epoch);
            if gone[group_comm.me] {
                slot.begin(epoch);
            }
            spent += group_comm.rebuild(slot, metas, &gone)?;
        }
        Ok(spent)
    }

    fn rebuild_otherwise(
        &self,
        place: &mut Placement,
        epoch: u32,
        holdings: &Holdings,
    ) -> Result<bool, CheckpointError> {
        let Some(group_comm) = place.home.clone() else { return Err(place.beyond_help(holdings)) };
        let slots = [place.store.constant(), place.store.variable(epoch)];
        let metas = slots.map(|slot| slot.members().to_vec());
        let found = place.find_shards(epoch, &group_comm, holdings, &metas)?;
        let mut had_damage = false;
        for (part, found) in StatePart::BOTH.into_iter().zip(&found) {
            let slot = place.store.slot_mut(part, epoch);
            if let Some(shard) = found.iter().find_map(|(_, candidates)| candidates.found()) {
                slot.memory_mut().0.copy_from_slice(shard);
            }
            had_damage |= group_comm.encode_again(slot)?;
        }
        Ok(had_damage)
    }
}
