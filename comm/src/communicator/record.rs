//! Communicators as values: what a process that replaces a lost one needs to be a member of one that was made before.

use serde::{Deserialize, Serialize};

use super::*;
use ft_proto::endpoint::CONTEXT_DYNAMIC;

/// What a communicator is known by in all generations: its context, its ranks, its name, and its
/// grid. A program keeps it in its state, and after a repair each of its ranks makes a handle of it
/// ([`crate::World::communicator`]), without a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommunicatorRecord {
    context: u32,
    parent: Option<u32>,
    /// World ranks.
    ranks: Vec<u32>,
    name: String,
    /// Lengths of the grid that the ranks form, and whether they are periodic.
    grid: Option<Vec<(u32, bool)>>,
}

impl CommunicatorRecord {
    /// The name of the communicator.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn grid(&self) -> Result<Option<Rc<Grid>>, CommError> {
        let Some(dimensions) = &self.grid else { return Ok(None) };
        let (lengths, periodic): (Vec<usize>, Vec<bool>) =
            dimensions.iter().map(|(length, periodic)| (*length as usize, *periodic)).unzip();
        let grid = Grid::new(&lengths, &periodic).ok().filter(|grid| grid.size() == self.ranks.len());
        let grid = grid.ok_or_else(|| CommError::Count("a record of a grid of other ranks".into()))?;
        Ok(Some(Rc::new(grid)))
    }
}

impl Communicator {
    /// The communicator as a value; see [`CommunicatorRecord`].
    pub fn record(&self) -> CommunicatorRecord {
        CommunicatorRecord {
            context: self.shared.context,
            parent: self.shared.parent.get(),
            ranks: self.members().world.iter().map(|rank| *rank as u32).collect(),
            name: self.name(),
            grid: self.grid().map(|grid| {
                grid.lengths()
                    .zip(grid.periodic())
                    .map(|(length, periodic)| (length as u32, periodic))
                    .collect()
            }),
        }
    }

    /// The name that [`Communicator::set_name`] has given it here; empty at first (`MPI_Comm_get_name`).
    pub fn name(&self) -> String {
        self.shared.name.borrow().clone()
    }

    /// Gives it a name, on this rank (`MPI_Comm_set_name`).
    pub fn set_name(&self, name: impl Into<String>) {
        *self.shared.name.borrow_mut() = name.into();
    }

    /// The communicator of this record, by means of this one of the world; see [`crate::World::communicator`].
    pub(crate) fn of_record(&self, record: &CommunicatorRecord) -> Result<Option<Self>, CommError> {
        let ranks: Vec<Rank> = record.ranks.iter().map(|rank| *rank as Rank).collect();
        let size = self.core.peek().driver.count(true).0;
        if let Some(&rank) = ranks.iter().find(|rank| **rank >= size) {
            return Err(CommError::RankOutOfRange { rank, size });
        }
        let group = Group::new(ranks).ok().filter(|_| record.context >= CONTEXT_DYNAMIC);
        let group = group
            .ok_or_else(|| CommError::Count("a record of no communicator that a program has made".into()))?;
        let grid = record.grid()?;
        let me = self.core.peek().driver.count(true).1;
        if group.rank_of(me).is_none() {
            return Ok(None);
        }
        if let Some(known) = self.known(&group, record.context) {
            return Ok(Some(known));
        }
        let made = self.made_again(group, me, record.context);
        made.set_name(record.name.clone());
        made.set_grid(grid);
        made.shared.parent.set(record.parent);
        if let Some(parent) = record.parent {
            self.core.set(|core| core.driver.derived(record.context, parent));
        }
        Ok(Some(made))
    }
}
