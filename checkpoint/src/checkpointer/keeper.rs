//! What keeps a checkpoint beside the copies that ranks have of their own states and go back to themselves: blocks in the memory of
//! other ranks ([`blocks`]), or files ([`files`]).

mod blocks;
mod files;

use ft_comm::{CommError, Rank, ScheduleRequest};

pub(super) use self::blocks::Blocks;
pub(super) use self::files::Files;
use super::holdings::Holdings;
use super::under_way::Staging;
use crate::buffer::Buffer;
use crate::error::CheckpointError;
use crate::exchange::{Rebuilt, Round};
use crate::placement::Placement;
use crate::region::{LiveRef, StatePart};
use crate::store::Store;

/// See the module. All ranks make the same calls, in the same order.
pub(super) trait Keeper {
    /// Whether nothing of a checkpoint can go on behind the computation.
    fn is_blocking(&self) -> bool {
        false
    }

    /// Starts a round of giving a part of the state away, of which the own copy is made and all ranks have told. Gives what is to be
    /// waited for before [`Keeper::finish`]; if there is nothing, the slot is sealed. `live` is the state, if its only copy is that.
    fn start(
        &self,
        place: &mut Placement,
        part: StatePart,
        staging: &mut Staging,
        round: Round,
        live: LiveRef<'_, '_>,
    ) -> Result<Option<ScheduleRequest<Buffer>>, CheckpointError>;

    /// Ends a round; the slot is sealed after the last one.
    fn finish(
        &self,
        place: &mut Placement,
        part: StatePart,
        staging: &mut Staging,
        is_last: bool,
        request: ScheduleRequest<Buffer>,
    ) -> Result<(), CheckpointError> {
        let _ = (place, part, staging, is_last, request);
        Ok(())
    }

    /// All ranks have staged the checkpoint. When this returns it may be committed; `reach` is the point just before, at which
    /// failures can be injected.
    fn complete(
        &self,
        staging: &Staging,
        reach: &dyn Fn() -> Result<(), CommError>,
    ) -> Result<(), CheckpointError> {
        let _ = staging;
        Ok(reach()?)
    }

    /// The newest whole checkpoint, when no rank knows of any: all are new. It is in `store` then.
    fn newest(&self, store: &mut Store) -> Result<Option<u32>, CheckpointError> {
        let _ = store;
        Ok(None)
    }

    /// All go back to `epoch`, or to the start (0): nothing later is of any use.
    fn give_up_after(&self, epoch: u32) -> Result<(), CheckpointError> {
        let _ = epoch;
        Ok(())
    }

    /// Makes again what the `lost` ranks had of `epoch`.
    fn rebuild(&self, place: &mut Placement, epoch: u32, lost: &[Rank]) -> Result<Rebuilt, CheckpointError>;

    /// Makes all of `epoch` right where damage was found in it; gives whether redundancy of this rank was damaged that looked sound.
    fn rebuild_otherwise(
        &self,
        place: &mut Placement,
        epoch: u32,
        holdings: &Holdings,
    ) -> Result<bool, CheckpointError>;

    /// The job is that of this command line.
    fn name(&self, command: &str) -> Result<(), CheckpointError> {
        let _ = command;
        Ok(())
    }

    /// The job is done: nothing is of any use.
    fn remove(&self) -> Result<(), CheckpointError> {
        Ok(())
    }
}
