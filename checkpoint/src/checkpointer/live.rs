//! Checkpoints in less memory: a rank has one own copy of its state, and the live state is the other one (the self-checkpoint of X. Tang,
//! J. Zhai, B. Yu, W. Chen and W. Zheng, Self-checkpoint: an in-memory checkpoint method using less space and its practice on
//! fault-tolerant HPL, PPoPP 2017).
//!
//! Redundancy of the new checkpoint is made straight from the state, window by window, while the program waits. When all have voted, the
//! state is written over the copy of the checkpoint before. So there are the state, one copy, and redundancy, old and new. Why one
//! whole checkpoint is there at any moment: [`crate::protocol`].
//!
//! What begins anew has no copy before it, and so gets its own at once.

use ft_comm::{Repair, World};
use ft_proto::planted;

use super::Checkpointer;
use super::apart::live;
use super::defects::{COPIES_EARLY, FORGETS_LIVE};
use crate::build;
use crate::error::CheckpointError;
use crate::exchange::Round;
use crate::protocol::{Event, State, choose};
use crate::region::{Live, LiveRef, Protect};

/// Bytes of the longest state of a rank that are encoded in one round, so that little of it is in memory twice.
const WINDOW_BYTES: u64 = 2 << 20;

impl Checkpointer {
    /// From now on a rank keeps one copy of its state, not two, where the next checkpoint allows it; the program waits for each. The
    /// same on all ranks. Between a checkpoint that was interrupted and the restore after it the state has to stay as it is.
    pub fn set_saves_memory(&mut self, saves_memory: bool) {
        self.saves_memory = saves_memory;
    }

    /// Whether the next checkpoint is made from the live state.
    pub(super) fn is_next_live(&self) -> bool {
        self.copies() == 1 && !self.is_bare()
    }

    /// How many copies a rank keeps of the variable part of its state.
    pub(super) fn copies(&self) -> usize {
        if self.saves_memory && self.places.target().home.is_some() { 1 } else { 2 }
    }

    /// The first round of a part of which the longest at any rank is `longest` bytes long.
    pub(super) fn first_round(&self, epoch: u32, longest: u64) -> Round {
        let of = match self.is_live(epoch) {
            true => longest.div_ceil(WINDOW_BYTES).max(1) as usize,
            false => self.throttle.rounds(longest),
        };
        Round { number: 0, of }
    }

    /// Whether the copy of `epoch` is the live state.
    pub(super) fn is_live(&self, epoch: u32) -> bool {
        let slot = self.places.target().store.variable(epoch);
        slot.is_live() && slot.epoch() == epoch
    }

    /// Writes the state over the copy of the checkpoint before; `epoch` is committed somewhere. A successor finds nothing meanwhile.
    pub(super) fn copy_live(&mut self, epoch: u32, live: &mut dyn Live) -> Result<(), CheckpointError> {
        if let Some(mut estate) = self.legacy.memory.estate() {
            estate.forget();
        }
        let (slot, other) = self.places.target_mut().store.variable_and_other(epoch);
        let due = slot.own_meta();
        let crc = live.save_into(slot.settle(other))?;
        // A copy that is not what the others have redundancy of is found damaged when it is needed, and made again from that.
        self.stats.damaged += u64::from(crc != due.crc);
        Ok(())
    }

    /// After a failure: if `chosen` is what was made from the live state and never committed here, that is done now. Gives whether it was.
    pub(super) fn settle_live<S: Protect>(
        &mut self,
        world: &World,
        chosen: Option<u32>,
        state: Option<&mut S>,
    ) -> Result<bool, CheckpointError> {
        let State::Interrupted(Some(epoch)) = self.ledger.state() else { return Ok(false) };
        if chosen != Some(epoch) || !self.is_live(epoch) || planted::has(FORGETS_LIVE) {
            return Ok(false);
        }
        let slot = self.places.target().store.variable(epoch);
        let split = slot.own_split();
        build::check::<S>(slot.members(), slot.kind(), world.rank())?;
        let Some(state) = state else {
            let why = "the checkpoint to go back to is the live state of this rank, which the restore was not given";
            return Err(CheckpointError::Unfit(why.into()));
        };
        self.ledger.apply(Event::CommittedElsewhere(epoch))?;
        self.copy_live(epoch, &mut *live(state, split))?;
        Ok(true)
    }

    /// As [`Checkpointer::settle_live`], before the state goes back to what another level has.
    pub(crate) fn settle_first<S: Protect>(
        &mut self,
        world: &World,
        repair: &Repair,
        state: Option<&mut S>,
    ) -> Result<(), CheckpointError> {
        self.ledger.apply(Event::Interrupted)?;
        self.settle_live(world, choose(&repair.reports).epoch, state).map(|_| ())
    }

    /// A defect.
    pub(super) fn copy_early(&mut self, epoch: u32, live: LiveRef<'_, '_>) -> Result<(), CheckpointError> {
        match live {
            Some(live) if planted::has(COPIES_EARLY) => self.copy_live(epoch, live),
            _ => Ok(()),
        }
    }
}
