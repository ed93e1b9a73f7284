//! The launcher's side of the membership protocol: who is in the job, who is lost, and when the next
//! generation starts.
//!
//! The launcher is the one arbiter of a job. It starts the replacements, so no repair is possible without it;
//! making it decide as well turns agreement among the survivors into a decision in one place, which all
//! survivors hear in order. A decision waits until every rank of the job is either a survivor that has
//! stopped using the old generation or a replacement that is ready; losses until then are added, losses
//! after it start the next repair. So all survivors that return from one repair return the same.
//!
//! ```text
//! seat:   Starting --joined--> Joined --decided--> Member --ready--> Ready --decided--> Member
//!            ^                                       |                 |
//!            +------------- failed (a new process) --+-----------------+
//! ```
//!
//! With [`OnFailure::Shrink`] and [`OnFailure::Blank`] nobody replaces the lost: the survivors alone are waited for, and
//! close up or leave a hole. A job that has not started yet is brought together as with [`OnFailure::Rebuild`].
//!
//! A process that was started is waited for until it joins, but not for ever (`arbiter/births.rs`): one that hangs before that is
//! put to death, which is a failure of its rank.
//!
//! *Roster and observers.* The roster (`arbiter/roster.rs`) keeps membership. Beside it stand two who do not decide: injected failures
//! (`arbiter/injected.rs`) and the watchdog ([`crate::watch`], `arbiter/silence.rs`;
//! `arbiter/completion.rs`: ranks of which some are done too early). They learn from the roster's
//! events what becomes of the ranks. What
//! ranks say for people only, of progress and such, is passed on as an event, and the roster hears that they live.
//!
//! *Electorate.* Silence is no proof of death. The survivors may go on only if they are at least half of the
//! members whose death is not confirmed by the operating system; else the decision waits for confirmations.
//! A process that was declared lost is killed, and its links belong to an old generation: if it lives behind
//! a partition, nobody listens to it, and its lease ([`crate::member`]) runs out. When that is past, its end
//! counts as confirmed: the job does not wait for ever for a host that never answers.

use crate::error::list;
use crate::rank::{PeerId, Rank};
use crate::time::Time;
use crate::watch::Watch;
use crate::wire::control::{News, ToArbiter, Welcome};

mod agreements;
mod births;
mod chairs;
mod completion;
mod cuts;
mod ending;
mod injected;
mod job;
mod losses;
mod outbox;
mod pool;
mod random;
mod redundancy;
mod repair;
mod restarts;
mod roster;
mod silence;
mod stops;
mod suspicion;
mod view;
mod words;

pub use crate::rank::OnFailure;
use chairs::Phase;
use completion::Completion;
use injected::Injected;
pub use job::{Config, Effect, Event, Exit};
use outbox::Outbox;
pub use random::Mtbf;
use roster::Roster;
use silence::Silence;
pub use view::{RankView, Stage};

/// Exit status of a job whose program does what cannot go on.
const MISUSED: i32 = 2;

/// The launcher's side of the membership protocol, as a state machine: events go in, effects come out.
#[derive(Debug)]
pub struct Arbiter {
    roster: Roster,
    injected: Injected,
    watch: Watch,
    completion: Completion,
    silence: Silence,
    effects: Outbox,
}

impl Arbiter {
    /// A job that starts now: the first effects start its processes.
    pub fn new(config: Config, now: Time) -> Self {
        let watch = Watch::new(config.messages.watchdog, config.total);
        let injected = Injected::new(&config, now);
        let mut arbiter = Self {
            roster: Roster::new(config, now),
            injected,
            watch,
            completion: Completion::default(),
            silence: Silence::default(),
            effects: Outbox::default(),
        };
        arbiter.pass_on(now);
        arbiter
    }

    /// What the launcher is to do next.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop()
    }

    /// The process that was to be started runs: it is waited for from now on.
    pub fn started(&mut self, now: Time, peer: PeerId) {
        self.roster.births.started(peer, now);
    }

    /// A process was stopped by a signal, or goes on.
    pub fn stopped(&mut self, now: Time, peer: PeerId, is_stopped: bool) {
        self.roster.stops.stopped(peer, is_stopped, now);
    }

    /// A process has opened its control link and proved that it belongs to the job; false if nobody waits for
    /// it (any more).
    pub fn connected(&mut self, now: Time, peer: PeerId) -> bool {
        let is_awaited = self.roster.connected(now, peer);
        self.pass_on(now);
        is_awaited
    }

    /// A spare was started on this host, of those in [`MessageSettings::hosts`](crate::settings::MessageSettings::hosts).
    pub fn spare_stands(&mut self, peer: PeerId, host: usize) {
        self.roster.pool.stands(peer, host);
    }

    /// A rank has said something.
    pub fn handle(&mut self, now: Time, peer: PeerId, message: ToArbiter) {
        if let Some(rank) = self.roster.heard(now, peer) {
            self.hear(now, rank, message);
        }
        self.pass_on(now);
    }

    /// What a process has printed to standard error: before it has joined that says why it cannot.
    pub fn said(&mut self, peer: PeerId, lines: &[u8]) {
        if let Some(rank) = self.roster.chairs.rank_of(peer) {
            self.roster.chairs[rank].said(lines);
        }
    }

    /// The control link of a process broke.
    pub fn disconnected(&mut self, now: Time, peer: PeerId) {
        self.roster.disconnected(now, peer);
        self.pass_on(now);
    }

    /// A process has exited: the operating system's word.
    pub fn exited(&mut self, now: Time, peer: PeerId, exit: Exit) {
        let struck = self.injected.exited(peer);
        self.roster.exited(now, peer, exit, struck);
        self.pass_on(now);
    }

    /// Returns `true` if the job survives the loss of all these processes.
    pub fn bears(&self, peers: &[PeerId]) -> bool {
        if self.roster.ending.is_finished || self.roster.ending.is_over {
            return true;
        }
        let ranks: Vec<Rank> = peers.iter().filter_map(|peer| self.roster.chairs.rank_of(*peer)).collect();
        self.roster.bears(&ranks)
    }

    /// A host, of those in [`MessageSettings::hosts`](crate::settings::MessageSettings::hosts), is lost, and with it these processes,
    /// all at once. That they have ended is likely but not certain: the host may be cut off.
    pub fn host_lost(&mut self, now: Time, host: usize, peers: &[PeerId], cause: &str) {
        self.injected.host_lost();
        self.roster.host_lost(now, host, peers, cause);
        self.pass_on(now);
    }

    /// A host that was lost takes processes again, or one that `is_new` does; people know it by this name.
    pub fn host_back(&mut self, now: Time, host: usize, name: &str, is_new: bool) {
        self.roster.host_back(host, name, is_new);
        self.pass_on(now);
    }

    /// Ends the job everywhere.
    pub fn end(&mut self, now: Time, code: i32, message: String) {
        self.roster.end(code, message);
        self.pass_on(now);
    }

    /// Asks all members to write what is protected to files now. Returns `false` if there is no
    /// member yet.
    pub fn save(&mut self) -> bool {
        let members = self.roster.chairs.iter().filter(|chair| chair.is_member());
        let peers: Vec<PeerId> = members.map(|chair| chair.peer).collect();
        let is_asked = !peers.is_empty();
        peers.into_iter().for_each(|peer| self.effects.send(peer, News::Save));
        is_asked
    }

    /// Heartbeats, timeouts and timed failures.
    pub fn tick(&mut self, now: Time) {
        if self.roster.ending.is_over {
            return;
        }
        self.injected.tick(now, &mut self.roster);
        self.pass_on(now);
        if let Some(account) = self.watch.tick(now) {
            self.effects.record(Event::Stalled { account });
        }
        if let Some(account) = self.silence.tick(now, self.watch.waits().count()) {
            self.effects.record(Event::Stalled { account });
        }
        if let Some(text) = self.completion.tick(now, &self.watch) {
            self.roster.end(MISUSED, text);
        }
        self.roster.tick(now);
        self.pass_on(now);
    }

    /// When [`Arbiter::tick`] is due.
    pub fn poll_timeout(&self) -> Time {
        self.injected
            .due()
            .into_iter()
            .chain(self.watch.poll_timeout())
            .chain(self.silence.poll_timeout())
            .chain(self.completion.poll_timeout())
            .fold(self.roster.poll_timeout(), Time::min)
    }

    /// Positions of the injected failures that have not fired: those of kills, and behind them those of cuts.
    pub fn unfired(&self) -> Vec<usize> {
        self.injected.unfired()
    }

    /// How many random kills had to wait for redundancy to be whole again.
    pub fn postponed(&self) -> u32 {
        self.injected.postponed()
    }

    /// How many spares have taken a rank.
    pub fn spares_used(&self) -> u32 {
        self.roster.pool.taken()
    }

    /// One line about what the job waits for, for people.
    pub fn status(&self) -> String {
        let chairs = &self.roster.chairs;
        let waiting: Vec<Rank> =
            (0..chairs.len()).filter(|rank| chairs[*rank].phase == Phase::Starting).collect();
        match (self.roster.generation, waiting.is_empty()) {
            (None, _) => format!("starting, {} not joined yet", list("rank", &waiting)),
            (Some(generation), true) => format!("running in generation {generation}"),
            (Some(generation), false) => {
                format!("repairing generation {generation}, {}", list("rank", &waiting))
            }
        }
    }

    /// Gives what a rank has said to whom it concerns.
    fn hear(&mut self, now: Time, rank: Rank, message: ToArbiter) {
        let origin = self.roster.chairs[rank].origin;
        match message {
            ToArbiter::Reached { spec } => self.injected.strike(now, spec, &mut self.roster),
            ToArbiter::Waiting(wait) => {
                self.watch.waiting(now, rank, wait);
                self.completion.look(now, &self.watch);
            }
            ToArbiter::Moving => {
                self.watch.moving(rank);
                self.completion.look(now, &self.watch);
            }
            ToArbiter::Done { generation, last } if self.roster.generation == Some(generation) => {
                self.completion.done(rank, last);
                self.completion.look(now, &self.watch);
            }
            ToArbiter::Silent { millis } => self.silence.heard(now, rank, millis),
            ToArbiter::Progress { done, line } => {
                self.effects.record(Event::Progress { rank: origin, done, line });
            }
            ToArbiter::Activity { name } => self.effects.record(Event::Activity { rank: origin, name }),
            ToArbiter::Account { generation, account } => {
                self.effects.record(Event::Account { rank: origin, generation, account });
            }
            ToArbiter::Refused { count } => self.effects.record(Event::Refused { count }),
            ToArbiter::Saved(saved) => self.effects.record(Event::Saved { rank: origin, saved }),
            message => self.roster.handle(now, rank, message),
        }
    }

    /// Passes on what the roster wants done. On the way the others see what it records.
    fn pass_on(&mut self, now: Time) {
        while let Some(effect) = self.roster.out.pop() {
            match effect {
                Effect::Send { to, message: News::Welcome(welcome) } => self.welcome(now, to, welcome),
                effect => {
                    if let Effect::Record(event) = &effect {
                        self.observe(event);
                    }
                    self.effects.push(effect);
                }
            }
        }
    }

    /// A welcome says which failures to inject, and is followed by what could not be said of them before.
    fn welcome(&mut self, now: Time, peer: PeerId, welcome: Welcome) {
        let kills = self.injected.points(welcome.rank);
        self.effects.send(peer, News::Welcome(Welcome { kills, ..welcome }));
        let late = self.injected.late_news(now, peer);
        late.into_iter().for_each(|news| self.effects.send(peer, news));
    }

    /// Tells those who do not decide what becomes of the ranks.
    fn observe(&mut self, event: &Event) {
        self.injected.observe(event);
        match event {
            Event::Lost { rank, .. } => {
                if let Some(rank) = self.roster.chairs.known_as(*rank) {
                    self.watch.lost(rank);
                    self.silence.ends(rank);
                }
                self.completion.clear();
            }
            Event::Decided { .. } | Event::Finished { .. } => {
                self.watch.clear();
                self.silence.clear();
                self.completion.clear();
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
