//! Whether the redundancy of a job survives the loss of a whole host: ranks that have moved may share one with too many others of their
//! group, until a checkpoint is laid over the hosts where they are.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ft_checkpoint::GroupLayout;
use ft_comm::Rank;
use ft_comm::time::Time;
use ft_launch::Seen;
use ft_proto::arbiter::Event;

/// Where the ranks are, and what that means.
pub(crate) struct Footing {
    /// As what is committed lies.
    layout: GroupLayout,
    /// The host of each rank, as processes are started.
    stands: BTreeMap<Rank, String>,
    /// The same in this generation.
    hosts: Vec<String>,
    /// Something was committed before this generation.
    has_committed: bool,
    /// Ranks that have committed something in it.
    committed: BTreeSet<Rank>,
    /// As what was committed lay in the generation before, if the first checkpoint of this one lies otherwise.
    before: Option<GroupLayout>,
    /// Any host could be lost when the job began, so that it says something if one cannot be any more.
    was_safe: Option<bool>,
    /// Since when there is a host that cannot be lost.
    since: Option<Time>,
    /// For how long there was one before.
    exposed: Duration,
}

impl Footing {
    pub(crate) fn new(layout: GroupLayout) -> Self {
        Self {
            layout,
            stands: BTreeMap::new(),
            hosts: vec![],
            has_committed: false,
            committed: BTreeSet::new(),
            before: None,
            was_safe: None,
            since: None,
            exposed: Duration::ZERO,
        }
    }

    /// What is to be said of it.
    pub(crate) fn note(&mut self, seen: Seen<'_>, at: Time) -> Option<String> {
        match seen {
            Seen::Stands { rank, host } => _ = self.stands.insert(rank, host.to_owned()),
            Seen::Event(Event::Decided { failed, .. }) => {
                // Those who knew of a commit may all be lost: then all go back behind it.
                let is_known = self.committed.iter().any(|rank| !failed.contains(rank));
                let before = self.before.take().filter(|_| !is_known);
                self.has_committed |= is_known;
                self.committed.clear();
                self.hosts = self.stands.values().cloned().collect();
                // Where nothing is committed all lies over the hosts of now.
                let over = self.layout.over(Some(&self.numbers())).ok().filter(|_| !self.has_committed);
                self.layout = over.or(before).unwrap_or_else(|| self.layout.clone());
                return self.judge(at);
            }
            Seen::Event(Event::Marked { rank, .. }) => {
                // The first checkpoint after a repair lies over the hosts of then, if that is of use.
                let is_first = self.committed.is_empty();
                self.committed.insert(*rank);
                if let Some(next) = self.layout.relaid(&self.numbers()).filter(|_| is_first) {
                    self.before = Some(std::mem::replace(&mut self.layout, next));
                    return self.judge(at);
                }
            }
            Seen::Event(_) | Seen::Host { .. } | Seen::Saving { .. } => {}
        }
        None
    }

    fn judge(&mut self, at: Time) -> Option<String> {
        let fatal = self.fatal();
        if !*self.was_safe.get_or_insert(fatal.is_empty()) {
            return None;
        }
        match (self.since, fatal.is_empty()) {
            (None, false) => {
                self.since = Some(at);
                let scheme = self.layout.scheme();
                Some(format!("{scheme} does not survive the loss of a whole host any more: {fatal}"))
            }
            (Some(since), true) => {
                self.since = None;
                self.exposed += at.since(since);
                Some(format!("{} survives the loss of any host again", self.layout.scheme()))
            }
            _ => None,
        }
    }

    /// By rank its host, as numbers in the order of the first ranks on them: as ranks count them (`World::hosts`).
    fn numbers(&self) -> Vec<usize> {
        let mut names: Vec<&String> = vec![];
        let mut number = |name| {
            let found = names.iter().position(|other| *other == name);
            found.unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            })
        };
        self.hosts.iter().map(&mut number).collect()
    }

    /// The hosts that cannot be lost, in words, empty if there is none; one alone is none of them.
    fn fatal(&self) -> String {
        let numbers = self.numbers();
        let fatal = self.layout.fatal_hosts(&numbers);
        let named = self.hosts.iter().zip(&numbers).filter(|(_, number)| fatal.contains(number));
        let names: BTreeSet<&str> = named.map(|(name, _)| name.as_str()).collect();
        match numbers.iter().max() {
            Some(1..) => names.into_iter().collect::<Vec<_>>().join(", "),
            _ => String::new(),
        }
    }

    /// For how long the loss of one more host would have been the end, in a job that took so long.
    pub(crate) fn exposed(&self, elapsed: Duration) -> Duration {
        let now = self.since.map_or(Duration::ZERO, |since| elapsed.saturating_sub(since.since(Time(0))));
        self.exposed + now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stand(footing: &mut Footing, ranks: &[(Rank, &str)]) {
        for (rank, host) in ranks {
            assert_eq!(footing.note(Seen::Stands { rank: *rank, host }, Time(0)), None);
        }
    }

    fn decide(footing: &mut Footing, second: u64) -> Option<String> {
        let decided = Event::Decided { generation: 1, failed: vec![], held: vec![] };
        footing.note(Seen::Event(&decided), Time(second * 1_000_000_000))
    }

    #[test]
    fn it_is_said_when_a_host_cannot_be_lost_any_more() {
        let layout = GroupLayout::new("rs:4+2".parse().unwrap(), 6, 0, Some(&[0, 0, 1, 1, 2, 2])).unwrap();
        let mut footing = Footing::new(layout.clone());
        stand(&mut footing, &[(0, "a"), (1, "a"), (2, "b"), (3, "b"), (4, "c"), (5, "c")]);
        assert_eq!(decide(&mut footing, 1), None);
        stand(&mut footing, &[(2, "a"), (3, "c")]);
        let said = decide(&mut footing, 2).unwrap();
        assert_eq!(said, "rs:4+2 does not survive the loss of a whole host any more: a, c");
        assert_eq!(decide(&mut footing, 3), None, "it is known");
        assert_eq!(footing.exposed(Duration::from_secs(4)), Duration::from_secs(2));
        stand(&mut footing, &[(2, "b"), (3, "b")]);
        assert_eq!(decide(&mut footing, 6).unwrap(), "rs:4+2 survives the loss of any host again");
        assert_eq!(footing.exposed(Duration::from_secs(9)), Duration::from_secs(4));
    }

    #[test]
    fn the_first_checkpoint_after_a_repair_lies_over_the_hosts_of_then() {
        let layout = GroupLayout::new("xor:2".parse().unwrap(), 4, 0, Some(&[0, 0, 1, 2])).unwrap();
        let mut footing = Footing::new(layout);
        let mark = |footing: &mut Footing, second: u64| {
            let marked = Event::Marked { rank: 3, number: 7 };
            footing.note(Seen::Event(&marked), Time(second * 1_000_000_000))
        };
        stand(&mut footing, &[(0, "a"), (1, "a"), (2, "b"), (3, "c")]);
        assert_eq!((decide(&mut footing, 1), mark(&mut footing, 2)), (None, None));
        stand(&mut footing, &[(0, "b"), (1, "c")]);
        assert!(decide(&mut footing, 3).unwrap().ends_with("any more: b, c"));
        // Who is started after that is not where this checkpoint counts it.
        stand(&mut footing, &[(1, "b"), (3, "b")]);
        assert_eq!(mark(&mut footing, 5).unwrap(), "xor:2 survives the loss of any host again");
        assert_eq!(footing.exposed(Duration::from_secs(9)), Duration::from_secs(2));
        stand(&mut footing, &[(1, "c"), (3, "c")]);
        assert_eq!((decide(&mut footing, 6), mark(&mut footing, 7)), (None, None), "it is as it was laid");
        assert_eq!(footing.exposed(Duration::from_secs(9)), Duration::from_secs(2));
    }

    #[test]
    fn a_commit_of_which_nobody_knows_is_none() {
        let layout = GroupLayout::new("xor:2".parse().unwrap(), 4, 0, Some(&[0, 0, 1, 2])).unwrap();
        let mut footing = Footing::new(layout);
        let decided =
            |failed: &[Rank]| Event::Decided { generation: 1, failed: failed.to_vec(), held: vec![] };
        let mut see = |event, second: u64| footing.note(Seen::Event(&event), Time(second * 1_000_000_000));
        let marked = |rank| Event::Marked { rank, number: 7 };
        assert_eq!(see(decided(&[]), 1), None, "nobody stands anywhere");
        stand(&mut footing, &[(0, "a"), (1, "a"), (2, "b"), (3, "c")]);
        let mut see = |event, second: u64| footing.note(Seen::Event(&event), Time(second * 1_000_000_000));
        assert_eq!((see(decided(&[]), 2), see(marked(2), 2)), (None, None));
        stand(&mut footing, &[(0, "b"), (1, "c")]);
        let mut see = |event, second: u64| footing.note(Seen::Event(&event), Time(second * 1_000_000_000));
        assert!(see(decided(&[0, 1]), 3).is_some() && see(marked(3), 4).is_some());
        assert!(see(decided(&[3]), 5).unwrap().ends_with("any more: b, c"));
        assert!(see(marked(3), 6).is_some() && see(marked(0), 6).is_none());
        assert_eq!((see(decided(&[3]), 7), see(marked(3), 8)), (None, None));
        assert_eq!(footing.exposed(Duration::from_secs(9)), Duration::from_secs(2));
    }

    #[test]
    fn what_was_so_from_the_start_and_one_host_alone_are_not_spoken_of() {
        let layout = GroupLayout::new("xor:4".parse().unwrap(), 4, 0, None).unwrap();
        for hosts in [["a", "a", "b", "b"], ["a"; 4]] {
            let mut footing = Footing::new(layout.clone());
            stand(&mut footing, &hosts.map(|host| (0, host)));
            hosts.iter().enumerate().for_each(|(rank, host)| stand(&mut footing, &[(rank, host)]));
            assert_eq!((decide(&mut footing, 1), decide(&mut footing, 2)), (None, None));
            assert_eq!(footing.exposed(Duration::from_secs(4)), Duration::ZERO);
        }
    }
}
