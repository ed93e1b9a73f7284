//! What happens to processes and hosts, wherever it happens.

use rustix::process::Signal;

use super::comeback::Absent;
use super::invitations::AGENT_TIMEOUT;
use super::{Door, Fleet, agent_at, agent_peer};
use crate::cluster::Cluster;
use crate::crew::Death;
use crate::gauge::Gauge;
use crate::spec::LaunchError;
use ft_comm::time::Time;
use ft_proto::arbiter::Exit;
use ft_proto::member::LEASE_TIMEOUTS;
use ft_proto::rank::PeerId;
use ft_proto::wire::agent::{Ended, FromAgent, ToAgent};

/// The status by which shells say that there is no such program.
const NOT_THERE: i32 = 127;

/// What has happened to processes.
#[derive(Debug)]
pub(crate) enum Report {
    /// A process is dying, or has ended.
    Death(Death),
    /// A process was stopped by a signal, or goes on.
    Stopped { peer: PeerId, is_stopped: bool },
    /// Processes have given signs of life, each in a step.
    Alive { of: Vec<(PeerId, u64)> },
    /// A process has printed lines.
    Said { peer: PeerId, error: bool, lines: Vec<u8> },
    /// The command that starts an agent has printed lines.
    Noted { peer: PeerId, host: String, lines: Vec<u8> },
    /// A process could not be started on another host.
    NotStarted { peer: PeerId, why: String },
    /// A host is lost, and with it these processes.
    Lost { host: usize, cause: String, peers: Vec<PeerId> },
    /// A host that was lost, or that is new, is one to start processes on.
    Back { host: usize, name: String, is_new: bool },
    /// A host has got another agent in the place of one that has died; its processes live.
    Resumed { name: String },
    /// An agent did not come, or cannot do what it is there for.
    Refused(LaunchError),
}

impl Fleet {
    /// What has happened since the last call, in order. `bears` returns `true` if the job survives
    /// the loss of these processes.
    pub(crate) fn serve(&mut self, now: Time, bears: &dyn Fn(&[PeerId]) -> bool) -> Vec<Report> {
        let mut reports = Vec::new();
        let deaths = self.crew.deaths(now);
        self.pump(now, &deaths, &mut reports); // what a process has said last comes before its end
        let stops = self.crew.stops().into_iter();
        reports.extend(stops.map(|(peer, is_stopped)| Report::Stopped { peer, is_stopped }));
        for death in deaths {
            self.died(death, now, &mut reports);
        }
        reports.extend(self.feel(now));
        self.feed();
        for at in 0..self.doors.len() {
            let Some(remote) = self.remote(at) else { continue };
            let peer = remote.peer;
            let (messages, open) = remote.receive();
            if !messages.is_empty() {
                self.detector.heard(peer, now);
                self.awaited.remove(&at);
            }
            reports.extend(messages.into_iter().filter_map(|message| self.heard(at, now, message)));
            if let Err(error) = open {
                self.bereave(at, now, format!("the link to its agent broke: {error}"));
            }
        }
        let resumed = std::mem::take(&mut self.resumed).into_iter();
        reports.extend(resumed.map(|at| Report::Resumed { name: self.name(at).to_owned() }));
        if self.replaces {
            self.seek(now, &mut reports);
        }
        self.look_for_silence(now, bears, &mut reports);
        let trouble = self.crew.trouble().map(|error| Report::Refused(LaunchError::Processes(error)));
        reports.extend(trouble);
        reports
    }

    fn pump(&mut self, now: Time, deaths: &[Death], reports: &mut Vec<Report>) {
        let Self { crew, cluster, doors, .. } = self;
        crew.pump(now, deaths, self.held, &mut |peer, error, lines| {
            // Why a lost host is not there yet is said as often as it is tried: nobody wants to hear it.
            if !matches!(doors.get(agent_at(peer)), Some(Door::Lost(_))) {
                reports.push(said(cluster, peer, error, lines));
            }
        });
    }

    /// What is left of what was printed here.
    pub(crate) fn finish(&mut self, now: Time) -> Vec<Report> {
        let mut reports = Vec::new();
        let Self { crew, cluster, .. } = self;
        crew.finish(now, &mut |peer, error, lines| reports.push(said(cluster, peer, error, lines)));
        reports
    }

    fn died(&mut self, death: Death, now: Time, reports: &mut Vec<Report>) {
        if let Death::Gone(peer, exit) = death {
            if let Some(absent) = self.absent(agent_at(peer)) {
                if absent.attempt.as_ref().is_some_and(|attempt| !attempt.is_connected()) {
                    self.give_up(agent_at(peer), now);
                }
                return;
            }
            if let Some(remote) = self.remotes().find(|remote| remote.peer == peer) {
                if !remote.is_connected() && !remote.is_dismissed() && remote.broken().is_none() {
                    let why = match exit {
                        Exit::Status(NOT_THERE) => format!(
                            "the command ended with status {NOT_THERE} and left no agent: is ftrun at that path there? \
                             --remote-path names another folder"
                        ),
                        Exit::Status(status) => {
                            format!("the command ended with status {status} and left no agent")
                        }
                        Exit::Signal(signal) => format!("the command was killed by signal {signal}"),
                    };
                    reports.push(Report::Refused(remote.refused(&why)));
                }
                return;
            }
            let home = self.homes.remove(&peer);
            self.pulses.forget(peer);
            self.inputs.remove(&peer);
            if home.is_some_and(|home| !home.has_joined) {
                self.part_unseen(exit, reports);
            }
        }
        reports.push(Report::Death(death));
    }

    /// A process of this host has ended well and did not join. If `mpirun` has started the others, and none of them has joined either, the program may have nothing to do with
    /// the library: then nobody will ever hear of their ends, which are taken to be as this one.
    fn part_unseen(&mut self, exit: Exit, reports: &mut Vec<Report>) {
        let Some(adopted) = &self.adopted else { return };
        let has_joined = self.homes.iter().any(|(peer, home)| adopted.is_one(*peer) && home.has_joined);
        if exit != Exit::Status(0) || has_joined {
            return;
        }
        let unseen = self.homes.iter().filter(|(peer, home)| adopted.is_one(**peer) && !home.has_joined);
        let mut unseen: Vec<PeerId> = unseen.map(|(peer, _)| *peer).collect();
        unseen.sort_unstable();
        unseen.iter().for_each(|peer| _ = self.homes.remove(peer));
        reports.extend(unseen.into_iter().map(|peer| Report::Death(Death::Gone(peer, exit))));
    }

    /// What an agent has said.
    fn heard(&mut self, at: usize, now: Time, message: FromAgent) -> Option<Report> {
        let runs_there = |fleet: &Self, peer: PeerId| fleet.host_of(peer) == Some(at);
        match message {
            FromAgent::Beat { busy } => {
                busy.into_iter().for_each(|busy| self.loads.heard(at, now, busy));
                None
            }
            FromAgent::Alive { mut of } => {
                of.retain(|(peer, _)| runs_there(self, *peer));
                self.pulses.heard(now, &of);
                Some(Report::Alive { of })
            }
            FromAgent::Refused { why } => self.remote(at).map(|remote| Report::Refused(remote.refused(&why))),
            FromAgent::Started { peer, pid } => {
                if runs_there(self, peer) {
                    self.pids.insert(peer, pid);
                }
                None
            }
            FromAgent::NotStarted { peer, why } => {
                let runs = runs_there(self, peer);
                self.forget(peer, at);
                let why = format!("{why} (on host {})", self.cluster.hosts()[at].name);
                runs.then_some(Report::NotStarted { peer, why })
            }
            FromAgent::Dying { peer, ended } => {
                runs_there(self, peer).then(|| Report::Death(Death::Dying(peer, exit(ended))))
            }
            FromAgent::Gone { peer, ended } => {
                let runs = runs_there(self, peer);
                self.forget(peer, at);
                runs.then(|| Report::Death(Death::Gone(peer, exit(ended))))
            }
            FromAgent::Stopped { peer, is_stopped } => {
                runs_there(self, peer).then_some(Report::Stopped { peer, is_stopped })
            }
            FromAgent::Output { peer, error, lines } => Some(Report::Said { peer, error, lines }),
            FromAgent::Taken { peer, bytes } => {
                if let Some(inflow) = self.inflows.get_mut(&peer) {
                    inflow.taken(bytes as usize);
                }
                None
            }
        }
    }

    fn forget(&mut self, peer: PeerId, at: usize) {
        if self.host_of(peer) == Some(at) {
            self.homes.remove(&peer);
            self.pulses.forget(peer);
            self.pids.remove(&peer);
            self.inflows.remove(&peer);
        }
    }

    fn look_for_silence(&mut self, now: Time, bears: &dyn Fn(&[PeerId]) -> bool, reports: &mut Vec<Report>) {
        let suspects: Vec<usize> = self.detector.suspects(now).into_iter().map(agent_at).collect();
        let overdue = self.detector.silent_for(self.timeout * LEASE_TIMEOUTS, now);
        // If all are silent at once, this process has been cut off, and for a moment perhaps.
        // Agents wait for the same time.
        let is_one_left = (0..self.doors.len()).any(|at| self.is_open(at) && !suspects.contains(&at));
        let there = self.homes.iter().filter(|(_, home)| suspects.contains(&home.at));
        let there: Vec<PeerId> = there.map(|(peer, _)| *peer).collect();
        let bears = bears(&there) && (is_one_left || !self.replaces);
        for at in suspects {
            let is_overdue = overdue.contains(&agent_peer(at));
            let limit = self.timeout * LEASE_TIMEOUTS;
            if bears || is_overdue {
                let silent = if bears { self.timeout } else { limit };
                let cause = format!("its agent is silent for {} s", silent.as_secs_f64());
                reports.extend(self.lose(at, now, &cause));
            } else if self.awaited.insert(at) {
                let line = format!(
                    "its agent is silent for {} s; the job would not survive the loss of this host, so it is waited for up to {} s\n",
                    self.timeout.as_secs_f64(),
                    limit.as_secs_f64()
                );
                let host = self.name(at).to_owned();
                reports.push(Report::Noted { peer: agent_peer(at), host, lines: line.into_bytes() });
            }
        }
        for remote in self.remotes() {
            if !remote.is_connected() && remote.broken().is_none() && now >= remote.until {
                let seconds = AGENT_TIMEOUT.as_secs();
                reports
                    .push(Report::Refused(remote.refused(&format!("no agent has come within {seconds} s"))));
            }
        }
        if now >= self.beat_due {
            self.beat_due = now.after(self.interval);
            self.remotes()
                .filter(|remote| remote.is_connected())
                .for_each(|remote| remote.send(ToAgent::Beat));
            let busy = self.gauge.as_ref().and_then(Gauge::read);
            let here = self.doors.iter().position(|door| matches!(door, Door::Here));
            here.zip(busy).into_iter().for_each(|(here, busy)| self.loads.heard(here, now, busy));
        }
        self.flush();
    }

    /// A host is lost, unless its agent has left because it was told to.
    pub(super) fn lose(&mut self, at: usize, now: Time, cause: &str) -> Option<Report> {
        let remote = self.remote(at)?;
        let (peer, left) = (remote.peer, remote.is_dismissed());
        self.doors[at] = Door::Lost(Absent::new(peer));
        self.loads.forget(at);
        self.awaited.remove(&at);
        self.detector.forget(peer);
        if !left {
            self.returns.lost(at, now);
            self.crew.signal(peer, Signal::KILL); // the command
        }
        let mut peers: Vec<PeerId> =
            self.homes.iter().filter(|(_, home)| home.at == at).map(|(peer, _)| *peer).collect();
        peers.sort_unstable();
        peers.iter().for_each(|peer| self.forget(*peer, at));
        let name = &self.cluster.hosts()[at].name;
        (!left).then(|| Report::Lost { host: at, cause: format!("host {name} is gone: {cause}"), peers })
    }
}

/// Who has said something: a process of the job, or the command that starts an agent.
fn said(cluster: &Cluster, peer: PeerId, error: bool, lines: Vec<u8>) -> Report {
    match cluster.hosts().get(agent_at(peer)) {
        Some(host) => Report::Noted { peer, host: host.name.clone(), lines },
        None => Report::Said { peer, error, lines },
    }
}

fn exit(ended: Ended) -> Exit {
    match ended {
        Ended::Status(status) => Exit::Status(status),
        Ended::Signal(signal) => Exit::Signal(signal),
    }
}
