//! Questions to peers that this rank has awaited for long: silence on a data link proves nothing, as its peer may be
//! computing, but its service thread answers whatever the program does. Who does not answer within the heartbeat timeout
//! is gone or cut off. The answer says as well how much has been sent, so that the caller knows if something of it was lost on the
//! way. Without a long wait nothing is asked, and nothing is sent.

use std::collections::BTreeMap;
use std::time::Duration;

use rustix::event::PollFd;

use super::Question;
use crate::time::Time;
use crate::transport::{Accounts, Address, Credentials, Cuts, Probe};
use ft_proto::detector::Detector;
use ft_proto::rank::{Membership, PeerId, Rank};
use ft_proto::wire::control::ToArbiter;

/// Why a peer is suspected.
const SILENT: &str = "no sign of life";

#[derive(Debug)]
struct Open {
    rank: Rank,
    goes_on: bool,
    probe: Probe,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Questions {
    credentials: Credentials,
    me: PeerId,
    host: String,
    cuts: Cuts,
    accounts: Accounts,
    membership: Option<Membership>,
    open: BTreeMap<PeerId, Open>,
    /// Watches those who have not answered yet.
    silent: Detector,
}

impl Questions {
    /// Of process `me`, whose host has this label; `cuts` says whom it cannot reach. What the others say to have sent is noted in
    /// `accounts`.
    pub(super) fn new(
        credentials: Credentials,
        me: PeerId,
        host: String,
        cuts: Cuts,
        accounts: Accounts,
    ) -> Self {
        let silent = Detector::new(Duration::MAX, Time(0));
        Self { credentials, me, host, cuts, accounts, membership: None, open: BTreeMap::new(), silent }
    }

    /// How long an answer may take.
    pub(super) fn allow(&mut self, now: Time, timeout: Duration) {
        self.silent = Detector::new(timeout, now);
    }

    /// A generation starts.
    pub(super) fn enter(&mut self, membership: Membership) {
        self.give_up();
        self.membership = Some(membership);
    }

    /// Somebody has failed: whoever was asked may be among those, and whoever is still awaited is asked again.
    pub(super) fn give_up(&mut self) {
        for peer in std::mem::take(&mut self.open).into_keys() {
            self.silent.forget(peer);
        }
    }

    /// Asks the awaited ranks, unless they are being asked or the generation is over.
    pub(super) fn ask(&mut self, now: Time, question: &Question) {
        let Question { generation, awaited, goes_on } = question;
        let (generation, goes_on) = (*generation, *goes_on);
        let Some(membership) = self.membership.as_ref().filter(|m| m.generation == generation) else {
            return;
        };
        for (rank, _) in awaited {
            let Some(seat) = membership.seats.get(*rank) else { continue };
            let Ok(address) = seat.address.parse::<Address>() else { continue };
            if seat.peer == self.me || self.open.contains_key(&seat.peer) {
                continue;
            }
            let Some(target) = address.nearest(&self.host) else { continue };
            let probe = Probe::new(&self.credentials, self.me, seat.peer, generation, target);
            self.open.insert(seat.peer, Open { rank: *rank, goes_on, probe });
            self.silent.heard(seat.peer, now);
        }
    }

    /// Moves every question on; gives what is to be said of those who did not answer.
    pub(super) fn tick(&mut self, now: Time) -> Vec<ToArbiter> {
        let generation = self.membership.as_ref().map_or(0, |membership| membership.generation);
        let Self { open, silent, cuts, accounts, .. } = self;
        open.retain(|peer, asked| {
            let sent = if cuts.is_open(now, *peer) { asked.probe.advance() } else { None };
            if let Some(sent) = sent {
                silent.forget(*peer);
                accounts.claims(generation, *peer, sent);
            }
            sent.is_none()
        });
        let mut suspects = vec![];
        for peer in self.silent.suspects(now) {
            self.silent.forget(peer);
            if let Some(Open { rank, goes_on, .. }) = self.open.remove(&peer) {
                suspects.push(ToArbiter::Suspect { generation, rank, goes_on, why: SILENT.to_owned() });
            }
        }
        suspects
    }

    /// What to wait for; a peer that is cut off cannot be heard.
    pub(super) fn fds(&self, now: Time) -> impl Iterator<Item = PollFd<'_>> {
        let reachable = self.open.iter().filter(move |(peer, _)| self.cuts.is_open(now, **peer));
        reachable.filter_map(|(_, asked)| asked.probe.poll_fd())
    }
}

#[cfg(test)]
mod tests;
