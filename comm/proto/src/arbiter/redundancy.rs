//! The losses that the redundancy of a job can bear, as far as the arbiter knows of it.

use std::collections::BTreeSet;

use crate::rank::Rank;

/// Parity groups, and the ranks in them that are lost and have not been restored. Ranks are those
/// of the start of the job.
#[derive(Debug)]
pub(super) struct Redundancy {
    groups: Vec<(BTreeSet<Rank>, usize)>,
    unsettled: BTreeSet<Rank>,
}

impl Redundancy {
    /// Ranks that protect each other, and how many of them may be lost at once.
    pub(super) fn new(groups: &[(Vec<Rank>, usize)]) -> Self {
        let groups =
            groups.iter().map(|(members, tolerance)| (members.iter().copied().collect(), *tolerance));
        Self { groups: groups.collect(), unsettled: BTreeSet::new() }
    }

    /// Returns `true` if all these ranks may be lost now.
    pub(super) fn bears(&self, ranks: &[Rank]) -> bool {
        let lost: BTreeSet<Rank> = self.unsettled.iter().chain(ranks).copied().collect();
        // A group that has lost too many already is no reason to wait.
        self.groups.iter().all(|(members, tolerance)| {
            let is_hit = ranks.iter().any(|rank| members.contains(rank) && !self.unsettled.contains(rank));
            !is_hit || members.intersection(&lost).count() <= *tolerance
        })
    }

    /// A rank is lost.
    pub(super) fn lost(&mut self, rank: Rank) {
        self.unsettled.insert(rank);
    }

    /// Everything that was lost is restored, or cannot be missed.
    pub(super) fn settled(&mut self) {
        self.unsettled.clear();
    }

    /// Ranks may be in other groups than at the start. From now on all of them count as one group,
    /// which may lose what the weakest group may lose.
    pub(super) fn moved(&mut self) {
        let groups = std::mem::take(&mut self.groups);
        if let Some(least) = groups.iter().map(|(_, tolerance)| *tolerance).min() {
            let all = groups.into_iter().flat_map(|(members, _)| members).collect();
            self.groups.push((all, least));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_bears_its_tolerance_less_what_is_not_restored() {
        let mut redundancy = Redundancy::new(&[(vec![0, 1, 2], 1), (vec![3, 4, 5], 2)]);
        let bears = |redundancy: &Redundancy| {
            [&[0][..], &[0, 1], &[3, 4], &[0, 3, 4], &[3, 4, 5], &[9]].map(|ranks| redundancy.bears(ranks))
        };
        assert_eq!(bears(&redundancy), [true, false, true, true, false, true]);
        redundancy.lost(2);
        assert_eq!(bears(&redundancy), [false, false, true, false, false, true]);
        assert!(redundancy.bears(&[2]), "it is lost already");
        redundancy.settled();
        redundancy.moved();
        assert_eq!(bears(&redundancy), [true, false, false, false, false, true]);
        assert!(Redundancy::new(&[]).bears(&[0, 1, 2]), "nobody needs another one");
    }
}
