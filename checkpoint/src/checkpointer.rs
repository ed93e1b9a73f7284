//! Takes checkpoints and restores from them, as one rank of a world. Every call is collective over all ranks,
//! the dedicated parity ranks included.
//!
//! The pure parts decide: where redundancy lies ([`crate::layout`]), what is whole ([`crate::protocol`]); here
//! they meet messages. A failure at any point is an error of the call; then the survivors repair the world with
//! [`Checkpointer::report`] and call [`Checkpointer::restore`] with the reports of all.

use std::num::NonZero;

use ft_comm::time::Clock;
use ft_comm::{Communicator, World};
use ft_proto::planted;

use crate::disk::Disk;
use crate::error::CheckpointError;
use crate::layout::GroupLayout;
use crate::placement::Placement;
use crate::protocol::{Event, Ledger};
use crate::scheme::Scheme;
use crate::stats::Stats;

mod budget;
mod keeper;
mod restoring;
mod scrubbing;
mod shrinking;
mod staging;
mod trying;

use keeper::{Blocks, Files, Keeper};
use scrubbing::Scrub;
pub use shrinking::RankState;
use staging::{Phase, Staging};

/// The library layer of the communicator for checkpoints.
const LAYER: u32 = 0;

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

/// Damage to plant: a bit of the redundant blocks of each checkpoint flips on its way, before their checksums are taken.
#[doc(hidden)]
pub const DAMAGED_ON_THE_WAY: &str = "a bit of redundancy flips on its way";

/// Damage to plant: a bit of what is held of the committed checkpoint flips behind the computation.
#[doc(hidden)]
pub const ROTS: &str = "a bit of the committed checkpoint flips";

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
    /// The groups at the start, in words.
    shape: String,
    current: Placement,
    /// Where the next checkpoint goes, after ranks have closed up; the current one stays until it is committed.
    next: Option<Placement>,
    keeper: Box<dyn Keeper>,
    ledger: Ledger,
    clock: Clock,
    /// The checkpoint under way.
    staging: Option<(Phase, Staging)>,
    /// Bytes a second.
    throttle: Option<NonZero<u64>>,
    /// Bytes that checkpoints may take of a rank.
    memory_limit: Option<NonZero<u64>>,
    /// How far a look for damage has come, if there is one.
    scrub: Option<Scrub>,
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
        let layout = layout(scheme.clone(), world.size(), dedicated, world.hosts().as_deref())?;
        let (comm, clock) = (world.library(LAYER), Clock::start());
        let keeper: Box<dyn Keeper> = match &scheme {
            Scheme::Disk { dir } => {
                let disk = Disk::open(dir, world.job(), world.rank())?;
                Box::new(Files { disk, comm: comm.clone(), clock })
            }
            _ => Box::new(Blocks),
        };
        Ok(Self {
            scheme,
            shape: layout.shape(),
            current: Placement::new(&comm, clock, layout, 1)?,
            comm,
            next: None,
            keeper,
            ledger: if world.generation() == 0 { Ledger::new(1) } else { Ledger::replacement(1) },
            clock,
            staging: None,
            throttle: None,
            memory_limit: None,
            scrub: None,
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

    /// The job is done, as all ranks have agreed ([`World::finalize`]): what lies on a disk is of no more use, and is
    /// removed.
    ///
    /// # Errors
    /// Something cannot be removed. Nobody will read it.
    pub fn remove_files(&self) -> Result<(), CheckpointError> {
        self.keeper.remove()
    }

    /// A failure was noticed; gives the value for `World::repair`. A checkpoint under way is given up.
    ///
    /// # Errors
    /// Never, unless the ledger is broken.
    pub fn report(&mut self) -> Result<u64, CheckpointError> {
        self.staging = None;
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
) -> Result<GroupLayout, CheckpointError> {
    if dedicated == 0 {
        return Ok(GroupLayout::new(scheme, ranks, 0, hosts)?);
    }
    for per_group in 1..=dedicated {
        match GroupLayout::new(scheme.clone(), ranks, per_group, hosts) {
            Ok(layout) if layout.parity_ranks() == dedicated => return Ok(layout),
            Ok(_) => {}
            Err(error) if per_group == dedicated => return Err(error.into()),
            Err(_) => {}
        }
    }
    Err(CheckpointError::ParityRanks { scheme, dedicated })
}
