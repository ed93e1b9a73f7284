//! The kernel of the simulator: virtual time, the queue of what happens next, and the baton.
//!
//! Exactly one thread runs at a time: the one that has the baton. When it has to wait it works off the queue
//! itself, until something happens that gives another thread (or itself) the baton. So a run is a function of
//! its seed and the programs, whatever the operating system does with the threads.

use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::agenda::Agenda;
use super::config::Config;
use super::happening::Happening;
use super::hosts::Hosts;
use super::net::{Cut, EndId, Net, Way};
use super::outcome::{Ending, Event, Seen};
use super::process::{Blocked, Knock, Life, Opened, Process};
use super::processes::Processes;
use super::schedule::{Blow, Plan};
use ft_comm::time::Time;
use ft_comm::transport::LinkId;
use ft_proto::arbiter::{self, Arbiter, Exit};
use ft_proto::rank::PeerId;

/// Time that a process is given to end itself after the job has ended.
pub(super) const GRACE: Duration = Duration::from_millis(300);

/// Who has the baton.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// The thread that called `run`.
    Main,
    Process(PeerId),
}

pub(super) struct Kernel {
    pub(super) config: Config,
    pub(super) agenda: Agenda,
    pub(super) holder: Holder,
    /// Processes whose threads are to be started, by the thread that called `run`.
    pub(super) starting: Option<PeerId>,
    pub(super) processes: Processes,
    pub(super) hosts: Hosts,
    pub(super) net: Net,
    pub(super) arbiter: Arbiter,
    pub(super) plan: Plan,
    pub(super) ending: Option<Ending>,
    pub(super) over: bool,
    pub(super) record: Record,
}

/// What a run leaves behind.
#[derive(Default)]
pub(super) struct Record {
    pub(super) events: Vec<(Time, Event)>,
    pub(super) seen: Vec<Seen>,
    pub(super) happened: u64,
    /// How often somebody has slept to the end of its time beside bytes for it.
    pub(super) overslept: usize,
    /// Hash of all that happened.
    pub(super) trace: u64,
}

impl Record {
    /// Something happens.
    fn mix(&mut self, now: Time, what: &Happening) {
        let (kind, peer) = what.trace();
        self.happened += 1;
        for value in [kind, u64::from(peer), now.0] {
            self.trace = (self.trace ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
        }
    }
}

impl Kernel {
    pub(super) fn new(config: Config) -> Self {
        let mut random = Pcg64::seed_from_u64(config.seed);
        let faults = config.faults.draw(config.ranks + config.parity, &mut random);
        let mut kernel = Self {
            arbiter: arbiter(&config),
            agenda: Agenda::new(random, config.network.clone()),
            hosts: Hosts::new(config.messages.hosts.as_deref().unwrap_or_default()),
            config,
            holder: Holder::Main,
            starting: None,
            processes: Processes::default(),
            net: Net::default(),
            ending: None,
            over: false,
            record: Record::default(),
            plan: Plan::new(faults),
        };
        kernel.agenda.at(Time(0), Happening::ArbiterTick);
        for (number, at) in kernel.plan.timed() {
            kernel.agenda.after(at, Happening::Fault(number));
        }
        kernel.carry_out();
        kernel
    }

    /// Notes something in the trace of the run.
    pub(super) fn note(&mut self, text: impl Fn() -> String) {
        if self.config.trace {
            println!("{:12.6} {}", self.agenda.now.seconds(), text());
        }
    }

    // ---- the baton ----

    /// Works off the queue until somebody gets the baton.
    pub(super) fn schedule(&mut self) {
        loop {
            if self.over || self.starting.is_some() {
                self.holder = Holder::Main;
                return;
            }
            let Some((at, what)) = self.agenda.next() else {
                return self.hung("nothing is left that could happen");
            };
            if at.since(Time(0)) > self.config.time_max || self.record.happened >= self.config.events_max {
                return self.hung("the limit of the simulation is reached");
            }
            self.agenda.now = self.agenda.now.max(at);
            let before = self.holder;
            self.holder = Holder::Process(PeerId::LAUNCHER);
            self.happen(what);
            if self.holder != Holder::Process(PeerId::LAUNCHER) {
                return;
            }
            self.holder = before;
        }
    }

    fn hung(&mut self, why: &str) {
        if self.ending.is_none() || self.processes.alive().next().is_some() {
            let living = self.processes.alive();
            let mut text =
                format!("{why} at {:.3} s; launcher: {}", self.agenda.now.seconds(), self.arbiter.status());
            living.for_each(|process| text += &format!("\n  {}", process.status()));
            self.ending = Some(Ending::Hung(text));
        }
        self.over = true;
        self.holder = Holder::Main;
    }

    fn happen(&mut self, what: Happening) {
        self.record.mix(self.agenda.now, &what);
        if !matches!(what, Happening::MemberTick(_) | Happening::ArbiterTick | Happening::Turn { .. }) {
            self.note(|| format!("{what:?}"));
        }
        match what {
            Happening::Start(peer) => self.start(peer),
            Happening::Turn { peer, token } => self.turn(peer, token),
            Happening::OpenArrives { from, token, to } => self.open_arrives(from, token, to),
            Happening::Arrive { conn, side } => {
                let there = self.net.arrive(&mut self.agenda, (conn, side));
                self.stir_all(there);
            }
            Happening::Down { conn, side } => {
                let there = self.net.down(&mut self.agenda, (conn, side));
                self.stir_all(there);
            }
            Happening::Up(peer) => self.heard_by_launcher(peer),
            Happening::ToRank(peer) => self.heard_by_rank(peer),
            Happening::MemberTick(peer) => self.member_tick(peer),
            Happening::ArbiterTick => self.arbiter_tick(),
            Happening::Kill(peer) => self.kill(peer),
            Happening::Stop(peer) => {
                if let Some(process) = self.processes.get_mut(peer) {
                    process.stopped = true;
                }
            }
            Happening::Continue(peer) => self.go_on(peer),
            Happening::Grace(peer, code) => self.grace(peer, code),
            Happening::JobGrace => {
                self.processes.peers().for_each(|peer| self.agenda.at(self.agenda.now, Happening::Kill(peer)))
            }
            Happening::Fault(index) => self.strike(index, None),
            Happening::Heal(number) => self.net.heal(&mut self.agenda, number),
            Happening::NoticeCuts => {
                let there = self.net.notice_cuts();
                self.stir_all(there);
            }
            Happening::Answer { from, to, suspect } => self.answer(from, to, suspect),
        }
    }

    /// A process that waits gets the baton; a stopped one, when it goes on.
    fn turn(&mut self, peer: PeerId, token: u64) {
        if !self.processes.is_blocked(peer, token) {
            return;
        }
        let process = self.processes.get(peer).expect("who has a turn is known to the kernel");
        if matches!(process.blocked, Some(Blocked::Wait { .. })) && !process.stopped {
            // It has slept to the end.
            let ends = self.ends(peer);
            self.record.overslept += ends.into_iter().filter(|end| self.net.is_forgotten(*end)).count();
        }
        let process = self.processes.get_mut(peer).expect("who has a turn is known to the kernel");
        if process.stopped {
            process.deferred.push(Happening::Turn { peer, token });
        } else {
            process.blocked = None;
            self.holder = Holder::Process(peer);
        }
    }

    fn arbiter_tick(&mut self) {
        self.arbiter.tick(self.agenda.now);
        if self.ending.is_none() {
            let due = self.arbiter.poll_timeout().max(self.agenda.now.after(Duration::from_micros(1)));
            self.agenda.at(due, Happening::ArbiterTick);
        }
        self.carry_out();
    }

    /// The process gives the baton back, until `timeout` (or for ever) or until what it waits for is there;
    /// gives the number of this wait.
    pub(super) fn block(&mut self, peer: PeerId, blocked: Blocked, timeout: Option<Duration>) -> u64 {
        let process = self.processes.get_mut(peer).expect("a process that calls is known to the kernel");
        process.token += 1;
        process.blocked = Some(blocked);
        let token = process.token;
        if let Some(timeout) = timeout {
            self.agenda.at(self.agenda.now.after(timeout), Happening::Turn { peer, token });
        }
        token
    }

    /// A blocked process gets its turn soon.
    pub(super) fn wake_now(&mut self, peer: PeerId) {
        let soon = Duration::from_nanos(self.agenda.random.random_range(100..3_000));
        let soon = if self.agenda.hiccup() { soon * 100 } else { soon };
        let due = self.agenda.now.after(soon);
        let Some(process) = self.processes.get_mut(peer) else { return };
        process.token += 1;
        process.blocked = Some(Blocked::Turn);
        let token = process.token;
        self.agenda.at(due, Happening::Turn { peer, token });
    }

    /// Something changed for a process: if it waits for that, it wakes.
    pub(super) fn stir(&mut self, peer: PeerId) {
        let Some(process) = self.processes.get(peer).filter(|process| process.alive()) else { return };
        let wakes = match &process.blocked {
            Some(Blocked::Wait { writing }) => {
                let links = &process.wires.links;
                process.heard.wake
                    || links.values().any(|end| self.net.readable(*end) == Some(true))
                    || writing
                        .iter()
                        .any(|link| links.get(link).and_then(|end| self.net.writable(*end)) != Some(false))
            }
            Some(Blocked::Idle | Blocked::Open) => process.heard.wake,
            Some(Blocked::Turn) | None => false,
        };
        if wakes {
            self.wake_now(peer);
        }
    }

    /// Something changed for each of these.
    pub(super) fn stir_all(&mut self, peers: impl IntoIterator<Item = PeerId>) {
        peers.into_iter().for_each(|peer| self.stir(peer));
    }

    /// There is news or an accepted link.
    pub(super) fn ring(&mut self, peer: PeerId) {
        if let Some(process) = self.processes.get_mut(peer) {
            process.heard.wake = true;
        }
        self.stir(peer);
    }

    // ---- life and death ----

    fn start(&mut self, peer: PeerId) {
        let now = self.agenda.now;
        let Some(process) = self.processes.get_mut(peer).filter(|process| process.life == Life::Ordered)
        else {
            return;
        };
        if process.stopped {
            return process.deferred.push(Happening::Start(peer));
        }
        process.life = Life::Running;
        process.control.member = ft_proto::member::Member::new(now);
        process.control.up_due = now;
        process.control.down_due = now;
        if self.arbiter.connected(now, peer) {
            self.processes.get_mut(peer).expect("just seen").control.connected = true;
            self.starting = Some(peer);
            self.agenda.at(now, Happening::MemberTick(peer));
            self.processes.get_mut(peer).expect("just seen").thread = true;
            self.carry_out();
        } else {
            self.die(peer, Exit::Status(1));
        }
    }

    /// A kill from the launcher, which reaches who is not cut off.
    fn kill(&mut self, peer: PeerId) {
        match self.net.way(peer, PeerId::LAUNCHER) {
            Way::Open => self.die(peer, Exit::Signal(9)),
            Way::CutUntil(heals) => {
                let due = heals.after(Duration::from_micros(200));
                self.agenda.at(due, Happening::Kill(peer));
            }
            Way::CutForEver => {}
        }
    }

    /// The process ends. Its thread, if it waits, gets the baton to unwind.
    pub(super) fn die(&mut self, peer: PeerId, exit: Exit) {
        let Some(process) = self.processes.get_mut(peer).filter(|process| process.life != Life::Dead) else {
            return;
        };
        process.life = Life::Dead;
        let unwinds = process.thread && process.blocked.is_some();
        let links: Vec<EndId> = std::mem::take(&mut process.wires.links).into_values().collect();
        let knocks = std::mem::take(&mut process.wires.inbox);
        process.blocked = None;
        self.note(|| format!("process {} dies: {exit:?}", peer.0));
        let knocks = knocks.into_iter().map(|knock| (knock.conn, 1));
        links.into_iter().chain(knocks).for_each(|end| self.net.close(&mut self.agenda, end));
        self.tell_end(peer, exit);
        if unwinds {
            self.holder = Holder::Process(peer);
        }
    }

    /// The thread of a process has ended: with its program, if the process was not killed.
    pub(super) fn thread_ended(&mut self, peer: PeerId) {
        if let Some(process) = self.processes.get_mut(peer) {
            process.thread = false;
            process.blocked = None;
        }
        self.die(peer, Exit::Status(0));
        self.end_if_all_ended();
    }

    fn go_on(&mut self, peer: PeerId) {
        let Some(process) = self.processes.get_mut(peer) else { return };
        process.stopped = false;
        let deferred = std::mem::take(&mut process.deferred);
        let now = self.agenda.now;
        deferred.into_iter().for_each(|what| self.agenda.at(now, what));
    }

    /// The simulation is over when the job has ended and nobody is left.
    pub(super) fn end_if_all_ended(&mut self) {
        // Nobody can end a process that is stopped behind a cut.
        let lost = |peer: PeerId| {
            let stopped = self.processes.get(peer).is_some_and(|process| process.stopped);
            stopped && self.net.way(peer, PeerId::LAUNCHER) == Way::CutForEver
        };
        let left = |peer: &PeerId| self.processes.get(*peer).is_some_and(Process::alive) && !lost(*peer);
        self.over |= self.ending.is_some() && !self.processes.peers().any(|peer| left(&peer));
    }

    pub(super) fn job_ended(&mut self, code: i32, message: String) {
        self.ending.get_or_insert(Ending::Ended { code, message });
        let due = self.agenda.now.after(2 * GRACE);
        self.agenda.at(due, Happening::JobGrace);
        self.end_if_all_ended();
    }

    /// Who has not ended by itself is ended.
    fn grace(&mut self, peer: PeerId, code: i32) {
        if self.processes.get(peer).is_some_and(|p| p.alive() && !p.heard.closed && !p.stopped) {
            self.die(peer, Exit::Status(code));
        }
    }

    // ---- links ----

    /// `from` tries to open a link to `to`.
    pub(super) fn open_begin(&mut self, from: PeerId, to: PeerId) {
        let token = self.block(from, Blocked::Open, Some(self.agenda.network.give_up));
        let latency = self.agenda.latency();
        let takes = self.agenda.travel(2 * latency);
        self.agenda.after(takes, Happening::OpenArrives { from, token, to });
    }

    fn open_arrives(&mut self, from: PeerId, token: u64, to: PeerId) {
        if !self.processes.is_blocked(from, token) {
            return; // given up
        }
        let answer = match self.processes.get(to) {
            Some(there) if there.alive() && there.stopped => None,
            Some(there) if there.alive() => match self.net.way(from, to) {
                Way::Open => Some(true),
                Way::CutUntil(_) | Way::CutForEver => None,
            },
            _ => Some(false),
        };
        let Some(up) = answer else {
            return self.agenda.after(Duration::from_millis(2), Happening::OpenArrives { from, token, to });
        };
        let opened = if up { Opened::Link(self.connect(from, to)) } else { Opened::Refused };
        if let Some(process) = self.processes.get_mut(from) {
            process.wires.opened = Some(opened);
        }
        self.wake_now(from);
    }

    fn connect(&mut self, from: PeerId, to: PeerId) -> LinkId {
        let conn = self.net.connect(&mut self.agenda, from, to);
        let wires = &mut self.processes.get_mut(from).expect("who opens a link is known to the kernel").wires;
        let (link, generation) = (wires.adopt((conn, 0)), wires.generation.unwrap_or(0));
        if let Some(there) = self.processes.get_mut(to) {
            there.wires.inbox.push(Knock { from, generation, conn });
        }
        self.ring(to);
        link
    }

    pub(super) fn close_link(&mut self, peer: PeerId, link: LinkId) {
        let end = self.processes.get_mut(peer).and_then(|process| process.wires.links.remove(&link));
        end.into_iter().for_each(|end| self.net.close(&mut self.agenda, end));
    }

    // ---- faults ----

    /// Counts a call of a process to its transport or service; true if it does not survive it.
    pub(super) fn call(&mut self, peer: PeerId) -> bool {
        let Some(process) = self.processes.get_mut(peer) else { return true };
        process.calls += 1;
        let due = self.plan.in_call(process.rank, process.incarnation, process.calls);
        due.into_iter().for_each(|number| self.strike(number, Some(peer)));
        !self.processes.get(peer).is_some_and(Process::alive)
    }

    /// A failure of the schedule strikes; `caller` has the baton.
    fn strike(&mut self, index: usize, caller: Option<PeerId>) {
        let blow = self.plan.blow(index);
        self.note(|| format!("{blow:?}"));
        match blow {
            Blow::Kill(ranks) => self.kill_all(self.processes.newest_of(&ranks), caller),
            Blow::LoseHost(host) => {
                let there = self.hosts.lose(host);
                self.kill_all(there, caller);
            }
            Blow::Pause(rank, lasts) => {
                for peer in self.processes.newest_of(&[rank]) {
                    self.agenda.at(self.agenda.now, Happening::Stop(peer));
                    if let Some(lasts) = lasts {
                        self.agenda.at(self.agenda.now.after(lasts), Happening::Continue(peer));
                    }
                }
            }
            Blow::Overwrite(rank) => {
                for peer in self.processes.newest_of(&[rank]) {
                    let ends: Vec<EndId> = self.ends(peer);
                    ends.into_iter().for_each(|end| self.net.overwrite(end));
                }
            }
            Blow::Cut { ranks, from_ranks, from_launcher, lasts } => {
                let inside = self.processes.holders(&ranks).collect();
                self.cut(Cut { inside, outside: None, from_ranks, from_launcher, until: None }, lasts);
            }
            Blow::CutBetween { near, far, lasts } => {
                let inside = self.processes.holders(&near).collect();
                let outside = Some(self.processes.holders(&far).collect());
                let cut = Cut { inside, outside, from_ranks: true, from_launcher: false, until: None };
                self.cut(cut, lasts);
            }
        }
    }

    /// The ends that a process has of links.
    pub(super) fn ends(&self, peer: PeerId) -> Vec<EndId> {
        let process = self.processes.get(peer);
        process.map(|process| process.wires.links.values().copied().collect()).unwrap_or_default()
    }

    fn kill_all(&mut self, peers: Vec<PeerId>, caller: Option<PeerId>) {
        for peer in peers {
            if caller == Some(peer) {
                self.die(peer, Exit::Signal(9));
            } else {
                self.agenda.at(self.agenda.now, Happening::Kill(peer));
            }
        }
    }

    fn cut(&mut self, mut cut: Cut, lasts: Option<Duration>) {
        cut.until = lasts.map(|lasts| self.agenda.now.after(lasts));
        let (until, number) = (cut.until, self.net.cut(cut));
        if let Some(until) = until {
            self.agenda.at(until, Happening::Heal(number));
        }
        if self.agenda.network.notices_cuts {
            let noticed = self.agenda.now.after(self.agenda.network.give_up);
            self.agenda.at(noticed, Happening::NoticeCuts);
        }
    }
}

/// The launcher's part, as `config` has it.
fn arbiter(config: &Config) -> Arbiter {
    let config = arbiter::Config {
        compute: config.ranks,
        total: config.ranks + config.parity,
        on_failure: config.on_failure,
        spares: config.spares,
        joins: false,
        max_restarts: config.restarts_max,
        interval: config.interval,
        groups: vec![],
        timeout: config.timeout,
        messages: config.messages.clone(),
        layers: config.layers.clone(),
        kills: config.kills.clone(),
        cuts: vec![],
        mtbf: None,
    };
    Arbiter::new(config, Time(0))
}
