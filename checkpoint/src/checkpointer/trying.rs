//! What is lost or damaged is computed from one selection of redundant blocks after the other, until it has its owner's checksum: in a
//! restore that has found damage, and where ranks are missing.
//!
//! A shard is known by the checksum that its owner took of it. A redundant block is known by the checksum of what arrived where it is
//! held: a bit that flips on the way there is seen only when a shard is rebuilt from it. So whose shard is not sound says so, and all ways
//! to compute it are tried, whatever the blocks look like. When all shards are right, redundancy is made again from them.

use ft_comm::Rank;

use super::Checkpointer;
use super::holdings::{Holdings, all, look_at_all, say};
use crate::candidates::Candidates;
use crate::coding::choices::Missing;
use crate::error::CheckpointError;
use crate::exchange::GroupComm;
use crate::layout::ParityGroup;
use crate::placement::Placement;
use crate::region::StatePart;
use crate::store::ShardMeta;

/// What was found at a rank of each part: of these members.
pub(super) type Found = [Vec<(usize, Candidates)>; 2];

impl Checkpointer {
    /// Makes all shards of `epoch` right, and all redundancy; `held` says which ranks held it before the restore. Collective.
    pub(super) fn rebuild_otherwise(&mut self, epoch: u32, held: &[bool]) -> Result<(), CheckpointError> {
        let me = self.comm.rank();
        let mine = look_at_all(&self.places.current.store, epoch);
        let holdings = Holdings { held: held.to_vec(), said: say(&self.comm, mine)? };
        if held[me] && holdings.damaged().contains(&me) {
            self.stats.damaged += 1;
        }
        let had_damage = self.keeper.rebuild_otherwise(&mut self.places.current, epoch, &holdings)?;
        self.stats.damaged += u64::from(had_damage && held[me] && !holdings.damaged().contains(&me));
        Ok(())
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
