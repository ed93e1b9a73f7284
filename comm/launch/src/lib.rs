//! The launcher: starts the ranks of a job, arbitrates its membership, forwards output, input and signals,
//! and leaves nothing behind.
//!
//! Everything happens in one thread around one `poll`, which waits for nothing else: what is printed is written by others
//! (`console.rs`). Decisions are those of the arbiter ([`ft_proto::arbiter`]), which this module only carries out. Processes are started on this host or, by
//! agents, on others; which of both is known behind one door (`fleet.rs`).

#![forbid(unsafe_code)]

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::process::Signal;

use ft_comm::limits;
use ft_comm::time::{Clock, Time};
use ft_comm::transport::{Accepted, Credentials, Doorman, is_shortage, timespec};
use ft_proto::arbiter::{Arbiter, Effect, Event, Exit};
use ft_proto::member::LEASE_TIMEOUTS;
use ft_proto::rank::{PeerId, Rank};
use ft_proto::wire::agent::Held;
use ft_proto::wire::control::{News, ToArbiter};
use ft_proto::wire::handshake::{JobKey, hex};

mod agent;
mod allocation;
mod answering;
mod boundary;
mod cluster;
mod console;
mod control;
mod crew;
mod desk;
mod executable;
mod fleet;
mod gauge;
mod guardian;
mod invitation;
mod keeper;
mod ledger;
mod line_merger;
mod mpirun;
mod output;
mod panics;
mod pipes;
mod process;
mod reach;
mod remote;
mod seen;
mod signals;
mod spec;
mod standing;
mod starter;
mod stdin;
mod vigil;

pub use agent::{agent, kept_agent};
pub use allocation::{Allocation, AllocationError, Surroundings, Tasks};
pub use boundary::{Optional, caught};
pub use cluster::{Cluster, Host, HostError, HostList, Mapping, Placing};
pub use console::{Console, ConsoleError, Stream};
use control::Control;
use crew::Death;
pub use desk::protocol::{Command, FailureStatus, Failures, HostStatus, RankStatus, Status};
pub use desk::{Desk, DeskError, Inquiry, InquiryError, jobs};
pub use executable::{SELF, become_program};
pub use fleet::HostChange;
use fleet::{Fleet, Report};
pub use guardian::guard;
pub use keeper::keep;
use ledger::Ledger;
pub use ledger::{Failure, LastAccount, SavedFiles};
pub use mpirun::MpiTask;
use process::GRACE;
pub use process::{die_with_launcher, stand_for};
use reach::{Reach, Unreachable};
pub use remote::quoted;
use seen::Observer;
pub use seen::Seen;
use signals::Signals;
pub use signals::reset_signals;
pub use spec::{Elsewhere, Ending, JobSpec, LaunchError, OutputForm, StandardInput};
pub use stdin::has_input;

/// How long a host may have no address, and the longest pause before it is looked up again.
const NAMES_TIMEOUT: Duration = Duration::from_secs(10);
const NAMES_PAUSE: Duration = Duration::from_millis(250);
/// How long a broken control link waits for the operating system's word on why.
const CAUSE: Duration = Duration::from_millis(20);
/// Exit status of a job that has lost more than it can do without.
const BEYOND: i32 = 3;
/// Exit status of a process that could not be started, as shells have it.
const NOT_STARTED: i32 = 127;
/// Exit status of a job that took too long, as the command `timeout` has it.
const OUT_OF_TIME: i32 = 124;

/// Launches a job and returns when it has ended and no process of it is left. What ranks print goes to `console`, which may
/// not have written all of it then ([`Console::finish`]).
///
/// The calling process is the launcher and belongs to the job: it adopts orphans among its descendants, and
/// every child that it has when the job has ended is killed. Its signals are reset
/// ([`reset_signals`]).
///
/// # Errors
/// The job could not be launched; no process is left then either.
pub fn launch(
    spec: JobSpec,
    console: &Console,
    observer: &mut dyn FnMut(Seen<'_>, Time),
) -> Result<Ending, LaunchError> {
    reset_signals();
    limits::raise_open_files();
    limits::report_failed_writes();
    let mut launcher = Launcher::new(spec, console)?;
    let mut observer = Optional::new("what watches the job", console, observer);
    let result = launcher.run(&mut |seen: Seen<'_>, at| _ = observer.run(|observer| observer(seen, at)));
    // Whatever happened, nothing is left behind.
    launcher.fleet.end();
    result
}

/// Looks up the hosts, those without an address for a while: until there is one, or a signal.
fn reach(spec: &JobSpec, console: &Console, signals: &Signals, clock: &Clock) -> Result<Reach, LaunchError> {
    let until = clock.now().after(NAMES_TIMEOUT);
    let mut is_said = false;
    let waits = |hosts: &[&str]| {
        if !std::mem::replace(&mut is_said, true) {
            let (seconds, hosts) = (NAMES_TIMEOUT.as_secs(), hosts.join(", "));
            console.say(format!(
                "ftrun: waiting up to {seconds} s for addresses of hosts that have none yet: {hosts}"
            ));
        }
        let mut fds: Vec<PollFd<'_>> =
            signals.fds().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let heard = rustix::event::poll(&mut fds, Some(&timespec(NAMES_PAUSE)));
        heard == Ok(0) && clock.now() < until
    };
    Reach::new(&spec.cluster, waits).map_err(|Unreachable { host, why }| {
        let command = spec.cluster.command(&host, &spec.elsewhere().program, spec.agent);
        LaunchError::Host { host, command, why }
    })
}

struct Launcher {
    job: String,
    spec: JobSpec,
    clock: Clock,
    arbiter: Arbiter,
    doorman: Doorman,
    signals: Signals,
    fleet: Fleet,
    controls: HashMap<PeerId, Control>,
    /// Links of processes that `mpirun` has started, of which the arbiter has not thought yet.
    early: HashMap<PeerId, Accepted>,
    /// Processes without a rank.
    spares: HashSet<PeerId>,
    /// Control links that broke, and when to stop waiting for the exit of their process.
    broken: HashMap<PeerId, Time>,
    console: Console,
    output: output::Output,
    panics: panics::Panics,
    stdin: stdin::Forwarder,
    ledger: Ledger,
    desk: Desk,
    /// It was said that there are no files left.
    ran_out: bool,
    ending: Option<Farewell>,
    /// When the last turn began, and the last time that this process did not run for long: until
    /// when, and for how long.
    turn: Time,
    absence: Option<(Time, Duration)>,
    /// A signal that ends the job when its checkpoint is in files, and when to stop waiting for that.
    saving: Option<(Signal, Time)>,
    /// Why the job could not be launched.
    refused: Option<LaunchError>,
}

/// The job is over, but not all of its processes have ended.
struct Farewell {
    code: i32,
    message: String,
    /// When patience ends.
    until: Time,
    /// Processes were told to go with a signal that nobody survives.
    killed: bool,
}

impl Launcher {
    fn new(mut spec: JobSpec, console: &Console) -> Result<Self, LaunchError> {
        let signals = Signals::new()?; // before there is anything that a signal could leave behind
        let mut key = JobKey { job: [0; 16], key: [0; 32] };
        let random = getrandom::fill(&mut key.job).and_then(|()| getrandom::fill(&mut key.key));
        random.map_err(|error| std::io::Error::other(error.to_string()))?;
        let credentials = Credentials { key, secret: !spec.plain };
        let clock = Clock::start();
        let mut reach = reach(&spec, console, &signals, &clock)?;
        if spec.task.is_some_and(MpiTask::spans_hosts) {
            reach = reach.for_all()?;
        }
        let doorman = Doorman::listen(credentials.clone(), PeerId::LAUNCHER, &reach.listen(), true)?;
        Ok(Self {
            job: hex(&credentials.key.job),
            fleet: Fleet::new(&spec, &credentials, &doorman, &reach, clock.now())?,
            arbiter: Arbiter::new(spec.config.clone(), clock.now()),
            ledger: Ledger::new(spec.config.kills.clone(), spec.config.cuts.clone()),
            console: console.clone(),
            panics: panics::Panics::default(),
            output: output::Output::new(console.clone(), spec.output_to_stderr, spec.output),
            stdin: stdin::Forwarder::new(spec.input)?,
            desk: std::mem::take(&mut spec.desk),
            spec,
            clock,
            doorman,
            signals,
            controls: HashMap::new(),
            early: HashMap::new(),
            spares: HashSet::new(),
            broken: HashMap::new(),
            ran_out: false,
            ending: None,
            turn: clock.now(),
            absence: None,
            saving: None,
            refused: None,
        })
    }

    fn run(&mut self, observer: &mut Observer<'_>) -> Result<Ending, LaunchError> {
        loop {
            self.carry_out(observer)?;
            if let Some(ending) = self.ended(observer) {
                return Ok(ending);
            }
            self.wait();
            self.note_absence();
            self.listen();
            self.look_after_processes(observer);
            if let Some(error) = self.refused.take() {
                return Err(error);
            }
            self.hear();
            self.look_after_hosts(observer);
            self.heed_signals(observer);
            self.at_desk(|launcher| launcher.attend(observer));
            self.heed_limit();
            self.arbiter.tick(self.clock.now());
        }
    }

    /// How the job has ended, when nothing of it is left.
    fn ended(&mut self, observer: &mut Observer<'_>) -> Option<Ending> {
        let farewell = self.ending.as_mut()?;
        if self.fleet.is_empty() && self.fleet.dismiss() {
            for report in self.fleet.finish(self.clock.now()) {
                self.report(report, observer);
            }
            self.at_desk(Self::close_desk);
            let farewell = self.ending.take()?;
            return Some(Ending {
                job: self.job.clone(),
                code: farewell.code,
                message: farewell.message,
                accounts: self.ledger.take_accounts(),
                outputs: self.ledger.take_outputs(),
                failures: self.ledger.failures(),
                unfired: self.arbiter.unfired(),
                spares_used: self.arbiter.spares_used(),
                postponed: self.arbiter.postponed(),
                strangers: self.doorman.refused_strangers() + self.ledger.refused(),
                saved: self.ledger.saved().clone(),
                hosts_back: self.ledger.hosts_back().clone(),
                agents_back: self.ledger.agents_back().clone(),
                marks: self.ledger.headway().commits(),
                elapsed: self.clock.now().since(Time(0)),
            });
        }
        let now = self.clock.now();
        if now >= farewell.until {
            farewell.until = now.after(GRACE);
            // An agent that does not even see to the end of its ranks goes next.
            if std::mem::replace(&mut farewell.killed, true) {
                self.fleet.kill_here();
                self.fleet.leave_adopted();
            }
            self.fleet.signal_all(Signal::KILL);
        }
        None
    }

    fn carry_out(&mut self, observer: &mut Observer<'_>) -> Result<(), LaunchError> {
        while let Some(effect) = self.arbiter.poll_effect() {
            self.act(effect, observer)?;
        }
        for peer in self.fleet.begun() {
            self.arbiter.started(self.clock.now(), peer);
            self.early.remove(&peer).into_iter().for_each(|accepted| self.admit(accepted));
        }
        for control in self.controls.values_mut() {
            control.flush();
        }
        self.fleet.flush();
        Ok(())
    }

    fn act(&mut self, effect: Effect, observer: &mut Observer<'_>) -> Result<(), LaunchError> {
        let now = self.clock.now();
        match effect {
            Effect::Send { to, message } => {
                if let News::Decided(membership) = &message {
                    self.fleet.begin(membership);
                }
                let is_answered = message == News::Beat && self.fleet.is_answered(now, to);
                if let Some(control) = self.controls.get_mut(&to).filter(|_| !is_answered) {
                    control.send(&message);
                }
            }
            Effect::Start { rank, peer, incarnation: _ } => self.start(peer, Some(rank), observer)?,
            Effect::Spare(peer) => {
                self.spares.insert(peer);
                self.start(peer, None, observer)?;
            }
            Effect::Seat { peer, rank, incarnation: _ } => {
                self.spares.remove(&peer);
                self.output.seat(peer, rank);
                let stdin = self.fleet.seat(peer, rank);
                stdin.into_iter().for_each(|stdin| self.stdin.forward_to(stdin));
                self.stands(peer, rank, observer);
            }
            Effect::Kill(peer) => self.put_to_death(peer),
            Effect::Stop(peer) => self.fleet.signal(peer, Signal::STOP),
            Effect::Record(event) => {
                let is_saved = matches!(&event, Event::Saved { saved, .. } if saved.error.is_none());
                if let Some((_, until)) = self.saving.as_mut().filter(|_| is_saved) {
                    *until = now;
                }
                self.ledger.record(now, &event);
                self.tell(Seen::Event(&event), now, observer);
                // Who leaves MPI waits for all, those too that are of no use any more; but not where some cannot come.
                if self.spec.task.is_some() && matches!(event, Event::Finished { .. }) {
                    let over = match self.ledger.failures().is_empty() {
                        true => News::Ended { code: 0, message: String::new() },
                        false => News::Die,
                    };
                    self.dismiss_early(&over);
                    let spares = self.controls.iter_mut().filter(|(peer, _)| self.spares.contains(peer));
                    spares.for_each(|(_, control)| control.send(&over));
                }
            }
            Effect::End { code, message } => {
                let cause = self.blames_itself(now).filter(|_| code != 0);
                let message = cause.map_or(message.clone(), |cause| format!("{cause}: {message}"));
                self.output.job_is_over();
                self.dismiss_early(&News::Ended { code, message: message.clone() });
                self.ending = Some(Farewell { code, message, until: now.after(GRACE), killed: false });
            }
        }
        Ok(())
    }

    /// Ends a process: by its own hand where no signal reaches it.
    fn put_to_death(&mut self, peer: PeerId) {
        self.fleet.signal(peer, Signal::KILL);
        let out_of_reach = self.controls.get_mut(&peer).filter(|_| self.fleet.is_far(peer));
        out_of_reach.into_iter().for_each(|control| control.send(&News::Die));
    }

    /// Processes of `mpirun` that have come and of which nobody has thought go.
    fn dismiss_early(&mut self, news: &News) {
        for (peer, Accepted { channel, .. }) in std::mem::take(&mut self.early) {
            let mut control = Control::new(channel);
            control.send(news);
            self.controls.insert(peer, control);
        }
    }

    /// Tells those at the desk how the job has ended.
    fn close_desk(&mut self) {
        let last = self.desk.has_onlooker().then(|| self.look());
        if let Some(Farewell { code, message, .. }) = &self.ending {
            self.desk.close(self.clock.now(), *code, message, last);
        }
    }

    /// Does something at the desk. If that panics, nobody is served there any more, and the job
    /// continues.
    fn at_desk(&mut self, work: impl FnOnce(&mut Self)) {
        if let Err(why) = caught(|| work(self)) {
            let desk = std::mem::take(&mut self.desk);
            let _ = caught(|| drop(desk));
            self.console.say(format_args!(
                "ftrun: 'ftrun status', metrics and the dashboard failed ({why}) and are off from now on, and the job \
                 continues; this is a defect of ftrun"
            ));
        }
    }

    /// Tells whoever looks on what has happened.
    fn tell(&mut self, seen: Seen<'_>, now: Time, observer: &mut Observer<'_>) {
        self.at_desk(|launcher| launcher.desk.note(seen, now));
        observer(seen, now);
    }

    /// Starts the process of a rank, or a spare.
    fn start(
        &mut self,
        peer: PeerId,
        rank: Option<Rank>,
        observer: &mut Observer<'_>,
    ) -> Result<(), LaunchError> {
        if let Some(why) = self.fleet.refuses(peer) {
            // A spare is not needed yet.
            let text =
                rank.map(|rank| format!("rank {rank} is lost, and nobody is left to take its place: {why}"));
            text.into_iter().for_each(|text| self.arbiter.end(self.clock.now(), BEYOND, text));
            return Ok(());
        }
        rank.into_iter().for_each(|rank| self.output.seat(peer, rank));
        match self.fleet.start(peer, rank) {
            Ok(stdin) => {
                stdin.into_iter().for_each(|stdin| self.stdin.forward_to(stdin));
                let host = self.fleet.host_of(peer).filter(|_| rank.is_none());
                host.into_iter().for_each(|host| self.arbiter.spare_stands(peer, host));
                rank.into_iter().for_each(|rank| self.stands(peer, rank, observer));
            }
            Err(error) => return self.not_started(peer, limits::explain(&error)),
        }
        Ok(())
    }

    /// A process has a rank, on the host where it is.
    fn stands(&mut self, peer: PeerId, rank: Rank, observer: &mut Observer<'_>) {
        self.ledger.stands_on(self.fleet.spare_host_of(peer));
        if let Some((host, _)) = self.fleet.whereabouts(peer) {
            let host = host.to_owned();
            self.tell(Seen::Stands { rank, host: &host }, self.clock.now(), observer);
        }
    }

    /// A process could not be started: at the beginning that is the end of the job, later a failure of its rank.
    fn not_started(&mut self, peer: PeerId, why: String) -> Result<(), LaunchError> {
        if peer.0 as usize <= self.spec.config.total {
            return Err(LaunchError::Start { program: self.spec.program.clone(), why });
        }
        self.arbiter.exited(self.clock.now(), peer, Exit::Status(NOT_STARTED));
        Ok(())
    }

    fn wait(&mut self) {
        let now = self.clock.now();
        let mut until = self.arbiter.poll_timeout().min(self.fleet.poll_timeout());
        until = self.broken.values().copied().fold(until, Time::min);
        until = until.min(self.desk.poll_timeout());
        until = self.limit().into_iter().chain(self.saving.map(|(_, until)| until)).fold(until, Time::min);
        if let Some(farewell) = &self.ending {
            until = until.min(farewell.until).min(now.after(Duration::from_millis(50)));
        }
        if self.fleet.has_more() || self.controls.values().any(Control::has_more) {
            until = now;
        }
        let mut fds: Vec<PollFd<'_>> = Vec::new();
        let readable = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let (held, relief) = self.output.held();
        self.fleet.hold(held);
        fds.extend((held != Held::default()).then(|| readable(relief)));
        fds.extend(self.signals.fds().map(readable));
        fds.extend(self.doorman.fds().map(readable));
        self.fleet.fds(&mut fds);
        fds.extend(self.controls.values().map(Control::poll));
        fds.extend(self.desk.fds());
        let _ = rustix::event::poll(&mut fds, Some(&timespec(until.since(now))));
    }

    /// A turn takes a heartbeat interval at most. If much more time has passed, this process was
    /// stopped or had no core.
    fn note_absence(&mut self) {
        let now = self.clock.now();
        let away = now.since(std::mem::replace(&mut self.turn, now));
        if away > self.lease() {
            self.absence = Some((now, away));
            let seconds = away.as_secs_f64();
            self.console.say(format_args!("ftrun: the launcher itself did not run for {seconds:.0} s"));
        }
    }

    /// How long ranks and agents go on without a sign of life from this process.
    fn lease(&self) -> Duration {
        self.spec.config.timeout * LEASE_TIMEOUTS
    }

    /// Why the job ends, if that follows from a time in which this process did not run.
    fn blames_itself(&self, now: Time) -> Option<String> {
        let is_recent = |until: Time| now.since(until) < self.spec.config.timeout * 2;
        let (_, away) = self.absence.filter(|(until, _)| is_recent(*until))?;
        Some(format!(
            "the launcher itself did not run for {:.0} s (stopped, or its host was paused), and ranks and agents that hear \
             nothing from it for {} s end themselves; --heartbeat-timeout makes that longer",
            away.as_secs_f64(),
            self.lease().as_secs_f64()
        ))
    }

    /// New connections.
    fn listen(&mut self) {
        for accepted in self.doorman.serve(self.clock.now()) {
            match self.fleet.is_early(accepted.opening.from) {
                true => drop(self.early.insert(accepted.opening.from, accepted)),
                false => self.admit(accepted),
            }
        }
        match self.doorman.trouble() {
            Some(error) if !is_shortage(&error) => {
                self.refused = self.refused.take().or(Some(LaunchError::Connections(error)));
            }
            Some(_) if !std::mem::replace(&mut self.ran_out, true) => {
                self.output.say(format_args!(
                    "ftrun: launcher: too many open files, about four for each rank of a host; new connections wait; limit here: {}",
                    limits::of_files()
                ));
            }
            _ => {}
        }
    }

    fn admit(&mut self, Accepted { opening, channel }: Accepted) {
        let now = self.clock.now();
        let known = self.fleet.connected(now, opening.from, opening.generation, channel);
        if let Some(channel) = known.filter(|_| self.arbiter.connected(now, opening.from)) {
            self.controls.insert(opening.from, Control::new(channel));
        }
    }

    /// What ranks have to say.
    fn hear(&mut self) {
        let now = self.clock.now();
        let mut lost = Vec::new();
        for (peer, control) in &mut self.controls {
            let heard = control.receive(|message| self.arbiter.handle(now, *peer, message));
            if heard.is_err() {
                lost.push(*peer);
            }
        }
        for peer in lost {
            self.controls.remove(&peer);
            let cause = if self.fleet.is_adopted(peer) { Duration::ZERO } else { CAUSE };
            self.broken.insert(peer, now.after(cause));
        }
        let overdue: Vec<PeerId> =
            self.broken.iter().filter(|(_, at)| **at <= now).map(|(p, _)| *p).collect();
        for peer in overdue {
            self.broken.remove(&peer);
            self.arbiter.disconnected(now, peer);
            if self.fleet.parted(peer) {
                // What its status was only mpirun knows.
                self.arbiter.exited(now, peer, Exit::Status(0));
            }
        }
    }

    /// What has happened to processes, here and elsewhere.
    fn look_after_processes(&mut self, observer: &mut Observer<'_>) {
        let arbiter = &self.arbiter;
        let reports = self.fleet.serve(self.clock.now(), &|peers| arbiter.bears(peers));
        for report in reports {
            self.report(report, observer);
        }
    }

    /// Hosts without an agent are lost as soon as none of their ranks is heard.
    fn look_after_hosts(&mut self, observer: &mut Observer<'_>) {
        let controls = &self.controls;
        for report in self.fleet.forsaken(self.clock.now(), |peer| controls.contains_key(&peer)) {
            self.report(report, observer);
        }
    }

    fn report(&mut self, report: Report, observer: &mut Observer<'_>) {
        match report {
            Report::Said { peer, error, lines } => {
                if error {
                    self.arbiter.said(peer, &lines);
                    let lines = self.panics.without_repeats(peer, lines);
                    return self.output.print(peer, error, &lines);
                }
                self.output.print(peer, error, &lines);
            }
            Report::Noted { peer, host, lines } => self.output.note(peer, &host, &lines),
            Report::Death(Death::Dying(peer, exit) | Death::Gone(peer, exit)) => {
                self.last_words(peer);
                self.panics.ended(peer);
                self.name_limits(peer);
                self.arbiter.exited(self.clock.now(), peer, exit);
            }
            Report::Alive { of } => {
                let now = self.clock.now();
                // A process whose link has ended, or was never there, has nothing to say.
                for (peer, step) in of.into_iter().filter(|(peer, _)| self.controls.contains_key(peer)) {
                    self.arbiter.handle(now, peer, ToArbiter::Beat { step });
                }
            }
            Report::Stopped { peer, is_stopped } => {
                self.arbiter.stopped(self.clock.now(), peer, is_stopped);
            }
            Report::NotStarted { peer, why } => {
                let result = self.not_started(peer, why);
                self.refused = self.refused.take().or(result.err());
            }
            Report::Back { host, name, is_new } => {
                if !is_new {
                    self.tell(Seen::Host { name: &name, is_back: true }, self.clock.now(), observer);
                }
                self.arbiter.host_back(self.clock.now(), host, &name, is_new);
            }
            Report::Lost { host, cause, peers } => {
                peers.iter().for_each(|peer| self.last_words(*peer));
                let name = self.fleet.name(host).to_owned();
                self.tell(Seen::Host { name: &name, is_back: false }, self.clock.now(), observer);
                match self.fleet.has_a_host() {
                    true => self.arbiter.host_lost(self.clock.now(), host, &peers, &cause),
                    false => self.arbiter.end(self.clock.now(), 1, format!("no host is left: {cause}")),
                }
            }
            Report::Resumed { name } => {
                let (event, now) = (Event::AgentBack { name }, self.clock.now());
                self.ledger.record(now, &event);
                observer(Seen::Event(&event), now);
            }
            Report::Refused(error) => self.refused = self.refused.take().or(Some(error)),
        }
    }

    /// A process of this host that could not even join may have run short of memory.
    fn name_limits(&mut self, peer: PeerId) {
        let limits = limits::of_memory();
        if !limits.is_empty() && self.spec.cluster.hosts().len() == 1 {
            // A line of its own, also behind one that the process has not ended.
            self.arbiter.said(peer, format!("\nlimits here: {limits}\n").as_bytes());
        }
    }

    /// What a process said last comes before its end.
    fn last_words(&mut self, peer: PeerId) {
        if let Some(mut control) = self.controls.remove(&peer) {
            let _ = control.receive_last(|message| self.arbiter.handle(self.clock.now(), peer, message));
        }
        self.broken.remove(&peer);
    }

    /// When the job is to be over, if it is not yet.
    fn limit(&self) -> Option<Time> {
        self.spec.limit.filter(|_| self.ending.is_none()).map(|limit| Time(0).after(limit))
    }

    fn heed_limit(&mut self) {
        if let (Some(at), Some(limit)) = (self.limit(), self.spec.limit)
            && at <= self.clock.now()
        {
            let text = format!("not done after {} s (--timeout)", limit.as_secs_f64());
            self.arbiter.end(self.clock.now(), OUT_OF_TIME, text);
        }
    }

    fn end_by(&mut self, signal: Signal) {
        self.saving = None;
        self.fleet.signal_all(signal);
        self.arbiter.end(self.clock.now(), 128 + signal.as_raw(), signals::what_it_did(signal).into());
    }

    /// A signal is to end the job: with files when the newest checkpoint is in them. A second
    /// signal does not wait, nor does the first one before there are ranks that could write.
    fn heed(&mut self, signal: Signal, observer: &mut Observer<'_>) {
        let patience = self.spec.saves.filter(|_| self.ending.is_none() && self.saving.is_none());
        match patience.filter(|_| self.arbiter.save()) {
            Some(patience) => {
                let now = self.clock.now();
                self.saving = Some((signal, now.after(patience)));
                observer(Seen::Saving { cause: signals::what_it_did(signal) }, now);
            }
            None => self.end_by(signal),
        }
    }

    fn heed_signals(&mut self, observer: &mut Observer<'_>) {
        for signal in self.signals.to_end() {
            self.heed(signal, observer);
        }
        if let Some((signal, until)) = self.saving
            && self.clock.now() >= until
        {
            self.end_by(signal);
        }
        if self.signals.to_save() {
            match self.spec.saves {
                Some(_) => _ = self.arbiter.save(),
                // MPICH says so that a process has failed.
                None if self.spec.task.is_some() => {}
                // As it would have, if nobody had listened.
                None => self.end_by(Signal::USR1),
            }
        }
        if self.signals.to_stop() {
            self.fleet.signal_all(Signal::STOP);
            let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
            self.fleet.signal_all(Signal::CONT);
            self.turn = self.clock.now(); // the job was stopped as a whole
        }
    }
}
