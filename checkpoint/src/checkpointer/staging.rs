//! Taking a checkpoint: the copy at once, all else when the program comes by.
//!
//! A checkpoint is a row of collective operations, each started when the one before is done: metadata is shared, the parts of
//! the state are encoded, all vote. Messages of the one under way move in every call of `ft_comm`, as those of a non-blocking
//! collective do; the next one is started in [`Checkpointer::progress`]. A blocking checkpoint waits for each of them instead.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use ft_comm::planted;
use ft_comm::time::Time;
use ft_comm::{CollectiveRequest, CommError, Op, PlanRequest, World};

use super::{COMMITS_EARLY, Checkpointer};
use crate::error::{CheckpointError, ProtectError};
use crate::exchange::{Account, Circle};
use crate::placement::Placement;
use crate::protocol::Event;
use crate::region::{Part, Protect, fingerprint, save_with_crc};
use crate::scheme::Scheme;
use crate::stats::CheckpointSeconds;
use crate::store::{ShardMeta, Slot};

/// A checkpoint under way.
pub(super) struct Staging {
    epoch: u32,
    /// It holds the constant part too.
    first: bool,
    /// Whether this rank could write its state down.
    copied: Result<(), ProtectError>,
    /// Of all ranks, both parts.
    metas: Vec<[ShardMeta; 2]>,
    account: Rc<RefCell<Account>>,
    started: Time,
    copied_at: Time,
    exchanged_at: Time,
    /// Bytes that this rank had sent before.
    sent: u64,
    /// Time that the program has been held.
    held: Duration,
}

/// The operation that is not done yet.
pub(super) enum Phase {
    Sharing(CollectiveRequest<u8>),
    /// Of the constant part (true) or the variable one; none where there is no group.
    Encoding(bool, Option<PlanRequest<u8>>),
    Voting(CollectiveRequest<u8>),
    Committing,
}

impl Checkpointer {
    /// Takes a checkpoint of `state` and waits until it is committed. The first one holds its constant part too. With scheme
    /// `none` only the first is taken, which guards nothing but says that the job has begun.
    ///
    /// # Errors
    /// A failure, or the state cannot be written; the checkpoint before is whole. That an asynchronous checkpoint before it has
    /// failed is told first.
    pub fn checkpoint<S: Protect>(&mut self, world: &World, state: &mut S) -> Result<(), CheckpointError> {
        self.begin(world, state)?;
        self.wait(world)
    }

    /// Copies `state`, and returns: what is left of the checkpoint goes on behind the computation, whenever the program is in a
    /// call of `ft_comm`, and a step further at each [`Checkpointer::progress`]. A checkpoint that is still under way is waited
    /// for first. All but the copy takes no memory that a blocking checkpoint does not take. On disk all of it is done here.
    ///
    /// # Errors
    /// As [`Checkpointer::checkpoint`]; later ones are those of the call in which they are found.
    pub fn begin<S: Protect>(&mut self, world: &World, state: &mut S) -> Result<(), CheckpointError> {
        self.wait(world)?;
        let first = self.is_bare();
        if *self.place().layout.scheme() == Scheme::None && !first {
            return Ok(());
        }
        let started = self.clock.now();
        let sent = world.bytes_sent();
        let epoch = self.ledger.next_epoch();

        reach(world, epoch, "copy")?;
        self.ledger.apply(Event::Begin(epoch))?;
        let (mut copied, kind) = (Ok(()), fingerprint::<S>());
        let mut copy = |part: Part, slot: &mut Slot| {
            slot.begin(epoch);
            match save_with_crc(state, part, slot.shard_mut()) {
                Ok(crc) => ShardMeta { len: slot.shard().len() as u64, crc, kind },
                Err(error) => {
                    copied = Err(error);
                    ShardMeta { kind, ..ShardMeta::of(slot.shard()) }
                }
            }
        };
        let store = &mut self.place_mut().store;
        let variable = copy(Part::Variable, store.variable_mut(epoch));
        let constant = if first { copy(Part::Constant, store.constant_mut()) } else { ShardMeta::of(&[]) };

        let copied_at = self.clock.now();
        reach(world, epoch, "encode")?;
        let mine: Vec<u8> = [constant, variable].iter().flat_map(|meta| meta.to_bytes()).collect();
        let phase = Phase::Sharing(self.comm.iallgather(&mine)?);
        let held = self.clock.now().since(started);
        let (metas, account) = (vec![], Rc::default());
        let staging = Staging {
            epoch,
            first,
            copied,
            metas,
            account,
            started,
            copied_at,
            exchanged_at: copied_at,
            sent,
            held,
        };
        self.staging = Some((phase, staging));
        if self.disk.is_some() { self.wait(world) } else { Ok(()) }
    }

    /// Starts what can be started of a checkpoint under way; to be called now and then, on all ranks but at any time. Gives whether
    /// none is under way any more.
    ///
    /// # Errors
    /// A failure, or a rank could not write down its state; the checkpoint before is whole.
    pub fn progress(&mut self, world: &World) -> Result<bool, CheckpointError> {
        self.go_on(world, false)
    }

    /// Waits until no checkpoint is under way; one that was begun is committed then.
    ///
    /// # Errors
    /// As [`Checkpointer::progress`].
    pub fn wait(&mut self, world: &World) -> Result<(), CheckpointError> {
        self.go_on(world, true).map(|_| ())
    }

    /// Whether everything that was begun is committed.
    pub fn is_committed(&self) -> bool {
        self.staging.is_none() && self.has_committed()
    }

    fn go_on(&mut self, world: &World, waits: bool) -> Result<bool, CheckpointError> {
        let Some((mut phase, mut staging)) = self.staging.take() else { return Ok(true) };
        let entered = self.clock.now();
        loop {
            let is_done = waits
                || match &mut phase {
                    Phase::Sharing(request) | Phase::Voting(request) => request.is_done()?,
                    Phase::Encoding(_, Some(request)) => request.is_done()?,
                    Phase::Encoding(_, None) | Phase::Committing => true,
                };
            if !is_done {
                staging.held += self.clock.now().since(entered);
                self.staging = Some((phase, staging));
                return Ok(false);
            }
            let epoch = staging.epoch;
            phase = match phase {
                Phase::Sharing(request) => {
                    let all: Vec<ShardMeta> = ShardMeta::read_all(&request.wait()?).collect();
                    staging.metas = all.as_chunks().0.to_vec();
                    reach(world, epoch, "exchange")?;
                    let constant = staging.first;
                    Phase::Encoding(constant, self.start_encoding(constant, &staging)?)
                }
                Phase::Encoding(constant, request) => {
                    self.finish_encoding(constant, request, &staging)?;
                    if constant {
                        Phase::Encoding(false, self.start_encoding(false, &staging)?)
                    } else {
                        staging.exchanged_at = self.clock.now();
                        Phase::Voting(self.start_vote(world, &staging)?)
                    }
                }
                Phase::Voting(request) => {
                    if request.wait()?[0] == 0 {
                        self.ledger.apply(Event::VoteFailed(epoch))?;
                        staging.copied?;
                        return Err(CheckpointError::Refused { epoch });
                    }
                    if let Some(disk) = &self.disk {
                        disk.complete(epoch, &staging.metas)?;
                    }
                    reach(world, epoch, "commit")?;
                    if self.disk.is_some() {
                        // Rank 0 has made the set complete.
                        self.comm.bcast(&mut [0u8], 0)?;
                    }
                    Phase::Committing
                }
                Phase::Committing => {
                    staging.held += self.clock.now().since(entered);
                    self.commit(world, &staging)?;
                    return Ok(true);
                }
            };
        }
    }

    /// Starts to encode one part over the group. Without a group there is only the own copy, in memory and perhaps on disk.
    fn start_encoding(
        &mut self,
        constant: bool,
        staging: &Staging,
    ) -> Result<Option<PlanRequest<u8>>, CheckpointError> {
        let Placement { store, home, .. } = self.next.as_mut().unwrap_or(&mut self.current);
        let slot = if constant { store.constant_mut() } else { store.variable_mut(staging.epoch) };
        let part = usize::from(!constant);
        let Some((group, code, me)) = home else {
            let own = staging.metas[self.comm.rank()][part];
            if let Some(disk) = &self.disk {
                disk.stage((!constant).then_some(staging.epoch), own, slot.shard())?;
            }
            slot.seal(&[own])?;
            return Ok(None);
        };
        let metas: Vec<ShardMeta> =
            group.members[..group.computing].iter().map(|rank| staging.metas[*rank][part]).collect();
        let circle = Circle { comm: &self.comm, group, code: &**code, me: *me, clock: self.clock };
        circle.start_encoding(slot, &metas, &staging.account).map(Some)
    }

    fn finish_encoding(
        &mut self,
        constant: bool,
        request: Option<PlanRequest<u8>>,
        staging: &Staging,
    ) -> Result<(), CheckpointError> {
        let Placement { store, home, .. } = self.next.as_mut().unwrap_or(&mut self.current);
        let (Some(request), Some((group, ..))) = (request, home) else { return Ok(()) };
        let slot = if constant { store.constant_mut() } else { store.variable_mut(staging.epoch) };
        slot.put_back(request.wait()?);
        let part = usize::from(!constant);
        let metas: Vec<ShardMeta> =
            group.members[..group.computing].iter().map(|rank| staging.metas[*rank][part]).collect();
        let sealing = self.clock.now();
        let account = std::mem::take(&mut *staging.account.borrow_mut());
        account.seal(slot, group, &metas)?;
        staging.account.borrow_mut().computing = account.computing + self.clock.now().since(sealing);
        Ok(())
    }

    fn start_vote(
        &mut self,
        world: &World,
        staging: &Staging,
    ) -> Result<CollectiveRequest<u8>, CheckpointError> {
        let (epoch, staged) = (staging.epoch, staging.copied.is_ok());
        if staged {
            self.ledger.apply(Event::Staged(epoch))?;
        }
        reach(world, epoch, "vote")?;
        if staged && planted::has(COMMITS_EARLY) {
            self.ledger.apply(Event::VotePassed(epoch))?;
        }
        Ok(self.comm.iallreduce(vec![u8::from(staged)], Op::Min)?)
    }

    /// All have voted yes.
    fn commit(&mut self, world: &World, staging: &Staging) -> Result<(), CheckpointError> {
        let Staging { epoch, first, .. } = *staging;
        if !planted::has(COMMITS_EARLY) {
            self.ledger.apply(Event::VotePassed(epoch))?;
        }
        if let Some(next) = self.next.take() {
            self.current = next;
        }
        self.current.first = None;
        world.mark();

        let store = &self.current.store;
        let (variable, constant) = (store.variable(epoch).shard().len(), store.constant().shard().len());
        let copied = if first { constant + variable } else { variable };
        let computing = staging.account.borrow().computing;
        let exchange = staging.exchanged_at.since(staging.copied_at).saturating_sub(computing);
        let seconds = |from: Time, to: Time| to.since(from).as_secs_f64();
        let stats = &mut self.stats;
        stats.committed = epoch;
        stats.bytes_protected += copied as u64;
        stats.bytes_sent += world.bytes_sent() - staging.sent;
        stats.seconds += staging.held.as_secs_f64();
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
