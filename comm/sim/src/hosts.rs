//! The hosts of a simulated job: which of them are lost, and where a process is started.

use std::collections::{BTreeMap, BTreeSet};

use super::process::Process;
use ft_proto::rank::{PeerId, Rank};

/// See the module. Hosts have numbers; a job that was told of none has one.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    /// By rank the host where it was last.
    last: BTreeMap<Rank, usize>,
    open: BTreeSet<usize>,
    of: BTreeMap<PeerId, usize>,
}

impl Hosts {
    /// The start: the host of each rank.
    pub(super) fn new(first: &[usize]) -> Self {
        let open = if first.is_empty() { [0].into() } else { first.iter().copied().collect() };
        Self { last: first.iter().copied().enumerate().collect(), open, of: BTreeMap::new() }
    }

    /// The host of a process.
    pub(super) fn of(&self, peer: PeerId) -> usize {
        self.of.get(&peer).copied().unwrap_or(0)
    }

    /// A process is started: where its rank was last, or if that host is lost on the one with the fewest of those that are there still.
    pub(super) fn place(&mut self, peer: PeerId, rank: Rank, is_there: impl Fn(PeerId) -> bool) {
        let own = self.last.get(&rank).copied().filter(|host| self.open.contains(host));
        let processes =
            |host: &usize| self.of.iter().filter(|(peer, at)| *at == host && is_there(**peer)).count();
        let other = || self.open.iter().copied().min_by_key(processes);
        let host = own.or_else(other).expect("the last host is never lost");
        self.of.insert(peer, host);
        self.seat(peer, rank);
    }

    /// A process has this rank.
    pub(super) fn seat(&mut self, peer: PeerId, rank: Rank) {
        if rank != Process::NO_RANK {
            self.last.insert(rank, self.of(peer));
        }
    }

    /// A host is lost, unless it is the last one; gives the processes that were started there.
    pub(super) fn lose(&mut self, host: usize) -> Vec<PeerId> {
        if self.open.len() == 1 || !self.open.remove(&host) {
            return vec![];
        }
        self.of.iter().filter(|(_, at)| **at == host).map(|(peer, _)| *peer).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_a_lost_host_go_where_the_fewest_are() {
        let mut hosts = Hosts::new(&[0, 0, 1, 2]);
        (0..4).for_each(|rank| hosts.place(PeerId(rank as u32 + 1), rank, |_| true));
        assert_eq!(hosts.lose(0), [PeerId(1), PeerId(2)]);
        assert_eq!(hosts.lose(0), []);
        let is_there = |peer: PeerId| peer.0 > 2;
        hosts.place(PeerId(5), 0, is_there);
        hosts.place(PeerId(6), 1, is_there);
        assert_eq!([5, 6].map(|peer| hosts.of(PeerId(peer))), [1, 2]);
        assert_eq!(hosts.lose(1), [PeerId(3), PeerId(5)]);
        assert_eq!(hosts.lose(2), [], "it is the last one");
        hosts.place(PeerId(7), 0, |_| false);
        assert_eq!((hosts.of(PeerId(7)), hosts.of(PeerId(9))), (2, 0));
    }
}
