//! The launcher: starts the ranks of a job, arbitrates its membership, forwards output, input and signals,
//! and leaves nothing behind.
//!
//! Everything happens in one thread around one `poll`; decisions are those of the arbiter
//! ([`crate::proto::arbiter`]), which this module only carries out.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{ChildStdin, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::process::Signal;

use crate::binding::{self, Binding, ENV_CORES};
use crate::fault::SlowSpec;
use crate::lifeline::{ENV_LIFELINE, Lifeline};
use crate::proto::arbiter::{Arbiter, Config, Effect, Event, Exit};
use crate::rank::{PeerId, Rank};
use crate::time::{Clock, Time};
use crate::transport::{
    Accepted, Carrier, Doorman, ENV_HOST, ENV_LINK_FAULTS, ENV_TRANSPORT, ENV_WAIT, HOST_OF_LAUNCHER,
    Waiting, timespec,
};
use crate::wire::handshake::JobKey;

mod control;
mod ledger;
mod output;
mod process;
mod stdin;
mod vigil;

use control::Control;
pub use ledger::Failure;
use ledger::Ledger;
pub use process::die_with_launcher;
use process::{Process, Started};

/// How long processes are given to end by themselves when the job is over.
const GRACE: Duration = Duration::from_millis(500);
/// How long a broken control link waits for the operating system's word on why.
const CAUSE: Duration = Duration::from_millis(20);

/// What is to be launched.
#[derive(Debug)]
pub struct Order {
    /// The program of every rank.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// The job.
    pub config: Config,
    /// Standard output of the ranks goes to standard error, as the launcher's own is kept for a report.
    pub output_to_stderr: bool,
    /// Each line of output is prefixed with its rank.
    pub tag_output: bool,
    /// What carries the links between ranks.
    pub carrier: Carrier,
    /// How blocked callers wait.
    pub waiting: Waiting,
    /// Whether ranks are bound to cores.
    pub binding: Binding,
    /// Links that are slow.
    pub slow: Vec<SlowSpec>,
}

/// How a job ended.
#[derive(Debug)]
pub struct Ending {
    /// Exit status.
    pub code: i32,
    /// Cause, empty if all went well.
    pub message: String,
    /// What the ranks reported when they were done, by rank; empty if the job did not get there.
    pub outputs: Vec<Vec<u8>>,
    /// Failures and repairs.
    pub failures: Vec<Failure>,
    /// Positions of injected failures that did not fire, kills before cuts.
    pub unfired: Vec<usize>,
    /// Spares that have taken a rank.
    pub spares_used: u32,
    /// Random kills that had to wait until redundancy was whole again.
    pub postponed: u32,
    /// Connections of strangers that were refused.
    pub strangers: u64,
    /// Wall time.
    pub elapsed: Duration,
}

/// The job could not be launched.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// A program could not be started.
    #[error("cannot start {}: {source}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The operating system refuses something that the launcher needs.
    #[error("cannot set up the job: {0}")]
    System(#[from] std::io::Error),
}

/// Launches a job and returns when it has ended and no process of it is left.
///
/// The calling process is the launcher and belongs to the job: it adopts orphans among its descendants, and
/// every child that it has when the job has ended is killed.
///
/// # Errors
/// The job could not be launched; no process is left then either.
pub fn launch(order: Order, observer: &mut dyn FnMut(&Event, Time)) -> Result<Ending, LaunchError> {
    let mut launcher = Launcher::new(order)?;
    let result = launcher.run(observer);
    // Whatever happened, nothing is left behind.
    launcher.kill_all();
    launcher.end_orphans();
    result
}

struct Signals {
    child: UnixStream,
    end: Vec<(Signal, UnixStream)>,
    stop: UnixStream,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        let pipe = |number: i32| -> std::io::Result<UnixStream> {
            let (ours, theirs) = UnixStream::pair()?;
            ours.set_nonblocking(true)?;
            signal_hook::low_level::pipe::register(number, theirs)?;
            Ok(ours)
        };
        use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGTSTP};
        let end = [(SIGINT, Signal::INT), (SIGTERM, Signal::TERM), (SIGHUP, Signal::HUP)];
        // Under nohup the end of the terminal is no reason to end.
        let end = end
            .into_iter()
            .filter(|(number, _)| *number != SIGHUP || !is_ignored(SIGHUP))
            .map(|(number, signal)| Ok((signal, pipe(number)?)));
        Ok(Self { child: pipe(SIGCHLD)?, end: end.collect::<std::io::Result<_>>()?, stop: pipe(SIGTSTP)? })
    }

    fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [self.child.as_fd(), self.stop.as_fd()].into_iter().chain(self.end.iter().map(|(_, s)| s.as_fd()))
    }
}

/// Whether this process was started with the signal ignored.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (signal - 1)) != 0
}

fn rang(stream: &UnixStream) -> bool {
    matches!((&*stream).read(&mut [0; 64]), Ok(count) if count > 0)
}

struct Launcher {
    order: Order,
    key: JobKey,
    clock: Clock,
    arbiter: Arbiter,
    doorman: Doorman,
    address: String,
    signals: Signals,
    vigil: vigil::Vigil,
    processes: HashMap<PeerId, Process>,
    controls: HashMap<PeerId, Control>,
    /// Control links that broke, and when to stop waiting for the exit of their process.
    broken: HashMap<PeerId, Time>,
    output: output::Output,
    /// `/dev/null`, opened once: between a death and the resumption no file is opened.
    null: File,
    stdin: stdin::Forwarder,
    /// Standard input of the spares.
    inputs: HashMap<PeerId, ChildStdin>,
    ledger: Ledger,
    outputs: Vec<Vec<u8>>,
    ending: Option<(i32, String, Time)>,
}

impl Launcher {
    fn new(order: Order) -> Result<Self, LaunchError> {
        let mut key = JobKey { job: [0; 16], key: [0; 32] };
        let random = getrandom::fill(&mut key.job).and_then(|()| getrandom::fill(&mut key.key));
        random.map_err(|error| std::io::Error::other(error.to_string()))?;
        let doorman = Doorman::listen(key.clone(), PeerId::LAUNCHER)?;
        process::adopt_orphans();
        let clock = Clock::start();
        Ok(Self {
            address: doorman.tcp()?.to_string(),
            arbiter: Arbiter::new(order.config.clone(), clock.now()),
            ledger: Ledger::new(order.config.kills.clone(), order.config.cuts.clone()),
            output: output::Output::new(order.output_to_stderr, order.tag_output),
            null: File::open("/dev/null")?,
            stdin: stdin::Forwarder::default(),
            inputs: HashMap::new(),
            order,
            key,
            clock,
            doorman,
            signals: Signals::new()?,
            vigil: vigil::Vigil::new()?,
            processes: HashMap::new(),
            controls: HashMap::new(),
            broken: HashMap::new(),
            outputs: vec![],
            ending: None,
        })
    }

    fn run(&mut self, observer: &mut dyn FnMut(&Event, Time)) -> Result<Ending, LaunchError> {
        loop {
            self.carry_out(observer)?;
            if let Some((code, message, until)) = &self.ending {
                if self.processes.is_empty() {
                    self.output.finish();
                    return Ok(Ending {
                        code: *code,
                        message: message.clone(),
                        outputs: std::mem::take(&mut self.outputs),
                        failures: self.ledger.failures(),
                        unfired: self.arbiter.unfired(),
                        spares_used: self.arbiter.spares_used(),
                        postponed: self.arbiter.postponed(),
                        strangers: self.doorman.refused(),
                        elapsed: self.clock.now().since(Time(0)),
                    });
                }
                if self.clock.now() >= *until {
                    self.kill_all();
                }
            }
            self.wait();
            self.listen();
            self.mourn();
            self.reap();
            self.hear();
            self.output.pump();
            self.heed_signals();
            self.arbiter.tick(self.clock.now());
        }
    }

    fn carry_out(&mut self, observer: &mut dyn FnMut(&Event, Time)) -> Result<(), LaunchError> {
        while let Some(effect) = self.arbiter.poll_effect() {
            let now = self.clock.now();
            match effect {
                Effect::Send { to, message } => {
                    if let Some(control) = self.controls.get_mut(&to) {
                        control.send(&message);
                    }
                }
                Effect::Start { rank, peer, incarnation: _ } => self.start(peer, Some(rank))?,
                Effect::Spare(peer) => self.start(peer, None)?,
                Effect::Seat { peer, rank, incarnation: _ } => self.seat(peer, rank),
                Effect::Kill(peer) => {
                    self.processes.get(&peer).into_iter().for_each(|p| p.signal(Signal::KILL))
                }
                Effect::Stop(peer) => {
                    self.processes.get(&peer).into_iter().for_each(|p| p.signal(Signal::STOP))
                }
                Effect::Record(event) => {
                    self.ledger.record(now, &event);
                    observer(&event, now);
                    if let Event::Finished { outputs } = event {
                        self.outputs = outputs;
                    }
                }
                Effect::End { code, message } => {
                    self.output.job_is_over();
                    self.ending = Some((code, message, now.after(GRACE)));
                }
            }
        }
        for control in self.controls.values_mut() {
            control.flush();
        }
        Ok(())
    }

    /// Starts the process of a rank, or a spare.
    fn start(&mut self, peer: PeerId, rank: Option<Rank>) -> Result<(), LaunchError> {
        let mut environment = vec![
            (crate::ENV_LAUNCHER, self.address.clone()),
            (crate::ENV_KEY, self.key.to_text()),
            (crate::ENV_PEER, peer.0.to_string()),
            (ENV_HOST, HOST_OF_LAUNCHER.to_owned()),
            (ENV_TRANSPORT, self.order.carrier.to_string()),
            (ENV_WAIT, self.order.waiting.to_string()),
        ];
        if !(self.order.config.cuts.is_empty() && self.order.slow.is_empty()) {
            let slow: Vec<String> = self.order.slow.iter().map(ToString::to_string).collect();
            environment.push((ENV_LINK_FAULTS, slow.join(" ")));
        }
        // Where the system has none, deaths are noticed later.
        let lifeline = Lifeline::new().ok();
        if let Some((_, file)) = &lifeline {
            environment.push((ENV_LIFELINE, file.as_raw_fd().to_string()));
        }
        environment.extend(rank.and_then(|rank| self.cores(rank)).map(|cores| (ENV_CORES, cores)));
        // A spare may become rank 0.
        let reads = rank.is_none_or(|rank| rank == 0);
        let stdin = if reads { Stdio::piped() } else { self.null.try_clone()?.into() };
        let Started { process, stdout, stderr, stdin } =
            process::start(&self.order.program, &self.order.args, &environment, stdin)
                .map_err(|source| LaunchError::Start { program: self.order.program.clone(), source })?;
        self.processes.insert(peer, process);
        if let Some((line, _)) = lifeline {
            self.vigil.watch(peer, line);
        }
        self.output.add(peer, rank, stdout, stderr);
        match (rank, stdin) {
            (Some(_), Some(stdin)) => self.stdin.forward_to(stdin),
            (None, Some(stdin)) => drop(self.inputs.insert(peer, stdin)),
            (_, None) => {}
        }
        Ok(())
    }

    /// A spare takes a rank.
    fn seat(&mut self, peer: PeerId, rank: Rank) {
        self.output.seat(peer, rank);
        if let Some(stdin) = self.inputs.remove(&peer).filter(|_| rank == 0) {
            self.stdin.forward_to(stdin);
        }
        let pid = self.processes.get(&peer).and_then(Process::pid);
        if let (Some(pid), Some(cores)) = (pid, self.cores(rank)) {
            binding::bind(Some(pid), &cores);
        }
    }

    /// The cores of a rank, if it is bound.
    fn cores(&self, rank: Rank) -> Option<String> {
        let ranks = self.order.config.total;
        self.order.binding.share(rank, ranks, &binding::cores()).map(binding::text)
    }

    fn kill_all(&mut self) {
        for process in self.processes.values() {
            process.signal(Signal::KILL);
        }
        // Killed processes are reaped at once or soon; a job that could not be launched waits for them here.
        if self.ending.is_none() {
            self.processes.drain().for_each(|(_, process)| process.wait());
        }
    }

    /// Waits, not for long, until no descendant of this process is left.
    fn end_orphans(&self) {
        let until = self.clock.now().after(GRACE);
        while process::end_orphans() && self.clock.now() < until {
            let mut fds = [PollFd::new(&self.signals.child, PollFlags::IN)];
            let _ = rustix::event::poll(&mut fds, Some(&timespec(Duration::from_millis(5))));
            rang(&self.signals.child);
        }
    }

    fn wait(&mut self) {
        let now = self.clock.now();
        let mut until = self.arbiter.poll_timeout();
        until = self.broken.values().copied().fold(until, Time::min);
        if let Some((_, _, end)) = &self.ending {
            until = until.min(*end).min(now.after(Duration::from_millis(50)));
        }
        let mut fds: Vec<PollFd<'_>> = Vec::new();
        let readable = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        fds.extend(self.signals.fds().map(readable));
        fds.push(readable(self.vigil.fd()));
        fds.extend(self.doorman.fds().map(readable));
        fds.extend(self.output.fds().map(readable));
        for control in self.controls.values() {
            let flags = if control.is_blocked() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            fds.push(PollFd::from_borrowed_fd(control.fd(), flags));
        }
        let _ = rustix::event::poll(&mut fds, Some(&timespec(until.since(now))));
    }

    /// New connections.
    fn listen(&mut self) {
        let now = self.clock.now();
        for Accepted { opening, stream } in self.doorman.serve(now) {
            if self.arbiter.connected(now, opening.from) {
                self.controls.insert(opening.from, Control::new(stream));
            }
        }
    }

    /// What ranks have to say.
    fn hear(&mut self) {
        let now = self.clock.now();
        let mut lost = Vec::new();
        for (peer, control) in &mut self.controls {
            let alive = control.receive(|message| self.arbiter.handle(now, *peer, message));
            if !alive {
                lost.push(*peer);
            }
        }
        for peer in lost {
            self.controls.remove(&peer);
            self.broken.insert(peer, now.after(CAUSE));
        }
        let overdue: Vec<PeerId> =
            self.broken.iter().filter(|(_, at)| **at <= now).map(|(p, _)| *p).collect();
        for peer in overdue {
            self.broken.remove(&peer);
            self.arbiter.disconnected(now, peer);
        }
    }

    /// Processes that are dying: they do nothing any more, but it takes a while until they have ended.
    fn mourn(&mut self) {
        for peer in self.vigil.dead() {
            let Some(exit) = self.processes.get(&peer).and_then(Process::ending) else { continue };
            self.bury(peer, exit);
        }
    }

    /// The end of a process is certain.
    fn bury(&mut self, peer: PeerId, exit: Exit) {
        // What it said last comes before its end.
        if let Some(mut control) = self.controls.remove(&peer) {
            control.receive(|message| self.arbiter.handle(self.clock.now(), peer, message));
        }
        self.broken.remove(&peer);
        self.output.pump();
        self.arbiter.exited(self.clock.now(), peer, exit);
    }

    /// Processes that have ended.
    fn reap(&mut self) {
        if rang(&self.signals.child) {
            let ended: Vec<_> =
                self.processes.iter_mut().filter_map(|(peer, p)| Some((*peer, p.ended()?))).collect();
            for (peer, exit) in ended {
                self.processes.remove(&peer);
                self.inputs.remove(&peer);
                self.vigil.forget(peer);
                self.bury(peer, exit);
            }
        }
    }

    fn heed_signals(&mut self) {
        for (signal, stream) in &self.signals.end {
            if rang(stream) {
                self.processes.values().for_each(|process| process.signal(*signal));
                let name = match *signal {
                    Signal::INT => "interrupted (SIGINT)",
                    Signal::TERM => "terminated (SIGTERM)",
                    _ => "hung up (SIGHUP)",
                };
                self.arbiter.end(128 + signal.as_raw(), name.into());
            }
        }
        if rang(&self.signals.stop) {
            self.processes.values().for_each(|process| process.signal(Signal::STOP));
            let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
            self.processes.values().for_each(|process| process.signal(Signal::CONT));
        }
    }
}
