//! Moves the blocks of one slot between the members of a group: encoding after the copy, rebuilding after a
//! loss. Here [`crate::coding`] meets messages.

use std::cell::RefCell;
use std::ops::{AddAssign, Range};
use std::rc::Rc;
use std::time::Duration;

use ft_comm::time::Clock;
use ft_comm::{Communicator, Rank, Schedule, ScheduleRequest, Tag};
use ft_encoders::{Checksum, Code, Mirror, ReedSolomon, Xor};

use crate::buffer::Buffer;
use crate::changes::Pages;
use crate::coding::{Arithmetic, Digests, Recipe, View, Wanted, encoding, perform, rebuilding, updating};
use crate::error::CheckpointError;
use crate::layout::{CodeSpec, ParityGroup};
use crate::store::{ShardMeta, Slot, Store};

pub(crate) mod apart;
mod trying;

/// Tag of metadata for members that are rebuilt.
const METAS: Tag = u32::MAX;

/// The code of a group, for all that is exact.
pub(crate) fn code(spec: CodeSpec) -> Result<Rc<dyn Code>, CheckpointError> {
    Ok(match spec {
        CodeSpec::Mirror { copies } => Rc::new(Mirror::new(copies)?),
        CodeSpec::Xor { data } => Rc::new(Xor::new(data)?),
        CodeSpec::Rs { data, parity } | CodeSpec::Checksum { data, parity } => {
            Rc::new(ReedSolomon::new(data, parity)?)
        }
    })
}

/// The code of a group for doubles that are kept apart, if they are.
pub(crate) fn sums(spec: CodeSpec) -> Result<Option<Rc<Checksum>>, CheckpointError> {
    match spec {
        CodeSpec::Checksum { data, parity } => Ok(Some(Rc::new(Checksum::new(data, parity)?))),
        CodeSpec::Mirror { .. } | CodeSpec::Xor { .. } | CodeSpec::Rs { .. } => Ok(None),
    }
}

/// One member's view of its group.
#[derive(Clone)]
pub(crate) struct GroupComm {
    pub(crate) comm: Communicator,
    /// Its members are the ranks that speak for them.
    pub(crate) group: ParityGroup,
    pub(crate) code: Rc<dyn Code>,
    /// That of doubles, if they are kept apart.
    pub(crate) sums: Option<Rc<Checksum>>,
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

impl Round {
    /// The segments of this round.
    fn segments(self, view: View<'_>) -> Range<usize> {
        let Self { number, of } = self;
        let at = |number: usize| view.segments() * number / of;
        at(number)..at(number + 1)
    }
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
    /// Seals `slot` with the checksums that are known by now, and forgets them. Blocks of which none is known are read, or, where what has
    /// changed was [sent alone](GroupComm::start_update), are as they were.
    pub(crate) fn seal(
        &mut self,
        slot: &mut Slot,
        group: &ParityGroup,
        metas: &[ShardMeta],
        is_increment: bool,
    ) -> Result<(), CheckpointError> {
        let digests = std::mem::take(&mut self.digests);
        let known = |stripe: usize| {
            let original = group.copied(stripe).and_then(|member| metas.get(member)).map(|meta| meta.crc);
            original.or_else(|| digests.of(stripe))
        };
        let sealed =
            if is_increment { slot.seal_renewed(metas, known) } else { slot.seal_with(metas, known) };
        Ok(sealed?)
    }
}

/// Where each redundant block that a member holds is in its slot.
fn places(view: View<'_>, slot: &Slot) -> impl Fn(usize) -> Range<usize> + use<> {
    let places: Vec<_> = view.held().map(|(stripe, _)| (stripe, slot.block_range(stripe))).collect();
    move |stripe| {
        let found = places.iter().find(|(other, _)| *other == stripe);
        found.and_then(|(_, range)| range.clone()).expect("a group stores the blocks of its stripes only")
    }
}

fn lens(metas: &[ShardMeta]) -> Vec<usize> {
    metas.iter().map(|meta| meta.len as usize).collect()
}

impl GroupComm {
    /// The same group with other ranks that speak for its members, in their order.
    pub(crate) fn spoken_for_by(&self, ranks: Vec<Rank>) -> Self {
        Self { group: ParityGroup { members: ranks, ..self.group.clone() }, ..self.clone() }
    }

    /// Whether this rank speaks for `member`.
    pub(crate) fn is_here(&self, member: usize) -> bool {
        self.group.members[member] == self.group.members[self.me]
    }

    fn view<'b>(&'b self, lens: &'b [usize]) -> View<'b> {
        View::new(&self.group, Arithmetic::Field(&*self.code), self.me, lens)
    }

    /// What is known of the shards of all members at `epoch`, both parts: the first of the members that hold them tells the ranks
    /// that speak for none of these. Collective over the group.
    pub(crate) fn share_metas(
        &self,
        store: &Store,
        epoch: u32,
        held: &[bool],
    ) -> Result<[Vec<ShardMeta>; 2], CheckpointError> {
        let own = [store.constant().members(), store.variable(epoch).members()];
        let bytes = || own.iter().copied().flatten().flat_map(|meta| meta.to_bytes()).collect();
        let computing = self.group.computing;
        let Some(told) = self.share(held, bytes, 2 * computing * ShardMeta::BYTES, METAS)? else {
            return Ok(own.map(<[ShardMeta]>::to_vec));
        };
        let mut constant: Vec<ShardMeta> = ShardMeta::read_all(&told).collect();
        let variable = constant.split_off(computing);
        Ok([constant, variable])
    }

    /// The first of the members that `held` something tells the ranks that speak for none of these what that is, in so many bytes. Gives what
    /// was told; none to who knows it.
    fn share(
        &self,
        held: &[bool],
        own: impl FnOnce() -> Vec<u8>,
        len: usize,
        tag: Tag,
    ) -> Result<Option<Vec<u8>>, CheckpointError> {
        let members = &self.group.members;
        let here = members[self.me];
        let holders: Vec<Rank> = (0..held.len()).filter(|at| held[*at]).map(|at| members[at]).collect();
        let teller = *holders.first().expect("a group that can be decoded has a whole member");
        if !holders.contains(&here) {
            let mut told = vec![0; len];
            self.comm.recv(&mut told, teller, tag)?;
            return Ok(Some(told));
        }
        if teller == here {
            let bytes = own();
            let ignorant = members.iter().filter(|rank| !holders.contains(rank));
            ignorant.into_iter().try_for_each(|rank| self.comm.send(&bytes, *rank, tag))?;
        }
        Ok(None)
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
        round: Round,
    ) -> Result<ScheduleRequest<Buffer>, CheckpointError> {
        let lens = self.lens_of(metas, slot.splits());
        let views = self.views(&lens);
        if round.number == 0 {
            apart::begin_blocks(views, slot);
        }
        let block = |stripe| slot.block_range(stripe).expect("a group stores the blocks of its stripes only");
        let recipe = views.recipe(block, |view, block| Ok(encoding(view, block, round.segments(view))))?;
        account.borrow_mut().sent += recipe.bytes_sent();
        let schedule = schedule(recipe, account, self.clock);
        let (shard, redundancy) = slot.take();
        Ok(self.comm.start_schedule(&schedule, shard, redundancy)?)
    }

    /// As [`GroupComm::start_encoding`], where the shard is nowhere in memory: `pieces` gives the ranges of it that this round needs, one
    /// after the other. The redundancy of the slot alone is away until it is done.
    pub(crate) fn start_window(
        &self,
        slot: &mut Slot,
        metas: &[ShardMeta],
        account: &Rc<RefCell<Account>>,
        round: Round,
        pieces: impl FnOnce(&[Range<usize>]) -> Vec<u8>,
    ) -> Result<ScheduleRequest<Buffer>, CheckpointError> {
        let lens = self.lens_of(metas, slot.splits());
        let views = self.views(&lens);
        if round.number == 0 {
            apart::begin_blocks(views, slot);
        }
        let block = |stripe| slot.block_range(stripe).expect("a group stores the blocks of its stripes only");
        let (views, wanted) = views.in_window(|view| round.segments(view));
        let recipe = views.recipe(block, |view, block| Ok(encoding(view, block, round.segments(view))))?;
        account.borrow_mut().sent += recipe.bytes_sent();
        let schedule = schedule(recipe, account, self.clock);
        let window = pieces(&wanted);
        Ok(self.comm.start_schedule(&schedule, window.into(), slot.take_redundancy())?)
    }

    /// Starts to renew the redundant blocks that this member holds by what has changed of the shards of all members: `pages` says what
    /// that is, by member, and `packed` is the difference of the own one. The redundancy of the slot is away until it is done.
    /// Collective over the group.
    ///
    /// Every member sends what has changed of its shard `m` times.
    pub(crate) fn start_update(
        &self,
        slot: &mut Slot,
        metas: &[ShardMeta],
        pages: &[Pages],
        packed: Vec<u8>,
        account: &Rc<RefCell<Account>>,
    ) -> Result<ScheduleRequest<Buffer>, CheckpointError> {
        let lens = lens(metas);
        let view = self.view(&lens);
        let recipe = updating(view, pages, places(view, slot), |stripe| slot.block_crc(stripe));
        account.borrow_mut().sent += recipe.bytes_sent();
        let schedule = schedule(recipe, account, self.clock);
        Ok(self.comm.start_schedule(&schedule, packed.into(), slot.take_redundancy())?)
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
            account.borrow_mut().seal(slot, &self.group, metas, false)?;
        }
        Ok(Rebuilt { shards: halfway.since(started), blocks: self.clock.now().since(halfway) })
    }
}
