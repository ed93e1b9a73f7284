//! A restore that has found damage: what does not have its owner's checksum is computed from other redundant blocks, until it has.
//!
//! A shard is known by the checksum that its owner took of it. A redundant block is known by the checksum of what arrived where it is
//! held: a bit that flips on the way there is seen only when a shard is rebuilt from it. So whose shard is not sound says so, and all ways
//! to compute it are tried, whatever the blocks look like. When all shards are right, redundancy is made again from them.

use ft_comm::Rank;

use super::Checkpointer;
use crate::candidates::Candidates;
use crate::coding::choices::Missing;
use crate::error::CheckpointError;
use crate::exchange::Circle;
use crate::layout::Group;
use crate::placement::Placement;
use crate::region::Part;

const PARTS: [Part; 2] = [Part::Constant, Part::Variable];
/// What a rank says of its memory, in bits: its shards are sound, each part; its blocks are what they were when they came.
const SOUND: [u8; 2] = [1, 2];
const BLOCKS: u8 = 4;

/// What all ranks hold, as they say.
struct Holdings<'a> {
    /// Who held the checkpoint before the restore.
    held: &'a [bool],
    said: Vec<u8>,
}

impl Holdings<'_> {
    /// By member of `group` whose shards of a part and whose blocks are missing.
    fn of(&self, group: &Group, part: usize) -> (Vec<bool>, Vec<bool>) {
        let is_unsound = |rank: &Rank| self.said[*rank] & SOUND[part] == 0;
        let shards = group.members.iter().map(is_unsound).collect();
        // What was rebuilt is as doubtful as what it was rebuilt from.
        (shards, group.members.iter().map(|rank| !self.held[*rank]).collect())
    }

    /// Ranks that are lost, or hold anything that is damaged as far as can be seen.
    fn damaged(&self) -> Vec<Rank> {
        let all = SOUND[0] | SOUND[1] | BLOCKS;
        (0..self.said.len()).filter(|rank| !self.held[*rank] || self.said[*rank] != all).collect()
    }
}

impl Checkpointer {
    /// Makes all shards of `epoch` right, and all redundancy; `held` says which ranks held it before the restore. Collective.
    pub(super) fn rebuild_otherwise(&mut self, epoch: u32, held: &[bool]) -> Result<(), CheckpointError> {
        let me = self.comm.rank();
        let mine = self.look_at_all(epoch);
        let holdings = Holdings { held, said: self.say(mine)? };
        if held[me] && holdings.damaged().contains(&me) {
            self.stats.damaged += 1;
        }
        if let Some(disk) = &self.disk {
            let is_sound = SOUND.iter().all(|bit| mine & bit != 0);
            return if is_sound { Ok(()) } else { disk.read_back(epoch, &mut self.current.store) };
        }
        let found = match self.choices(&holdings) {
            Some(choices) if self.current.home.is_some() => self.find_shards(epoch, &holdings, choices)?,
            _ => None,
        };
        let Some(found) = found else {
            self.current.layout.survives(&holdings.damaged())?;
            let unsound = |rank: &Rank| SOUND.iter().any(|bit| holdings.said[*rank] & bit == 0);
            return Err(CheckpointError::Unsound { ranks: (0..held.len()).filter(unsound).collect() });
        };
        let Placement { store, home, .. } = &mut self.current;
        let Some((group, code, member)) = &*home else { return Ok(()) };
        let circle = Circle { comm: &self.comm, group, code: &**code, me: *member, clock: self.clock };
        let mut had_damage = false;
        for (part, found) in PARTS.into_iter().zip(&found) {
            let slot = store.slot_mut(part, epoch);
            if let Some(shard) = found.as_ref().and_then(Candidates::found) {
                slot.memory_mut().0.copy_from_slice(shard);
            }
            had_damage |= circle.encode_again(slot)?;
        }
        self.stats.damaged += u64::from(had_damage && held[me] && !holdings.damaged().contains(&me));
        Ok(())
    }

    /// Takes all checksums of what this rank has; costs a pass over it.
    fn look_at_all(&self, epoch: u32) -> u8 {
        let slots = [self.current.store.constant(), self.current.store.variable(epoch)];
        let sound = slots.iter().zip(SOUND).filter(|(slot, _)| slot.verify_shard().is_ok());
        let blocks = slots.iter().all(|slot| slot.verify_blocks().is_ok());
        sound.fold(if blocks { BLOCKS } else { 0 }, |said, (_, bit)| said | bit)
    }

    /// How many selections of redundant blocks are to be tried; none if something cannot be decoded. The same on all ranks.
    fn choices(&self, holdings: &Holdings<'_>) -> Option<usize> {
        let groups = self.current.layout.groups.iter();
        let of = |(group, part): (&Group, usize)| {
            let (shards, blocks) = holdings.of(group, part);
            Missing { shards: &shards, blocks: &blocks }.choices(group)
        };
        let mut all = groups.flat_map(|group| [(group, 0), (group, 1)]).map(of);
        all.try_fold(0, |most, choices| Some(most.max(choices?)))
    }

    /// Tries selections until all shards are found; gives the own ones, or nothing if they cannot be found. Collective.
    fn find_shards(
        &mut self,
        epoch: u32,
        holdings: &Holdings<'_>,
        choices: usize,
    ) -> Result<Option<[Option<Candidates>; 2]>, CheckpointError> {
        let mut found = [None, None];
        for choice in 0..choices {
            let Placement { store, home, .. } = &mut self.current;
            let mut fits = true;
            if let Some((group, code, me)) = &*home {
                let circle = Circle { comm: &self.comm, group, code: &**code, me: *me, clock: self.clock };
                for (at, part) in PARTS.into_iter().enumerate() {
                    let (shards, blocks) = holdings.of(group, at);
                    let missing = Missing { shards: &shards, blocks: &blocks };
                    let slot = store.slot_mut(part, epoch);
                    if found[at].is_none() && shards[*me] {
                        found[at] = Some(circle.own_candidates(slot)?);
                    }
                    fits &= circle.try_choice(slot, missing, choice, found[at].as_mut())?;
                }
            }
            if self.all(fits)?.iter().all(|fits| *fits) {
                return Ok(Some(found));
            }
        }
        Ok((choices == 0).then_some(found)) // nothing is missing
    }
}
