//! Whether the redundancy of a job survives the loss of a whole host: ranks that have moved may share one with too many others of their
//! group.

use std::collections::BTreeMap;
use std::time::Duration;

use ft_checkpoint::GroupLayout;
use ft_comm::Rank;
use ft_comm::time::Time;
use ft_launch::Seen;
use ft_proto::arbiter::Event;

/// Where the ranks are, and what that means.
pub(crate) struct Footing<'a> {
    layout: &'a GroupLayout,
    /// The host of each rank.
    hosts: BTreeMap<Rank, String>,
    /// Any host could be lost when the job began, so that it says something if one cannot be any more.
    was_safe: Option<bool>,
    /// Since when there is a host that cannot be lost.
    since: Option<Time>,
    /// For how long there was one before.
    exposed: Duration,
}

impl<'a> Footing<'a> {
    pub(crate) fn new(layout: &'a GroupLayout) -> Self {
        Self { layout, hosts: BTreeMap::new(), was_safe: None, since: None, exposed: Duration::ZERO }
    }

    /// What is to be said of it.
    pub(crate) fn note(&mut self, seen: Seen<'_>, at: Time) -> Option<String> {
        match seen {
            Seen::Stands { rank, host } => _ = self.hosts.insert(rank, host.to_owned()),
            Seen::Event(Event::Decided { .. }) => return self.judge(at),
            Seen::Event(_) | Seen::Host { .. } => {}
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

    /// The hosts that cannot be lost, in words, empty if there is none; one alone is none of them.
    fn fatal(&self) -> String {
        let mut ranks = BTreeMap::<&str, Vec<Rank>>::new();
        self.hosts.iter().for_each(|(rank, host)| ranks.entry(host).or_default().push(*rank));
        if ranks.len() < 2 {
            return String::new();
        }
        ranks.retain(|_, lost| self.layout.survives(lost).is_err());
        ranks.into_keys().collect::<Vec<_>>().join(", ")
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

    fn stand(footing: &mut Footing<'_>, ranks: &[(Rank, &str)]) {
        for (rank, host) in ranks {
            assert_eq!(footing.note(Seen::Stands { rank: *rank, host }, Time(0)), None);
        }
    }

    fn decide(footing: &mut Footing<'_>, second: u64) -> Option<String> {
        let decided = Event::Decided { generation: 1, failed: vec![], held: vec![] };
        footing.note(Seen::Event(&decided), Time(second * 1_000_000_000))
    }

    #[test]
    fn it_is_said_when_a_host_cannot_be_lost_any_more() {
        let layout = GroupLayout::new("rs:4+2".parse().unwrap(), 6, 0, Some(&[0, 0, 1, 1, 2, 2])).unwrap();
        let mut footing = Footing::new(&layout);
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
    fn what_was_so_from_the_start_and_one_host_alone_are_not_spoken_of() {
        let layout = GroupLayout::new("xor:4".parse().unwrap(), 4, 0, None).unwrap();
        for hosts in [["a", "a", "b", "b"], ["a"; 4]] {
            let mut footing = Footing::new(&layout);
            stand(&mut footing, &hosts.map(|host| (0, host)));
            hosts.iter().enumerate().for_each(|(rank, host)| stand(&mut footing, &[(rank, host)]));
            assert_eq!((decide(&mut footing, 1), decide(&mut footing, 2)), (None, None));
            assert_eq!(footing.exposed(Duration::from_secs(4)), Duration::ZERO);
        }
    }
}
