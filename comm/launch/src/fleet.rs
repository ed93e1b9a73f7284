//! The one door through which processes are started: on this host, or by agents on others.
//!
//! What happens to the processes comes out of it as reports, wherever they run. A host whose agent is gone or silent is
//! lost with all its processes, unless these say that they live: then its keeper has another agent soon. New ones are started on the hosts that are left: on spare ones
//! that have room, or on those with the fewest processes, or that are the least busy. A lost host is tried again, and when an agent answers there it is one of them.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, Signal};

use super::cluster::{Cluster, Placing};
use super::control::Control;
use super::crew::{Crew, Task};
use super::gauge::Gauge;
use super::remote::Remote;
use super::stdin::Receivers;
use ft_comm::time::Time;
use ft_comm::transport::Channel;
use ft_proto::detector::Detector;
use ft_proto::rank::{Membership, PeerId, Rank};
use ft_proto::wire::agent::{Birth, CoreShare, Held, ToAgent};

mod adopted;
mod changes;
mod comeback;
mod inflow;
mod invitations;
mod loads;
mod news;
mod opening;
mod places;
mod pulses;
mod returns;
mod succession;

use adopted::Adopted;
pub use changes::HostChange;
use comeback::Absent;
use inflow::Inflow;
use invitations::Invitations;
use loads::Loads;
pub(super) use news::Report;
use places::Places;
use pulses::Pulses;
use returns::Returns;

#[derive(Debug)]
enum Door {
    Here,
    Agent(Box<Remote>),
    /// The agent is gone.
    Lost(Absent),
}

/// Where a process runs.
#[derive(Debug)]
struct Home {
    at: usize,
    /// What the agent there was told of it, for another one in its place.
    told: Vec<ToAgent>,
    /// [`Fleet::begun`] has named it, or will.
    begun: bool,
    /// It has been linked to the launcher.
    has_joined: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Fleet {
    crew: Crew,
    task: Task,
    /// Processes that `mpirun` has started, if it has.
    adopted: Option<Adopted>,
    cluster: Cluster,
    doors: Vec<Door>,
    /// None before agents are started.
    invitations: Option<Invitations>,
    returns: Returns,
    /// How busy the hosts are, if that counts.
    loads: Loads,
    /// The same of this one.
    gauge: Option<Gauge>,
    /// Hosts that are to take no new processes.
    drained: BTreeSet<usize>,
    /// Hosts that are given up.
    removed: BTreeSet<usize>,
    /// Hosts whose agents are silent, and that are waited for, as the job would not survive their
    /// loss.
    awaited: BTreeSet<usize>,
    /// Hosts that were added, and have not answered yet.
    added: BTreeSet<usize>,
    /// Hosts that are lost are of use again: processes are replaced, and the job is not over.
    replaces: bool,
    places: Places,
    homes: HashMap<PeerId, Home>,
    /// The numbers that agents have given for processes of other hosts.
    pids: HashMap<PeerId, u32>,
    /// Those that were started since [`Fleet::begun`] was called.
    begun: Vec<PeerId>,
    /// Hosts that have got another agent in the place of a dead one, if that was not told yet.
    resumed: Vec<usize>,
    /// Standard input of the spares of this host.
    inputs: HashMap<PeerId, File>,
    /// Standard input on its way to processes of other hosts.
    inflows: HashMap<PeerId, Inflow>,
    receivers: Receivers,
    /// What processes print stays in their pipes: nobody reads it.
    held: Held,
    detector: Detector,
    pulses: Pulses,
    interval: Duration,
    timeout: Duration,
    beat_due: Time,
}

impl Fleet {
    /// A process has proved that it belongs to the job; the channel comes back if it was no agent. `term` is the number of an agent's
    /// invitation.
    pub(super) fn connected(
        &mut self,
        now: Time,
        peer: PeerId,
        term: u32,
        channel: Channel,
    ) -> Option<Channel> {
        if let Some(home) = self.homes.get_mut(&peer) {
            home.has_joined = true;
            let pid = channel.process().and_then(Pid::from_raw);
            self.adopted.iter_mut().for_each(|adopted| adopted.connected(peer, pid));
            return Some(channel);
        }
        let at = agent_at(peer);
        let attempt = self.absent(at).and_then(|absent| absent.attempt.as_mut());
        if let Some(attempt) = attempt.filter(|attempt| attempt.is(peer, term) && !attempt.is_connected()) {
            attempt.connected(channel);
            return None;
        }
        let Some(remote) = self.remote(at).filter(|remote| remote.is(peer, term)) else {
            return Some(channel);
        };
        match remote.is_connected() || remote.broken().is_some() {
            true => self.succeeds(at, channel),
            false => remote.connected(channel),
        }
        // Now it hears what it is to start.
        for (peer, home) in self.homes.iter_mut().filter(|(_, home)| home.at == at) {
            if !std::mem::replace(&mut home.begun, true) {
                self.begun.push(*peer);
            }
        }
        self.detector.heard(peer, now);
        None
    }

    fn remotes(&mut self) -> impl Iterator<Item = &mut Remote> {
        self.doors.iter_mut().filter_map(|door| match door {
            Door::Agent(remote) => Some(&mut **remote),
            Door::Here | Door::Lost(_) => None,
        })
    }

    fn remote(&mut self, at: usize) -> Option<&mut Remote> {
        match self.doors.get_mut(at) {
            Some(Door::Agent(remote)) => Some(remote),
            _ => None,
        }
    }

    /// The host for a new process: that of the rank at the start, else the one where it was last, else a spare one that has room, else the
    /// one with the fewest processes, or that is the least busy. None if no host is left.
    fn home_for(&self, rank: Option<Rank>) -> Option<usize> {
        let is_open = |at: &usize| self.is_open(*at);
        let own = rank.map(|rank| [self.places.first(rank), self.places.last(rank)]);
        let own = own.into_iter().flatten().find(is_open);
        let processes = |at: &usize| self.homes.values().filter(|home| home.at == *at).count();
        let has_room =
            |at: &usize| self.cluster.is_spare(*at) && processes(at) < self.cluster.hosts()[*at].slots;
        let open = || (0..self.doors.len()).filter(is_open);
        let other = || match self.cluster.placing() {
            Placing::Processes => open().min_by_key(processes),
            Placing::Load => self.loads.least(open().map(|at| (at, processes(&at)))),
        };
        own.or_else(|| open().find(has_room)).or_else(other)
    }

    /// The host of a process that was started.
    pub(super) fn host_of(&self, peer: PeerId) -> Option<usize> {
        self.homes.get(&peer).map(|home| home.at)
    }

    /// The host where a process runs by its name, and the number of the process there, if it is known.
    pub(super) fn whereabouts(&self, peer: PeerId) -> Option<(&str, Option<u32>)> {
        let host = &self.cluster.hosts()[self.host_of(peer)?].name;
        let adopted = self.adopted.as_ref().and_then(|adopted| adopted.pid(peer));
        let adopted = adopted.map(|pid| pid.as_raw_nonzero().get().unsigned_abs());
        Some((host, self.crew.pid(peer).or(adopted).or_else(|| self.pids.get(&peer).copied())))
    }

    /// The name of a host.
    pub(super) fn name(&self, at: usize) -> &str {
        &self.cluster.hosts()[at].name
    }

    /// The name of that host, if it is a spare one.
    pub(super) fn spare_host_of(&self, peer: PeerId) -> Option<&str> {
        let at = self.host_of(peer).filter(|at| self.cluster.is_spare(*at))?;
        Some(&self.cluster.hosts()[at].name)
    }

    /// The cores of a rank, if it is bound: on none that is this machine by another name.
    fn share(&self, rank: Rank, at: usize) -> Option<CoreShare> {
        self.places.share(rank, at).filter(|_| !self.is_alias(at))
    }

    /// Whether a host is this machine by another name.
    fn is_alias(&self, at: usize) -> bool {
        let host = &self.cluster.hosts()[at].name;
        host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }

    /// Ranks that have the cores of a host among them, by whatever names of it. A spare host takes the place of another: it is to have
    /// as many as one of these.
    fn ranks_beside(&self, at: usize) -> u32 {
        let beside = |at: usize| {
            let is_alias = self.is_alias(at);
            self.places.count(|host| host == at || is_alias && self.is_alias(host))
        };
        match self.cluster.is_spare(at) {
            true => (0..self.doors.len()).map(beside).max().unwrap_or(1),
            false => beside(at),
        }
    }

    /// Starts the process of a rank, or a spare; gives the pipe to its standard input, if there is
    /// one and it has a rank. On another host a failure is reported later; if no host is left
    /// nothing happens.
    ///
    /// # Errors
    /// The operating system refuses.
    pub(super) fn start(&mut self, peer: PeerId, rank: Option<Rank>) -> std::io::Result<Option<OwnedFd>> {
        let Some(at) = self.home_for(rank) else { return Ok(None) };
        if self.adopted.as_ref().is_some_and(|adopted| adopted.is_one(peer)) {
            self.homes.insert(peer, Home { at, told: vec![], begun: true, has_joined: false });
            self.begun.push(peer);
            return Ok(None);
        }
        // One that takes the place of another keeps its host as busy as it was.
        let is_more = rank.is_none_or(|rank| self.places.last(rank) != at);
        let is_here = !matches!(&self.doors[at], Door::Agent(_));
        let reads = self.receivers.take(rank, is_here);
        let birth = Birth {
            reads,
            share: rank.and_then(|rank| self.share(rank, at)),
            ranks: self.ranks_beside(at),
            // What mpirun has said of it stays.
            standing: rank.map(|rank| self.places.stand(rank, at)).filter(|_| self.adopted.is_none()),
        };
        let begun = !matches!(&self.doors[at], Door::Agent(remote) if !remote.is_connected());
        let home = Home { at, told: vec![], begun, has_joined: false };
        if is_more {
            self.loads.placed(at);
        }
        let stdin = match &mut self.doors[at] {
            Door::Agent(_) => {
                self.homes.insert(peer, home);
                self.tell(peer, ToAgent::Start { peer, birth });
                if begun {
                    self.begun.push(peer);
                }
                return (reads && rank.is_some()).then(|| self.inflow(peer, at)).transpose();
            }
            _ => match self.crew.start(peer, &self.task, birth, self.receivers.inherited(rank, is_here))? {
                Some(stdin) if rank.is_none() => {
                    self.inputs.insert(peer, stdin);
                    None
                }
                Some(stdin) => {
                    self.receivers.read_here();
                    Some(stdin.into())
                }
                None => None,
            },
        };
        self.homes.insert(peer, home);
        self.begun.push(peer);
        Ok(stdin)
    }

    /// Processes that were started since the last call; on another host not before its agent has come.
    pub(super) fn begun(&mut self) -> Vec<PeerId> {
        std::mem::take(&mut self.begun)
    }

    /// A generation begins: on this host its members are told at once when one of them dies, and before anybody else is.
    pub(super) fn begin(&self, membership: &Membership) {
        let is_member = |peer| membership.seats.iter().any(|seat| seat.peer == peer);
        self.crew.begin_generation(membership.generation, is_member);
    }

    /// A spare takes a rank; gives the pipe to its standard input, if it gets any.
    pub(super) fn seat(&mut self, peer: PeerId, rank: Rank) -> Option<OwnedFd> {
        let at = self.host_of(peer)?;
        let share = self.share(rank, at);
        self.places.stand(rank, at);
        let input = self.inputs.remove(&peer);
        if self.remote(at).is_none() {
            share.into_iter().for_each(|share| self.crew.bind(peer, share));
            let input = input.filter(|_| self.receivers.take(Some(rank), true))?;
            self.receivers.read_here();
            return Some(input.into());
        }
        share.into_iter().for_each(|share| self.tell(peer, ToAgent::Bind { peer, share }));
        if self.receivers.take(Some(rank), false) {
            return self.inflow(peer, at).ok();
        }
        self.tell(peer, ToAgent::Input { peer, bytes: vec![] });
        None
    }

    /// Sends a signal to a process and its children.
    pub(super) fn signal(&mut self, peer: PeerId, signal: Signal) {
        let Some(at) = self.host_of(peer) else { return };
        let message = ToAgent::Signal { to: Some(peer), signal: signal.as_raw() };
        match &mut self.doors[at] {
            Door::Here => match self.adopted.as_ref().filter(|adopted| adopted.is_one(peer)) {
                Some(adopted) => _ = adopted.signal(peer, signal),
                None => self.crew.signal(peer, signal),
            },
            Door::Agent(_) => self.tell(peer, message),
            Door::Lost(_) => {}
        }
    }

    /// Whether `mpirun` has started a process.
    pub(super) fn is_adopted(&self, peer: PeerId) -> bool {
        self.adopted.as_ref().is_some_and(|adopted| adopted.is_one(peer))
    }

    /// Whether a process has come by itself before anybody has asked for it.
    pub(super) fn is_early(&self, peer: PeerId) -> bool {
        self.is_adopted(peer) && !self.homes.contains_key(&peer)
    }

    /// Whether a process is out of reach of signals: one that `mpirun` has started on another host.
    pub(super) fn is_far(&self, peer: PeerId) -> bool {
        self.adopted.as_ref().is_some_and(|adopted| adopted.is_one(peer) && adopted.pid(peer).is_none())
    }

    /// Why no process of this number can be had, if so.
    pub(super) fn refuses(&self, peer: PeerId) -> Option<String> {
        self.adopted.as_ref()?.refuses(peer)
    }

    /// The link of a process has ended, which is all that is seen of its end if `mpirun` has started it; whether it has.
    pub(super) fn parted(&mut self, peer: PeerId) -> bool {
        let is_adopted = self.is_adopted(peer);
        if is_adopted {
            self.homes.remove(&peer);
            self.adopted.iter_mut().for_each(|adopted| adopted.gone(peer));
        }
        is_adopted
    }

    /// Those that `mpirun` has started are left to it.
    pub(super) fn leave_adopted(&mut self) {
        if let Some(adopted) = &self.adopted {
            self.homes.retain(|peer, _| !adopted.is_one(*peer));
        }
    }

    /// Sends a signal to all processes of the job, but not to agents.
    pub(super) fn signal_all(&mut self, signal: Signal) {
        for (peer, home) in &self.homes {
            if matches!(self.doors[home.at], Door::Here) {
                match &self.adopted {
                    Some(adopted) if adopted.is_one(*peer) => _ = adopted.signal(*peer, signal),
                    _ => self.crew.signal(*peer, signal),
                }
            }
        }
        self.remotes().for_each(|remote| remote.signal_all(signal));
        self.flush();
    }

    /// Whether no process of the job is left.
    pub(super) fn is_empty(&self) -> bool {
        self.homes.is_empty()
    }

    /// Tells the agents that the job is over; true when all have gone.
    pub(super) fn dismiss(&mut self) -> bool {
        self.replaces = false;
        (0..self.doors.len()).for_each(|at| _ = self.leave(at));
        self.remotes().for_each(Remote::dismiss);
        self.flush();
        self.doors.iter().all(|door| match door {
            Door::Here => true,
            Door::Agent(remote) => remote.link().is_none() && !self.crew.has(remote.peer),
            Door::Lost(absent) => !self.crew.has(absent.peer),
        })
    }

    /// Kills what this host has of the job, commands that have started agents included.
    pub(super) fn kill_here(&mut self) {
        self.crew.signal_all(Signal::KILL);
    }

    /// The same, and waits; then no descendant of this process is left.
    pub(super) fn end(&mut self) {
        self.doors.clear(); // agents whose link ends end themselves
        self.crew.kill_all();
        self.crew.end_orphans();
    }

    /// Hands what is to be sent to the operating system.
    pub(super) fn flush(&mut self) {
        self.remotes().for_each(Remote::flush);
    }

    /// What of what processes print, on any host, is to stay in their pipes.
    pub(super) fn hold(&mut self, held: Held) {
        if std::mem::replace(&mut self.held, held) != held {
            self.remotes().for_each(|remote| remote.send(ToAgent::Hold(held)));
            self.flush();
        }
    }

    /// Whether an agent has said more than was read in its turn.
    pub(super) fn has_more(&self) -> bool {
        let agents = self.doors.iter().filter_map(|door| match door {
            Door::Agent(remote) => remote.link(),
            _ => None,
        });
        agents.chain(self.attempts().filter_map(Remote::link)).any(Control::has_more)
    }

    /// What to wait for.
    pub(super) fn fds<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) {
        let readable = |fd: BorrowedFd<'a>| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        fds.extend(self.crew.fds().map(readable));
        fds.extend(self.crew.pipes(self.held).map(readable));
        let inflows = self.inflows.values().filter_map(Inflow::source);
        fds.extend(inflows.map(|pipe| readable(pipe.as_fd())));
        for door in &self.doors {
            if let Door::Agent(remote) = door {
                fds.extend(remote.link().map(Control::poll));
            }
        }
        fds.extend(self.attempts().filter_map(Remote::link).map(Control::poll));
    }

    /// When [`Fleet::serve`] is due.
    pub(super) fn poll_timeout(&self) -> Time {
        let late = self.doors.iter().filter_map(|door| match door {
            Door::Agent(remote) if !remote.is_connected() => Some(remote.until),
            _ => None,
        });
        let beat = self.doors.iter().any(|door| matches!(door, Door::Agent(_))).then_some(self.beat_due);
        let returns = self.returns.due_at().filter(|_| self.replaces);
        let attempts = self.attempts().map(|attempt| attempt.until);
        let look = self.crew.has_pulses().then_some(self.pulses.due);
        let output = self.crew.output_due(self.held);
        let due = late.chain(output).chain(beat).chain(returns).chain(attempts).chain(look);
        due.fold(self.crew.look_due(), Time::min)
    }

    /// Whether there is a host on which processes can be started.
    pub(super) fn has_a_host(&self) -> bool {
        self.home_for(None).is_some()
    }
}

/// The number of the agent of a host: ranks count from the other end.
fn agent_peer(at: usize) -> PeerId {
    PeerId(u32::MAX - u32::try_from(at).expect("a job has fewer than 2^32 hosts"))
}

/// The host of the agent with this number; for any other number no host at all.
fn agent_at(peer: PeerId) -> usize {
    (u32::MAX - peer.0) as usize
}
