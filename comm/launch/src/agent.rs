//! An agent: the process that starts ranks on another host, for the launcher.
//!
//! It decides nothing. What it is told it carries out with the same code as the launcher ([`super::crew`]), and what happens
//! to the processes it says at once. When its link to the launcher ends, or has been silent for as long as a rank would
//! bear it, it ends all processes and itself. When it is killed, its keeper (`keeper.rs`) starts another one, which finds the processes where they
//! are: the launcher tells it of all that it knows of, and what was started or has ended is not started again.

use std::collections::{HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufRead, ErrorKind, Read, Write};
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::process::Signal;

use super::control::Control;
use super::crew::{Crew, Death, Task};
use super::executable;
use super::gauge::Gauge;
use super::invitation::Invitation;
use super::keeper::{Handed, Helm, become_keeper};
use super::signals::reset_signals;
use ft_comm::limits;
use ft_comm::time::{Clock, Time};
use ft_comm::transport::{Address, ENV_HOST, ENV_LISTEN, HOST_OF_LAUNCHER, Target, connect, timespec};
use ft_proto::arbiter::Exit;
use ft_proto::detector::Detector;
use ft_proto::member::LEASE_TIMEOUTS;
use ft_proto::rank::PeerId;
use ft_proto::wire::agent::{Birth, Ended, FromAgent, Held, Site, ToAgent};
use ft_proto::wire::handshake::Opening;

/// Longest invitation in bytes.
const INVITATION_MAX: u64 = 1024;
/// Bytes that wait for the launcher to take them; with more, what ranks print stays in their pipes.
const BACKLOG_MAX: usize = 1 << 20;
/// How long the agent waits for what it has to do.
const PATIENCE: Duration = Duration::from_secs(10);

/// Standard input of a process.
#[derive(Debug)]
struct Input {
    /// None when it has ended, or the process has closed it.
    pipe: Option<File>,
    queue: VecDeque<u8>,
    ends: bool,
    /// Before it was fed the last time.
    was_open: bool,
}

struct Agent {
    invitation: Invitation,
    listen: IpAddr,
    link: Control,
    crew: Crew,
    clock: Clock,
    /// None until the launcher has told it.
    task: Option<Task>,
    /// The file that ranks execute in their place, if the agent before had it open.
    executable: Option<OwnedFd>,
    inputs: HashMap<PeerId, Input>,
    lease: Detector,
    interval: Duration,
    beat_due: Time,
    /// The launcher has given a sign of life since it was looked at those of the ranks.
    was_heard: bool,
    /// How busy this host is, if the launcher wants to know.
    gauge: Option<Gauge>,
    /// What stays in the pipes of processes: nobody reads it.
    held: Held,
    /// The launcher has stopped all ranks and will stop itself: its silence is no sign.
    paused: bool,
    over: bool,
}

/// Makes this process the keeper of this host, which starts an agent, for a launcher that has started it on another host with
/// [`JobSpec::agent`](super::JobSpec::agent) and invites it on standard input. `keeper` is the one argument with which this program calls
/// [`keep`](super::keep), and `build` the number of its build, as [`JobSpec::build`](super::JobSpec::build). Returns only if there is no such
/// launcher, or one of another build.
pub fn agent(keeper: &str, build: u32) -> String {
    reset_signals();
    limits::raise_open_files();
    let mut line = String::new();
    let stdin = std::io::stdin().lock();
    if let Err(error) = stdin.take(INVITATION_MAX).read_line(&mut line) {
        return format!("standard input: {error}");
    }
    match Invitation::from_text(&line).and_then(|invitation| invitation.require_build(build)) {
        Ok(()) => format!("no keeper can be here: {}", limits::explain(&become_keeper(&line, keeper))),
        Err(error) => error,
    }
}

/// Makes this process the agent of a keeper, which has started it. Returns when the job is over or the launcher is gone; what is left
/// then is the keeper's to end.
///
/// # Errors
/// There is no keeper, or the launcher cannot be reached from here.
pub fn kept_agent() -> Result<(), String> {
    let Handed { helm, invitation, kept, ground, executable } =
        Helm::take().map_err(|error| limits::explain(&error))?;
    let inputs = kept.iter().filter_map(|kept| Some((kept.peer, kept.input.as_ref()?.try_clone().ok()?)));
    let inputs: Vec<(PeerId, File)> = inputs.collect();
    let crew = Crew::kept(helm, kept, ground).map_err(|error| limits::explain(&error))?;
    let mut agent = Agent::new(Invitation::from_text(&invitation)?, crew)?;
    agent.executable = executable;
    inputs.into_iter().for_each(|(peer, pipe)| agent.takes_input(peer, Some(pipe)));
    while agent.turn() {}
    agent.end();
    Ok(())
}

impl Agent {
    /// One that has a link to its launcher, and nothing to do yet.
    fn new(invitation: Invitation, crew: Crew) -> Result<Self, String> {
        let clock = Clock::start();
        // Of agents the generation is that of their invitation.
        let opening = Opening { from: invitation.peer, to: PeerId::LAUNCHER, generation: invitation.term };
        let target = Target { socket: invitation.launcher.into(), is_far: true };
        let channel = connect(&invitation.credentials, opening, &target, None, &clock).map_err(|error| {
            format!("cannot reach the launcher at {}: {}", invitation.launcher, error.why())
        })?;
        let io = |error: std::io::Error| error.to_string();
        let ours = channel.socket().local_addr().map_err(io)?.as_socket().map(|address| address.ip());
        let host = invitation.host.rsplit('@').next().and_then(|host| host.parse().ok());
        let listen = host.or(ours).ok_or("the link to the launcher has no address")?;
        Ok(Self {
            listen,
            link: Control::new(channel),
            crew,
            task: None,
            executable: None,
            inputs: HashMap::new(),
            lease: lease(PATIENCE, clock.now()),
            interval: Duration::from_millis(100),
            beat_due: clock.now(),
            was_heard: false,
            gauge: None,
            held: Held::default(),
            paused: false,
            over: false,
            invitation,
            clock,
        })
    }

    /// False when it is to end.
    fn turn(&mut self) -> bool {
        self.wait();
        let now = self.clock.now();
        let mut messages: Vec<ToAgent> = Vec::new();
        let open = self.link.receive(|message| messages.push(message)).is_ok();
        if !messages.is_empty() || self.paused {
            self.lease.heard(PeerId::LAUNCHER, now);
            self.was_heard = true;
        }
        messages.into_iter().for_each(|message| self.handle(message));
        self.feed();
        self.report();
        // The first one says that it can do what it is there for.
        if now >= self.beat_due && self.task.is_some() {
            self.beat_due = now.after(self.interval);
            let busy = self.gauge.as_ref().and_then(Gauge::read);
            self.link.send(&FromAgent::Beat { busy });
            self.pass_on_pulses();
        }
        self.link.flush();
        open && !self.over && !self.crew.is_forsaken() && self.lease.suspects(now).is_empty()
    }

    /// Tells the launcher which ranks have given signs of life in the memory of this host, and these that the launcher has.
    fn pass_on_pulses(&mut self) {
        let of = self.crew.look(std::mem::take(&mut self.was_heard));
        if !of.is_empty() {
            self.link.send(&FromAgent::Alive { of });
        }
    }

    fn wait(&self) {
        let mut fds = vec![self.link.poll()];
        fds.extend(self.crew.fds().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let pipes = self.crew.pipes(self.held());
        fds.extend(pipes.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let blocked = self.inputs.values().filter(|input| !input.queue.is_empty());
        let blocked = blocked.filter_map(|input| input.pipe.as_ref());
        fds.extend(blocked.map(|pipe| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::OUT)));
        // Without a task it waits for the first word.
        let due = if self.task.is_some() { self.beat_due } else { self.clock.now().after(self.interval) };
        let due = self.crew.output_due(self.held()).into_iter().fold(due, Time::min);
        let left = if self.link.has_more() { Duration::ZERO } else { due.since(self.clock.now()) };
        let _ = rustix::event::poll(&mut fds, Some(&timespec(left)));
    }

    fn handle(&mut self, message: ToAgent) {
        match message {
            ToAgent::Site(site) => self.settle(site),
            ToAgent::Beat => {}
            ToAgent::Start { peer, birth } => self.start(peer, birth),
            ToAgent::Bind { peer, share } => self.crew.bind(peer, share),
            ToAgent::Signal { to, signal } => {
                Signal::from_named_raw(signal).into_iter().for_each(|signal| self.signal(to, signal));
            }
            ToAgent::Input { peer, bytes } => {
                if let Some(input) = self.inputs.get_mut(&peer) {
                    input.ends |= bytes.is_empty();
                    input.queue.extend(bytes);
                }
            }
            ToAgent::Hold(held) => self.held = held,
            ToAgent::End => self.over = true,
        }
    }

    /// Starts a process, unless that was done for the launcher before.
    fn start(&mut self, peer: PeerId, birth: Birth) {
        let Some(task) = &self.task else { return };
        if let Some(exit) = self.crew.exit_of(peer) {
            return self.link.send(&FromAgent::Gone { peer, ended: ended(exit) });
        }
        if !self.crew.has(peer) {
            match self.crew.start(peer, task, birth, None) {
                Ok(pipe) => self.takes_input(peer, pipe),
                // Its keeper has died: the end of this agent says that the host is lost.
                Err(_) if self.crew.is_forsaken() => return,
                Err(error) => {
                    let why = limits::explain(&error);
                    return self.link.send(&FromAgent::NotStarted { peer, why });
                }
            }
        }
        if let Some(pid) = self.crew.pid(peer) {
            self.link.send(&FromAgent::Started { peer, pid });
        }
    }

    /// A process may get standard input through this pipe.
    fn takes_input(&mut self, peer: PeerId, pipe: Option<File>) {
        // One that would block the agent is of no use.
        let pipe = pipe.filter(|pipe| rustix::io::ioctl_fionbio(pipe, true).is_ok());
        self.inputs.insert(peer, Input { pipe, queue: VecDeque::new(), ends: false, was_open: false });
    }

    /// Sends a signal to a process, or to all.
    fn signal(&mut self, to: Option<PeerId>, signal: Signal) {
        match to {
            Some(peer) => self.crew.signal(peer, signal),
            None => {
                self.crew.signal_all(signal);
                self.paused = signal == Signal::STOP;
            }
        }
    }

    /// What nobody takes of what processes print.
    fn held(&self) -> Held {
        let is_full = self.link.waiting() >= BACKLOG_MAX;
        Held { output: self.held.output || is_full, error: self.held.error || is_full }
    }

    fn settle(&mut self, site: Site) {
        let folder = PathBuf::from(OsString::from_vec(site.folder));
        if let Err(error) = std::env::set_current_dir(&folder) {
            let why = format!("it has no folder {}: {error}", folder.display());
            return self.link.send(&FromAgent::Refused { why });
        }
        let Ok(launcher) = Address::new(HOST_OF_LAUNCHER, Some(self.invitation.launcher), None) else {
            return;
        };
        let mut environment = site.environment;
        environment.extend([
            (ft_comm::ENV_LAUNCHER.to_owned(), launcher.to_string()),
            (ENV_HOST.to_owned(), self.invitation.host.clone()),
            (ENV_LISTEN.to_owned(), self.listen.to_string()),
        ]);
        let open = || executable::hold(Path::new(OsStr::from_bytes(site.executable.as_deref()?)));
        let executable = self.executable.take().or_else(open);
        self.task = Some(Task {
            program: OsString::from_vec(site.program),
            args: site.args.into_iter().map(OsString::from_vec).collect(),
            executable,
            environment,
            key: self.invitation.credentials.key.clone(),
        });
        if site.raw_output {
            self.crew.pass_unchanged();
        }
        self.gauge = site.measures.then(Gauge::open).flatten();
        self.interval = Duration::from_millis(site.heartbeat_ms.max(1));
        self.crew.welcome();
        let timeout = Duration::from_millis(site.timeout_ms.max(1));
        self.lease = lease(timeout * LEASE_TIMEOUTS, self.clock.now());
    }

    /// Hands standard input to processes as far as they take it.
    fn feed(&mut self) {
        for (peer, input) in &mut self.inputs {
            let taken = input.feed();
            if taken > 0 {
                self.link.send(&FromAgent::Taken { peer: *peer, bytes: taken });
            }
            if input.has_ended() {
                self.crew.end_input(*peer);
            }
        }
    }

    /// Says what has happened to the processes: what they have printed, then who has died.
    fn report(&mut self) {
        let now = self.clock.now();
        let deaths = self.crew.deaths(now);
        let (held, link) = (self.held(), &mut self.link);
        self.crew.pump(now, &deaths, held, &mut |peer, error, lines| {
            link.send(&FromAgent::Output { peer, error, lines });
        });
        if let Some(error) = self.crew.trouble() {
            self.link.send(&FromAgent::Refused { why: limits::explain(&error) });
        }
        for (peer, is_stopped) in self.crew.stops() {
            self.link.send(&FromAgent::Stopped { peer, is_stopped });
        }
        for death in deaths {
            self.link.send(&match death {
                Death::Dying(peer, exit) => FromAgent::Dying { peer, ended: ended(exit) },
                Death::Gone(peer, exit) => {
                    self.inputs.remove(&peer);
                    FromAgent::Gone { peer, ended: ended(exit) }
                }
            });
        }
    }

    fn end(&mut self) {
        self.crew.kill_all();
        let (now, link) = (self.clock.now(), &mut self.link);
        self.crew.finish(now, &mut |peer, error, lines| link.send(&FromAgent::Output { peer, error, lines }));
        self.link.flush();
        self.crew.end_orphans();
    }
}

impl Input {
    /// Bytes that the process has taken, or that nobody will take.
    fn feed(&mut self) -> u32 {
        let mut taken = 0;
        self.was_open = self.pipe.is_some();
        while !self.queue.is_empty() {
            let (front, _) = self.queue.as_slices();
            let result = match &mut self.pipe {
                Some(pipe) => pipe.write(front),
                None => Ok(front.len()),
            };
            match result {
                Ok(count) => {
                    self.queue.drain(..count);
                    taken += count as u32;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return taken,
                Err(_) => self.pipe = None,
            }
        }
        if self.ends {
            self.pipe = None;
        }
        taken
    }

    /// The last [`Input::feed`] was the end of it.
    fn has_ended(&self) -> bool {
        self.was_open && self.pipe.is_none()
    }
}

/// The launcher has been heard now, and is to be heard in every such time.
fn lease(patience: Duration, now: Time) -> Detector {
    let mut lease = Detector::new(patience, now);
    lease.heard(PeerId::LAUNCHER, now);
    lease
}

fn ended(exit: Exit) -> Ended {
    match exit {
        Exit::Status(status) => Ended::Status(status),
        Exit::Signal(signal) => Ended::Signal(signal),
    }
}
