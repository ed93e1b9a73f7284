//! The one door through which processes are started: on this host, or by agents on others.
//!
//! What happens to the processes comes out of it as reports, wherever they run. A host whose agent is gone or silent is
//! lost with all its processes; new ones are started on the hosts that are left, on those with the fewest processes
//! first.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{PipeReader, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{ChildStdin, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::process::Signal;
use socket2::Socket;

use super::cluster::Cluster;
use super::crew::{Crew, Death, Task};
use super::invitation::Invitation;
use super::order::{LaunchError, Order};
use super::reach::Reach;
use super::remote::{Remote, command};
use crate::binding::Binding;
use crate::proto::arbiter::Exit;
use crate::proto::detector::Detector;
use crate::rank::{PeerId, Rank};
use crate::time::Time;
use crate::transport::{ENV_CONGESTION, ENV_HOST, ENV_LISTEN, ENV_TRANSPORT, ENV_WAIT, HOST_OF_LAUNCHER};
use crate::wire::agent::{Ended, FromAgent, INPUT_WINDOW, Share, Site, ToAgent};
use crate::wire::handshake::JobKey;

/// Longest time until an agent that is started has come to the launcher.
const AGENT_TIMEOUT: Duration = Duration::from_secs(10);

/// What has happened to processes.
#[derive(Debug)]
pub(super) enum Report {
    /// A process is dying, or has ended.
    Death(Death),
    /// A process has printed lines.
    Said { peer: PeerId, error: bool, lines: Vec<u8> },
    /// The command that starts an agent has printed lines.
    Noted { host: String, lines: Vec<u8> },
    /// A process could not be started on another host.
    NotStarted { peer: PeerId, why: String },
    /// A host is lost, and with it these processes.
    Lost { cause: String, peers: Vec<PeerId> },
    /// An agent did not come, or cannot do what it is there for.
    Refused(LaunchError),
}

#[derive(Debug)]
enum Door {
    Here,
    Agent(Box<Remote>),
    /// The agent, whose command may still be there, is gone.
    Lost(PeerId),
}

/// Standard input on its way to a process on another host.
#[derive(Debug)]
struct Inflow {
    peer: PeerId,
    at: usize,
    pipe: PipeReader,
    /// Bytes that the process has not taken yet.
    under_way: usize,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Fleet {
    crew: Crew,
    task: Task,
    cluster: Cluster,
    doors: Vec<Door>,
    /// The host of each rank at the start.
    placement: Vec<usize>,
    binding: Binding,
    /// Where processes run.
    homes: HashMap<PeerId, usize>,
    /// Standard input of the spares of this host.
    inputs: HashMap<PeerId, ChildStdin>,
    inflow: Option<Inflow>,
    detector: Detector,
    interval: Duration,
    timeout: Duration,
    beat_due: Time,
}

impl Fleet {
    /// Starts an agent on every other host; they have not come when this returns.
    ///
    /// # Errors
    /// An agent cannot be started.
    pub(super) fn new(
        order: &Order,
        key: &JobKey,
        port: u16,
        reach: &Reach,
        now: Time,
    ) -> Result<Self, LaunchError> {
        let mut environment = vec![
            (ENV_TRANSPORT.into(), order.carrier.to_string()),
            (ENV_WAIT.into(), order.waiting.to_string()),
        ];
        let config = &order.config;
        let mut fleet = Self {
            crew: Crew::new()?,
            cluster: order.cluster.clone(),
            doors: vec![],
            placement: order.cluster.place(config.total),
            binding: order.binding,
            homes: HashMap::new(),
            inputs: HashMap::new(),
            inflow: None,
            detector: Detector::new(config.timeout, now),
            interval: config.interval,
            timeout: config.timeout,
            beat_due: now,
            task: Task { program: order.program.clone(), args: order.args.clone(), environment: vec![] },
        };
        // Ranks here inherit what this process has; others have to be told.
        let congestion = std::env::var(ENV_CONGESTION).map(|value| (ENV_CONGESTION.to_owned(), value));
        let there = environment.iter().cloned().chain(congestion).collect();
        let site = Site {
            program: bytes(&order.program),
            args: order.args.iter().map(bytes).collect(),
            folder: bytes(std::env::current_dir()?),
            environment: there,
            heartbeat_ms: config.interval.as_millis() as u64,
            timeout_ms: config.timeout.as_millis() as u64,
        };
        for (at, ip) in reach.launcher.iter().enumerate() {
            let door = fleet.open(order, at, key, SocketAddr::new(*ip, port), &site, now)?;
            fleet.doors.push(door);
        }
        environment.extend([
            (crate::ENV_LAUNCHER.into(), SocketAddr::new([127, 0, 0, 1].into(), port).to_string()),
            (crate::ENV_KEY.into(), key.to_text()),
            (ENV_HOST.into(), HOST_OF_LAUNCHER.to_owned()),
            (ENV_LISTEN.into(), reach.own.to_string()),
        ]);
        fleet.task.environment = environment;
        Ok(fleet)
    }

    fn open(
        &mut self,
        order: &Order,
        at: usize,
        key: &JobKey,
        launcher: SocketAddr,
        site: &Site,
        now: Time,
    ) -> Result<Door, LaunchError> {
        let host = self.cluster.hosts()[at].name.clone();
        if host == HOST_OF_LAUNCHER {
            return Ok(Door::Here);
        }
        // Ranks count from the other end.
        let peer = PeerId(u32::MAX - u32::try_from(at).expect("hosts are few"));
        let mut args: Vec<OsString> = vec![host.clone().into()];
        args.extend(command(&order.program, order.agent));
        let exec = self.cluster.exec().clone();
        let words: Vec<String> = std::iter::once(exec.as_os_str())
            .chain(args.iter().map(|arg| &**arg))
            .map(|w| w.display().to_string())
            .collect();
        let mut remote = Remote::new(peer, host.clone(), words.join(" "), now.after(AGENT_TIMEOUT));
        let started = self.crew.begin(peer, &exec, &args, &[], Stdio::piped());
        let stdin = started.map_err(|error| remote.refused(&error.to_string()))?;
        let invitation = Invitation { key: key.clone(), peer, launcher, host };
        // It fits into the pipe. If nobody reads it, the end of the command says so.
        let _ = stdin.map(|mut stdin| stdin.write_all(invitation.to_text().as_bytes()));
        remote.send(ToAgent::Site(site.clone()));
        Ok(Door::Agent(Box::new(remote)))
    }

    /// An agent has proved that it belongs to the job; the stream comes back if it was no agent.
    pub(super) fn connected(&mut self, now: Time, peer: PeerId, stream: Socket) -> Option<Socket> {
        match self.remotes().find(|remote| remote.peer == peer && !remote.is_connected()) {
            Some(remote) => remote.connected(stream),
            None => return Some(stream),
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

    /// The host for a new process: that of the rank at the start, else the one with the fewest processes. None if no host
    /// is left.
    fn home_for(&self, rank: Option<Rank>) -> Option<usize> {
        let is_open = |at: &usize| !matches!(self.doors[*at], Door::Lost(_));
        let first = rank.map(|rank| self.placement[rank]).filter(is_open);
        let processes = |at: &usize| self.homes.values().filter(|home| *home == at).count();
        first.or_else(|| (0..self.doors.len()).filter(is_open).min_by_key(processes))
    }

    /// The cores of a rank, if it is bound: on its first host only, and on none that is this machine by another name.
    fn share(&self, rank: Rank, at: usize) -> Option<Share> {
        let host = &self.cluster.hosts()[at].name;
        let is_alias = host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
        if self.binding == Binding::None || self.placement[rank] != at || is_alias {
            return None;
        }
        let count = |ranks: &[usize]| ranks.iter().filter(|home| **home == at).count() as u32;
        Some(Share { index: count(&self.placement[..rank]), count: count(&self.placement) })
    }

    /// Starts the process of a rank, or a spare; gives the pipe that is rank 0's standard input. On another host a failure
    /// is reported later; if no host is left nothing happens.
    ///
    /// # Errors
    /// The operating system refuses.
    pub(super) fn start(&mut self, peer: PeerId, rank: Option<Rank>) -> std::io::Result<Option<OwnedFd>> {
        let Some(at) = self.home_for(rank) else { return Ok(None) };
        let share = rank.and_then(|rank| self.share(rank, at));
        // A spare may become rank 0.
        let reads = rank.is_none_or(|rank| rank == 0);
        let stdin = match &mut self.doors[at] {
            Door::Agent(remote) => {
                remote.send(ToAgent::Start { peer, reads, share });
                if rank == Some(0) { Some(self.inflow(peer, at)?) } else { None }
            }
            _ => match self.crew.start(peer, &self.task, reads, share)? {
                Some(stdin) if rank.is_none() => {
                    self.inputs.insert(peer, stdin);
                    None
                }
                stdin => stdin.map(OwnedFd::from),
            },
        };
        self.homes.insert(peer, at);
        Ok(stdin)
    }

    /// A pipe for standard input of a process on another host.
    fn inflow(&mut self, peer: PeerId, at: usize) -> std::io::Result<OwnedFd> {
        let (pipe, into) = std::io::pipe()?;
        rustix::io::ioctl_fionbio(&pipe, true)?;
        self.inflow = Some(Inflow { peer, at, pipe, under_way: 0 });
        Ok(into.into())
    }

    /// A spare takes a rank; gives the pipe that is rank 0's standard input.
    pub(super) fn seat(&mut self, peer: PeerId, rank: Rank) -> Option<OwnedFd> {
        let at = *self.homes.get(&peer)?;
        let share = self.share(rank, at);
        let input = self.inputs.remove(&peer);
        let Some(remote) = self.remote(at) else {
            share.into_iter().for_each(|share| self.crew.bind(peer, share));
            return input.filter(|_| rank == 0).map(OwnedFd::from);
        };
        share.into_iter().for_each(|share| remote.send(ToAgent::Bind { peer, share }));
        if rank == 0 {
            return self.inflow(peer, at).ok();
        }
        remote.send(ToAgent::Input { peer, bytes: vec![] });
        None
    }

    /// Sends a signal to a process and its children.
    pub(super) fn signal(&mut self, peer: PeerId, signal: Signal) {
        let Some(at) = self.homes.get(&peer).copied() else { return };
        match &mut self.doors[at] {
            Door::Here => self.crew.signal(peer, signal),
            Door::Agent(remote) => remote.send(ToAgent::Signal { to: Some(peer), signal: signal.as_raw() }),
            Door::Lost(_) => {}
        }
    }

    /// Sends a signal to all processes of the job, but not to agents.
    pub(super) fn signal_all(&mut self, signal: Signal) {
        for (peer, at) in &self.homes {
            if matches!(self.doors[*at], Door::Here) {
                self.crew.signal(*peer, signal);
            }
        }
        self.remotes().for_each(|remote| remote.send(ToAgent::Signal { to: None, signal: signal.as_raw() }));
        self.flush();
    }

    /// Whether no process of the job is left.
    pub(super) fn is_empty(&self) -> bool {
        self.homes.is_empty()
    }

    /// Tells the agents that the job is over; true when all have gone.
    pub(super) fn dismiss(&mut self) -> bool {
        self.remotes().for_each(Remote::dismiss);
        self.flush();
        self.doors.iter().all(|door| match door {
            Door::Here => true,
            Door::Agent(remote) => remote.link().is_none() && !self.crew.has(remote.peer),
            Door::Lost(peer) => !self.crew.has(*peer),
        })
    }

    /// Kills what this host has of the job, commands that have started agents included.
    pub(super) fn kill_here(&self) {
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

    /// What to wait for.
    pub(super) fn fds<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) {
        let readable = |fd: BorrowedFd<'a>| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        fds.extend(self.crew.fds().chain(self.crew.pipes()).map(readable));
        let inflow = self.inflow.iter().filter(|inflow| inflow.under_way < INPUT_WINDOW);
        fds.extend(inflow.map(|inflow| readable(inflow.pipe.as_fd())));
        for door in &self.doors {
            if let Door::Agent(remote) = door {
                fds.extend(remote.link().map(super::control::Control::poll));
            }
        }
    }

    /// When [`Fleet::serve`] is due.
    pub(super) fn poll_timeout(&self) -> Time {
        let late = self.doors.iter().filter_map(|door| match door {
            Door::Agent(remote) if !remote.is_connected() => Some(remote.until),
            _ => None,
        });
        let beat = self.doors.iter().any(|door| matches!(door, Door::Agent(_))).then_some(self.beat_due);
        late.chain(beat).fold(Time(u64::MAX), Time::min)
    }

    /// What has happened since the last call, in order.
    pub(super) fn serve(&mut self, now: Time) -> Vec<Report> {
        let mut reports = Vec::new();
        let deaths = self.crew.deaths();
        self.pump(&mut reports); // what a process has said last comes before its end
        for death in deaths {
            self.died(death, &mut reports);
        }
        self.feed();
        for at in 0..self.doors.len() {
            let Some(remote) = self.remote(at) else { continue };
            let peer = remote.peer;
            let (messages, open) = remote.receive();
            if !messages.is_empty() {
                self.detector.heard(peer, now);
            }
            reports.extend(messages.into_iter().filter_map(|message| self.heard(at, message)));
            if !open {
                reports.extend(self.lose(at, "the link to its agent broke"));
            }
        }
        self.look_for_silence(now, &mut reports);
        reports
    }

    fn pump(&mut self, reports: &mut Vec<Report>) {
        let Self { crew, cluster, .. } = self;
        crew.pump(&mut |peer, error, lines| reports.push(said(cluster, peer, error, lines)));
    }

    /// What is left of what was printed here; lines that never ended end here.
    pub(super) fn finish(&mut self) -> Vec<Report> {
        let mut reports = Vec::new();
        let Self { crew, cluster, .. } = self;
        crew.finish(&mut |peer, error, lines| reports.push(said(cluster, peer, error, lines)));
        reports
    }

    fn died(&mut self, death: Death, reports: &mut Vec<Report>) {
        if let Death::Gone(peer, exit) = death {
            if let Some(remote) = self.remotes().find(|remote| remote.peer == peer) {
                if !remote.is_connected() && !remote.is_dismissed() {
                    let why = match exit {
                        Exit::Status(status) => {
                            format!("the command ended with status {status} and left no agent")
                        }
                        Exit::Signal(signal) => format!("the command was killed by signal {signal}"),
                    };
                    reports.push(Report::Refused(remote.refused(&why)));
                }
                return;
            }
            self.homes.remove(&peer);
            self.inputs.remove(&peer);
        }
        reports.push(Report::Death(death));
    }

    /// What an agent has said.
    fn heard(&mut self, at: usize, message: FromAgent) -> Option<Report> {
        let runs_there = |fleet: &Self, peer: PeerId| fleet.homes.get(&peer) == Some(&at);
        match message {
            FromAgent::Beat => None,
            FromAgent::Refused { why } => self.remote(at).map(|remote| Report::Refused(remote.refused(&why))),
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
            FromAgent::Output { peer, error, lines } => Some(Report::Said { peer, error, lines }),
            FromAgent::Taken { peer, bytes } => {
                if let Some(inflow) = self.inflow.as_mut().filter(|inflow| inflow.peer == peer) {
                    inflow.under_way = inflow.under_way.saturating_sub(bytes as usize);
                }
                None
            }
        }
    }

    fn forget(&mut self, peer: PeerId, at: usize) {
        if self.homes.get(&peer) == Some(&at) {
            self.homes.remove(&peer);
            self.inflow = self.inflow.take().filter(|inflow| inflow.peer != peer);
        }
    }

    /// Hands standard input on.
    fn feed(&mut self) {
        let Some(inflow) = &mut self.inflow else { return };
        let Some(Door::Agent(remote)) = self.doors.get_mut(inflow.at) else { return };
        let mut buffer = [0; 8 << 10];
        let room = buffer.len().min(INPUT_WINDOW - inflow.under_way.min(INPUT_WINDOW));
        if room == 0 {
            return;
        }
        let (peer, read) = (inflow.peer, inflow.pipe.read(&mut buffer[..room]));
        if let Ok(count) = read {
            inflow.under_way += count;
            remote.send(ToAgent::Input { peer, bytes: buffer[..count].to_vec() });
            if count == 0 {
                self.inflow = None;
            }
        }
    }

    fn look_for_silence(&mut self, now: Time, reports: &mut Vec<Report>) {
        for peer in self.detector.suspects(now) {
            let at = (u32::MAX - peer.0) as usize;
            reports
                .extend(self.lose(at, &format!("its agent is silent for {} s", self.timeout.as_secs_f64())));
        }
        for remote in self.remotes() {
            if !remote.is_connected() && now >= remote.until {
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
        }
        self.flush();
    }

    /// A host is lost, unless its agent has left because it was told to.
    fn lose(&mut self, at: usize, cause: &str) -> Option<Report> {
        let remote = self.remote(at)?;
        let (peer, left) = (remote.peer, remote.is_dismissed());
        self.doors[at] = Door::Lost(peer);
        self.detector.forget(peer);
        if !left {
            self.crew.signal(peer, Signal::KILL); // the command
        }
        let mut peers: Vec<PeerId> =
            self.homes.iter().filter(|(_, home)| **home == at).map(|(peer, _)| *peer).collect();
        peers.sort_unstable();
        peers.iter().for_each(|peer| self.forget(*peer, at));
        let host = &self.cluster.hosts()[at].name;
        (!left).then(|| Report::Lost { cause: format!("host {host} is gone: {cause}"), peers })
    }

    /// Whether there is a host on which processes can be started.
    pub(super) fn has_a_host(&self) -> bool {
        self.home_for(None).is_some()
    }
}

/// Who has said something: a process of the job, or the command that starts an agent.
fn said(cluster: &Cluster, peer: PeerId, error: bool, lines: Vec<u8>) -> Report {
    match cluster.hosts().get((u32::MAX - peer.0) as usize) {
        Some(host) => Report::Noted { host: host.name.clone(), lines },
        None => Report::Said { peer, error, lines },
    }
}

fn bytes(text: impl Into<OsString>) -> Vec<u8> {
    text.into().into_encoded_bytes()
}

fn exit(ended: Ended) -> Exit {
    match ended {
        Ended::Status(status) => Exit::Status(status),
        Ended::Signal(signal) => Exit::Signal(signal),
    }
}
