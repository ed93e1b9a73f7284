//! The shard of a lost member at a rank that has not taken its place: survivors that share its state.

use std::ops::Range;

use ft_comm::{Rank, Tag};
use ft_encoders::Plan;

use super::{Circle, lens};
use crate::coding::choices::Missing;
use crate::error::CheckpointError;
use crate::store::{ShardMeta, Slot};

impl Circle<'_> {
    /// Decodes the shard of the lost member `target` into `shard` at the rank that speaks for it, `me` being this one's, by the
    /// `choice`-th selection of redundant blocks; what has fewer stays as it is. All others send what it takes. `speakers` gives
    /// the rank of each member that is there. All members of the group call it, for one target after the other, and nothing
    /// changes in their slots.
    #[expect(clippy::too_many_arguments, reason = "whose shard, from what, where, and between whom")]
    pub(crate) fn recover(
        &self,
        slot: &Slot,
        metas: &[ShardMeta],
        lost: &[bool],
        target: usize,
        choice: usize,
        speakers: &[Option<usize>],
        me: usize,
        shard: &mut [u8],
    ) -> Result<(), CheckpointError> {
        let speaks_for =
            |member: usize| speakers[member].expect("somebody speaks for every member with data");
        let lens = lens(metas);
        let is_mine = speaks_for(target) == me;
        let mut scratch = vec![];
        for (index, stripe) in self.group.stripes.iter().enumerate() {
            let Some((_, chunk)) = stripe.data.iter().find(|(member, _)| *member == target) else { continue };
            let Some(wanted) = self.wanted(index, &lens, lost, target, choice)? else { continue };
            if is_mine {
                let range = self.group.chunk_range(lens[target], *chunk);
                self.decode(&wanted, speaks_for, Some(slot), &mut shard[range], &mut scratch)?;
            } else {
                self.send(slot, &wanted, speaks_for(target))?;
            }
        }
        Ok(())
    }

    /// The block of stripe `index` that belongs to member `target`, if there is one, and how it is computed by this choice.
    fn wanted(
        &self,
        index: usize,
        lens: &[usize],
        lost: &[bool],
        target: usize,
        choice: usize,
    ) -> Result<Option<Lost>, CheckpointError> {
        let stripe = &self.group.stripes[index];
        let data = stripe.data.iter().map(|(member, chunk)| {
            let range = self.group.chunk_range(lens[*member], *chunk);
            Source { member: *member, len: range.len(), chunk: Some(range) }
        });
        let len = self.group.block_len(index, lens);
        let parity = stripe.parity.iter().map(|member| Source { member: *member, len, chunk: None });
        let sources: Vec<Source> = data.chain(parity).collect();
        let Some(position) = sources.iter().position(|source| source.member == target) else {
            return Ok(None);
        };
        let missing = Missing { shards: lost, blocks: lost };
        let Some(present) = missing.present(stripe, choice) else { return Ok(None) };
        Ok(Some(Lost { stripe: index, plan: self.code.plan(&present, position)?, sources }))
    }

    /// Sends the block of this member, if it is a source of `wanted`.
    fn send(&self, slot: &Slot, wanted: &Lost, to: Rank) -> Result<(), CheckpointError> {
        let mut used = wanted.plan.sources().map(|(position, _)| &wanted.sources[position]);
        match used.find(|source| source.member == self.me) {
            Some(source) => Ok(self.comm.send(source.of(slot, wanted.stripe), to, wanted.tag())?),
            None => Ok(()),
        }
    }

    /// Gets the sources of `wanted` from the ranks where their members `live`, and fills `into` with the beginning of the
    /// block. Sources of this member are in `own`.
    fn decode(
        &self,
        wanted: &Lost,
        live: impl Fn(usize) -> Rank,
        own: Option<&Slot>,
        into: &mut [u8],
        scratch: &mut Vec<u8>,
    ) -> Result<(), CheckpointError> {
        // The first source has nothing before it, and nothing of it lies beyond.
        let mut is_empty = true;
        for (at, (position, weight)) in wanted.plan.sources().enumerate() {
            let source = &wanted.sources[position];
            let some = source.len.min(into.len());
            let mine = own.filter(|_| source.member == self.me);
            if let (true, 1, None) = (is_empty && source.len <= into.len(), weight, mine) {
                self.comm.recv(&mut into[..some], live(source.member), wanted.tag())?;
                into[some..].fill(0);
            } else {
                if is_empty {
                    into.fill(0);
                }
                let bytes = match mine {
                    Some(slot) => source.of(slot, wanted.stripe),
                    None => {
                        scratch.resize(source.len.max(scratch.len()), 0);
                        self.comm.recv(&mut scratch[..source.len], live(source.member), wanted.tag())?;
                        &scratch[..source.len]
                    }
                };
                wanted.plan.add(at, &bytes[..some], into)?;
            }
            is_empty = false;
        }
        if is_empty {
            into.fill(0);
        }
        Ok(())
    }
}

/// A block that is to be computed.
struct Lost {
    stripe: usize,
    plan: Plan,
    /// All blocks of the stripe.
    sources: Vec<Source>,
}

impl Lost {
    fn tag(&self) -> Tag {
        Tag::try_from(self.stripe).expect("stripes are few")
    }
}

/// A block of a stripe and who has it.
struct Source {
    member: usize,
    len: usize,
    /// Where in the member's shard it is; none of a redundant block.
    chunk: Option<Range<usize>>,
}

impl Source {
    fn of<'a>(&self, slot: &'a Slot, stripe: usize) -> &'a [u8] {
        match &self.chunk {
            Some(chunk) => &slot.shard()[chunk.clone()],
            None => slot.block(stripe).unwrap_or_default(),
        }
    }
}
