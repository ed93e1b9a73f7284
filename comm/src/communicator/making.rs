//! New communicators from old ones (MPI 4.1, section 7.4). All ranks of the old one call; the context of the new one,
//! which keeps its messages apart from all others, is agreed among them.

use super::*;
use ft_proto::reduction::Op;

/// Color of a rank that [`Communicator::split`] leaves out.
const NO_COLOR: u64 = u64::MAX;

impl Communicator {
    /// A communicator of the same ranks with a context of its own (`MPI_Comm_dup`), for a library that must not meet
    /// the program's messages. It has the same grid, if the ranks form one.
    ///
    /// # Errors
    /// A failure.
    pub fn dup(&self) -> Result<Self, CommError> {
        let context = self.agree_context()?;
        let copy = self.derived(self.members().group.clone(), context);
        copy.set_grid(self.grid());
        self.hand_attributes_to(&copy);
        Ok(copy)
    }

    /// Communicators of the ranks with equal `color`, in the order of their `key`, of equal keys in that of their ranks
    /// (`MPI_Comm_split`). A rank without a color (`MPI_UNDEFINED`) is in none.
    ///
    /// # Errors
    /// A failure.
    pub fn split(&self, color: Option<u32>, key: i64) -> Result<Option<Self>, CommError> {
        let context = self.agree_context()?;
        let mine = [color.map_or(NO_COLOR, u64::from), key as u64];
        let mut all = vec![0u64; 2 * self.size()];
        self.allgather(&mine, &mut all)?;
        if color.is_none() {
            return Ok(None);
        }
        let mut chosen: Vec<(i64, Rank)> = all
            .chunks_exact(2)
            .enumerate()
            .filter(|(_, theirs)| theirs[0] == mine[0])
            .map(|(rank, theirs)| (theirs[1] as i64, self.members().world[rank]))
            .collect();
        // Stable: equal keys stay in the order of ranks.
        chosen.sort_by_key(|(key, _)| *key);
        let group = Group::new(chosen.into_iter().map(|(_, rank)| rank).collect())
            .expect("every rank of a communicator is there once");
        Ok(Some(self.derived(group, context)))
    }

    /// A communicator of the ranks of `group`, a part of this one's, in its order (`MPI_Comm_create`). All ranks of this
    /// communicator call with the same group; those that are not in it get none.
    ///
    /// # Errors
    /// A failure, or `group` has ranks that this communicator has not.
    pub fn create(&self, group: &Group) -> Result<Option<Self>, CommError> {
        let strangers = group.difference(&self.members().group);
        if let Some(&rank) = strangers.ranks().first() {
            return Err(CommError::RankOutOfRange { rank, size: self.size() });
        }
        let context = self.agree_context()?;
        let me = self.members().world[self.rank()];
        Ok(group.rank_of(me).is_some().then(|| self.derived(group.clone(), context)))
    }

    /// One that is revoked with this one.
    fn derived(&self, group: Group, context: u32) -> Self {
        let made = self.made(group, context);
        made.shared.parent.set(Some(self.shared.context));
        self.core.set(|core| core.driver.derived(context, self.shared.context));
        made
    }

    pub(super) fn made(&self, group: Group, context: u32) -> Self {
        let world_rank = self.members().world[self.rank()];
        if self.core.peek().repeats() {
            let known = self.known(&group, context);
            return known.unwrap_or_else(|| self.made_again(group, world_rank, context));
        }
        self.core.set(|core| core.driver.engine.open_context(context));
        self.chosen(group, world_rank, context)
    }

    /// The communicator with this context and these ranks, if this process still has it.
    pub(super) fn known(&self, group: &Group, context: u32) -> Option<Self> {
        let made: Vec<Rc<dyn Made>> =
            self.core.peek().made.iter().filter_map(std::rc::Weak::upgrade).collect();
        let made = made.into_iter().filter_map(|made| made.any().downcast::<Shared>().ok());
        let is_it = |shared: &Rc<Shared>| {
            shared.context == context && shared.members.borrow().world[..] == *group.ranks()
        };
        let shared = made.filter(|shared| !shared.has_ended.get()).find(is_it)?;
        Some(Self { core: self.core.clone(), shared })
    }

    /// A communicator that others have already, or had at the line to which this rank has gone
    /// back: its collectives count on from there.
    pub(super) fn made_again(&self, group: Group, world_rank: Rank, context: u32) -> Self {
        let mut lined = None;
        self.core.set(|core| {
            core.driver.engine.open_context_again(context);
            core.knows_context(context);
            lined = core.gone_back.collectives.remove(&context);
        });
        let made = self.chosen(group, world_rank, context);
        made.set_lined(lined.unwrap_or(0));
        made
    }

    /// A communicator of ranks that the program has chosen, which the core keeps through repairs.
    pub(super) fn chosen(&self, group: Group, world_rank: Rank, context: u32) -> Self {
        let scope = Scope::Chosen(self.core.peek().generation());
        let made = Self::over(self.core.clone(), group, world_rank, context, scope);
        let shared: Rc<dyn Made> = made.shared.clone();
        self.core.set(|core| push_living(&mut core.made, &shared));
        made
    }

    /// A context that no rank of this communicator has used: one above the highest of all.
    fn agree_context(&self) -> Result<u32, CommError> {
        let mut next = [self.core.enter()?.next_context()];
        self.allreduce(&mut next, Op::Max)?;
        self.core.enter()?.use_context(next[0])
    }
}
