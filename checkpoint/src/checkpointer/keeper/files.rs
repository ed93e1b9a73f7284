//! A file for each rank and checkpoint ([`crate::disk`]): what ranks tell each other of theirs.

use ft_comm::time::Clock;
use ft_comm::{CommError, Communicator, Op, Rank, ScheduleRequest};

use super::Keeper;
use crate::buffer::Buffer;
use crate::checkpointer::holdings::Holdings;
use crate::checkpointer::under_way::Staging;
use crate::disk::{Contents, Disk};
use crate::error::CheckpointError;
use crate::exchange::{Rebuilt, Round};
use crate::placement::Placement;
use crate::region::{LiveRef, StatePart};
use crate::store::Store;

/// See the module.
pub(in crate::checkpointer) struct Files {
    pub(in crate::checkpointer) disk: Disk,
    pub(in crate::checkpointer) comm: Communicator,
    pub(in crate::checkpointer) clock: Clock,
}

impl Keeper for Files {
    fn is_blocking(&self) -> bool {
        true
    }

    fn start(
        &self,
        place: &mut Placement,
        part: StatePart,
        staging: &mut Staging,
        round: Round,
        _: LiveRef<'_, '_>,
    ) -> Result<Option<ScheduleRequest<Buffer>>, CheckpointError> {
        if round.number == 0 {
            let (slot, own) = (place.store.slot_mut(part, staging.epoch), staging.own(part));
            let legend = slot.legend();
            let shard = Contents { meta: own, bytes: slot.shard(), legend: &legend };
            self.disk.stage(part, staging.epoch, shard)?;
            slot.seal(&[own])?;
        }
        Ok(None)
    }

    fn complete(
        &self,
        staging: &Staging,
        reach: &dyn Fn() -> Result<(), CommError>,
    ) -> Result<(), CheckpointError> {
        self.disk.complete(staging.epoch, &staging.metas, staging.first)?;
        reach()?;
        // Rank 0 has made the set complete.
        Ok(self.comm.bcast(&mut [0u8], 0)?)
    }

    fn newest(&self, store: &mut Store) -> Result<Option<u32>, CheckpointError> {
        // Rank 0 proposes, so that all try the same; 0 is the end of its list.
        let candidates = if self.comm.rank() == 0 { self.disk.candidates()? } else { Vec::new() };
        let sets = candidates.len();
        let mut candidates = candidates.into_iter();
        loop {
            let next = candidates.next();
            if next.is_none() && sets > 0 {
                return Err(self.disk.none_whole(sets).into());
            }
            let mut epoch = [next.unwrap_or(0)];
            self.comm.bcast(&mut epoch, 0)?;
            if epoch[0] == 0 {
                return Ok(None);
            }
            let mut whole = [u8::from(self.disk.read_back(epoch[0], store).is_ok())];
            self.comm.allreduce(&mut whole, Op::Min)?;
            if whole[0] == 1 {
                return Ok(Some(epoch[0]));
            }
        }
    }

    fn give_up_after(&self, epoch: u32) -> Result<(), CheckpointError> {
        Ok(self.disk.give_up_after(epoch)?)
    }

    fn rebuild(&self, place: &mut Placement, epoch: u32, lost: &[Rank]) -> Result<Rebuilt, CheckpointError> {
        if !lost.contains(&self.comm.rank()) {
            return Ok(Rebuilt::default());
        }
        let started = self.clock.now();
        self.disk.read_back(epoch, &mut place.store)?;
        Ok(Rebuilt { shards: self.clock.now().since(started), ..Rebuilt::default() })
    }

    fn rebuild_otherwise(
        &self,
        place: &mut Placement,
        epoch: u32,
        holdings: &Holdings,
    ) -> Result<bool, CheckpointError> {
        if !holdings.is_sound(self.comm.rank()) {
            self.disk.read_back(epoch, &mut place.store)?;
        }
        Ok(false)
    }

    fn name(&self, command: &str) -> Result<(), CheckpointError> {
        Ok(self.disk.write_command(command)?)
    }

    fn remove(&self) -> Result<(), CheckpointError> {
        Ok(self.disk.remove()?)
    }
}
