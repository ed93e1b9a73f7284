//! Another agent in the place of one that has died, whose ranks live: they say so themselves, by their own links to the launcher.
//!
//! The keeper of the host starts it (`keeper.rs`). It hears again what the one before was told of each process, as nobody knows how much of that
//! was done. When the ranks of a host have gone too, or its keeper has, or no agent comes for long, the host is lost.

use super::{Door, Fleet, Report};
use ft_comm::time::Time;
use ft_comm::transport::Channel;
use ft_proto::member::LEASE_TIMEOUTS;
use ft_proto::rank::PeerId;
use ft_proto::wire::agent::ToAgent;

impl Fleet {
    /// Tells the agent of a process something of it that another agent has to hear too.
    pub(super) fn tell(&mut self, peer: PeerId, message: ToAgent) {
        let Some(home) = self.homes.get_mut(&peer) else { return };
        home.told.push(message.clone());
        if let Some(Door::Agent(remote)) = self.doors.get_mut(home.at) {
            remote.send(message);
        }
    }

    /// The link to the agent of a host has ended.
    pub(super) fn bereave(&mut self, at: usize, now: Time, cause: String) {
        let until = now.after(self.timeout * LEASE_TIMEOUTS);
        let Some(remote) = self.remote(at) else { return };
        let peer = remote.peer;
        remote.breaks(cause, until);
        self.detector.forget(peer);
    }

    /// Hosts without an agent that are lost now; `is_linked` says whose own links are whole.
    pub(crate) fn forsaken(&mut self, now: Time, is_linked: impl Fn(PeerId) -> bool) -> Vec<Report> {
        let mut reports = Vec::new();
        for at in 0..self.doors.len() {
            let Door::Agent(remote) = &self.doors[at] else { continue };
            let Some(cause) = remote.broken() else { continue };
            // Who has not been linked yet says nothing.
            let mut here = self.homes.iter().filter(|(_, home)| home.at == at);
            let lives = here.any(|(peer, home)| is_linked(*peer) || !home.has_joined);
            if !lives || now >= remote.until || !self.crew.has(remote.peer) || remote.is_dismissed() {
                let cause = cause.to_owned();
                reports.extend(self.lose(at, now, &cause));
            }
        }
        reports
    }

    /// Another agent has come.
    pub(super) fn succeeds(&mut self, at: usize, channel: Channel) {
        let Some(site) = self.invitations.as_ref().map(|invitations| invitations.site.clone()) else {
            return;
        };
        let mut known = vec![ToAgent::Site(site), ToAgent::Hold(self.held)];
        let mut here: Vec<_> = self.homes.iter().filter(|(_, home)| home.at == at).collect();
        here.sort_unstable_by_key(|(peer, _)| **peer);
        known.extend(here.into_iter().flat_map(|(_, home)| home.told.clone()));
        known
            .extend(self.inflows.values().filter(|inflow| inflow.at == at).flat_map(|inflow| inflow.again()));
        if let Some(remote) = self.remote(at) {
            remote.resumes(channel, known);
            self.resumed.push(at);
        }
    }
}
