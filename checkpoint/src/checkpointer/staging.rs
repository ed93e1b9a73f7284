//! Taking a checkpoint: the copy at once, all else when the program comes by.
//!
//! A checkpoint is a row of collective operations, each started when the one before is done: metadata is shared, the parts of
//! the state are encoded, all vote. Messages of the one under way move in every call of `ft_comm`, as those of a non-blocking
//! collective do; the next one is started in [`Checkpointer::progress`]. A blocking checkpoint waits for each of them instead.

use std::num::NonZero;
use std::rc::Rc;

use ft_comm::time::Time;
use ft_comm::{CollectiveRequest, CommError, Op, ScheduleRequest, World};
use ft_proto::planted;

use super::Checkpointer;
use super::apart::{copy_apart, live, stock_apart};
use super::budget::Budget;
#[cfg(feature = "planted-bugs")]
use super::defects::DAMAGED_COPY;
use super::defects::{COMMITS_EARLY, KEEPS_COMMIT_TO_ITSELF};
use super::increments::Increments;
use super::throttle::Throttle;
use super::under_way::{Phase, Staging, Unsaid};
use crate::buffer::Buffer;
use crate::build;
use crate::changes::{Delta, Pages};
use crate::error::CheckpointError;
use crate::exchange::Round;
use crate::protocol::{Event, State};
use crate::region::{LiveRef, Protect, StatePart, outline, save_with_notes, seams, size};
use crate::scheme::Scheme;
use crate::stats::CheckpointSeconds;
use crate::store::{Legend, ShardMeta, Slot, Split, StoreError};

/// What a rank says with the metadata of its state.
mod word {
    /// It has found damage in what it holds.
    pub(super) const DAMAGED: u8 = 1;
    /// The checkpoint is to be written to files too: rank 0 says so when it is time, and every rank that was asked for one.
    pub(super) const SPILLS: u8 = 2;
    /// Bytes of all that it says: these flags, from which number on sets of files are counted, since when it has the constant part, the
    /// base of what has changed, and the metadata of both parts.
    pub(super) const BYTES: usize = 1 + 3 * 4 + 2 * super::ShardMeta::BYTES;
}

/// What a rank says when it has done its part; the smallest word counts.
mod vote {
    /// The state cannot be written down.
    pub(super) const NO: u8 = 0;
    /// The copy has changed since it was made, so redundancy may be of something else: it is to be made again.
    pub(super) const DAMAGED: u8 = 1;
    pub(super) const YES: u8 = 2;
}

/// How often the state is copied for one checkpoint at most, as copies were damaged.
const COPIES: u32 = 3;

/// What has become of the copy of a state.
struct Copied {
    copied: Result<(), CheckpointError>,
    /// Of each part.
    metas: [ShardMeta; 2],
    /// The epoch since which `delta` is what has changed of the variable part; 0: it is of no use.
    base: u32,
    delta: Option<Delta>,
    /// Of the variable part, if doubles are kept apart.
    split: Option<Split>,
}

impl Checkpointer {
    /// Takes a checkpoint of `state` and waits until it is committed. The first one holds its constant part too. With scheme
    /// `none` only the first is taken, which guards nothing but says that the job has begun.
    ///
    /// # Errors
    /// A failure, or the state cannot be written; the checkpoint before is whole. That an asynchronous checkpoint before it has
    /// failed is told first.
    pub fn checkpoint<S: Protect>(&mut self, world: &World, state: &mut S) -> Result<(), CheckpointError> {
        for _ in 0..COPIES {
            self.begin(world, state)?;
            self.wait(world)?;
            if !self.is_spoiled {
                return Ok(());
            }
        }
        Err(CheckpointError::Spoiled { epoch: self.ledger.next_epoch(), copies: COPIES })
    }

    /// Copies `state`, and returns: what is left of the checkpoint goes on behind the computation, whenever the program is in a
    /// call of `ft_comm`, and a step further at each [`Checkpointer::progress`]. A checkpoint that is still under way is waited
    /// for first. All but the copy takes no memory that a blocking checkpoint does not take. On disk all of it is done here.
    ///
    /// # Errors
    /// As [`Checkpointer::checkpoint`]; later ones are those of the call in which they are found.
    pub fn begin<S: Protect>(&mut self, world: &World, state: &mut S) -> Result<(), CheckpointError> {
        let _guard = self.comm.guard()?;
        let Some((mut staging, split)) = self.open(world, state)? else { return Ok(()) };
        let (phase, is_live) = (self.say(&mut staging)?, self.is_live(staging.epoch));
        staging.held = self.clock.now().since(staging.started);
        self.staging = Some((phase, staging));
        if is_live {
            return self.go_on(world, true, Some(&mut *live(state, split))).map(|_| ());
        }
        if self.keeper.is_blocking() { self.wait(world) } else { Ok(()) }
    }

    /// Begins a checkpoint with the copy of `state`; none where nothing is to be protected.
    pub(super) fn open<S: Protect>(
        &mut self,
        world: &World,
        state: &mut S,
    ) -> Result<Option<(Staging, Option<Split>)>, CheckpointError> {
        self.wait(world)?;
        if self.owes_fresh || self.owes_layout {
            self.begin_anew(world)?;
        }
        let first = self.is_bare();
        if *self.places.target().layout.scheme() == Scheme::None && !first && self.spilling.is_none() {
            return Ok(None);
        }
        let started = self.clock.now();
        let epoch = self.ledger.next_epoch();

        self.is_spoiled = false;
        reach(world, epoch, "copy")?;
        self.ledger.apply(Event::Begin(epoch))?;
        let is_live = self.is_next_live();
        let Copied { copied, metas, base, delta, split } =
            if is_live { self.take_stock(state, epoch) } else { self.copy(state, epoch, first) };
        let copied = copied.and_then(|()| self.tell_legends(state, epoch, split));
        let copied_at = self.clock.now();
        #[cfg(feature = "planted-bugs")]
        if planted::has(DAMAGED_COPY) {
            self.places.target_mut().store.variable_mut(epoch).damage(false, planted::place());
            planted::plant("");
        }
        reach(world, epoch, "encode")?;
        let staging = Staging {
            epoch,
            rank: self.comm.rank(),
            first,
            copied,
            is_over_limit: false,
            spills: false,
            constant_since: u32::MAX,
            delta,
            bases: vec![],
            pages: vec![],
            metas: vec![],
            splits: vec![],
            account: Rc::default(),
            started,
            copied_at,
            exchanged_at: copied_at,
            held: copied_at.since(started),
            unsaid: Some(Unsaid { metas, base, split }),
            fetches: false,
            is_collected: false,
        };
        Ok(Some((staging, split)))
    }

    /// Tells the others of the state of this rank.
    pub(super) fn say(&mut self, staging: &mut Staging) -> Result<Phase, CheckpointError> {
        let Unsaid { metas, base, split } = staging.unsaid.take().expect("it is said once");
        let is_damaged = self.scrub.as_ref().is_some_and(|scrub| scrub.has_found(self.ledger.committed()));
        let spills = self.is_to_spill();
        let mut mine = vec![(word::DAMAGED * u8::from(is_damaged)) | (word::SPILLS * u8::from(spills))];
        mine.extend(self.counted_from().to_le_bytes());
        mine.extend(self.places.target().store.constant().epoch().to_le_bytes());
        mine.extend(base.to_le_bytes());
        mine.extend(metas.iter().flat_map(|meta| meta.to_bytes()));
        mine.extend(split.iter().flat_map(|split| split.to_bytes()));
        Ok(Phase::Sharing(self.comm.iallgather(&mine)?))
    }

    /// Gives the next checkpoint memory for its copies, of the constant and the variable part, where it has none yet.
    pub(crate) fn take_memory(&mut self, [constant, variable]: [Vec<u8>; 2]) {
        let (epoch, store) = (self.ledger.next_epoch(), &mut self.places.target_mut().store);
        store.constant_mut().take_memory(constant);
        store.variable_mut(epoch).take_memory(variable);
    }

    /// Copies `state` into the slots of `epoch`, its constant part for the `first` one only.
    fn copy<S: Protect>(&mut self, state: &mut S, epoch: u32, first: bool) -> Copied {
        let (mut copied, kind) = (self.check_copies(state, first), build::kind::<S>());
        let mut split = self.keeps_doubles_apart().then(|| Split::exact(0, ShardMeta::of(&[]).crc));
        let (mut since, increments) = ((0, None), &mut self.increments);
        let mut save = |state: &mut S, part: StatePart, slot: &mut Slot| {
            if let Some(split) = split.as_mut().filter(|_| part == StatePart::Variable) {
                let (crc, own) = copy_apart(state, slot, epoch)?;
                *split = own;
                return Ok(crc);
            }
            let len = size(state, part)?;
            let is_worth_it = part == StatePart::Variable && increments.are_worth_it();
            let base = if is_worth_it { slot.renew(epoch, len) } else { None };
            let Some(base) = base else {
                slot.begin(epoch);
                let mut notes = vec![];
                let crc = save_with_notes(state, part, slot.begin_shard(len), None, &mut notes);
                slot.tell_notes(notes);
                return crc;
            };
            let (before, mut changes) = (slot.own_meta().crc, increments.start(len));
            let mut notes = slot.take_notes();
            let crc = save_with_notes(state, part, slot.renewed_shard(), Some(&mut changes), &mut notes)?;
            slot.tell_notes(notes);
            let (delta, of_use) = changes.finish(before);
            let is_of_use = increments.are_of_use(of_use);
            since = (if is_of_use { base } else { 0 }, Some(delta));
            Ok(crc)
        };
        let mut copy = |part: StatePart, slot: &mut Slot| {
            if copied.is_err() {
                slot.begin(epoch);
                return ShardMeta { kind, ..ShardMeta::of(&[]) };
            }
            match save(state, part, slot).map_err(CheckpointError::from) {
                Ok(crc) => ShardMeta { len: slot.shard().len() as u64, crc, kind },
                Err(error) => {
                    copied = Err(error);
                    ShardMeta { kind, ..ShardMeta::of(slot.shard()) }
                }
            }
        };
        let store = &mut self.places.target_mut().store;
        let variable = copy(StatePart::Variable, store.variable_mut(epoch));
        let constant =
            if first { copy(StatePart::Constant, store.constant_mut()) } else { store.constant().own_meta() };
        let (base, delta) = since;
        Copied { copied, metas: [constant, variable], base, delta, split }
    }

    /// Whether the copies of `state` are within the limit of memory, if there is one.
    fn check_copies<S: Protect>(&self, state: &mut S, first: bool) -> Result<(), CheckpointError> {
        let (place, rank) = (self.places.target(), self.comm.rank());
        self.budget.check_copies(place, rank, state, first, self.copies(), &self.increments)
    }

    /// Takes down what the variable part of `state` is, of which the slot of `epoch` will hold redundancy and no copy.
    fn take_stock<S: Protect>(&mut self, state: &mut S, epoch: u32) -> Copied {
        let copied = self.check_copies(state, false);
        self.places.target_mut().store.variable_mut(epoch).begin_live(epoch);
        let digest = match self.keeps_doubles_apart() {
            true => stock_apart(state).map(|(len, crc, split)| (len, crc, Some(split))),
            false => live(state, None).digest().map(|(len, crc)| (len, crc, None)),
        };
        let nothing = ShardMeta::of(&[]).crc;
        let (copied, (len, crc, split)) = match copied.and(digest.map_err(CheckpointError::from)) {
            Ok(digest) => (Ok(()), digest),
            Err(error) => {
                (Err(error), (0, nothing, self.keeps_doubles_apart().then(|| Split::exact(0, nothing))))
            }
        };
        let variable = ShardMeta { len: len as u64, crc, kind: build::kind::<S>() };
        let metas = [self.places.target().store.constant().own_meta(), variable];
        Copied { copied, metas, base: 0, delta: None, split }
    }

    /// Whether what is copied may be written to files, for others to look at.
    fn writes_files(&self) -> bool {
        self.spilling.is_some() || matches!(self.scheme, Scheme::Disk { .. })
    }

    /// Takes down which fields there are in the copy of `state`, and where doubles belong that are kept apart; the fields of its constant
    /// part once. Files can do without fields.
    fn tell_legends<S: Protect>(
        &mut self,
        state: &mut S,
        epoch: u32,
        split: Option<Split>,
    ) -> Result<(), CheckpointError> {
        if !self.writes_files() {
            return Ok(());
        }
        let store = &mut self.places.target_mut().store;
        let outline = |state: &mut S, part| outline(state, part).unwrap_or_default();
        let part = StatePart::Variable;
        let seams = match split.filter(|split| split.strings().doubles > 0) {
            Some(_) => seams(state, part)?,
            None => vec![],
        };
        store.variable_mut(epoch).tell_legend(Legend { outline: outline(state, part), seams });
        // A replacement has the constant part from others, who do not know what is in it.
        if store.constant().legend().outline.is_empty() {
            let outline = outline(state, StatePart::Constant);
            store.constant_mut().tell_legend(Legend { outline, seams: vec![] });
        }
        Ok(())
    }

    /// Starts what can be started of a checkpoint under way; to be called now and then, on all ranks but at any time. Gives whether
    /// none is under way any more.
    ///
    /// # Errors
    /// A failure, or a rank could not write down its state; the checkpoint before is whole.
    pub fn progress(&mut self, world: &World) -> Result<bool, CheckpointError> {
        self.scrub_some();
        self.go_on(world, false, None)
    }

    /// Waits until no checkpoint is under way; one that was begun is committed then.
    ///
    /// # Errors
    /// As [`Checkpointer::progress`].
    pub fn wait(&mut self, world: &World) -> Result<(), CheckpointError> {
        self.go_on(world, true, None).map(|_| ())
    }

    /// From now on an asynchronous checkpoint encodes at most so many bytes of a rank's state a second; none: as fast as it can.
    /// A program that waits for it waits no longer for that. The same on all ranks.
    pub fn set_throttle(&mut self, bytes_per_second: Option<NonZero<u64>>) {
        self.throttle = Throttle(bytes_per_second);
    }

    /// From now on checkpoints send what has changed alone, where that is a quarter of a state or less and the ranks of a group hold
    /// redundancy of the same checkpoint before. It is found by comparing the state with its last copy but one. The same on all ranks.
    pub fn set_incremental(&mut self, incremental: bool) {
        self.increments = Increments::new(incremental);
    }

    /// From now on a checkpoint that would keep more bytes on a rank than this is refused before it takes them; none: there is no
    /// limit. The same on all ranks. What counts is what [`ParityGroup::kept_bytes`](crate::ParityGroup::kept_bytes) says of two checkpoints of
    /// the variable part of the state and one of the constant part; a quarter of the variable part more if what has changed is sent alone,
    /// and one copy of it less if [memory is to be saved](Checkpointer::set_saves_memory).
    pub fn set_memory_limit(&mut self, bytes: Option<NonZero<u64>>) {
        self.budget = Budget(bytes);
    }

    /// Whether everything that was begun is committed.
    pub fn is_committed(&self) -> bool {
        self.ledger.state() == State::Idle && self.has_committed()
    }

    /// Goes on with the checkpoint under way; `live` is the state, if its only copy is that.
    pub(super) fn go_on(
        &mut self,
        world: &World,
        waits: bool,
        mut live: LiveRef<'_, '_>,
    ) -> Result<bool, CheckpointError> {
        let _guard = self.comm.guard()?;
        let Some((mut phase, mut staging)) = self.staging.take() else { return Ok(true) };
        let entered = self.clock.now();
        loop {
            let is_done = waits
                || match &mut phase {
                    Phase::Drawing(request) => request.is_done()?,
                    Phase::Collecting => self.collect(world, false, &mut staging)?,
                    Phase::Sharing(request) | Phase::Telling(request) | Phase::Voting(request) => {
                        request.is_done()?
                    }
                    Phase::Encoding(_, round, Some(request)) => {
                        let spent = self.clock.now().since(staging.copied_at);
                        self.throttle.is_over(staging.longest(), *round, spent) && request.is_done()?
                    }
                    Phase::Encoding(_, _, None) | Phase::Committing => true,
                };
            if !is_done {
                staging.held += self.clock.now().since(entered);
                self.staging = Some((phase, staging));
                return Ok(false);
            }
            let live = live.as_deref_mut();
            phase = match phase {
                Phase::Drawing(request) => self.drawn(world, request)?,
                Phase::Collecting => {
                    self.collect(world, true, &mut staging)?;
                    self.say(&mut staging)?
                }
                Phase::Sharing(request) => self.shared(world, request, &mut staging, live)?,
                Phase::Telling(request) => {
                    let bytes = Pages::bytes(staging.longest() as usize);
                    staging.pages = request.wait()?.chunks(bytes).map(Pages::of).collect();
                    self.start_exchange(world, &mut staging, live)?
                }
                Phase::Encoding(part, round, request) => {
                    self.encoded(world, (part, round, request), &mut staging, live)?
                }
                Phase::Voting(request) => match self.voted(world, request, &mut staging)? {
                    Some(phase) => phase,
                    None => return Ok(true),
                },
                Phase::Committing => {
                    staging.held += self.clock.now().since(entered);
                    self.commit(world, &mut staging, live)?;
                    return Ok(true);
                }
            };
        }
    }

    /// All have told of their states: damage that somebody has found is mended, and the exchange begins.
    fn shared(
        &mut self,
        world: &World,
        request: CollectiveRequest<u8>,
        staging: &mut Staging,
        live: LiveRef<'_, '_>,
    ) -> Result<Phase, CheckpointError> {
        let (mut damaged, mut counted_from) = (vec![], 0);
        let splits = if self.keeps_doubles_apart() { Split::BYTES } else { 0 };
        for (rank, said) in request.wait()?.chunks(word::BYTES + splits).enumerate() {
            damaged.extend((said[0] & word::DAMAGED != 0).then_some(rank));
            staging.spills |= said[0] & word::SPILLS != 0;
            let (from, said) = said[1..].split_first_chunk().expect("it is that long");
            counted_from = counted_from.max(u32::from_le_bytes(*from));
            let (since, said) = said.split_first_chunk().expect("it is that long");
            if rank < self.computing {
                staging.constant_since = staging.constant_since.min(u32::from_le_bytes(*since));
            }
            let (base, metas) = said.split_first_chunk().expect("it is that long");
            staging.bases.push(u32::from_le_bytes(*base));
            let (metas, split) = metas.split_at(2 * ShardMeta::BYTES);
            let metas: Vec<ShardMeta> = ShardMeta::read_all(metas).collect();
            staging.metas.extend_from_slice(metas.as_chunks().0);
            staging.splits.extend(Split::read_all(split));
        }
        // A replacement does not know it.
        self.count_on_from(counted_from);
        if !damaged.is_empty() {
            self.mend(&damaged)?;
        }
        let (place, copies) = (self.places.target(), self.copies());
        if let Err(error) = self.budget.check_group(place, staging, copies, &self.increments) {
            staging.is_over_limit = true;
            staging.copied = std::mem::replace(&mut staging.copied, Ok(())).and(Err(error));
        }
        let bytes = Pages::bytes(staging.longest() as usize);
        if bytes > 0 && staging.bases.iter().any(|base| *base > 0) {
            let mine = staging.delta.as_ref().map_or_else(|| vec![0; bytes], |delta| delta.pages.told(bytes));
            return Ok(Phase::Telling(self.comm.iallgather(&mine)?));
        }
        staging.bases.fill(0);
        self.start_exchange(world, staging, live)
    }

    /// All know what they have to: the first part of the state is given away.
    fn start_exchange(
        &mut self,
        world: &World,
        staging: &mut Staging,
        live: LiveRef<'_, '_>,
    ) -> Result<Phase, CheckpointError> {
        reach(world, staging.epoch, "exchange")?;
        let part = if staging.first { StatePart::Constant } else { StatePart::Variable };
        let round = self.first_round(staging.epoch, staging.longest());
        Ok(Phase::Encoding(part, round, self.start_encoding(part, round, staging, live)?))
    }

    /// A round is over: the next one begins, the next part, or the vote.
    fn encoded(
        &mut self,
        world: &World,
        (part, Round { number, of }, request): (StatePart, Round, Option<ScheduleRequest<Buffer>>),
        staging: &mut Staging,
        live: LiveRef<'_, '_>,
    ) -> Result<Phase, CheckpointError> {
        let is_last = number + 1 == of;
        if let Some(request) = request {
            self.keeper.finish(self.places.target_mut(), part, staging, is_last, request)?;
        }
        let (part, number) = match part {
            _ if !is_last => (part, number + 1),
            StatePart::Constant => (StatePart::Variable, 0),
            StatePart::Variable => {
                staging.exchanged_at = self.clock.now();
                return Ok(Phase::Voting(self.start_vote(world, staging, live)?));
            }
        };
        let round = Round { number, of };
        Ok(Phase::Encoding(part, round, self.start_encoding(part, round, staging, live)?))
    }

    /// All have voted; nothing is left to be done if a copy was damaged.
    fn voted(
        &mut self,
        world: &World,
        request: CollectiveRequest<u8>,
        staging: &mut Staging,
    ) -> Result<Option<Phase>, CheckpointError> {
        let epoch = staging.epoch;
        match request.wait()?[0] {
            vote::YES => {
                self.keeper.complete(staging, &|| reach(world, epoch, "commit"))?;
                Ok(Some(Phase::Committing))
            }
            vote => {
                self.ledger.apply(Event::VoteFailed(epoch))?;
                self.note(false);
                self.is_spoiled = vote == vote::DAMAGED;
                std::mem::replace(&mut staging.copied, Ok(()))?;
                if self.is_spoiled { Ok(None) } else { Err(CheckpointError::Refused { epoch }) }
            }
        }
    }

    /// Whether the copies of `epoch` are what they were when they were made; looked at if damage is looked for at all.
    fn are_copies_sound(&self, epoch: u32, first: bool, live: LiveRef<'_, '_>) -> bool {
        let store = &self.places.target().store;
        let is_sound = |slot: &Slot| !matches!(slot.verify_shard(), Err(StoreError::Shard { .. }));
        match live {
            _ if self.scrub.is_none() => true,
            Some(live) => live.digest().is_ok_and(|(_, crc)| crc == store.variable(epoch).own_meta().crc),
            None => is_sound(store.variable(epoch)) && (!first || is_sound(store.constant())),
        }
    }

    /// Starts to give one part away, where there is memory for it.
    fn start_encoding(
        &mut self,
        part: StatePart,
        round: Round,
        staging: &mut Staging,
        live: LiveRef<'_, '_>,
    ) -> Result<Option<ScheduleRequest<Buffer>>, CheckpointError> {
        if staging.is_over_limit {
            return Ok(None);
        }
        self.keeper.start(self.places.target_mut(), part, staging, round, live)
    }

    fn start_vote(
        &mut self,
        world: &World,
        staging: &Staging,
        mut live: LiveRef<'_, '_>,
    ) -> Result<CollectiveRequest<u8>, CheckpointError> {
        let (epoch, is_live) = (staging.epoch, live.is_some());
        let mine = match staging.copied.is_ok() {
            false => vote::NO,
            true if !self.are_copies_sound(epoch, staging.first, live.as_deref_mut()) => vote::DAMAGED,
            true => vote::YES,
        };
        let staged = mine == vote::YES;
        self.stats.damaged += u64::from(mine == vote::DAMAGED);
        if staged {
            self.ledger.apply(Event::Staged(epoch))?;
            // A successor would not have the live state.
            if !is_live {
                self.note(true);
            }
            self.copy_early(epoch, live)?;
        }
        reach(world, epoch, "vote")?;
        if staged && planted::has(COMMITS_EARLY) {
            self.ledger.apply(Event::VotePassed(epoch))?;
        }
        Ok(self.comm.iallreduce(vec![mine], Op::Min)?)
    }

    /// All have voted yes.
    fn commit(
        &mut self,
        world: &World,
        staging: &mut Staging,
        live: LiveRef<'_, '_>,
    ) -> Result<(), CheckpointError> {
        let (epoch, first, is_live) = (staging.epoch, staging.first, live.is_some());
        self.increments.take_back(staging.delta.take());
        if !planted::has(COMMITS_EARLY) {
            self.ledger.apply(Event::VotePassed(epoch))?;
        }
        if let Some(live) = live.filter(|_| self.is_live(epoch)) {
            self.copy_live(epoch, live)?;
        }
        if !planted::has(KEEPS_COMMIT_TO_ITSELF) {
            self.note(is_live);
        }
        let is_anew = self.places.begins_anew();
        (self.owes_fresh, self.owes_layout) = (self.owes_fresh && !is_anew, self.owes_layout && !is_anew);
        self.places.committed();
        world.line_is_committed()?;
        self.spill_committed(staging);
        world.mark(u64::from(epoch));

        let store = &self.places.current.store;
        self.legacy.memory.tell(self.level, store.lens());
        let (variable, constant) = (store.variable(epoch).shard().len(), store.constant().shard().len());
        let copied = if first { constant + variable } else { variable };
        let (computing, sent) = (staging.account.borrow().computing, staging.account.borrow().sent);
        let exchange = staging.exchanged_at.since(staging.copied_at).saturating_sub(computing);
        let seconds = |from: Time, to: Time| to.since(from).as_secs_f64();
        let stats = &mut self.stats;
        stats.committed = epoch;
        stats.taken += 1;
        let home = self.places.current.home.as_ref();
        stats.increments += u32::from(home.is_some_and(|home| staging.is_increment(&home.group)));
        stats.bytes_protected += copied as u64;
        stats.bytes_sent += sent;
        stats.seconds += staging.held.as_secs_f64();
        stats.seconds_later += if first { 0.0 } else { staging.held.as_secs_f64() };
        stats.phases = CheckpointSeconds {
            copy: stats.phases.copy + seconds(staging.started, staging.copied_at),
            encode: stats.phases.encode + computing.as_secs_f64(),
            exchange: stats.phases.exchange + exchange.as_secs_f64(),
            commit: stats.phases.commit + seconds(staging.exchanged_at, self.clock.now()),
        };
        stats.state_bytes = (constant + variable) as u64;
        Ok(())
    }
}

/// A point of the checkpoint of `epoch` at which failures can be injected.
fn reach(world: &World, epoch: u32, phase: &str) -> Result<(), CommError> {
    world.fault_point("checkpoint", u64::from(epoch), Some(phase))
}
