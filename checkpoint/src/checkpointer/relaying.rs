//! Redundancy over the hosts where ranks are now, which are others than at the start when a host was lost.
//!
//! A layout follows from scheme and hosts, and the hosts of a generation are the same on all ranks ([`World::hosts`]). What is committed
//! stays as it was laid. Who has it knows how that was; a replacement hears it from one of them before anything is rebuilt. Then all know the
//! same, and nothing is agreed on where a checkpoint begins anew: it lies over the hosts of now if that is better ([`GroupLayout::relaid`]).
//! Where nothing is committed there is nothing to hear of, and all lies over the hosts of now.
//!
//! Why they cannot differ: an epoch that begins anew is committed only when all have staged it, in one generation, so over one row of
//! hosts. Who holds what is chosen after a failure has either committed it or staged it then, and takes the placement of it for the current
//! one ([`Placements::choose`](super::placements::Placements::choose)).

use ft_comm::{OnFailure, World};
use ft_proto::planted;

use super::Checkpointer;
use super::defects::{ASSUMES_LAYOUT, STAYS_AS_LAID};
use crate::error::CheckpointError;
use crate::layout::GroupLayout;
use crate::placement::Placement;
use crate::protocol::Choice;

/// A rank of a layout that was laid without hosts.
const NOWHERE: u32 = u32::MAX;

impl Checkpointer {
    /// Whether ranks have moved to other hosts, so that the next checkpoint is to be laid over these and begins anew, whatever is asked for.
    pub fn owes_layout(&self) -> bool {
        self.owes_layout
    }

    /// The layout of a checkpoint that begins anew: as the committed one, or over the hosts where ranks are now if that survives the loss of
    /// more of them.
    pub(super) fn layout_anew(&self, world: &World) -> GroupLayout {
        let layout = &self.places.current.layout;
        let relaid = world.hosts().and_then(|hosts| layout.relaid(&hosts));
        relaid.filter(|_| !planted::has(STAYS_AS_LAID)).unwrap_or_else(|| layout.clone())
    }

    /// An empty placement of which the next epoch will be the first.
    pub(super) fn empty(&self, layout: GroupLayout) -> Result<Placement, CheckpointError> {
        Placement::new(&self.comm, self.clock, layout, self.ledger.next_epoch(), &self.legacy.memory)
    }

    /// All learn how the checkpoint lies to which they go back, from the first rank that holds it; and whether the next one is to lie
    /// otherwise. Collective.
    pub(super) fn learn_layout(&mut self, world: &World, choice: &Choice) -> Result<(), CheckpointError> {
        self.owes_layout = false;
        let knows = choice.holders.iter().position(|holds| *holds);
        let (Some(root), OnFailure::Rebuild) = (knows, world.repair_mode()) else { return Ok(()) };
        let layout = &self.places.current.layout;
        let mut told: Vec<u32> = match layout.hosts() {
            Some(hosts) => hosts.iter().map(|host| *host as u32).collect(),
            None => vec![NOWHERE; self.comm.size()],
        };
        self.comm.bcast(&mut told, root)?;
        let hosts: Vec<usize> = told.iter().map(|host| *host as usize).collect();
        let hosts = Some(&hosts[..]).filter(|_| !told.contains(&NOWHERE));
        // Who holds it has told the same, or would have.
        let knew = choice.holders[self.comm.rank()] || planted::has(ASSUMES_LAYOUT);
        if !knew && layout.hosts() != hosts {
            self.places.current = self.empty(layout.over(hosts)?)?;
        }
        let layout = &self.places.current.layout;
        self.owes_layout = world.hosts().is_some_and(|hosts| layout.relaid(&hosts).is_some());
        Ok(())
    }
}
