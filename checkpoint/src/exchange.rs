//! Moves the blocks of one slot between the members of a group: encoding after the copy, rebuilding after a
//! loss. Here [`crate::coding`] meets messages.

use std::cell::RefCell;
use std::ops::{AddAssign, Range};
use std::rc::Rc;
use std::time::Duration;

use ft_comm::time::Clock;
use ft_comm::{Communicator, PlanRequest, Schedule};
use ft_encoders::{Code, Mirror, ReedSolomon, Xor};

use crate::coding::{Digests, Recipe, View, Wanted, encoding, perform, rebuilding};
use crate::error::CheckpointError;
use crate::layout::{CodeSpec, Group};
use crate::store::{ShardMeta, Slot};

mod recovering;
mod trying;

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

/// A part of the work, of so many; they are equal but for rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Round {
    pub(crate) number: usize,
    pub(crate) of: usize,
}

/// What the computations of schedules leave behind.
#[derive(Debug, Default)]
pub(crate) struct Account {
    /// Time spent in them.
    pub(crate) computing: Duration,
    /// Bytes sent between them.
    pub(crate) sent: u64,
    digests: Digests,
}

/// A schedule of `recipe`, whose computations write into `account`.
fn schedule(recipe: Recipe, account: &Rc<RefCell<Account>>, clock: Clock) -> Schedule {
    let (account, works) = (account.clone(), recipe.works);
    Schedule::new(recipe.steps, move |number, spaces| {
        let (started, account) = (clock.now(), &mut *account.borrow_mut());
        perform(&works[number], spaces, &mut account.digests);
        account.computing += clock.now().since(started);
    })
}

impl Account {
    /// Seals `slot` with the checksums that are known by now, and forgets them.
    pub(crate) fn seal(
        &mut self,
        slot: &mut Slot,
        group: &Group,
        metas: &[ShardMeta],
    ) -> Result<(), CheckpointError> {
        let digests = std::mem::take(&mut self.digests);
        let known = |stripe: usize| {
            let original = group.copied(stripe).and_then(|member| metas.get(member)).map(|meta| meta.crc);
            original.or_else(|| digests.of(stripe))
        };
        Ok(slot.seal_with(metas, known)?)
    }
}

/// Where each redundant block that a member holds is in its slot.
fn places(view: View<'_>, slot: &Slot) -> impl Fn(usize) -> Range<usize> + use<> {
    let places: Vec<_> = view.held().map(|(stripe, _)| (stripe, slot.block_range(stripe))).collect();
    move |stripe| {
        let found = places.iter().find(|(other, _)| *other == stripe);
        found.and_then(|(_, range)| range.clone()).expect("it is held")
    }
}

fn lens(metas: &[ShardMeta]) -> Vec<usize> {
    metas.iter().map(|meta| meta.len as usize).collect()
}

impl Circle<'_> {
    fn view<'b>(&'b self, lens: &'b [usize]) -> View<'b> {
        View::new(self.group, self.code, self.me, lens)
    }

    /// Starts to fill the redundant blocks that this member holds from the shards of all members, whose lengths are in
    /// `metas`; the own shard is in the slot, whose buffers are away until it is done. Collective over all groups, and in as many
    /// rounds on all of them; the last one ends with what [`Account::seal`] needs.
    ///
    /// In all rounds together every member sends its shard once, and as much as it holds for others `m - 1` times more.
    pub(crate) fn start_encoding(
        &self,
        slot: &mut Slot,
        metas: &[ShardMeta],
        account: &Rc<RefCell<Account>>,
        Round { number, of }: Round,
    ) -> Result<PlanRequest<u8>, CheckpointError> {
        let lens = lens(metas);
        let view = self.view(&lens);
        if number == 0 {
            slot.begin_blocks(view.held());
        }
        let block = |stripe: usize| slot.block_range(stripe).expect("begun in the first round");
        let at = |number: usize| view.segments() * number / of;
        let recipe = encoding(view, block, at(number)..at(number + 1));
        account.borrow_mut().sent += recipe.bytes_sent();
        let schedule = schedule(recipe, account, self.clock);
        let (shard, redundancy) = slot.take();
        Ok(self.comm.start_schedule(&schedule, shard, redundancy)?)
    }

    /// Rebuilds the shards and blocks of the members with `lost[member]` from those of the others, with nobody lost nothing. A lost
    /// member's slot is sealed then; nothing changes at the others. Collective over all groups.
    ///
    /// The group must be decodable. Every source of a stripe sends as much as is lost of it, once.
    pub(crate) fn rebuild(
        &self,
        slot: &mut Slot,
        metas: &[ShardMeta],
        lost: &[bool],
    ) -> Result<Rebuilt, CheckpointError> {
        let (lens, account) = (lens(metas), Rc::new(RefCell::new(Account::default())));
        let view = self.view(&lens);
        let is_lost = lost[self.me];
        if is_lost {
            slot.begin_shard(lens.get(self.me).copied().unwrap_or(0));
            slot.begin_blocks(view.held());
        }
        let block = &places(view, slot);
        let started = self.clock.now();
        let recipe = rebuilding(view, lost, Wanted::Shards, block)?;
        let (shard, redundancy) = slot.memory_mut();
        let (input, buffer) = if is_lost { (&[][..], shard) } else { (&*shard, redundancy) };
        self.comm.run_schedule(&schedule(recipe, &account, self.clock), input, buffer)?;
        let halfway = self.clock.now();
        let recipe = rebuilding(view, lost, Wanted::Blocks, block)?;
        let (shard, redundancy) = slot.memory_mut();
        self.comm.run_schedule(&schedule(recipe, &account, self.clock), shard, redundancy)?;
        if is_lost {
            account.borrow_mut().seal(slot, self.group, metas)?;
        }
        Ok(Rebuilt { shards: halfway.since(started), blocks: self.clock.now().since(halfway) })
    }
}
