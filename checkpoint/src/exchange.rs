//! Moves the blocks of one slot between the members of a group: encoding after the copy, rebuilding after a
//! loss. The only place where codes meet messages.

use std::ops::Range;
use std::time::Duration;

use ft_comm::time::Clock;
use ft_comm::{Communicator, Part};
use ft_encoders::{Code, Mirror, ReedSolomon, Xor};

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

impl Circle<'_> {
    /// Fills the redundant blocks that this member holds from the shards of all members, whose lengths are in
    /// `metas`; the own shard is in the slot.
    ///
    /// In round `d` every member sends the chunks that member + `d` holds parity for, and takes those of
    /// member - `d`: `size - 1` rounds, `m` times the shard each way for a code of `m` parity blocks. Gives the time
    /// spent in computing.
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
                slot.block_mut(index, self.group.block_len(index, &lens));
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
    /// member decodes for itself, stripe by stripe: of each stripe that it takes part in it gets as many blocks
    /// as the code has data blocks, and computes its own. Nothing changes at the others.
    ///
    /// The group must be decodable. Costs a lost member `k` times the length of its shard in, for a code of `k`
    /// data blocks.
    pub(crate) fn rebuild(
        &self,
        slot: &mut Slot,
        metas: &[ShardMeta],
        lost: &[bool],
    ) -> Result<Rebuilt, CheckpointError> {
        let mut spent = Rebuilt::default();
        let lens: Vec<usize> = metas.iter().map(|meta| meta.len as usize).collect();
        if lost[self.me] && self.me < lens.len() {
            let shard = slot.shard_mut();
            shard.clear();
            shard.resize(lens[self.me], 0);
        }
        for target in (0..lost.len()).filter(|member| lost[*member]) {
            for (index, stripe) in self.group.stripes.iter().enumerate() {
                let members: Vec<usize> = stripe
                    .data
                    .iter()
                    .map(|(member, _)| *member)
                    .chain(stripe.parity.iter().copied())
                    .collect();
                let Some(wanted) = members.iter().position(|member| *member == target) else { continue };
                let sources: Vec<usize> =
                    (0..members.len()).filter(|at| !lost[members[*at]]).take(stripe.data.len()).collect();
                let tag = u32::try_from(index).expect("stripes are few");
                let started = self.clock.now();
                if self.me == target {
                    self.decode(slot, &lens, index, &members, &sources, wanted)?;
                } else if let Some(at) = sources.iter().find(|at| members[**at] == self.me) {
                    let block = match stripe.data.get(*at) {
                        Some((member, chunk)) => &slot.shard()[self.group.chunk_range(lens[*member], *chunk)],
                        None => slot.block(index).unwrap_or_default(),
                    };
                    self.comm.send(block, self.group.members[target], tag)?;
                }
                let time = self.clock.now().since(started);
                *(if wanted < stripe.data.len() { &mut spent.shards } else { &mut spent.blocks }) += time;
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
        let speaker = speakers[target].expect("somebody speaks for a lost member");
        let lens: Vec<usize> = metas.iter().map(|meta| meta.len as usize).collect();
        let mut shard = if speaker == me { vec![0; lens[target]] } else { vec![] };
        for (index, stripe) in self.group.stripes.iter().enumerate() {
            let members: Vec<usize> =
                stripe.data.iter().map(|(member, _)| *member).chain(stripe.parity.iter().copied()).collect();
            let Some(wanted) = stripe.data.iter().position(|(member, _)| *member == target) else { continue };
            let sources: Vec<usize> =
                (0..members.len()).filter(|at| !lost[members[*at]]).take(stripe.data.len()).collect();
            let tag = u32::try_from(index).expect("stripes are few");
            let own = |at: usize| match stripe.data.get(at) {
                Some((member, chunk)) => &slot.shard()[self.group.chunk_range(lens[*member], *chunk)],
                None => slot.block(index).unwrap_or_default(),
            };
            if speaker != me {
                if let Some(at) = sources.iter().find(|at| members[**at] == self.me) {
                    self.comm.send(own(*at), speaker, tag)?;
                }
                continue;
            }
            let length = self.group.block_len(index, &lens);
            let mut blocks: Vec<Option<Vec<u8>>> = vec![None; members.len()];
            for at in sources {
                let mut block = vec![0; length];
                if members[at] == self.me {
                    block[..own(at).len()].copy_from_slice(own(at));
                } else {
                    let from = speakers[members[at]].expect("whole members are there");
                    self.comm.recv(&mut block, from, tag)?;
                }
                blocks[at] = Some(block);
            }
            self.code.recover(&mut blocks)?;
            let block = blocks[wanted].take().unwrap_or_default();
            let range = self.group.chunk_range(lens[target], stripe.data[wanted].1);
            let count = range.len();
            shard[range].copy_from_slice(&block[..count]);
        }
        Ok(shard)
    }

    /// Gets the blocks `sources` of stripe `index` and computes block `wanted`, which is this member's.
    fn decode(
        &self,
        slot: &mut Slot,
        lens: &[usize],
        index: usize,
        members: &[usize],
        sources: &[usize],
        wanted: usize,
    ) -> Result<(), CheckpointError> {
        let stripe = &self.group.stripes[index];
        let length = self.group.block_len(index, lens);
        let tag = u32::try_from(index).expect("stripes are few");
        let mut blocks: Vec<Option<Vec<u8>>> = vec![None; members.len()];
        for at in sources {
            // A chunk may be shorter than the block: it counts as padded with zeros.
            let mut block = vec![0; length];
            self.comm.recv(&mut block, self.group.members[members[*at]], tag)?;
            blocks[*at] = Some(block);
        }
        self.code.recover(&mut blocks)?;
        let block = blocks[wanted].take().unwrap_or_default();
        match stripe.data.get(wanted) {
            Some((member, chunk)) => {
                let range = self.group.chunk_range(lens[*member], *chunk);
                let bytes = &block[..range.len()];
                slot.shard_mut()[range].copy_from_slice(bytes);
            }
            None => slot.block_mut(index, length).copy_from_slice(&block),
        }
        Ok(())
    }
}
