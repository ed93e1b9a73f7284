//! When checkpoints in memory are written to files too: rank 0 says so with the metadata of the checkpoint that is the next to go, and
//! so does every rank that was asked for one.

use std::sync::Arc;

use ft_comm::time::Time;

use super::Checkpointer;
use super::under_way::Staging;
use crate::disk::{Snapshot, Writer};
use crate::error::CheckpointError;
use crate::spill::SpillEvery;

/// See the module.
#[derive(Debug)]
pub(super) struct Spilling {
    writer: Writer,
    every: SpillEvery,
    /// The set from which the job was resumed: epochs are counted on from it.
    base: u32,
    /// Checkpoints since the last one that was to be written.
    passed: u64,
    /// When that was; at first, when the job began.
    last: Time,
    /// One was cut short by a failure, and the next is to take its place.
    is_owed: bool,
}

impl Spilling {
    /// Whether it is time to write the next checkpoint; what rank 0 says counts.
    fn is_due(&self, now: Time) -> bool {
        let is_time = match self.every {
            SpillEvery::Checkpoints(count) => self.passed + 1 >= count.get(),
            SpillEvery::Seconds(seconds) => now.since(self.last).as_secs_f64() >= seconds,
        };
        (is_time || self.is_owed) && self.writer.is_idle()
    }
}

impl Checkpointer {
    /// From now on checkpoints are written to files too. The same on all ranks that compute.
    pub(crate) fn spill(&mut self, writer: Writer, every: SpillEvery) {
        self.spilling =
            Some(Spilling { writer, every, base: 0, passed: 0, last: self.clock.now(), is_owed: false });
    }

    /// Files are to say that they are of the job of this command line.
    pub(crate) fn name(&self, command: &str) -> Result<(), CheckpointError> {
        self.keeper.name(command)?;
        match self.spilling.as_ref().filter(|_| self.comm.rank() == 0) {
            Some(spilling) => Ok(spilling.writer.write_command(command)?),
            None => Ok(()),
        }
    }

    /// The job goes on from set `number`, and its own are counted on from there.
    pub(crate) fn count_on_from(&mut self, number: u32) {
        self.spilling.iter_mut().for_each(|spilling| spilling.base = number);
    }

    /// From which set on this rank counts.
    pub(super) fn counted_from(&self) -> u32 {
        self.spilling.as_ref().map_or(0, |spilling| spilling.base)
    }

    /// Whether this rank says that the checkpoint that begins is to be written to files: all do what one says.
    pub(super) fn is_to_spill(&self) -> bool {
        let is_first = self.comm.rank() == 0;
        self.spilling.as_ref().is_some_and(|spilling| {
            spilling.writer.is_asked() || (is_first && spilling.is_due(self.clock.now()))
        })
    }

    /// The checkpoint was committed.
    pub(super) fn spill_committed(&mut self, staging: &Staging) {
        let (now, computing) = (self.clock.now(), self.computing);
        let Some(spilling) = &mut self.spilling else { return };
        if staging.rank >= computing {
            return;
        }
        spilling.passed += 1;
        if staging.spills {
            (spilling.passed, spilling.last, spilling.is_owed) = (0, now, false);
        }
        let store = &self.places.current.store;
        let (constant, variable) = (store.constant(), store.variable(staging.epoch));
        let snapshot = Snapshot {
            number: spilling.base + staging.epoch,
            constant_number: spilling.base + staging.constant_since,
            rank: staging.rank,
            metas: Arc::new(staging.metas[..computing].to_vec()),
            shards: [constant.shared(), variable.shared()],
            legends: [constant.legend(), variable.legend()],
        };
        spilling.writer.committed(snapshot, staging.spills);
    }

    /// All go back to `epoch`.
    pub(super) fn spill_restored(&mut self, epoch: u32) {
        if let Some(spilling) = &mut self.spilling {
            spilling.is_owed |= spilling.writer.restored(spilling.base + epoch);
        }
    }

    /// Nothing is written any more.
    pub(crate) fn stop_spilling(&self) {
        self.spilling.iter().for_each(|spilling| spilling.writer.stop());
    }
}
