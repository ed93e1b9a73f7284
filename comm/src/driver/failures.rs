//! Who has failed in this generation, what the program knows of it, and which communicators were revoked.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use ft_proto::matching::Pattern;
use ft_proto::rank::{Membership, Rank};

/// See the module. A communicator is named by the context of its point-to-point messages.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    /// Ranks that are missing from this generation from its start.
    holes: Vec<Rank>,
    /// Ranks that have failed, holes included.
    failed: BTreeSet<Rank>,
    /// Those that the program knows of and has said so.
    acknowledged: BTreeSet<Rank>,
    revoked: BTreeSet<u32>,
    /// By communicator the one from which it was made.
    parents: HashMap<u32, u32>,
    /// By communicator the world ranks of its members.
    rosters: HashMap<u32, Rc<[Rank]>>,
}

impl Failures {
    /// A generation begins: of the communicators only those stay that live as long as the job, whose context is below
    /// `dynamic`.
    pub(super) fn begin(&mut self, membership: &Membership, dynamic: u32) {
        self.holes.clone_from(&membership.holes);
        self.failed = self.holes.iter().copied().collect();
        self.acknowledged.clone_from(&self.failed);
        self.rosters.retain(|context, _| *context < dynamic);
        self.revoked.clear();
        self.parents.clear();
    }

    /// These ranks have failed.
    pub(super) fn add(&mut self, ranks: &[Rank]) {
        self.failed.extend(ranks);
    }

    /// Ranks that have failed in this generation.
    pub(crate) fn news(&self) -> Vec<Rank> {
        self.failed.iter().copied().filter(|rank| !self.holes.contains(rank)).collect()
    }

    pub(super) fn all(&self) -> Vec<Rank> {
        self.failed.iter().copied().collect()
    }

    /// Those of `world` that have failed.
    pub(crate) fn of(&self, world: &[Rank]) -> Vec<Rank> {
        if self.failed.is_empty() {
            return vec![]; // as nearly always
        }
        self.failed.iter().copied().filter(|rank| world.contains(rank)).collect()
    }

    /// The program knows of these failures: receives from anybody need not fear them any more.
    pub(crate) fn acknowledge(&mut self, ranks: &[Rank]) {
        self.acknowledged.extend(ranks);
    }

    /// Ranks that the program has acknowledged as failed.
    pub(crate) fn acknowledged(&self) -> Vec<Rank> {
        self.acknowledged.iter().copied().collect()
    }

    /// A failed rank that might have sent to a receive from anybody, and that nobody has acknowledged.
    pub(super) fn missing_sender(&self, pattern: &Pattern) -> Option<Rank> {
        if pattern.source.is_some() || self.failed.is_empty() {
            return None; // as nearly always
        }
        let world = self.rosters.get(&pattern.context)?;
        self.failed.iter().copied().find(|rank| !self.acknowledged.contains(rank) && world.contains(rank))
    }

    /// A communicator has these members.
    pub(crate) fn enrol(&mut self, context: u32, world: Rc<[Rank]>) {
        self.rosters.insert(context, world);
    }

    /// A communicator is gone. Those that were made from it now stand behind the one that it was made from.
    pub(crate) fn strike_off(&mut self, context: u32) {
        self.rosters.remove(&context);
        let parent = self.parents.remove(&context);
        for child in self.children(context) {
            match parent {
                Some(parent) => self.parents.insert(child, parent),
                None => self.parents.remove(&child),
            };
        }
    }

    fn children(&self, context: u32) -> Vec<u32> {
        let children = self.parents.iter().filter(|(_, parent)| **parent == context);
        children.map(|(child, _)| *child).collect()
    }

    /// Communicators of which `rank` is a member.
    pub(super) fn with_member(&self, rank: Rank) -> Vec<u32> {
        self.rosters.iter().filter(|(_, world)| world.contains(&rank)).map(|(context, _)| *context).collect()
    }

    /// A communicator was made from another one: it is revoked with that, now (true) or later.
    pub(super) fn derive(&mut self, context: u32, parent: u32) -> bool {
        self.parents.insert(context, parent);
        self.is_revoked(parent)
    }

    /// A communicator was revoked, and with it all that were made from it. Gives those that were not before.
    pub(super) fn revoke(&mut self, context: u32) -> Vec<u32> {
        let mut revoked = vec![];
        let mut next = vec![context];
        while let Some(context) = next.pop() {
            if self.revoked.insert(context) {
                revoked.push(context);
                next.extend(self.children(context));
            }
        }
        revoked
    }

    pub(crate) fn is_revoked(&self, context: u32) -> bool {
        self.revoked.contains(&context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(holes: &[Rank]) -> Failures {
        let mut failures = Failures::default();
        let membership = Membership { holes: holes.to_vec(), ..Membership::default() };
        failures.begin(&membership, 100);
        failures
    }

    fn anybody(context: u32) -> Pattern {
        Pattern { context, source: None, tag: None }
    }

    #[test]
    fn holes_have_failed_and_are_no_news() {
        let mut failures = failures(&[2]);
        failures.add(&[4, 1]);
        assert_eq!(failures.news(), [1, 4]);
        assert_eq!(failures.all(), [1, 2, 4]);
        assert_eq!(failures.of(&[0, 2, 4]), [2, 4]);
        assert_eq!(failures.acknowledged(), [2]);
    }

    #[test]
    fn receives_from_anybody_miss_a_member_that_failed_until_it_is_acknowledged() {
        let mut failures = failures(&[2]);
        failures.enrol(0, Rc::from([0, 1, 2]));
        failures.enrol(200, Rc::from([0, 3]));
        assert_eq!(failures.missing_sender(&anybody(0)), None, "holes are known");
        failures.add(&[1]);
        assert_eq!(failures.missing_sender(&anybody(0)), Some(1));
        assert_eq!(failures.missing_sender(&anybody(200)), None);
        assert_eq!(failures.missing_sender(&Pattern { source: Some(1), ..anybody(0) }), None);
        assert_eq!(failures.with_member(3), [200]);
        failures.acknowledge(&[1]);
        assert_eq!(failures.missing_sender(&anybody(0)), None);
        failures.begin(&Membership::default(), 100);
        assert_eq!((failures.with_member(0), failures.with_member(3)), (vec![0], vec![]));
    }

    #[test]
    fn what_was_made_from_a_revoked_communicator_is_revoked() {
        let mut failures = failures(&[]);
        assert!(!failures.derive(200, 0) && !failures.derive(202, 200) && !failures.derive(204, 202));
        // 202 is gone; what was made from it stands behind 200.
        failures.strike_off(202);
        let mut revoked = failures.revoke(200);
        revoked.sort_unstable();
        assert_eq!(revoked, [200, 204]);
        assert_eq!(failures.revoke(200), []);
        assert!(failures.derive(206, 204) && !failures.is_revoked(206) && !failures.is_revoked(0));
        assert_eq!(failures.revoke(206), [206]);
        failures.begin(&Membership::default(), 100);
        assert!(!failures.is_revoked(204));
    }
}
