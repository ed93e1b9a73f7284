//! Takes checkpoints and restores from them, as one rank of a world. Every call is collective over all ranks,
//! the dedicated parity ranks included.
//!
//! The pure parts decide: where redundancy lies ([`crate::layout`]), what is whole ([`crate::protocol`]); here
//! they meet messages. A failure at any point is an error of the call; then the survivors repair the world with
//! [`Checkpointer::report`] and call [`Checkpointer::restore`] with the reports of all.

use ft_comm::time::Clock;
use ft_comm::{Communicator, World};
use ft_proto::planted;

use crate::disk::Disk;
use crate::error::CheckpointError;
use crate::layout::{GroupLayout, ParityGroup};
use crate::placement::Placement;
use crate::protocol::{Choice, Event, Ledger, State, choose};
use crate::scheme::Scheme;
use crate::stats::Stats;

mod apart;
mod budget;
mod defects;
mod holdings;
mod increments;
mod keeper;
mod legacy;
mod lines;
mod live;
mod placements;
mod relaying;
mod restoring;
mod scrubbing;
mod shrinking;
mod spilling;
mod staging;
mod throttle;
mod trying;
mod under_way;

pub use apart::CHECKSUM_LIMIT;
use budget::Budget;
#[doc(hidden)]
pub use defects::{
    ASSUMES_LAYOUT, CLAIMS_WHAT_IS_LOST, COMMITS_EARLY, COPIES_EARLY, DAMAGED_BLOCK, DAMAGED_COPY,
    DAMAGED_ON_THE_WAY, DAMAGED_SHARD, DENIES_ROUNDING, DROPS_OLD_EARLY, FORGETS_LIVE, FORGETS_STAGED,
    KEEPS_COMMIT_TO_ITSELF, KEEPS_OLD_LAYOUT, ROTS, ROTS_FOR_GOOD, STAYS_AS_LAID, TRUSTS_OLD_COPY,
    TRUSTS_ROUNDED,
};
use increments::Increments;
use keeper::{Blocks, Files, Keeper};
use legacy::Legacy;
use placements::Placements;
pub(crate) use restoring::LiveState;
use scrubbing::Scrub;
pub use shrinking::RankState;
use spilling::Spilling;
use throttle::Throttle;
use under_way::{Phase, Staging};

/// The library layer of the communicator for checkpoints.
const LAYER: u32 = 0;
/// Those of the levels above the first; the loop has one of its own before them.
const LAYERS_ABOVE: u32 = 1;

/// What a restore has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restored {
    /// Nothing was committed before the failure: start again from `init`.
    Nothing,
    /// The state is that of this epoch.
    Epoch(u32),
}

/// One rank's part in checkpoints: it takes them, and restores from them, together with all other ranks.
pub struct Checkpointer {
    comm: Communicator,
    /// Which of several schemes this is.
    level: u32,
    /// As it was asked for.
    scheme: Scheme,
    /// The groups at the start, in words.
    shape: String,
    places: Placements,
    keeper: Box<dyn Keeper>,
    ledger: Ledger,
    legacy: Legacy,
    clock: Clock,
    /// The checkpoint under way.
    staging: Option<(Phase, Staging)>,
    throttle: Throttle,
    increments: Increments,
    /// A rank keeps one copy of its state where it can.
    saves_memory: bool,
    /// The last checkpoint was given up, as a copy was damaged.
    is_spoiled: bool,
    budget: Budget,
    /// Something was rebuilt with rounding, or is damaged: the next checkpoint begins anew, and until it is committed redundancy is not whole.
    owes_fresh: bool,
    /// Ranks have moved, and groups over the hosts where they are now survive the loss of more of them: the next checkpoint begins anew.
    owes_layout: bool,
    /// How far rebuilt doubles may be from what they were, relative to the largest of a rank.
    checksum_limit: f64,
    /// How far a look for damage has come, if there is one.
    scrub: Option<Scrub>,
    /// Files beside memory, if there are any.
    spilling: Option<Spilling>,
    /// Ranks that compute.
    computing: usize,
    /// Since the last repair.
    stats: Stats,
    /// Before it.
    earlier: Stats,
    /// Bytes of the largest state that was protected before the checkpoints began anew, and bytes kept for it.
    before: (u64, u64),
    /// A checkpoint was under way at the last failure.
    gave_up: bool,
}

impl std::fmt::Debug for Checkpointer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Checkpointer")
            .field("scheme", &self.places.current.layout.scheme())
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
        Self::on_level(world, scheme, 0)
    }

    /// As [`Checkpointer::new`], for checkpoints beside those of others, which are on other levels. Memory that outlives the process is
    /// for level 0.
    pub(crate) fn on_level(world: &World, scheme: Scheme, level: u32) -> Result<Self, CheckpointError> {
        let dedicated = world.total() - world.size();
        let layout = layout(scheme.clone(), world.size(), dedicated, world.hosts().as_deref())?;
        let layer = if level == 0 { LAYER } else { LAYERS_ABOVE + level };
        let (comm, clock) = (world.library(layer), Clock::start());
        let keeper: Box<dyn Keeper> = match &scheme {
            Scheme::Disk { dir } => {
                let disk = Disk::open(dir, world.job(), world.rank())?;
                Box::new(Files { disk, comm: comm.clone(), clock })
            }
            _ => Box::new(Blocks),
        };
        let mut legacy = Legacy::of(world, &scheme, level);
        let (shape, memory) = (layout.shape(), legacy.memory.clone());
        let new = |layout: GroupLayout| Placement::new(&comm, clock, layout, 1, &memory);
        let (ledger, places) = match legacy.open(&layout, new)? {
            Some(found) => found,
            None if world.generation() == 0 => (Ledger::new(1), Placements::new(new(layout)?)),
            None => (Ledger::replacement(1), Placements::new(new(layout)?)),
        };
        Ok(Self {
            level,
            scheme,
            shape,
            places,
            comm,
            keeper,
            ledger,
            legacy,
            clock,
            staging: None,
            throttle: Throttle::default(),
            increments: Increments::default(),
            saves_memory: false,
            is_spoiled: false,
            budget: Budget::default(),
            owes_fresh: false,
            owes_layout: false,
            checksum_limit: CHECKSUM_LIMIT,
            scrub: None,
            spilling: None,
            computing: world.size(),
            stats: Stats::default(),
            earlier: Stats::default(),
            before: (0, 0),
            gave_up: false,
        })
    }

    /// Whether something is committed.
    pub fn has_committed(&self) -> bool {
        self.ledger.committed().is_some()
    }

    /// The number of the checkpoint that was begun last and not given up: the same on all ranks after each has begun it, however far it is.
    pub(crate) fn newest(&self) -> u32 {
        match self.ledger.state() {
            State::Staging(epoch) | State::Staged(epoch) => epoch,
            State::Idle | State::Interrupted(_) => self.ledger.committed().unwrap_or(0),
        }
    }

    /// Whether nothing is committed where the next checkpoint goes: what ranks hold now is not protected there.
    pub fn is_bare(&self) -> bool {
        self.places.target().first.is_some()
    }

    /// The next checkpoint begins anew: it has a constant part of its own, may be of another type of state, and lies over the hosts where
    /// ranks are now if that survives the loss of more of them. The committed one stays until that is committed. To be called while no checkpoint is under way; not collective,
    /// but the same on all ranks.
    ///
    /// # Errors
    /// Never, unless the scheme has no code.
    pub fn begin_anew(&mut self, world: &World) -> Result<(), CheckpointError> {
        // Where ranks have closed up the next one does already.
        if self.has_committed() && !self.places.begins_anew() {
            self.before = self.largest();
            self.places.prepare(self.empty(self.layout_anew(world))?);
        }
        Ok(())
    }

    /// Bytes of the largest state so far, and bytes kept for it.
    fn largest(&self) -> (u64, u64) {
        let now = (self.stats.state_bytes, self.places.current.store.bytes_reserved() as u64);
        if self.before.0 > now.0 { self.before } else { now }
    }

    /// All ranks hold `epoch`, and go on from it; none: from the start.
    fn settle(&mut self, world: &World, epoch: Option<u32>) -> Result<(), CheckpointError> {
        self.ledger.apply(Event::Restored(epoch.unwrap_or(0)))?;
        self.places.restored(epoch);
        self.owes_fresh = false;
        // Where homes are empty the others lay it out anew.
        if epoch.is_none() && !self.places.current.has_empty_homes() {
            self.clear(world)?;
        }
        self.spill_restored(epoch.unwrap_or(0));
        self.stats.committed = epoch.unwrap_or(self.stats.committed);
        self.legacy.is_heir = false;
        self.note(true);
        Ok(())
    }

    /// After a repair in which all go on from another level: who was lost has nothing here, and where nothing `stays` all have given up
    /// what they had. The next checkpoint has to begin anew.
    pub(crate) fn pass_by(
        &mut self,
        world: &World,
        reports: &[u64],
        stays: bool,
    ) -> Result<(), CheckpointError> {
        self.ledger.apply(Event::Interrupted)?;
        let choice = choose(reports);
        self.places.choose(choice.epoch);
        self.learn_layout(world, &choice)?;
        let Choice { epoch, holders, .. } = choice;
        let newest = epoch.unwrap_or(0);
        let is_holder = holders[self.comm.rank()] || planted::has(CLAIMS_WHAT_IS_LOST);
        let holds = stays && epoch.is_some() && is_holder;
        let counted = if stays { newest } else { 0 };
        self.ledger.apply(if holds { Event::Restored(counted) } else { Event::PassedBy(counted) })?;
        self.places.restored(epoch);
        self.spill_restored(newest);
        if counted == 0 {
            self.count_on_from(self.counted_from() + newest);
            self.clear(world)?;
        }
        self.legacy.is_heir = false;
        // It begins anew in any case.
        (self.owes_fresh, self.owes_layout) = (false, false);
        if !holds && let Some(mut estate) = self.legacy.memory.estate() {
            estate.forget();
        }
        Ok(())
    }

    /// Nothing is committed: the next checkpoint is the first one.
    fn clear(&mut self, world: &World) -> Result<(), CheckpointError> {
        self.owes_layout = false;
        let layout = self.places.current.layout.over(world.hosts().as_deref())?;
        self.places.replace(self.empty(layout)?);
        Ok(())
    }

    /// What protection has cost so far. The bytes of state and copies are those of the largest state if checkpoints began anew.
    pub fn stats(&self) -> Stats {
        let (state_bytes, kept_bytes) = self.largest();
        Stats { state_bytes, kept_bytes, ..self.earlier.clone().then(self.stats.clone()) }
    }

    /// The same since [`Checkpointer::begin_account`]: what a rank tells the launcher ([`World::account`]) in case that it does not
    /// come to its end.
    pub fn account(&self) -> Stats {
        let (state_bytes, kept_bytes) = self.largest();
        Stats { state_bytes, kept_bytes, ..self.stats.clone() }
    }

    /// To be called when a repair has ended: what comes now belongs to another generation.
    pub fn begin_account(&mut self) {
        let next = self.stats.and_on();
        let before = std::mem::take(&mut self.earlier);
        self.earlier = before.then(std::mem::replace(&mut self.stats, next));
    }

    /// Checkpoints that this process took part in.
    pub(crate) fn taken(&self) -> u32 {
        self.earlier.taken + self.stats.taken
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
        self.gave_up = self.staging.take().is_some();
        self.ledger.apply(Event::Interrupted)?;
        Ok(self.told())
    }

    /// Whether a checkpoint was under way at the last failure.
    pub(crate) fn gave_up(&self) -> bool {
        self.gave_up
    }

    /// The checkpoint that this rank has committed, and the one that it holds as a whole and of which it was not known at the last failure whether it is committed; 0: none.
    pub(crate) fn held(&self) -> (u32, u32) {
        let report = self.ledger.report();
        (report.committed, report.staged)
    }

    /// How many ranks may be lost at once, wherever they are.
    pub(crate) fn losses_max(&self) -> usize {
        self.places.current.layout.groups.iter().map(ParityGroup::tolerance).sum()
    }

    /// What this rank has, in the words of [`Checkpointer::report`].
    pub(crate) fn told(&self) -> u64 {
        let mut report = self.ledger.report();
        if planted::has(FORGETS_STAGED) {
            report.staged = 0;
        }
        u64::from(report)
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
