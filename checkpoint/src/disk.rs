//! Checkpoints on a disk that all ranks see, the scheme `disk:DIR`: to compare the others with, and for losses that
//! no memory survives.
//!
//! ```text
//! DIR/JOB/constant-E/rank-R    DIR/JOB/epoch-E/rank-R     the shard of rank R
//! DIR/JOB/constant-E/manifest  DIR/JOB/epoch-E/manifest   lengths and checksums of all shards, by rank 0
//! ```
//!
//! The header of each file says which job wrote it, and who. Files of one set must agree on that
//! with the manifest, and a set with its constant part. The name of the folder says nothing: it may
//! have been changed before a job is resumed from it.
//!
//! A checkpoint that begins anew writes a constant part too; it goes with all epochs up to the next such checkpoint.
//!
//! Each rank keeps its own copies in memory as with the other schemes, and rolls back from them. Instead of giving
//! blocks to others it writes its shard to a file, all ranks at the same time; whoever has lost its memory reads that
//! file back. Everything is checked against checksums. When the job ends well, DIR/JOB is removed, by every rank,
//! since any of them may be killed then; when it fails or is killed, the files stay, for a job that is resumed from them.
//!
//! # Why one committed checkpoint is always whole
//!
//! A set of files is whole when it has a manifest and every file is what that says. In checkpoint `e`:
//!
//! 1. Every rank writes its shard (`Disk::stage`), and votes yes when the bytes are on the disk. A file that cannot be
//!    written ends the job.
//! 2. When all have voted yes, rank 0 writes the manifest (`Disk::complete`), and *then* tells the others by a broadcast.
//!    Nobody commits `e` before it has that: once anybody has committed `e`, set `e` is whole, and stays so however many
//!    die, all at once too.
//! 3. Set `e - 1` is overwritten in checkpoint `e + 1`, when a rank has heard from all the others there, and so knows that they
//!    have committed `e`. Until then rank 0 may be the only one that has; if it dies, the survivors choose `e - 1`, and its
//!    replacement has to read that from the disk. So there are two sets, as there are two slots in memory
//!    ([`crate::protocol`]). The constant part of `e - 1` is removed no earlier: in checkpoint `e + 1`, if `e` has its own.
//!
//! If somebody survives, the reports decide as for every scheme. If nobody does, the newest set that is whole is
//! restored; the reports of all are empty then, and the disk is all that is known. A set newer than the restored one
//! (rank 0 has died between 2 and the news of it) is removed before the epoch is attempted again, as nobody writes before it has
//! heard from rank 0 that the restore is over. So the files of two attempts do not mix; if they did, the manifest would tell.
//!
//! `protocol/model.rs` runs this, too, and finds the breach when a rank commits before 2 or overwrites before 3.
//!
//! # What `fsync` gives
//!
//! After `fsync` of a file its bytes survive a crash of the operating system and a loss of power, if the disk keeps
//! what it has acknowledged. That says nothing about the file's name, which is an entry of the directory and needs the
//! `fsync` of that. `rename` replaces a name at once for whoever looks, which is not yet for good. So each shard is
//! written under another name, synchronized, renamed; after the vote the manifest likewise, and then the directory,
//! once for the names of all. An entry may reach the disk earlier, so after a crash a manifest may stand beside shards
//! that are missing: such a set is not whole, was committed by nobody, and the one before is there. None of this is
//! needed when only processes die, since the operating system keeps what they wrote.

mod error;
mod file;
mod saved;
mod sets;
#[cfg(test)]
mod tests;
mod writer;

use std::path::Path;

pub use self::error::DiskError;
pub(crate) use self::file::Contents;
pub use self::saved::SavedSets;
pub(crate) use self::saved::Shards;
use self::sets::{Set, Sets};
pub(crate) use self::writer::{Snapshot, Writer};
use crate::region::StatePart;
use crate::store::{ShardMeta, Slot, Store};

/// The checkpoints of one job on disk, as one of its ranks sees them.
#[derive(Debug)]
pub(crate) struct Disk {
    sets: Sets,
    rank: usize,
}

impl Disk {
    /// Opens the directory of `job` under `dir`; `dir` is made if it is missing.
    pub(crate) fn open(dir: &Path, job: &str, rank: usize) -> Result<Self, DiskError> {
        Ok(Self { sets: Sets::open(dir, job, job)?, rank })
    }

    /// Says in the folder which job this is, on rank 0.
    pub(crate) fn write_command(&self, command: &str) -> Result<(), DiskError> {
        if self.rank == 0 { self.sets.write_command(command) } else { Ok(()) }
    }

    /// Writes this rank's shard of one part of `epoch`. To be called when all ranks are known to have committed `epoch - 1`;
    /// this rank's shard of `epoch - 2` is overwritten.
    pub(crate) fn stage(&self, part: StatePart, epoch: u32, shard: Contents<'_>) -> Result<(), DiskError> {
        let (set, over) = match part {
            StatePart::Constant => (Set::Constant(epoch), None),
            StatePart::Variable => {
                (Set::Epoch(epoch), epoch.checked_sub(2).filter(|old| *old > 0).map(Set::Epoch))
            }
        };
        self.sets.write_shard(set, over, self.rank, shard)
    }

    /// Makes the set of `epoch` complete when all ranks have staged it: on rank 0, the others have nothing to do.
    /// `metas` are the constant and the variable part of all ranks; the constant one counts if the epoch begins `anew`.
    pub(crate) fn complete(&self, epoch: u32, metas: &[[ShardMeta; 2]], anew: bool) -> Result<(), DiskError> {
        if self.rank > 0 {
            return Ok(());
        }
        let part = |part: usize| metas.iter().map(|pair| pair[part]).collect::<Vec<_>>();
        if anew {
            self.sets.write_manifest(Set::Constant(epoch), &part(0))?;
        }
        self.sets.write_manifest(Set::Epoch(epoch), &part(1))?;
        // The shards of those before have become those of this epoch; see `stage`.
        self.sets.keep(2)
    }

    /// Epochs with a manifest, newest first.
    pub(crate) fn candidates(&self) -> Result<Vec<u32>, DiskError> {
        self.sets.with_manifest()
    }

    /// Of so many sets none is whole: something has been committed and is lost.
    pub(crate) fn none_whole(&self, sets: usize) -> DiskError {
        DiskError::NoneWhole { path: self.sets.root().to_owned(), sets }
    }

    /// Reads this rank's shards of `epoch` into `store`, as far as they are not whole in there.
    pub(crate) fn read_back(&self, epoch: u32, store: &mut Store) -> Result<(), DiskError> {
        // If there is none, that of the first epoch is missed.
        let first = self.sets.constant_of(epoch)?.unwrap_or(1);
        self.read_slot(Set::Constant(first), store.constant_mut())?;
        self.read_slot(Set::Epoch(epoch), store.variable_mut(epoch))
    }

    fn read_slot(&self, set: Set, slot: &mut Slot) -> Result<(), DiskError> {
        let manifest = self.sets.manifest(set)?;
        let Some(expected) = manifest.get(self.rank).copied() else {
            let what = format!("{} ranks, there is a rank {}", manifest.len(), self.rank);
            return Err(DiskError::damaged(&self.sets.manifest_path(set), what));
        };
        if slot.epoch() == set.epoch() && slot.members() == [expected] && slot.verify().is_ok() {
            return Ok(());
        }
        slot.begin(set.epoch());
        self.sets.read_shard(set, self.rank, expected, slot.shard_mut())?;
        Ok(slot.seal(&[expected])?)
    }

    /// Removes the sets after `epoch` (0: all of them) when that is what all go back to; on rank 0.
    pub(crate) fn give_up_after(&self, epoch: u32) -> Result<(), DiskError> {
        if self.rank > 0 {
            return Ok(());
        }
        self.sets.remove_after(epoch)
    }

    /// Removes everything of this job when all ranks have agreed that it is done. Each of them does, at the same time:
    /// what one has removed is no error of another, and it is gone when one of them lives long enough.
    pub(crate) fn remove(&self) -> Result<(), DiskError> {
        self.sets.remove_all()
    }
}
