//! Takes checkpoints and restores from them, as one rank of a world. Every call is collective over all ranks,
//! the dedicated parity ranks included.
//!
//! The pure parts decide: where redundancy lies ([`crate::layout`]), what is whole ([`crate::protocol`]); here
//! they meet messages. A failure at any point is an error of the call; then the survivors repair the world with
//! [`Checkpointer::report`] and call [`Checkpointer::restore`] with the reports of all.

use std::time::Duration;

use ft_comm::planted;
use ft_comm::time::Clock;
use ft_comm::{CommError, Communicator, Op, World};

use crate::build;
use crate::disk::Disk;
use crate::error::CheckpointError;
use crate::exchange::Circle;
use crate::layout::Layout;
use crate::placement::Placement;
use crate::protocol::{Event, Ledger};
use crate::region::{Part, Protect, save_with_crc};
use crate::scheme::Scheme;
use crate::stats::{CheckpointSeconds, Stats};
use crate::store::{ShardMeta, Slot};

mod restoring;
mod shrinking;

pub use shrinking::Share;

/// The library layer of the communicator for checkpoints.
const LAYER: u32 = 0;
/// Tag of metadata for members that are rebuilt; stripes count from 0.
const METAS: u32 = u32::MAX;

/// A defect to plant: a rank commits before the vote.
#[doc(hidden)]
pub const COMMITS_EARLY: &str = "commits before the vote";
/// A defect to plant: a rank does not report an epoch whose vote it has not heard the end of.
#[doc(hidden)]
pub const FORGETS_STAGED: &str = "forgets what it has staged";

/// A defect to plant: a rank that has not heard of the first commit in a new layout stays with the old one.
#[doc(hidden)]
pub const KEEPS_OLD_LAYOUT: &str = "keeps the old layout";

/// Damage to plant: a bit of the rank's own shard flips in memory before a restore.
#[doc(hidden)]
pub const DAMAGED_SHARD: &str = "a bit of a shard flips";
/// Damage to plant: a bit of a redundant block flips in memory before a restore.
#[doc(hidden)]
pub const DAMAGED_BLOCK: &str = "a bit of a redundant block flips";

/// What a restore has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restored {
    /// Nothing was committed before the failure: start again from `init`.
    Nothing,
    /// The state is that of this epoch.
    Epoch(u32),
}

/// See the module.
pub struct Checkpointer {
    comm: Communicator,
    /// As it was asked for.
    scheme: Scheme,
    current: Placement,
    /// Where the next checkpoint goes, after ranks have closed up; the current one stays until it is committed.
    next: Option<Placement>,
    disk: Option<Disk>,
    ledger: Ledger,
    clock: Clock,
    scratch: Vec<u8>,
    stats: Stats,
}

impl std::fmt::Debug for Checkpointer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Checkpointer")
            .field("scheme", &self.current.layout.scheme())
            .field("ledger", &self.ledger)
            .finish()
    }
}

impl Checkpointer {
    /// A checkpointer without a checkpoint. Not collective.
    ///
    /// # Errors
    /// The scheme does not fit the world, or its directory cannot be used.
    pub fn new(world: &World, scheme: Scheme) -> Result<Self, CheckpointError> {
        let dedicated = world.total() - world.size();
        let disk = match &scheme {
            Scheme::Disk { dir } if dedicated == 0 => Some(Disk::open(dir, world.job(), world.rank())?),
            _ => None,
        };
        let layout = layout(scheme.clone(), world.size(), dedicated, world.hosts().as_deref())?;
        Ok(Self {
            comm: world.library(LAYER),
            scheme,
            current: Placement::new(world, layout, 1)?,
            next: None,
            disk,
            ledger: if world.generation() == 0 { Ledger::new(1) } else { Ledger::replacement(1) },
            clock: Clock::start(),
            scratch: Vec::new(),
            stats: Stats::default(),
        })
    }

    /// Whether something is committed.
    pub fn has_committed(&self) -> bool {
        self.ledger.committed().is_some()
    }

    /// Whether nothing is committed where the next checkpoint goes: what ranks hold now is not protected there.
    pub fn is_bare(&self) -> bool {
        self.place().first.is_some()
    }

    fn place(&self) -> &Placement {
        self.next.as_ref().unwrap_or(&self.current)
    }

    fn place_mut(&mut self) -> &mut Placement {
        self.next.as_mut().unwrap_or(&mut self.current)
    }

    /// What protection has cost so far.
    pub fn stats(&self) -> Stats {
        Stats { kept_bytes: self.current.store.bytes_reserved() as u64, ..self.stats.clone() }
    }

    /// Takes a checkpoint of `state`. The first one holds its constant part too. With scheme `none` only the
    /// first is taken, which guards nothing but says that the job has begun.
    ///
    /// # Errors
    /// A failure, or the state cannot be written; the checkpoint before is whole.
    pub fn checkpoint<S: Protect>(&mut self, world: &World, state: &mut S) -> Result<(), CheckpointError> {
        let first = self.is_bare();
        if *self.place().layout.scheme() == Scheme::None && !first {
            return Ok(());
        }
        let started = self.clock.now();
        let sent = world.bytes_sent();
        let epoch = self.ledger.next_epoch();
        let point = |phase: &str| world.fault_point("checkpoint", u64::from(epoch), Some(phase));

        point("copy")?;
        self.ledger.apply(Event::Begin(epoch))?;
        let (mut copied, kind) = (Ok(()), build::kind::<S>());
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
        point("encode")?;
        let mut computing = Duration::ZERO;
        let metas = self.share([constant, variable])?;

        point("exchange")?;
        if first {
            computing += self.encode(None, &metas.iter().map(|pair| pair[0]).collect::<Vec<_>>())?;
        }
        computing += self.encode(Some(epoch), &metas.iter().map(|pair| pair[1]).collect::<Vec<_>>())?;
        let exchanged_at = self.clock.now();
        let staged = copied.is_ok();
        if staged {
            self.ledger.apply(Event::Staged(epoch))?;
        }

        point("vote")?;
        if staged && planted::has(COMMITS_EARLY) {
            self.ledger.apply(Event::VotePassed(epoch))?;
        }
        let mut vote = [u8::from(staged)];
        self.comm.allreduce(&mut vote, Op::Min)?;
        if vote[0] == 0 {
            self.ledger.apply(Event::VoteFailed(epoch))?;
            copied?;
            return Err(CheckpointError::Refused { epoch });
        }
        if let Some(disk) = &self.disk {
            disk.complete(epoch, &metas)?;
        }
        point("commit")?;
        if self.disk.is_some() {
            // Rank 0 has made the set complete.
            self.comm.bcast(&mut [0u8], 0)?;
        }
        if !planted::has(COMMITS_EARLY) {
            self.ledger.apply(Event::VotePassed(epoch))?;
        }
        if let Some(next) = self.next.take() {
            self.current = next;
        }
        self.current.first = None;
        world.mark();

        let store = &self.current.store;
        let shard = store.variable(epoch).shard().len() + store.constant().shard().len();
        let copied = if first { shard } else { store.variable(epoch).shard().len() };
        let now = self.clock.now();
        let Stats { phases, .. } = &self.stats;
        let phases = CheckpointSeconds {
            copy: phases.copy + copied_at.since(started).as_secs_f64(),
            encode: phases.encode + computing.as_secs_f64(),
            exchange: phases.exchange
                + (exchanged_at.since(copied_at).saturating_sub(computing)).as_secs_f64(),
            commit: phases.commit + now.since(exchanged_at).as_secs_f64(),
        };
        self.stats = Stats {
            committed: epoch,
            bytes_protected: self.stats.bytes_protected + copied as u64,
            bytes_sent: self.stats.bytes_sent + (world.bytes_sent() - sent),
            seconds: self.stats.seconds + now.since(started).as_secs_f64(),
            phases,
            state_bytes: shard as u64,
            kept_bytes: 0,
            restores: std::mem::take(&mut self.stats.restores),
            degraded: self.stats.degraded.take(),
        };
        Ok(())
    }

    /// All ranks' metadata of both parts.
    fn share(&self, mine: [ShardMeta; 2]) -> Result<Vec<[ShardMeta; 2]>, CommError> {
        let bytes: Vec<u8> = mine.iter().flat_map(|meta| meta.to_bytes()).collect();
        let mut all = vec![0; bytes.len() * self.comm.size()];
        self.comm.allgather(&bytes, &mut all)?;
        let all: Vec<ShardMeta> = ShardMeta::read_all(&all).collect();
        Ok(all.as_chunks().0.to_vec())
    }

    /// Encodes one slot over the group (`None`: that of the constant part) and seals it. Gives the time spent in
    /// computing.
    fn encode(&mut self, epoch: Option<u32>, metas: &[ShardMeta]) -> Result<Duration, CheckpointError> {
        let clock = self.clock;
        let Placement { store, home, .. } = self.next.as_mut().unwrap_or(&mut self.current);
        let slot = match epoch {
            None => store.constant_mut(),
            Some(epoch) => store.variable_mut(epoch),
        };
        let Some((group, code, me)) = home else {
            // Without a group there is only the own copy, in memory and perhaps on disk.
            let own = metas[self.comm.rank()];
            if let Some(disk) = &self.disk {
                disk.stage(epoch, own, slot.shard())?;
            }
            slot.seal(&[own])?;
            return Ok(Duration::ZERO);
        };
        let metas: Vec<ShardMeta> =
            group.members[..group.computing].iter().map(|rank| metas[*rank]).collect();
        let circle = Circle { comm: &self.comm, group, code: &**code, me: *me, clock };
        let computing = circle.encode(slot, &metas, &mut self.scratch)?;
        let sealing = clock.now();
        slot.seal_copies(&metas, |stripe| group.copied(stripe))?;
        Ok(computing + clock.now().since(sealing))
    }

    /// The job is done, as all ranks have agreed ([`World::finalize`]): what lies on a disk is of no more use, and is
    /// removed.
    ///
    /// # Errors
    /// Something cannot be removed. Nobody will read it.
    pub fn remove_files(&self) -> Result<(), CheckpointError> {
        Ok(self.disk.as_ref().map_or(Ok(()), Disk::remove)?)
    }

    /// A failure was noticed; gives the value for `World::repair`.
    ///
    /// # Errors
    /// Never, unless the ledger is broken.
    pub fn report(&mut self) -> Result<u64, CheckpointError> {
        self.ledger.apply(Event::Interrupted)?;
        let mut report = self.ledger.report();
        if planted::has(FORGETS_STAGED) {
            report.staged = 0;
        }
        Ok(u64::from(report))
    }
}

/// The layout of `ranks` ranks that compute with `dedicated` parity ranks in all.
///
/// # Errors
/// The scheme does not fit, or no number of parity ranks a group gives `dedicated` in all.
fn layout(
    scheme: Scheme,
    ranks: usize,
    dedicated: usize,
    hosts: Option<&[usize]>,
) -> Result<Layout, CheckpointError> {
    if dedicated == 0 {
        return Ok(Layout::new(scheme, ranks, 0, hosts)?);
    }
    for per_group in 1..=dedicated {
        match Layout::new(scheme.clone(), ranks, per_group, hosts) {
            Ok(layout) if layout.parity_ranks() == dedicated => return Ok(layout),
            Ok(_) => {}
            Err(error) if per_group == dedicated => return Err(error.into()),
            Err(_) => {}
        }
    }
    Err(CheckpointError::ParityRanks { scheme, dedicated })
}
