//! The kernel of the simulator: virtual time, the queue of what happens next, and the baton.
//!
//! Exactly one thread runs at a time: the one that has the baton. When it has to wait it works off the queue
//! itself, until something happens that gives another thread (or itself) the baton. So a run is a function of
//! its seed and the programs, whatever the operating system does with the threads.

use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::config::Config;
use super::happening::{Agenda, ConnId, Happening};
use super::net::{Cut, Net};
use super::outcome::{Ending, Event, Seen};
use super::process::{Blocked, Life, Process};
use super::schedule::{Blow, Fault, Trigger};
use ft_comm::time::Time;
use ft_proto::arbiter::{self, Arbiter, Exit};
use ft_proto::rank::{PeerId, Rank};

/// Time that a process is given to end itself after the job has ended.
const GRACE: Duration = Duration::from_millis(300);

/// Who has the baton.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// The thread that called `run`.
    Main,
    Process(PeerId),
}

pub(super) struct Kernel {
    pub(super) config: Config,
    pub(super) random: Pcg64,
    pub(super) now: Time,
    agenda: Agenda,
    pub(super) holder: Holder,
    /// Processes whose threads are to be started, by the thread that called `run`.
    pub(super) starting: Option<PeerId>,
    /// By peer number, from 1.
    pub(super) processes: Vec<Process>,
    pub(super) net: Net,
    pub(super) arbiter: Arbiter,
    faults: Vec<Fault>,
    losses: u32,
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
    /// Hash of all that happened.
    pub(super) trace: u64,
}

impl Kernel {
    pub(super) fn new(config: Config) -> Self {
        let mut random = Pcg64::seed_from_u64(config.seed);
        let faults = config.faults.draw(config.ranks + config.parity, &mut random);
        let mut kernel = Self {
            arbiter: arbiter(&config),
            config,
            random,
            now: Time(0),
            agenda: Agenda::default(),
            holder: Holder::Main,
            starting: None,
            processes: vec![],
            net: Net::default(),
            losses: 0,
            ending: None,
            over: false,
            record: Record::default(),
            faults,
        };
        kernel.at(Time(0), Happening::ArbiterTick);
        for index in 0..kernel.faults.len() {
            if let Trigger::At(at) = kernel.faults[index].trigger {
                kernel.at(Time(0).after(at), Happening::Fault(index));
            }
        }
        kernel.carry_out();
        kernel
    }

    pub(super) fn process(&self, peer: PeerId) -> Option<&Process> {
        self.processes.get((peer.0 as usize).checked_sub(1)?)
    }

    pub(super) fn process_mut(&mut self, peer: PeerId) -> Option<&mut Process> {
        self.processes.get_mut((peer.0 as usize).checked_sub(1)?)
    }

    pub(super) fn peers(&self) -> impl Iterator<Item = PeerId> + use<> {
        (1..=u32::try_from(self.processes.len()).expect("a simulated job has fewer than 2^32 processes"))
            .map(PeerId)
    }

    pub(super) fn at(&mut self, at: Time, what: Happening) {
        self.agenda.add(at, what);
    }

    /// Notes something in the trace of the run.
    pub(super) fn note(&mut self, text: impl Fn() -> String) {
        if self.config.trace {
            println!("{:12.6} {}", self.now.seconds(), text());
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
            self.now = self.now.max(at);
            self.record.happened += 1;
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
        if self.ending.is_none() || self.peers().any(|peer| self.process(peer).is_some_and(Process::alive)) {
            let living = self.processes.iter().filter(|process| process.alive());
            let mut text =
                format!("{why} at {:.3} s; launcher: {}", self.now.seconds(), self.arbiter.status());
            living.for_each(|process| text += &format!("\n  {}", process.status()));
            self.ending = Some(Ending::Hung(text));
        }
        self.over = true;
        self.holder = Holder::Main;
    }

    fn happen(&mut self, what: Happening) {
        self.mix(&what);
        match what {
            Happening::Start(peer) => self.start(peer),
            Happening::Turn { peer, token } => self.turn(peer, token),
            Happening::OpenArrives { from, token, to } => self.open_arrives(from, token, to),
            Happening::Arrive { conn, side } => self.arrive(conn, side),
            Happening::Down { conn, side } => self.down(conn, side),
            Happening::Up(peer) => self.heard_by_launcher(peer),
            Happening::ToRank(peer) => self.heard_by_rank(peer),
            Happening::MemberTick(peer) => self.member_tick(peer),
            Happening::ArbiterTick => self.arbiter_tick(),
            Happening::Kill(peer) => self.kill(peer),
            Happening::Stop(peer) => {
                if let Some(process) = self.process_mut(peer) {
                    process.stopped = true;
                }
            }
            Happening::Continue(peer) => self.go_on(peer),
            Happening::Grace(peer, code) => self.grace(peer, code),
            Happening::JobGrace => self.peers().for_each(|peer| self.at(self.now, Happening::Kill(peer))),
            Happening::Fault(index) => self.strike(index, None),
            Happening::Heal(index) => self.net.cuts[index].inside.clear(),
            Happening::NoticeCuts => self.notice_cuts(),
            Happening::Answer { from, to, suspect } => self.answer(from, to, suspect),
        }
    }

    /// A process that waits gets the baton; a stopped one, when it goes on.
    fn turn(&mut self, peer: PeerId, token: u64) {
        if !self.is_blocked(peer, token) {
            return;
        }
        let process = self.process_mut(peer).expect("who has a turn is known to the kernel");
        if process.stopped {
            process.deferred.push(Happening::Turn { peer, token });
        } else {
            process.blocked = None;
            self.holder = Holder::Process(peer);
        }
    }

    fn arbiter_tick(&mut self) {
        self.arbiter.tick(self.now);
        if self.ending.is_none() {
            let due = self.arbiter.poll_timeout().max(self.now.after(Duration::from_micros(1)));
            self.at(due, Happening::ArbiterTick);
        }
        self.carry_out();
    }

    /// Mixes what happens into the trace.
    fn mix(&mut self, what: &Happening) {
        let (kind, peer) = what.trace();
        for value in [kind, u64::from(peer), self.now.0] {
            self.record.trace =
                (self.record.trace ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
        }
        if !matches!(what, Happening::MemberTick(_) | Happening::ArbiterTick | Happening::Turn { .. }) {
            self.note(|| format!("{what:?}"));
        }
    }

    /// The process gives the baton back, until `timeout` (or for ever) or until what it waits for is there;
    /// gives the number of this wait.
    pub(super) fn block(&mut self, peer: PeerId, blocked: Blocked, timeout: Option<Duration>) -> u64 {
        let process = self.process_mut(peer).expect("a process that calls is known to the kernel");
        process.token += 1;
        process.blocked = Some(blocked);
        let token = process.token;
        if let Some(timeout) = timeout {
            self.at(self.now.after(timeout), Happening::Turn { peer, token });
        }
        token
    }

    pub(super) fn is_blocked(&self, peer: PeerId, token: u64) -> bool {
        self.process(peer).is_some_and(|p| p.alive() && p.blocked.is_some() && p.token == token)
    }

    /// A blocked process gets its turn soon.
    pub(super) fn wake_now(&mut self, peer: PeerId) {
        let soon = Duration::from_nanos(self.random.random_range(100..3_000));
        let soon = if self.hiccup() { soon * 100 } else { soon };
        let due = self.now.after(soon);
        let Some(process) = self.process_mut(peer) else { return };
        process.token += 1;
        process.blocked = Some(Blocked::Turn);
        let token = process.token;
        self.at(due, Happening::Turn { peer, token });
    }

    /// Something changed for a process: if it waits for that, it wakes.
    pub(super) fn stir(&mut self, peer: PeerId) {
        let Some(process) = self.process(peer).filter(|process| process.alive()) else { return };
        let wakes = match &process.blocked {
            Some(Blocked::Wait { writing }) => {
                let conn = |link| {
                    process
                        .wires
                        .links
                        .get(link)
                        .and_then(|(id, side)| Some((self.net.conns.get(id)?, *side)))
                };
                process.heard.wake
                    || process
                        .wires
                        .links
                        .keys()
                        .any(|l| conn(l).is_some_and(|(conn, side)| conn.readable(side)))
                    || writing.iter().any(|l| conn(l).is_none_or(|(conn, side)| conn.writable(side)))
            }
            Some(Blocked::Idle | Blocked::Open) => process.heard.wake,
            Some(Blocked::Turn) | None => false,
        };
        if wakes {
            self.wake_now(peer);
        }
    }

    /// There is news or an accepted link.
    pub(super) fn ring(&mut self, peer: PeerId) {
        if let Some(process) = self.process_mut(peer) {
            process.heard.wake = true;
        }
        self.stir(peer);
    }

    // ---- life and death ----

    fn start(&mut self, peer: PeerId) {
        let now = self.now;
        let Some(process) = self.process_mut(peer).filter(|process| process.life == Life::Ordered) else {
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
            self.process_mut(peer).expect("just seen").control.connected = true;
            self.starting = Some(peer);
            self.at(now, Happening::MemberTick(peer));
            self.process_mut(peer).expect("just seen").thread = true;
            self.carry_out();
        } else {
            self.die(peer, Exit::Status(1));
        }
    }

    /// A kill from the launcher, which reaches who is not cut off.
    fn kill(&mut self, peer: PeerId) {
        match self.way(peer, PeerId::LAUNCHER) {
            super::net::Way::Open => self.die(peer, Exit::Signal(9)),
            super::net::Way::CutUntil(heals) => {
                let due = heals.after(Duration::from_micros(200));
                self.at(due, Happening::Kill(peer));
            }
            super::net::Way::CutForEver => {}
        }
    }

    /// The process ends. Its thread, if it waits, gets the baton to unwind.
    pub(super) fn die(&mut self, peer: PeerId, exit: Exit) {
        let Some(process) = self.process_mut(peer).filter(|process| process.life != Life::Dead) else {
            return;
        };
        process.life = Life::Dead;
        let unwinds = process.thread && process.blocked.is_some();
        let links: Vec<(ConnId, usize)> = std::mem::take(&mut process.wires.links).into_values().collect();
        let knocks = std::mem::take(&mut process.wires.inbox);
        process.blocked = None;
        self.note(|| format!("process {} dies: {exit:?}", peer.0));
        links.into_iter().for_each(|(id, side)| self.close_end(id, side));
        knocks.into_iter().for_each(|knock| self.close_end(knock.conn, 1));
        self.tell_end(peer, exit);
        if unwinds {
            self.holder = Holder::Process(peer);
        }
    }

    /// The thread of a process has ended: with its program, if the process was not killed.
    pub(super) fn thread_ended(&mut self, peer: PeerId) {
        if let Some(process) = self.process_mut(peer) {
            process.thread = false;
            process.blocked = None;
        }
        self.die(peer, Exit::Status(0));
        self.end_if_all_ended();
    }

    fn go_on(&mut self, peer: PeerId) {
        let Some(process) = self.process_mut(peer) else { return };
        process.stopped = false;
        let deferred = std::mem::take(&mut process.deferred);
        let now = self.now;
        deferred.into_iter().for_each(|what| self.at(now, what));
    }

    /// The simulation is over when the job has ended and nobody is left.
    pub(super) fn end_if_all_ended(&mut self) {
        // Nobody can end a process that is stopped behind a cut.
        let lost = |peer: PeerId| {
            let stopped = self.process(peer).is_some_and(|process| process.stopped);
            stopped && self.way(peer, PeerId::LAUNCHER) == super::net::Way::CutForEver
        };
        let left = |peer: &PeerId| self.process(*peer).is_some_and(Process::alive) && !lost(*peer);
        self.over |= self.ending.is_some() && !self.peers().any(|peer| left(&peer));
    }

    pub(super) fn job_ended(&mut self, code: i32, message: String) {
        self.ending.get_or_insert(Ending::Ended { code, message });
        let due = self.now.after(2 * GRACE);
        self.at(due, Happening::JobGrace);
        self.end_if_all_ended();
    }

    pub(super) fn heed(&mut self, peer: PeerId, code: i32) {
        let due = self.now.after(GRACE);
        self.at(due, Happening::Grace(peer, code));
    }

    /// Who has not ended by itself is ended.
    fn grace(&mut self, peer: PeerId, code: i32) {
        if self.process(peer).is_some_and(|p| p.alive() && !p.heard.closed && !p.stopped) {
            self.die(peer, Exit::Status(code));
        }
    }

    // ---- faults ----

    /// Counts a call of a process to its transport or service; true if it does not survive it.
    pub(super) fn call(&mut self, peer: PeerId) -> bool {
        let Some(process) = self.process_mut(peer) else { return true };
        process.calls += 1;
        let (me, at) = ((process.rank, process.incarnation), process.calls);
        let due: Vec<usize> = (0..self.faults.len())
            .filter(|index| match self.faults[*index].trigger {
                Trigger::Call { rank, incarnation, call } => (rank, incarnation) == me && call == at,
                _ => false,
            })
            .collect();
        due.into_iter().for_each(|index| self.strike(index, Some(peer)));
        !self.process(peer).is_some_and(Process::alive)
    }

    pub(super) fn loss(&mut self) {
        self.losses += 1;
        for index in 0..self.faults.len() {
            if let Trigger::AfterLoss { losses, delay } = self.faults[index].trigger
                && losses == self.losses
            {
                self.at(self.now.after(delay), Happening::Fault(index));
            }
        }
    }

    /// A failure of the schedule strikes; `caller` has the baton.
    fn strike(&mut self, index: usize, caller: Option<PeerId>) {
        let blow = self.faults[index].blow.clone();
        self.note(|| format!("{blow:?}"));
        match blow {
            Blow::Kill(ranks) => {
                for peer in self.newest_of(&ranks) {
                    if caller == Some(peer) {
                        self.die(peer, Exit::Signal(9));
                    } else {
                        self.at(self.now, Happening::Kill(peer));
                    }
                }
            }
            Blow::Pause(rank, lasts) => {
                for peer in self.newest_of(&[rank]) {
                    self.at(self.now, Happening::Stop(peer));
                    if let Some(lasts) = lasts {
                        self.at(self.now.after(lasts), Happening::Continue(peer));
                    }
                }
            }
            Blow::Cut { ranks, from_ranks, from_launcher, lasts } => {
                let inside = self.holders(&ranks).collect();
                self.cut(Cut { inside, outside: None, from_ranks, from_launcher, until: None }, lasts);
            }
            Blow::CutBetween { near, far, lasts } => {
                let inside = self.holders(&near).collect();
                let outside = Some(self.holders(&far).collect());
                let cut = Cut { inside, outside, from_ranks: true, from_launcher: false, until: None };
                self.cut(cut, lasts);
            }
        }
    }

    fn cut(&mut self, mut cut: Cut, lasts: Option<Duration>) {
        cut.until = lasts.map(|lasts| self.now.after(lasts));
        if let Some(until) = cut.until {
            self.at(until, Happening::Heal(self.net.cuts.len()));
        }
        self.net.cuts.push(cut);
        if self.config.network.notices_cuts {
            let noticed = self.now.after(self.config.network.give_up);
            self.at(noticed, Happening::NoticeCuts);
        }
    }

    /// The processes that hold one of `ranks`, zombies behind a cut among them.
    fn holders(&self, ranks: &[Rank]) -> impl Iterator<Item = PeerId> {
        self.peers().filter(move |peer| {
            self.process(*peer).is_some_and(|p| p.life != Life::Dead && ranks.contains(&p.rank))
        })
    }

    /// The same, of several of one rank the newest.
    fn newest_of(&self, ranks: &[Rank]) -> Vec<PeerId> {
        let holders: Vec<PeerId> = self.holders(ranks).collect();
        let rank = |peer: PeerId| self.process(peer).map(|process| process.rank);
        let is_newest =
            |peer: &PeerId| !holders.iter().any(|other| other > peer && rank(*other) == rank(*peer));
        holders.iter().copied().filter(is_newest).collect()
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
        timeout: config.timeout,
        messages: config.messages.clone(),
        layers: config.layers.clone(),
        kills: config.kills.clone(),
        cuts: vec![],
        mtbf: None,
    };
    Arbiter::new(config, Time(0))
}
