//! Hosts are added, drained or given up while the job runs, as its user asks.
//!
//! A host that is added is one that is tried until an agent answers there, as a lost one is.

use super::comeback::Absent;
use super::news::Report;
use super::{Door, Fleet, agent_peer};
use crate::cluster::Host;
use crate::desk::protocol::HostStatus;
use ft_comm::time::Time;

/// What a user wants of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HostChange {
    /// It is to take processes.
    Add,
    /// It takes no new ones; those that run there stay.
    Drain,
    /// It is given up: what runs there ends, and is replaced elsewhere.
    Remove,
}

/// What a host is to the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Open,
    Drained,
    Removed,
    /// It is lost, or was added and has not answered yet.
    Awaited,
}

impl Use {
    fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Drained => "drained",
            Self::Removed => "removed",
            Self::Awaited => "awaited",
        }
    }
}

impl Fleet {
    /// Whether a host takes new processes.
    pub(super) fn is_open(&self, at: usize) -> bool {
        self.use_of(at) == Use::Open
    }

    fn use_of(&self, at: usize) -> Use {
        match self.doors[at] {
            Door::Lost(_) if self.removed.contains(&at) => Use::Removed,
            Door::Lost(_) => Use::Awaited,
            _ if self.drained.contains(&at) => Use::Drained,
            _ => Use::Open,
        }
    }

    /// All hosts, in the order in which they came to the job.
    pub(crate) fn hosts(&self) -> Vec<HostStatus> {
        let hosts = self.cluster.hosts().iter().enumerate().take(self.doors.len());
        let status = |(at, host): (usize, &Host)| HostStatus {
            host: host.name.clone(),
            slots: host.slots,
            processes: self.homes.values().filter(|home| home.at == at).count(),
            state: self.use_of(at).name().to_owned(),
            load: self.loads.of(at),
        };
        hosts.map(status).collect()
    }

    /// Does what is wanted of the host that `text` names, `NAME` or for a new one `NAME:SLOTS`; what comes of it, in words, and what has
    /// happened.
    ///
    /// # Errors
    /// Why that cannot be.
    pub(crate) fn change(
        &mut self,
        change: HostChange,
        text: &str,
        now: Time,
    ) -> Result<(String, Option<Report>), String> {
        let known = self.cluster.hosts().iter().position(|host| host.name == text);
        match (change, known) {
            (HostChange::Add, Some(at)) => self.take_back(at, now).map(|said| (said, None)),
            (HostChange::Add, None) => self.add(text, now).map(|said| (said, None)),
            (_, None) => Err(format!("no host of it is called '{text}'")),
            (HostChange::Drain, Some(at)) => self.drain(at).map(|said| (said, None)),
            (HostChange::Remove, Some(at)) => self.remove(at, now),
        }
    }

    /// A host that the job does not know yet.
    fn add(&mut self, text: &str, now: Time) -> Result<String, String> {
        let host: Host = text.parse().map_err(|error: crate::cluster::HostError| error.to_string())?;
        if self.cluster.hosts().iter().any(|other| other.name == host.name) {
            return Err(format!("host {} is one of it already: leave out its slots", host.name));
        }
        let invitations = self.invitations.as_mut().filter(|_| self.replaces);
        let launcher = invitations.as_ref().and_then(|all| all.launcher.iter().flatten().next().copied());
        let (Some(invitations), Some(launcher)) = (invitations, launcher) else {
            return Err(
                "it can use no other host: it was started on this one alone, or replaces nobody".into()
            );
        };
        let (at, name) = (self.doors.len(), host.name.clone());
        invitations.launcher.push(Some(launcher));
        self.cluster.add(host);
        self.doors.push(Door::Lost(Absent::new(agent_peer(at))));
        self.added.insert(at);
        self.returns.lost(at, now);
        Ok(format!("host {name} takes processes as soon as an agent answers there"))
    }

    /// A host that was drained or removed is one of the job again.
    fn take_back(&mut self, at: usize, now: Time) -> Result<String, String> {
        let name = self.cluster.hosts()[at].name.clone();
        if self.drained.remove(&at) {
            return Ok(format!("host {name} takes processes again"));
        }
        if self.removed.remove(&at) {
            self.returns.lost(at, now);
            return Ok(format!("host {name} takes processes again as soon as an agent answers there"));
        }
        Err(format!("host {name} is one of it already"))
    }

    fn drain(&mut self, at: usize) -> Result<String, String> {
        let name = self.spared(at)?;
        self.drained.insert(at);
        Ok(format!("host {name} takes no new processes"))
    }

    fn remove(&mut self, at: usize, now: Time) -> Result<(String, Option<Report>), String> {
        if matches!(self.doors[at], Door::Here) {
            return Err("its launcher runs on this host: 'drain' spares it new processes".into());
        }
        let name = self.spared(at)?;
        let report = self.lose(at, now, "it was removed");
        self.leave(at);
        self.returns.forget(at);
        self.drained.remove(&at);
        self.removed.insert(at);
        Ok((format!("host {name} is removed, and its ranks are replaced on others"), report))
    }

    /// The name of a host that the job can do without.
    fn spared(&self, at: usize) -> Result<String, String> {
        let name = self.cluster.hosts()[at].name.clone();
        match (0..self.doors.len()).any(|other| other != at && self.is_open(other)) {
            true => Ok(name),
            false => Err(format!("host {name} is the only one that takes processes")),
        }
    }
}
