//! Restoring a checkpoint on fewer ranks than it was taken on: survivors decode the states of the lost ranks.

use ft_comm::{Communicator, Rank, Repair, World};

use super::Checkpointer;
use super::holdings::{Holdings, look_at_all, say};
use super::restoring::check_type;
use crate::error::CheckpointError;
use crate::placement::{Placement, degraded, reduced};
use crate::protocol::{Event, choose};
use crate::region::{Protect, StatePart, load};

/// The state that one rank had at a checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct RankState<S> {
    /// The rank, as ranks were numbered then.
    pub rank: Rank,
    /// Its state.
    pub state: S,
}

/// A home with both parts of its shard.
type Shards = (Rank, [Vec<u8>; 2]);

impl Checkpointer {
    /// After a repair that may have renumbered ranks; to be called once after each, before anything else.
    pub fn follow(&mut self, repair: &Repair) {
        self.places.follow(repair);
        self.places.choose(choose(&repair.reports).epoch);
    }

    /// Whether ranks are missing of those that took the last checkpoint.
    pub fn has_empty_homes(&self) -> bool {
        self.places.current.has_empty_homes()
    }

    /// The number of ranks that took the last checkpoint.
    pub fn ranks_before(&self) -> usize {
        self.places.current.layout.ranks()
    }

    /// Nothing is to be restored, as every rank keeps its live `state`: only agrees on what counts as committed.
    ///
    /// # Errors
    /// Never, unless the ledger is broken, or the state is of another type than that of the checkpoint which was interrupted.
    pub fn pass_over<S: Protect>(
        &mut self,
        world: &World,
        repair: &Repair,
        state: &mut S,
    ) -> Result<(), CheckpointError> {
        self.ledger.apply(Event::Interrupted)?;
        let chosen = choose(&repair.reports).epoch;
        self.settle_live(world, chosen, Some(state))?;
        self.settle(world, chosen)
    }

    /// Chooses the newest checkpoint that is whole, and gives this rank its own state of then, and those of the lost ranks
    /// that fall to it: each falls to one survivor of its parity group, in turn. Collective. `None`: nothing was
    /// committed before the failure. Nothing of the checkpoint changes, so that it serves again if this fails.
    ///
    /// A lost state comes along a chain of its group, so that each member sends its length once. The own `state` is left as it is.
    ///
    /// # Errors
    /// A failure; [`CheckpointError::BeyondTolerance`]: too much is lost, the job is to be ended; [`CheckpointError::Unfit`]: the scheme is
    /// one of checksums.
    pub fn gather<S: Protect + Default>(
        &mut self,
        world: &World,
        repair: &Repair,
        state: &mut S,
    ) -> Result<Option<Vec<RankState<S>>>, CheckpointError> {
        if self.keeps_doubles_apart() {
            let why =
                "states with doubles that are protected by checksums cannot be dealt out over fewer ranks";
            return Err(CheckpointError::Unfit(why.into()));
        }
        let _guard = self.comm.guard()?;
        let number = u64::from(world.generation());
        let point = |phase: &str| world.fault_point("restore", number, Some(phase));
        point("plan")?;
        self.ledger.apply(Event::Interrupted)?;
        let choice = choose(&repair.reports);
        self.settle_live(world, choice.epoch, Some(state))?;
        let Some(epoch) = choice.epoch else {
            self.settle(world, None)?;
            return Ok(None);
        };
        point("exchange")?;
        let shares = self.places.current.find_shares(&self.comm, epoch, &choice.holders)?;
        point("verify")?;
        self.comm.barrier()?;
        self.settle(world, Some(epoch))?;
        check_type::<S>(self.places.current.store.variable(epoch), self.comm.rank())?;
        let load = |(rank, [constant, variable]): Shards| {
            let mut state = S::default();
            load(&mut state, StatePart::Constant, &constant)?;
            load(&mut state, StatePart::Variable, &variable)?;
            Ok(RankState { rank, state })
        };
        shares.into_iter().map(load).collect::<Result<Vec<_>, CheckpointError>>().map(Some)
    }

    /// The next checkpoint is laid over the ranks that there are now, with as much of the scheme as they can have. The
    /// current one stays until that is committed.
    ///
    /// # Errors
    /// Nothing fits.
    pub fn lay_out_anew(&mut self, world: &World) -> Result<(), CheckpointError> {
        self.computing = world.size();
        let layout = reduced(&self.scheme, world.size(), world.hosts().as_deref())?;
        self.stats.degraded = degraded(&self.shape, &layout);
        let placement =
            Placement::new(&self.comm, self.clock, layout, self.ledger.next_epoch(), &self.legacy.memory)?;
        if self.has_committed() {
            self.places.prepare(placement);
        } else {
            self.places.replace(placement);
        }
        Ok(())
    }
}

impl Placement {
    /// Both parts of the shards of all homes that this rank speaks for, its own first; `holders` are the ranks that hold `epoch`.
    fn find_shares(
        &mut self,
        comm: &Communicator,
        epoch: u32,
        holders: &[bool],
    ) -> Result<Vec<Shards>, CheckpointError> {
        let said = say(comm, look_at_all(&self.store, epoch))?;
        let tenants = &self.tenants;
        let holdings = Holdings {
            held: tenants.iter().map(|tenant| tenant.is_some_and(|rank| holders[rank])).collect(),
            said: tenants.iter().map(|tenant| tenant.map_or(0, |rank| said[rank])).collect(),
        };
        let (group_comm, choices) = (self.comm_of_speakers(&holdings.held), self.choices(&holdings));
        let (Some(group_comm), Some(home), Some(_)) = (group_comm, self.home.clone(), choices) else {
            return Err(self.beyond_help(&holdings));
        };
        let held: Vec<bool> = home.group.members.iter().map(|home| holdings.held[*home]).collect();
        let metas = group_comm.share_metas(&self.store, epoch, &held)?;
        let found = self.find_shards(epoch, &group_comm, &holdings, &metas)?;
        let own = [self.store.constant(), self.store.variable(epoch)];
        let share = |member: usize| {
            let part = |at: usize| {
                let mut found = found[at].iter().filter(|(other, _)| *other == member);
                let found = found.find_map(|(_, candidates)| candidates.found());
                found.unwrap_or_else(|| own[at].shard()).to_vec()
            };
            (home.group.members[member], [part(0), part(1)])
        };
        let others =
            (0..home.group.computing).filter(|member| *member != home.me && group_comm.is_here(*member));
        Ok(std::iter::once(home.me).chain(others).map(share).collect())
    }
}
