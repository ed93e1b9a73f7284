//! The processes of a simulated job, those that have ended included.

use std::collections::BTreeMap;

use super::net::EndId;
use super::process::{Life, Process};
use ft_comm::transport::{LinkError, LinkId};
use ft_proto::rank::{PeerId, Rank};

/// By peer number. One that was ordered later may be started earlier: replacements may wait.
#[derive(Debug, Default)]
pub(super) struct Processes(BTreeMap<PeerId, Process>);

impl Processes {
    pub(super) fn get(&self, peer: PeerId) -> Option<&Process> {
        self.0.get(&peer)
    }

    pub(super) fn get_mut(&mut self, peer: PeerId) -> Option<&mut Process> {
        self.0.get_mut(&peer)
    }

    /// One more, whose number no other has had.
    pub(super) fn add(&mut self, peer: PeerId, process: Process) {
        assert!(self.0.insert(peer, process).is_none(), "a number of a process is used once");
    }

    pub(super) fn peers(&self) -> impl Iterator<Item = PeerId> + use<> {
        self.0.keys().copied().collect::<Vec<_>>().into_iter()
    }

    pub(super) fn alive(&self) -> impl Iterator<Item = &Process> {
        self.0.values().filter(|process| process.alive())
    }

    /// Whether a process still waits in the wait of this number.
    pub(super) fn is_blocked(&self, peer: PeerId, token: u64) -> bool {
        self.get(peer).is_some_and(|p| p.alive() && p.blocked.is_some() && p.token == token)
    }

    /// Which end a process means by the name of a link.
    pub(super) fn end(&self, peer: PeerId, link: LinkId) -> Result<EndId, LinkError> {
        let found = self.get(peer).and_then(|process| process.wires.links.get(&link).copied());
        found.ok_or_else(|| LinkError::Down("closed".into()))
    }

    /// The processes that hold one of `ranks`, zombies behind a cut among them.
    pub(super) fn holders(&self, ranks: &[Rank]) -> impl Iterator<Item = PeerId> {
        self.peers().filter(move |peer| {
            self.get(*peer).is_some_and(|p| p.life != Life::Dead && ranks.contains(&p.rank))
        })
    }

    /// The processes that hold one of `ranks`, of several of one rank the newest.
    pub(super) fn newest_of(&self, ranks: &[Rank]) -> Vec<PeerId> {
        let newest = |rank: &Rank| self.holders(std::slice::from_ref(rank)).max();
        let mut newest: Vec<PeerId> = ranks.iter().filter_map(newest).collect();
        newest.sort_unstable();
        newest.dedup();
        newest
    }
}
