//! Lost hosts are tried again, behind the job: nothing that comes of it disturbs that. When an agent answers and can work there, its host
//! takes processes again.

use rustix::process::Signal;

use super::news::Report;
use super::{Door, Fleet};
use crate::remote::Remote;
use ft_comm::time::Time;
use ft_proto::rank::PeerId;
use ft_proto::wire::agent::{FromAgent, ToAgent};

/// What is left of a host that is lost.
#[derive(Debug)]
pub(super) struct Absent {
    /// The number of its agent. The command that has started the lost one may still be there.
    pub(super) peer: PeerId,
    /// An agent that is to take the place of the lost one.
    pub(super) attempt: Option<Box<Remote>>,
}

impl Absent {
    pub(super) fn new(peer: PeerId) -> Self {
        Self { peer, attempt: None }
    }
}

impl Fleet {
    /// A host, if it is lost.
    pub(super) fn absent(&mut self, at: usize) -> Option<&mut Absent> {
        match self.doors.get_mut(at) {
            Some(Door::Lost(absent)) => Some(absent),
            _ => None,
        }
    }

    /// Agents that are to take the places of lost ones.
    pub(super) fn attempts(&self) -> impl Iterator<Item = &Remote> {
        self.doors.iter().filter_map(|door| match door {
            Door::Lost(absent) => absent.attempt.as_deref(),
            Door::Here | Door::Agent(_) => None,
        })
    }

    /// Tries lost hosts whose time has come, and hears of those that are tried.
    pub(super) fn seek(&mut self, now: Time, reports: &mut Vec<Report>) {
        while let Some(at) = self.returns.due(now) {
            if self.try_again(at, now).is_none() {
                self.returns.failed(at, now);
            }
        }
        for at in 0..self.doors.len() {
            let Some(attempt) = self.absent(at).and_then(|absent| absent.attempt.as_mut()) else { continue };
            attempt.flush();
            let (messages, open) = attempt.receive();
            // It says that it lives when it knows what it is to do, and can.
            if open.is_err()
                || now >= attempt.until
                || messages.iter().any(|said| !matches!(said, FromAgent::Beat { .. }))
            {
                self.give_up(at, now);
            } else if !messages.is_empty() {
                reports.extend(self.welcome_back(at, now));
            }
        }
    }

    /// Starts an agent on a host whose agent is lost; none if that cannot be.
    fn try_again(&mut self, at: usize, now: Time) -> Option<()> {
        let peer = self.absent(at)?.peer;
        if self.crew.has(peer) {
            return None; // the command that has started the lost one
        }
        let remote = self.invitations.as_mut()?.invite(&mut self.crew, &self.cluster, at, now).ok()??;
        self.absent(at)?.attempt = Some(Box::new(remote));
        Some(())
    }

    /// An agent that was to take the place of a lost one does not.
    pub(super) fn give_up(&mut self, at: usize, now: Time) {
        if self.leave(at).is_some() {
            self.returns.failed(at, now);
        }
    }

    /// A lost host is not tried any more, if it is.
    pub(super) fn leave(&mut self, at: usize) -> Option<()> {
        let attempt = self.absent(at)?.attempt.take()?;
        self.crew.signal(attempt.peer, Signal::KILL);
        Some(())
    }

    /// An agent has taken the place of a lost one.
    fn welcome_back(&mut self, at: usize, now: Time) -> Option<Report> {
        let mut remote = self.absent(at)?.attempt.take()?;
        remote.send(ToAgent::Hold(self.held));
        self.detector.heard(remote.peer, now);
        self.doors[at] = Door::Agent(remote);
        self.returns.back(at, now);
        let (name, is_new) = (self.cluster.hosts()[at].name.clone(), self.added.remove(&at));
        Some(Report::Back { host: at, name, is_new })
    }
}
