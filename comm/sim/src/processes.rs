//! The processes of a simulated job, those that have ended included.

use super::net::EndId;
use super::process::{Life, Process};
use ft_comm::transport::{LinkError, LinkId};
use ft_proto::rank::{PeerId, Rank};

/// By peer number, from 1.
#[derive(Debug, Default)]
pub(super) struct Processes(Vec<Process>);

impl Processes {
    pub(super) fn get(&self, peer: PeerId) -> Option<&Process> {
        self.0.get((peer.0 as usize).checked_sub(1)?)
    }

    pub(super) fn get_mut(&mut self, peer: PeerId) -> Option<&mut Process> {
        self.0.get_mut((peer.0 as usize).checked_sub(1)?)
    }

    /// One more, which has to be the next.
    pub(super) fn add(&mut self, peer: PeerId, process: Process) {
        assert_eq!(peer.0 as usize, self.0.len() + 1, "peers are numbered in order");
        self.0.push(process);
    }

    pub(super) fn peers(&self) -> impl Iterator<Item = PeerId> + use<> {
        (1..=u32::try_from(self.0.len()).expect("a simulated job has fewer than 2^32 processes")).map(PeerId)
    }

    pub(super) fn alive(&self) -> impl Iterator<Item = &Process> {
        self.0.iter().filter(|process| process.alive())
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
