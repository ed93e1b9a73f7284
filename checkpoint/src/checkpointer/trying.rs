//! What is lost or damaged is computed from one selection of redundant blocks after the other, until it has its owner's checksum: in a
//! restore that has found damage, and where ranks are missing.
//!
//! A shard is known by the checksum that its owner took of it. A redundant block is known by the checksum of what arrived where it is
//! held: a bit that flips on the way there is seen only when a shard is rebuilt from it. So whose shard is not sound says so, and all ways
//! to compute it are tried, whatever the blocks look like. When all shards are right, redundancy is made again from them.

use ft_comm::{CommError, Communicator, Rank};

use super::Checkpointer;
use crate::candidates::Candidates;
use crate::coding::choices::Missing;
use crate::error::CheckpointError;
use crate::exchange::GroupComm;
use crate::layout::ParityGroup;
use crate::placement::Placement;
use crate::region::StatePart;
use crate::store::ShardMeta;

/// What a rank says of its memory, in bits: its shards are sound, each part; its blocks are what they were when they came.
const SOUND: [u8; 2] = [1, 2];
const BLOCKS: u8 = 4;

/// What was found at a rank of each part: of these members.
pub(super) type Found = [Vec<(usize, Candidates)>; 2];

/// What there is of a checkpoint, by home.
pub(super) struct Holdings {
    /// Its tenant held the checkpoint before the restore.
    pub(super) held: Vec<bool>,
    /// What its tenant says; 0 without one.
    pub(super) said: Vec<u8>,
}

impl Holdings {
    /// By member of `group` whose shards of a part and whose blocks are missing.
    fn of(&self, group: &ParityGroup, part: usize) -> (Vec<bool>, Vec<bool>) {
        let is_unsound = |home: &Rank| self.said[*home] & SOUND[part] == 0;
        let shards = group.members.iter().map(is_unsound).collect();
        // What was rebuilt is as doubtful as what it was rebuilt from.
        (shards, group.members.iter().map(|home| !self.held[*home]).collect())
    }

    /// Whether the shards of a home are sound.
    pub(super) fn is_sound(&self, home: Rank) -> bool {
        SOUND.iter().all(|bit| self.said[home] & bit != 0)
    }

    /// Homes that are lost, or have anything that is damaged as far as can be seen.
    fn damaged(&self) -> Vec<Rank> {
        let all = SOUND[0] | SOUND[1] | BLOCKS;
        (0..self.said.len()).filter(|home| !self.held[*home] || self.said[*home] != all).collect()
    }
}

impl Checkpointer {
    /// Makes all shards of `epoch` right, and all redundancy; `held` says which ranks held it before the restore. Collective.
    pub(super) fn rebuild_otherwise(&mut self, epoch: u32, held: &[bool]) -> Result<(), CheckpointError> {
        let me = self.comm.rank();
        let mine = self.look_at_all(epoch);
        let holdings = Holdings { held: held.to_vec(), said: say(&self.comm, mine)? };
        if held[me] && holdings.damaged().contains(&me) {
            self.stats.damaged += 1;
        }
        let had_damage = self.keeper.rebuild_otherwise(&mut self.current, epoch, &holdings)?;
        self.stats.damaged += u64::from(had_damage && held[me] && !holdings.damaged().contains(&me));
        Ok(())
    }

    /// Takes all checksums of what this rank has of `epoch`; costs a pass over it.
    pub(super) fn look_at_all(&self, epoch: u32) -> u8 {
        let slots = [self.current.store.constant(), self.current.store.variable(epoch)];
        let sound = slots.iter().zip(SOUND).filter(|(slot, _)| slot.verify_shard().is_ok());
        let blocks = slots.iter().all(|slot| slot.verify_blocks().is_ok());
        sound.fold(if blocks { BLOCKS } else { 0 }, |said, (_, bit)| said | bit)
    }
}

impl Placement {
    /// How many selections of redundant blocks are to be tried; none if something cannot be decoded. The same on all ranks.
    pub(super) fn choices(&self, holdings: &Holdings) -> Option<usize> {
        let groups = self.layout.groups.iter();
        let of = |(group, part): (&ParityGroup, usize)| {
            let (shards, blocks) = holdings.of(group, part);
            Missing { shards: &shards, blocks: &blocks }.choices(group)
        };
        let mut all = groups.flat_map(|group| [(group, 0), (group, 1)]).map(of);
        all.try_fold(0, |most, choices| Some(most.max(choices?)))
    }

    /// Tries selections of redundant blocks until all missing shards are found, each at the rank that speaks for its member in
    /// `circle`; gives those that are found here. `metas` are those of each part. Collective.
    pub(super) fn find_shards(
        &mut self,
        epoch: u32,
        group_comm: &GroupComm,
        holdings: &Holdings,
        metas: &[Vec<ShardMeta>; 2],
    ) -> Result<Found, CheckpointError> {
        let Some(GroupComm { group, .. }) = &self.home else {
            return Err(self.beyond_help(holdings));
        };
        let missing = [0, 1].map(|part| holdings.of(group, part));
        let mut found =
            [group_comm.wanted(&metas[0], &missing[0].0)?, group_comm.wanted(&metas[1], &missing[1].0)?];
        let choices = self.choices(holdings);
        for choice in 0..choices.unwrap_or(0) {
            let mut fits = true;
            for (at, part) in StatePart::BOTH.into_iter().enumerate() {
                let (shards, blocks) = &missing[at];
                let slot = self.store.slot_mut(part, epoch);
                let missing = Missing { shards, blocks };
                fits &= group_comm.try_choice(slot, &metas[at], missing, choice, &mut found[at])?;
            }
            if all(&group_comm.comm, fits)?.iter().all(|fits| *fits) {
                return Ok(found);
            }
        }
        match choices {
            Some(0) => Ok(found), // nothing is missing
            _ => Err(self.beyond_help(holdings)),
        }
    }

    /// Why shards cannot be found.
    pub(super) fn beyond_help(&self, holdings: &Holdings) -> CheckpointError {
        let unsound = |home: &Rank| !holdings.is_sound(*home);
        match self.layout.survives(&holdings.damaged()) {
            Err(beyond) => beyond.into(),
            Ok(()) => CheckpointError::Unsound { ranks: (0..holdings.said.len()).filter(unsound).collect() },
        }
    }
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
