//! Going back to a checkpoint after a repair: what is lost or damaged is rebuilt, and everybody's state is that of then.

use std::time::Duration;

use ft_comm::{Rank, Repair, World};
#[cfg(feature = "planted-bugs")]
use ft_proto::planted;

use super::apart::RebuiltApart;
#[cfg(feature = "planted-bugs")]
use super::defects::{DAMAGED_BLOCK, DAMAGED_SHARD};
use super::holdings::all;
use super::{Checkpointer, Restored};
use crate::build;
use crate::error::CheckpointError;
use crate::exchange::Rebuilt;
use crate::protocol::{Event, Report, choose};
use crate::region::{Protect, ProtectError, StatePart, load_apart, load_with_crc};
use crate::stats::RestoreSeconds;
use crate::store::Slot;

/// What becomes of the live state of a rank in a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LiveState {
    GoesBack,
    Stays,
}

impl Checkpointer {
    /// After a repair: chooses the newest checkpoint that is whole from the reports of all ranks, rebuilds
    /// what is lost or damaged, makes redundancy whole again, and loads `state`; a rank whose live state is to stay
    /// gives none. When it returns on one rank, the checkpoint is whole on all ranks.
    ///
    /// # Errors
    /// A failure; [`CheckpointError::BeyondTolerance`]: too much is lost, the job is to be ended.
    pub fn restore<S: Protect>(
        &mut self,
        world: &World,
        repair: &Repair,
        state: Option<&mut S>,
    ) -> Result<Restored, CheckpointError> {
        self.restore_where(world, repair, (state, LiveState::GoesBack), &|_| true)
    }

    /// As [`Checkpointer::restore`], of a rank whose state stays as it is. Where checkpoints
    /// [save memory](Checkpointer::set_saves_memory) the state may be the only copy of what others go back to.
    ///
    /// # Errors
    /// As [`Checkpointer::restore`].
    pub fn restore_others<S: Protect>(
        &mut self,
        world: &World,
        repair: &Repair,
        state: &mut S,
    ) -> Result<Restored, CheckpointError> {
        self.restore_where(world, repair, (Some(state), LiveState::Stays), &|_| true)
    }

    /// As [`Checkpointer::restore`], but `state` is loaded only if it is to go back and `is_due`, asked with the constant part of this rank's shard, says
    /// so; otherwise [`Checkpointer::load_held`] can load what is held here. Of a shard that is damaged `is_due` may say anything.
    pub(crate) fn restore_where<S: Protect>(
        &mut self,
        world: &World,
        repair: &Repair,
        (mut state, live): (Option<&mut S>, LiveState),
        is_due: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Restored, CheckpointError> {
        let _guard = self.comm.guard()?;
        let started = self.clock.now();
        let number = u64::from(world.generation());
        let point = |phase: &str| world.fault_point("restore", number, Some(phase));
        point("plan")?;
        self.ledger.apply(Event::Interrupted)?;
        let choice = choose(&repair.reports);
        let chosen = self.choose_epoch(repair, choice.epoch)?;
        self.places.choose(chosen);
        self.learn_layout(world, &choice)?;
        let is_copied = self.settle_live(world, chosen, state.as_deref_mut())?;
        let Some(epoch) = chosen else {
            self.settle(world, None)?;
            return Ok(Restored::Nothing);
        };
        #[cfg(feature = "planted-bugs")]
        if planted::has(DAMAGED_SHARD) || planted::has(DAMAGED_BLOCK) {
            self.places
                .current
                .store
                .variable_mut(epoch)
                .damage(planted::has(DAMAGED_BLOCK), planted::place());
        }
        let holds = choice.holders[self.comm.rank()];
        self.enter(world.generation(), holds, is_copied);
        let planned = self.clock.now();
        let lost: Vec<Rank> = (0..world.total()).filter(|rank| !choice.holders[*rank]).collect();
        self.places.current.layout.survives(&lost)?;
        let exchanging = self.clock.now();
        point("exchange")?;
        let (mut rebuilt, apart) = self.rebuild(epoch, &choice.holders, &lost)?;
        let mut rebuilding = self.clock.now().since(exchanging);
        point("verify")?;
        let state = state.filter(|_| live == LiveState::GoesBack);
        let trying = self.load_sound(epoch, &choice.holders, state, is_due)?;
        (rebuilt.shards, rebuilding) = (rebuilt.shards + trying, rebuilding + trying);
        let kept = u32::from(self.legacy.is_heir);
        self.settle_apart(world, epoch, &apart)?;
        self.stats.restores.push(RestoreSeconds {
            generation: world.generation(),
            plan: planned.since(started).as_secs_f64(),
            rebuild: rebuilt.shards.as_secs_f64(),
            reprotect: rebuilt.blocks.as_secs_f64(),
            load: self.clock.now().since(planned).saturating_sub(rebuilding).as_secs_f64(),
            kept,
            stayed: 0,
            doubles: apart.doubles,
        });
        Ok(Restored::Epoch(epoch))
    }

    /// After the last restore this rank goes on where it is.
    pub(crate) fn stays(&mut self) {
        self.stats.restores.iter_mut().next_back().into_iter().for_each(|restore| restore.stayed = 1);
    }

    /// Makes again what the `lost` ranks had of `epoch`, that is all who did not have it before.
    fn rebuild(
        &mut self,
        epoch: u32,
        held: &[bool],
        lost: &[Rank],
    ) -> Result<(Rebuilt, RebuiltApart), CheckpointError> {
        if self.keeps_doubles_apart() {
            let apart = self.rebuild_apart(epoch, held)?;
            return Ok((Rebuilt { shards: apart.spent, ..Rebuilt::default() }, apart));
        }
        let rebuilt = match lost.is_empty() {
            true => Rebuilt::default(),
            false => self.keeper.rebuild(&mut self.places.current, epoch, lost)?,
        };
        Ok((rebuilt, RebuiltApart::default()))
    }

    /// The epoch to go back to, `known` by reports; none: to the start. Later ones are given up.
    fn choose_epoch(&mut self, repair: &Repair, known: Option<u32>) -> Result<Option<u32>, CheckpointError> {
        let nobody_knows = repair.reports.iter().all(|report| Report::from(*report).knows_nothing());
        let chosen = match nobody_knows {
            true => self.keeper.newest(&mut self.places.current.store)?,
            false => known,
        };
        self.keeper.give_up_after(chosen.unwrap_or(0))?;
        // Somebody has committed, but all who held that checkpoint may be gone.
        let is_gone = nobody_knows || self.owes_fresh && self.ledger.committed().is_some();
        if chosen.is_none() && repair.marked && is_gone {
            self.places.current.layout.survives(&(0..self.comm.size()).collect::<Vec<_>>())?;
        }
        Ok(chosen)
    }

    /// Loads `state`; if damage is found, makes right what can be, and loads it again. Gives the time that this took. `held` says
    /// which ranks held `epoch` before the restore.
    fn load_sound<S: Protect>(
        &mut self,
        epoch: u32,
        held: &[bool],
        mut state: Option<&mut S>,
        is_due: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Duration, CheckpointError> {
        let was_here = held[self.comm.rank()] && !self.legacy.is_heir;
        // Nothing was checked so far. What is rebuilt from a damaged block is damaged, and so found here: all in one pass.
        let wanted = |checkpointer: &Self| is_due(checkpointer.places.current.store.constant().shard());
        let is_wanted = wanted(self);
        let is_sound = self.load(epoch, was_here, state.as_deref_mut().filter(|_| is_wanted))?;
        let sound = all(&self.comm, is_sound)?;
        if !sound.contains(&false) {
            return Ok(Duration::ZERO);
        }
        if self.keeps_doubles_apart() {
            // All was checked just before: memory is damaged faster than it is mended.
            return Err(CheckpointError::Unsound { ranks: unsound(&sound) });
        }
        let started = self.clock.now();
        self.rebuild_otherwise(epoch, held)?;
        let spent = self.clock.now().since(started);
        let is_wanted = wanted(self);
        let is_sound = is_sound || self.load(epoch, was_here, state.filter(|_| is_wanted))?;
        let sound = all(&self.comm, is_sound)?;
        let ranks = unsound(&sound);
        if ranks.is_empty() { Ok(spent) } else { Err(CheckpointError::Unsound { ranks }) }
    }

    /// Loads all of `state` from the committed checkpoint as this rank holds it. Not collective.
    ///
    /// # Errors
    /// There is none, it holds another state, or it is damaged.
    pub(crate) fn load_held<S: Protect>(&self, state: &mut S) -> Result<(), CheckpointError> {
        let epoch = self.ledger.committed().unwrap_or(0);
        if self.load(epoch, false, Some(state))? {
            return Ok(());
        }
        let store = &self.places.current.store;
        Ok(store.constant().verify_shard().and_then(|()| store.variable(epoch).verify_shard())?)
    }

    /// The constant part of the committed checkpoint, as this rank holds it.
    pub(crate) fn constant(&self) -> &[u8] {
        self.places.current.store.constant().shard()
    }

    /// Loads `state` from the shards of this rank and checks these on the way; false if they are damaged, and so perhaps the
    /// state. Where the rank `was_here` before the failure its state has the constant part, and most of the rest perhaps.
    fn load<S: Protect>(
        &self,
        epoch: u32,
        was_here: bool,
        mut state: Option<&mut S>,
    ) -> Result<bool, CheckpointError> {
        let store = &self.places.current.store;
        for (part, slot) in
            [(StatePart::Constant, store.constant()), (StatePart::Variable, store.variable(epoch))]
        {
            let is_due = part == StatePart::Variable || !was_here;
            match state.as_deref_mut().filter(|_| is_due && slot.is_sealed()) {
                Some(state) => {
                    check_type::<S>(slot, self.comm.rank())?;
                    let (crc, loaded) = load_slot(state, part, slot, was_here);
                    if !slot.has_shard_crc(crc) {
                        return Ok(false);
                    }
                    loaded?;
                }
                None if slot.verify_shard().is_err() => return Ok(false),
                None if was_here => {}
                None => build::check_build(slot.members(), self.comm.rank())?,
            }
        }
        Ok(true)
    }
}

/// The ranks that are not `sound`.
fn unsound(sound: &[bool]) -> Vec<Rank> {
    (0..sound.len()).filter(|rank| !sound[*rank]).collect()
}

/// As [`load_with_crc`], from the shard of a slot, in which doubles may be kept apart.
fn load_slot<S: Protect>(
    state: &mut S,
    part: StatePart,
    slot: &Slot,
    spares: bool,
) -> (u64, Result<(), ProtectError>) {
    let strings = slot.own_split().map(|split| split.strings());
    match strings.filter(|strings| strings.doubles > 0 && strings.bytes() == slot.shard().len()) {
        Some(strings) => load_apart(state, part, slot.shard(), strings, spares),
        None => load_with_crc(state, part, slot.shard(), spares, slot.notes()),
    }
}

/// Whether the slot is of this build, and the shard of `rank`, if it has one, that of such a state.
pub(super) fn check_type<S: Protect>(slot: &Slot, rank: Rank) -> Result<(), CheckpointError> {
    let own = slot.kind().filter(|_| !slot.shard().is_empty());
    build::check::<S>(slot.members(), own, rank)
}
