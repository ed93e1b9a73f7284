//! Moves the blocks of one slot between the members of a group: encoding after the copy, rebuilding after a
//! loss. The only place where codes meet messages.

use std::ops::{AddAssign, Range};
use std::time::Duration;

use ft_comm::time::Clock;
use ft_comm::{Communicator, Part, Rank, Tag};
use ft_encoders::{Code, Mirror, Plan, ReedSolomon, Xor};

use crate::error::CheckpointError;
use crate::layout::{CodeSpec, Group};
use crate::store::{ShardMeta, Slot};

/// The code of a group.
pub(crate) fn code(spec: CodeSpec) -> Result<Box<dyn Code>, CheckpointError> {
    Ok(match spec {
        CodeSpec::Mirror { copies } => Box::new(Mirror::new(copies)?),
        CodeSpec::Xor { data } => Box::new(Xor::new(data)?),
        CodeSpec::Rs { data, parity } => Box::new(ReedSolomon::new(data, parity)?),
    })
}

/// One member's view of its group.
pub(crate) struct Circle<'a> {
    pub(crate) comm: &'a Communicator,
    pub(crate) group: &'a Group,
    pub(crate) code: &'a dyn Code,
    pub(crate) me: usize,
    pub(crate) clock: Clock,
}

/// What a rebuild has spent on lost shards and on lost redundant blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rebuilt {
    pub(crate) shards: Duration,
    pub(crate) blocks: Duration,
}

impl AddAssign for Rebuilt {
    fn add_assign(&mut self, other: Self) {
        self.shards += other.shards;
        self.blocks += other.blocks;
    }
}

impl Circle<'_> {
    /// Fills the redundant blocks that this member holds from the shards of all members, whose lengths are in
    /// `metas`; the own shard is in the slot.
    ///
    /// In round `d` every member sends the chunks that member + `d` holds parity for, and takes those of
    /// member - `d`: `size - 1` rounds, `m` times the shard each way for a code of `m` parity blocks. Copies come straight to
    /// where they belong. Gives the time spent in computing.
    pub(crate) fn encode(
        &self,
        slot: &mut Slot,
        metas: &[ShardMeta],
        scratch: &mut Vec<u8>,
    ) -> Result<Duration, CheckpointError> {
        let mut computing = Duration::ZERO;
        let lens: Vec<usize> = metas.iter().map(|meta| meta.len as usize).collect();
        for (index, stripe) in self.group.stripes.iter().enumerate() {
            if stripe.parity.contains(&self.me) {
                let len = self.group.block_len(index, &lens);
                if self.is_copied(index) {
                    slot.begin_block(index, len)
                } else {
                    slot.block_mut(index, len)
                };
            }
        }
        let size = self.group.members.len();
        for distance in 1..size {
            let (to, from) = ((self.me + distance) % size, (self.me + size - distance) % size);
            let chunk_of = |member: usize, chunk: usize| self.group.chunk_range(lens[member], chunk);
            let sends = self.parts(self.me, to, to, chunk_of);
            let mut end = 0;
            let recvs = self.parts(from, self.me, from, |member, chunk| {
                let start = end;
                end += chunk_of(member, chunk).len();
                start..end
            });
            if let [part] = &recvs[..]
                && self.is_copied(part.tag as usize)
                && let Some((shard, block)) = slot.shard_and_block_mut(part.tag as usize)
            {
                self.comm.exchange(shard, &sends, block, &recvs)?;
                continue;
            }
            scratch.resize(end.max(scratch.len()), 0);
            self.comm.exchange(slot.shard(), &sends, &mut scratch[..end], &recvs)?;
            let received = self.clock.now();
            for part in &recvs {
                let stripe = &self.group.stripes[part.tag as usize];
                let position = stripe.data.iter().position(|(member, _)| *member == from).expect("it sent");
                let block = stripe.parity.iter().position(|holder| *holder == self.me).expect("I hold it");
                let into = slot.begun_block_mut(part.tag as usize).expect("begun above");
                self.code.accumulate(block, position, &scratch[part.range.clone()], into)?;
            }
            computing += self.clock.now().since(received);
        }
        Ok(computing)
    }

    /// Whether the redundant blocks of `stripe` are copies of its only chunk, as long as it is.
    fn is_copied(&self, stripe: usize) -> bool {
        matches!(self.group.code, CodeSpec::Mirror { .. }) && self.group.stripes[stripe].data.len() == 1
    }

    /// The messages from member `data` to member `holder`, seen by the one whose `peer` the other is: one for
    /// each stripe to which the one gives a chunk and of which the other holds parity, tagged with the stripe.
    fn parts(
        &self,
        data: usize,
        holder: usize,
        peer: usize,
        mut range: impl FnMut(usize, usize) -> Range<usize>,
    ) -> Vec<Part> {
        let mut parts = Vec::new();
        for (index, stripe) in self.group.stripes.iter().enumerate() {
            let chunk = stripe.data.iter().find(|(member, _)| *member == data);
            if let (Some((member, chunk)), true) = (chunk, stripe.parity.contains(&holder)) {
                let tag = u32::try_from(index).expect("stripes are few");
                parts.push(Part { peer: self.group.members[peer], tag, range: range(*member, *chunk) });
            }
        }
        parts
    }

    /// Rebuilds the shards and blocks of the members with `lost[member]` from those of the others. A lost
    /// member decodes for itself, stripe by stripe: of each stripe that it takes part in it gets the blocks that its
    /// own is computed from. Nothing changes at the others.
    ///
    /// The group must be decodable. Costs a lost member `k` times the length of its shard in, for a code of `k`
    /// data blocks. A block that is a copy, and the first of a sum, comes straight to where it belongs.
    pub(crate) fn rebuild(
        &self,
        slot: &mut Slot,
        metas: &[ShardMeta],
        lost: &[bool],
        scratch: &mut Vec<u8>,
    ) -> Result<Rebuilt, CheckpointError> {
        let mut spent = Rebuilt::default();
        let lens: Vec<usize> = metas.iter().map(|meta| meta.len as usize).collect();
        if lost[self.me] && self.me < lens.len() {
            slot.begin_shard(lens[self.me]);
        }
        let at_home = |member: usize| self.group.members[member];
        for target in (0..lost.len()).filter(|member| lost[*member]) {
            for index in 0..self.group.stripes.len() {
                let Some(wanted) = self.wanted(index, &lens, lost, target)? else { continue };
                let started = self.clock.now();
                if self.me != target {
                    self.send(slot, &wanted, at_home(target))?;
                } else if let Some((member, chunk)) = self.group.stripes[index].data.get(wanted.position) {
                    let range = self.group.chunk_range(lens[*member], *chunk);
                    self.decode(&wanted, at_home, None, &mut slot.shard_mut()[range], scratch)?;
                } else {
                    let block = slot.begin_block(index, self.group.block_len(index, &lens));
                    self.decode(&wanted, at_home, None, block, scratch)?;
                }
                let time = self.clock.now().since(started);
                let is_data = wanted.position < self.group.stripes[index].data.len();
                *(if is_data { &mut spent.shards } else { &mut spent.blocks }) += time;
            }
        }
        Ok(spent)
    }

    /// Decodes the shard of the lost member `target` at the rank that speaks for it, `me` being this one's; empty at all
    /// others, which send what it takes. `speakers` gives the rank of each member that is there. All members of the
    /// group call it, for one target after the other, and nothing changes in their slots.
    pub(crate) fn recover(
        &self,
        slot: &Slot,
        metas: &[ShardMeta],
        lost: &[bool],
        target: usize,
        speakers: &[Option<usize>],
        me: usize,
    ) -> Result<Vec<u8>, CheckpointError> {
        let speaks_for =
            |member: usize| speakers[member].expect("somebody speaks for every member with data");
        let lens: Vec<usize> = metas.iter().map(|meta| meta.len as usize).collect();
        let is_mine = speaks_for(target) == me;
        let (mut shard, mut scratch) = (if is_mine { vec![0; lens[target]] } else { vec![] }, vec![]);
        for (index, stripe) in self.group.stripes.iter().enumerate() {
            let Some((_, chunk)) = stripe.data.iter().find(|(member, _)| *member == target) else { continue };
            let Some(wanted) = self.wanted(index, &lens, lost, target)? else { continue };
            if is_mine {
                let range = self.group.chunk_range(lens[target], *chunk);
                self.decode(&wanted, speaks_for, Some(slot), &mut shard[range], &mut scratch)?;
            } else {
                self.send(slot, &wanted, speaks_for(target))?;
            }
        }
        Ok(shard)
    }

    /// The block of stripe `index` that belongs to member `target`, if there is one, and how it is computed.
    fn wanted(
        &self,
        index: usize,
        lens: &[usize],
        lost: &[bool],
        target: usize,
    ) -> Result<Option<Wanted>, CheckpointError> {
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
        let present: Vec<bool> = sources.iter().map(|source| !lost[source.member]).collect();
        Ok(Some(Wanted { stripe: index, position, plan: self.code.plan(&present, position)?, sources }))
    }

    /// Sends the block of this member, if it is a source of `wanted`.
    fn send(&self, slot: &Slot, wanted: &Wanted, to: Rank) -> Result<(), CheckpointError> {
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
        wanted: &Wanted,
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
struct Wanted {
    stripe: usize,
    /// Its index in the stripe.
    position: usize,
    plan: Plan,
    /// All blocks of the stripe.
    sources: Vec<Source>,
}

impl Wanted {
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
