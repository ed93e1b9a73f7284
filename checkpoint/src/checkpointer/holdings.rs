//! What ranks hold of a checkpoint, and what of that is sound: each takes the checksums of its own and tells the others.

use ft_comm::{CommError, Communicator, Rank};

use crate::layout::ParityGroup;
use crate::store::Store;

/// What a rank says of its memory, in bits: its shards are sound, each part; its blocks are what they were when they came.
const SOUND: [u8; 2] = [1, 2];
const BLOCKS: u8 = 4;

/// What there is of a checkpoint, by home.
pub(super) struct Holdings {
    /// Its tenant held the checkpoint before the restore.
    pub(super) held: Vec<bool>,
    /// What its tenant says; 0 without one.
    pub(super) said: Vec<u8>,
}

impl Holdings {
    /// By member of `group` whose shards of a part and whose blocks are missing.
    pub(super) fn of(&self, group: &ParityGroup, part: usize) -> (Vec<bool>, Vec<bool>) {
        let is_unsound = |home: &Rank| self.said[*home] & SOUND[part] == 0;
        let shards = group.members.iter().map(is_unsound).collect();
        // What was rebuilt is as doubtful as what it was rebuilt from.
        (shards, group.members.iter().map(|home| !self.held[*home]).collect())
    }

    /// By member of `group` whose shards are missing, of any part, and whose blocks are, where a damaged block cannot be told from what is
    /// rebuilt with it.
    pub(super) fn of_apart(&self, group: &ParityGroup) -> (Vec<bool>, Vec<bool>) {
        let shards = group.members.iter().map(|home| !self.is_sound(*home)).collect();
        let lacks = |home: &Rank| self.said[*home] != SOUND[0] | SOUND[1] | BLOCKS;
        (shards, group.members.iter().map(lacks).collect())
    }

    /// By member of `group` whether it has damage in what it holds of a part, and by member whether that is in its shard.
    pub(super) fn damage_of(&self, group: &ParityGroup, part: usize) -> (Vec<bool>, Vec<bool>) {
        let lacks = |home: &Rank, bits: u8| self.said[*home] & bits != bits;
        let of = |bits: u8| group.members.iter().map(|home| lacks(home, bits)).collect();
        (of(SOUND[part] | BLOCKS), of(SOUND[part]))
    }

    /// Whether the shards of a home are sound.
    pub(super) fn is_sound(&self, home: Rank) -> bool {
        SOUND.iter().all(|bit| self.said[home] & bit != 0)
    }

    /// Homes that are lost, or have anything that is damaged as far as can be seen.
    pub(super) fn damaged(&self) -> Vec<Rank> {
        let all = SOUND[0] | SOUND[1] | BLOCKS;
        (0..self.said.len()).filter(|home| !self.held[*home] || self.said[*home] != all).collect()
    }
}

/// Takes all checksums of what this rank has of `epoch`; costs a pass over it.
pub(super) fn look_at_all(store: &Store, epoch: u32) -> u8 {
    let slots = [store.constant(), store.variable(epoch)];
    let sound = slots.iter().zip(SOUND).filter(|(slot, _)| slot.verify_shard().is_ok());
    let blocks = slots.iter().all(|slot| slot.verify_blocks().is_ok());
    sound.fold(if blocks { BLOCKS } else { 0 }, |said, (_, bit)| said | bit)
}

/// Whether each rank says yes.
pub(super) fn all(comm: &Communicator, mine: bool) -> Result<Vec<bool>, CommError> {
    Ok(say(comm, u8::from(mine))?.into_iter().map(|flag| flag == 1).collect())
}

/// What every rank says.
pub(super) fn say(comm: &Communicator, mine: u8) -> Result<Vec<u8>, CommError> {
    let mut all = vec![0; comm.size()];
    comm.allgather(&[mine], &mut all)?;
    Ok(all)
}
