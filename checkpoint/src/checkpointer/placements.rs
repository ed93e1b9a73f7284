//! The placements of one rank: the current one, that of the next checkpoint if it begins anew, and the one before.
//!
//! At any time one of them has what was committed last. A placement is dropped only when another has a commit of this rank, or
//! is what all are restored to.

use ft_comm::Membership;
use ft_proto::planted;

use super::defects::{DROPS_OLD_EARLY, KEEPS_OLD_LAYOUT};
use crate::placement::Placement;

/// See the module.
pub(super) struct Placements {
    pub(super) current: Placement,
    /// Where the next checkpoint goes if it begins anew; the current one stays until it is committed.
    next: Option<Placement>,
    /// What was the current one before a restore that is not over: if that is cut short, the next one may go back to it.
    previous: Option<Placement>,
}

impl Placements {
    pub(super) fn new(current: Placement) -> Self {
        Self { current, next: None, previous: None }
    }

    /// Whether the next checkpoint begins anew, in a placement of its own.
    pub(super) fn begins_anew(&self) -> bool {
        self.next.is_some()
    }

    /// Where the next checkpoint goes.
    pub(super) fn target(&self) -> &Placement {
        self.next.as_ref().unwrap_or(&self.current)
    }

    /// As [`Placements::target`], to write to.
    pub(super) fn target_mut(&mut self) -> &mut Placement {
        self.next.as_mut().unwrap_or(&mut self.current)
    }

    /// The next checkpoint goes to `next`.
    pub(super) fn prepare(&mut self, next: Placement) {
        self.next = Some(next);
    }

    /// Nothing is committed anywhere: `current` takes the place of all.
    pub(super) fn replace(&mut self, current: Placement) {
        (self.current, self.next, self.previous) = (current, None, None);
    }

    /// This rank has committed the checkpoint that went to the target.
    pub(super) fn committed(&mut self) {
        if let Some(next) = self.next.take() {
            self.current = next;
        }
        self.current.first = None;
    }

    /// A repair has renumbered ranks.
    pub(super) fn follow(&mut self, membership: &Membership) {
        self.current.follow(membership);
        self.next.iter_mut().chain(&mut self.previous).for_each(|other| other.follow(membership));
    }

    /// After a repair: the next placement is the current one if `chosen` is its first epoch, and is given up otherwise. All ranks
    /// hold what is chosen, and must not differ in which placement it lies in.
    ///
    /// Until this rank is restored it keeps the old placement, too: if all die that have committed `chosen`, the one before is chosen.
    pub(super) fn choose(&mut self, chosen: Option<u32>) {
        if let Some(previous) = self.previous.take() {
            self.next = Some(std::mem::replace(&mut self.current, previous));
        }
        let is_chosen = |next: &Placement| chosen.is_some() && next.first == chosen;
        if let Some(next) = self.next.take().filter(is_chosen)
            && !planted::has(KEEPS_OLD_LAYOUT)
        {
            self.previous = Some(std::mem::replace(&mut self.current, next));
        }
        if planted::has(DROPS_OLD_EARLY) {
            self.previous = None;
        }
    }

    /// All ranks hold `epoch` in the current placement; none: they begin again from the start.
    pub(super) fn restored(&mut self, epoch: Option<u32>) {
        self.previous = None;
        if epoch.is_some() {
            self.current.first = None;
        }
    }
}
