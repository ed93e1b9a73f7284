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
//! *Electorate.* Silence is no proof of death. The survivors may go on only if they are at least half of the
//! members whose death is not confirmed by the operating system; else the decision waits for confirmations.
//! A process that was declared lost is killed, and its links belong to an old generation: if it lives behind
//! a partition, nobody listens to it, and its lease ([`crate::member`]) runs out. When that is past, its end
//! counts as confirmed: the job does not wait for ever for a host that never answers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::detector::Detector;
use crate::error::list;
use crate::fault::{CutSpec, How, When};
use crate::member::LEASE_TIMEOUTS;
use crate::planted;
use crate::rank::{Generation, Membership, PeerId, Rank, Seat};
use crate::time::Time;
use crate::watch::Watch;
use crate::wire::control::{News, ToArbiter, Welcome};

mod agreements;
mod births;
mod cuts;
mod hosts;
mod job;
mod losses;
mod pool;
mod random;
mod stops;
mod suspicion;
mod words;

pub use crate::rank::OnFailure;
use agreements::Agreements;
use births::Births;
use cuts::Cuts;
pub use job::{Config, Effect, Event, Exit};
use pool::Pool;
pub use random::Mtbf;
use random::RandomKills;
use stops::Stops;
use suspicion::{Accusation, Breaks, because};
use words::Words;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Starting,
    Joined,
    Member,
    Ready(u64),
    /// The process has exited in peace.
    Gone,
    /// It is lost, and nobody replaces it.
    Vacant,
}

#[derive(Debug)]
struct Chair {
    /// The rank at the start of the job, by which people know it.
    origin: Rank,
    peer: PeerId,
    incarnation: u32,
    connected: bool,
    address: String,
    phase: Phase,
    failures: u32,
    resumed: Option<u64>,
    output: Option<Vec<u8>>,
    /// What the process has printed to standard error before it has joined.
    words: Words,
    /// It is done whatever becomes of the others.
    goes_on: bool,
    /// The process has said goodbye and is about to exit.
    leaving: bool,
    /// All are done, and nothing has been heard from it since then.
    silent: Option<Time>,
}

#[derive(Debug)]
struct Loss {
    peer: PeerId,
    /// Nothing was heard from it since, and it hears nothing.
    since: Time,
    /// Its end is certain.
    confirmed: bool,
}

/// See the module.
#[derive(Debug)]
pub struct Arbiter {
    config: Config,
    generation: Option<Generation>,
    chairs: Vec<Chair>,
    /// Members of the current generation that are lost.
    failed: BTreeMap<Rank, Loss>,
    /// Members were told to stop using the current generation.
    interrupted: bool,
    /// Of a repair under way, what has been recorded: the survivors have agreed, the replacements have joined.
    noted: (bool, bool),
    /// Repairs in a row that replaced nobody.
    empty_repairs: u32,
    /// Which pairs of ranks said since then that the link between them broke, and how often.
    broken: BTreeMap<(Rank, Rank), Breaks>,
    /// Ranks whose links to others broke while these go on: to whom first.
    accused: BTreeMap<Rank, Accusation>,
    detector: Detector,
    births: Births,
    stops: Stops,
    beat_due: Time,
    fired: BTreeSet<usize>,
    cuts: Cuts,
    random: Option<RandomKills>,
    pool: Pool,
    agreements: Agreements,
    watch: Option<Watch>,
    /// Processes that were told to exit without goodbye.
    dying: BTreeSet<PeerId>,
    next_peer: u32,
    started: Time,
    /// Progress was marked: what is lost now cannot be had by starting again.
    marked: bool,
    finished: bool,
    over: bool,
    exit_code: i32,
    exit_text: String,
    effects: VecDeque<Effect>,
}

impl Arbiter {
    /// A job that starts now: the first effects start its processes.
    pub fn new(config: Config, now: Time) -> Self {
        let chair = |rank: usize| Chair {
            origin: rank,
            peer: PeerId(u32::try_from(rank + 1).expect("ranks are few")),
            incarnation: 0,
            connected: false,
            address: String::new(),
            phase: Phase::Starting,
            failures: 0,
            resumed: None,
            output: None,
            words: Words::default(),
            goes_on: false,
            leaving: false,
            silent: None,
        };
        let chairs: Vec<Chair> = (0..config.total).map(chair).collect();
        let start = |(rank, chair): (usize, &Chair)| Effect::Start { rank, peer: chair.peer, incarnation: 0 };
        Self {
            effects: chairs.iter().enumerate().map(start).collect(),
            next_peer: u32::try_from(config.total + 1).expect("ranks are few"),
            detector: Detector::new(config.timeout, now),
            births: Births::new(config.timeout, config.joins, now),
            stops: Stops::new(config.timeout, now),
            random: config.mtbf.clone().map(RandomKills::new),
            pool: Pool::new(config.spares),
            agreements: Agreements::default(),
            watch: config.messages.watchdog.map(|patience| Watch::new(patience, config.total)),
            config,
            generation: None,
            chairs,
            failed: BTreeMap::new(),
            interrupted: false,
            noted: (false, false),
            empty_repairs: 0,
            broken: BTreeMap::new(),
            accused: BTreeMap::new(),
            beat_due: now,
            fired: BTreeSet::new(),
            cuts: Cuts::default(),
            dying: BTreeSet::new(),
            started: now,
            marked: false,
            finished: false,
            over: false,
            exit_code: 0,
            exit_text: String::new(),
        }
    }

    /// What the launcher is to do next.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Positions of the injected failures that have not fired: those of kills, and behind them those of cuts.
    pub fn unfired(&self) -> Vec<usize> {
        (0..self.config.kills.len() + self.config.cuts.len())
            .filter(|spec| !self.fired.contains(spec))
            .collect()
    }

    /// How many random kills had to wait for redundancy to be whole again.
    pub fn postponed(&self) -> u32 {
        self.random.as_ref().map_or(0, RandomKills::postponed)
    }

    /// How many spares have taken a rank.
    pub fn spares_used(&self) -> u32 {
        self.pool.taken()
    }

    fn rank_of(&self, peer: PeerId) -> Option<Rank> {
        self.chairs.iter().position(|chair| chair.peer == peer && chair.phase != Phase::Vacant)
    }

    /// The chairs that somebody holds, or is to hold.
    fn living(&self) -> impl Iterator<Item = &Chair> {
        self.chairs.iter().filter(|chair| chair.phase != Phase::Vacant)
    }

    /// Whether lost ranks are missed from the next repair on, and not replaced.
    fn does_without(&self) -> bool {
        self.generation.is_some() && matches!(self.config.on_failure, OnFailure::Shrink | OnFailure::Blank)
    }

    fn send(&mut self, to: PeerId, message: News) {
        self.effects.push_back(Effect::Send { to, message });
    }

    fn broadcast(&mut self, message: &News) {
        let peers: Vec<PeerId> = self.chairs.iter().filter(|c| c.connected).map(|c| c.peer).collect();
        peers.into_iter().for_each(|peer| self.send(peer, message.clone()));
    }

    /// The process that was to be started runs: it is waited for from now on.
    pub fn started(&mut self, now: Time, peer: PeerId) {
        self.births.started(peer, now);
    }

    /// A process was stopped by a signal, or goes on.
    pub fn stopped(&mut self, now: Time, peer: PeerId, is_stopped: bool) {
        self.stops.stopped(peer, is_stopped, now);
    }

    /// A process has opened its control link and proved that it belongs to the job; false if nobody waits for
    /// it (any more).
    pub fn connected(&mut self, now: Time, peer: PeerId) -> bool {
        let Some(rank) = self.rank_of(peer) else { return self.spare_connected(now, peer) };
        if self.over || self.chairs[rank].phase != Phase::Starting || self.chairs[rank].connected {
            return false;
        }
        self.welcome(now, rank);
        true
    }

    fn spare_connected(&mut self, now: Time, peer: PeerId) -> bool {
        let is_spare = !self.over && self.pool.connected(peer);
        if is_spare {
            self.births.joined(peer, now);
            self.record(self.pool.account(None));
        }
        is_spare
    }

    /// Tells a process that has connected which rank it has.
    fn welcome(&mut self, now: Time, rank: Rank) {
        let peer = self.chairs[rank].peer;
        self.chairs[rank].connected = true;
        self.detector.heard(peer, now);
        let cuts = self.config.cuts.iter().map(CutSpec::trigger);
        let kills = self.config.kills.iter().cloned().chain(cuts).enumerate();
        let kills =
            kills.filter(|(at, kill)| kill.ranks.contains(&rank) && !self.fired.contains(at)).collect();
        let welcome = Welcome {
            rank,
            incarnation: self.chairs[rank].incarnation,
            compute: self.config.compute,
            total: self.config.total,
            joining: self.generation.map_or(0, |generation| generation + 1),
            heartbeat_ms: self.config.interval.as_millis() as u64,
            timeout_ms: self.config.timeout.as_millis() as u64,
            on_failure: self.config.on_failure,
            messages: self.config.messages.clone(),
            layers: self.config.layers.clone(),
            kills,
        };
        self.send(peer, News::Welcome(welcome));
        if self.dying.contains(&peer) {
            self.send(peer, News::Die);
        }
        self.tell_cuts(now, peer);
    }

    /// A rank has said something.
    pub fn handle(&mut self, now: Time, peer: PeerId, message: ToArbiter) {
        let Some(rank) = self.rank_of(peer) else { return self.fence(peer) };
        if self.over {
            return;
        }
        self.detector.heard(peer, now);
        self.chairs[rank].silent = None;
        let current = |generation: Generation| self.generation == Some(generation);
        match message {
            ToArbiter::Beat => {}
            ToArbiter::Join { address } => {
                if self.chairs[rank].phase == Phase::Starting {
                    self.chairs[rank].address = address;
                    self.chairs[rank].phase = Phase::Joined;
                    self.births.joined(peer, now);
                    self.decide(now);
                }
            }
            ToArbiter::Suspect { generation, rank: other, goes_on, why } => {
                if current(generation) && goes_on {
                    self.accuse(now, rank, other, &why);
                } else if current(generation) {
                    self.broken.entry((rank.min(other), rank.max(other))).or_default().again(&why);
                    self.interrupt();
                }
            }
            ToArbiter::Agree { generation, of, number, word } => {
                if current(generation) {
                    self.agreements.heard(rank, of, number, word);
                    self.settle_agreements();
                }
            }
            ToArbiter::Revoke { generation, context, members } => {
                if current(generation) {
                    let chairs = members.into_iter().filter_map(|rank| self.chairs.get(rank));
                    let peers: Vec<PeerId> = chairs.filter(|c| c.connected).map(|c| c.peer).collect();
                    peers.into_iter().for_each(|to| self.send(to, News::Revoked { generation, context }));
                }
            }
            ToArbiter::Ready { generation, report } => {
                if current(generation) && self.chairs[rank].phase == Phase::Member {
                    self.chairs[rank].phase = Phase::Ready(report);
                    self.interrupt();
                    self.settle_agreements();
                    self.decide(now);
                }
            }
            ToArbiter::Resumed { generation, steps_lost } => {
                if current(generation) {
                    self.chairs[rank].resumed = Some(steps_lost);
                    if let Some(all) = self.living().map(|c| c.resumed).collect::<Option<Vec<_>>>() {
                        self.chairs.iter_mut().for_each(|chair| chair.resumed = None);
                        let steps_lost = all.into_iter().max().unwrap_or(0);
                        self.random.iter_mut().for_each(RandomKills::settled);
                        self.pool.settled(now);
                        self.record(Event::Resumed { generation, steps_lost });
                    }
                }
            }
            ToArbiter::Mark => {
                self.marked = true;
                self.record(Event::Marked { rank: self.chairs[rank].origin });
                self.chairs.iter_mut().for_each(|chair| chair.failures = 0);
                self.forgive();
            }
            ToArbiter::Reached { spec } => self.strike(now, spec),
            ToArbiter::Progress { done, line } => {
                self.record(Event::Progress { rank: self.chairs[rank].origin, done, line });
            }
            ToArbiter::Activity { name } => {
                self.record(Event::Activity { rank: self.chairs[rank].origin, name });
            }
            ToArbiter::Waiting(wait) => {
                self.watch.iter_mut().for_each(|watch| watch.waiting(now, rank, wait.clone()));
            }
            ToArbiter::Refused { count } => self.record(Event::Refused { count }),
            ToArbiter::Moving => self.watch.iter_mut().for_each(|watch| watch.moving(rank)),
            ToArbiter::Finalize { generation, output, goes_on } => {
                let goes_on = goes_on && self.does_without();
                if current(generation) && (goes_on || !self.interrupted) {
                    (self.chairs[rank].output, self.chairs[rank].goes_on) = (Some(output), goes_on);
                    self.finish();
                }
            }
            ToArbiter::Goodbye { code: Some(code), message } => self.end(code, message),
            ToArbiter::Goodbye { code: None, .. } => self.chairs[rank].leaving = true,
        }
    }

    fn record(&mut self, event: Event) {
        self.effects.push_back(Effect::Record(event));
    }

    fn strike(&mut self, now: Time, spec: usize) {
        if spec >= self.config.kills.len() {
            return self.cut(now, spec);
        }
        // When all are done there is nothing left to fail.
        if self.finished || !self.fired.insert(spec) {
            return;
        }
        self.record(Event::Struck { spec });
        let kill = self.config.kills[spec].clone();
        for rank in kill.ranks {
            let chair = self.living().find(|chair| chair.origin == rank);
            let Some(peer) = chair.map(|chair| chair.peer) else { continue };
            match kill.how {
                How::Kill => self.effects.push_back(Effect::Kill(peer)),
                How::Hang => {
                    // One that has not connected yet is watched from now on.
                    self.detector.heard(peer, now);
                    self.effects.push_back(Effect::Stop(peer));
                }
                How::Exit => {
                    self.dying.insert(peer);
                    self.send(peer, News::Die);
                }
            }
        }
    }

    /// Tells the members to stop using the current generation.
    fn interrupt(&mut self) {
        let Some(generation) = self.generation else { return };
        let ranks: Vec<Rank> = self.failed.keys().copied().collect();
        self.interrupted = true;
        self.pool.interrupted();
        for chair in &mut self.chairs {
            chair.resumed = None;
            chair.output = chair.output.take().filter(|_| chair.goes_on);
        }
        let members = self.chairs.iter().filter(|c| matches!(c.phase, Phase::Member | Phase::Ready(_)));
        let members: Vec<PeerId> = members.map(|chair| chair.peer).collect();
        for peer in members {
            self.send(peer, News::Failed { generation, ranks: ranks.clone() });
        }
    }

    fn finish(&mut self) {
        if self.finished {
            return;
        }
        // A hole has nothing to say.
        let output = |c: &Chair| if c.phase == Phase::Vacant { Some(vec![]) } else { c.output.clone() };
        let Some(outputs) = self.chairs.iter().map(output).collect::<Option<Vec<_>>>() else { return };
        self.finished = true;
        self.watch.iter_mut().for_each(Watch::clear);
        self.record(Event::Finished { outputs });
        self.broadcast(&News::Finalized);
    }

    /// Heartbeats, timeouts and timed failures.
    pub fn tick(&mut self, now: Time) {
        if self.over {
            return;
        }
        for spec in 0..self.config.kills.len() {
            let elapsed = now.since(self.started).as_secs_f64();
            let due = matches!(self.config.kills[spec].point.when, When::Seconds(at) if elapsed >= at);
            if due && !self.fired.contains(&spec) {
                self.strike(now, spec);
            }
        }
        self.cut_on_time(now);
        self.strike_at_random(now);
        if let Some(account) = self.watch.as_mut().and_then(|watch| watch.tick(now)) {
            self.record(Event::Stalled { account });
        }
        if now >= self.beat_due {
            self.beat_due = now.after(self.config.interval);
            self.broadcast(&News::Beat);
            let spares: Vec<PeerId> = self.pool.listening().collect();
            spares.into_iter().for_each(|peer| self.send(peer, News::Beat));
        }
        for _ in 0..self.pool.missing(now, self.config.max_restarts) {
            let peer = self.number();
            self.pool.started(peer);
            self.effects.push_back(Effect::Spare(peer));
        }
        // One timeout more than the lease, as its end takes a little as well.
        let lease = self.config.timeout * (LEASE_TIMEOUTS + 1);
        let expired = |loss: &&mut Loss| !loss.confirmed && now.since(loss.since) > lease;
        if self.failed.values_mut().filter(expired).map(|loss| loss.confirmed = true).count() > 0 {
            self.decide(now);
        }
        let (overdue, patience) = self.births.overdue(now);
        let cause = format!("it had not joined the job {} s after its start", patience.as_secs_f64());
        overdue.into_iter().for_each(|peer| self.never_came(now, peer, cause.clone()));
        for peer in self.stops.overdue(now) {
            self.stopped_for_long(now, peer);
        }
        self.judge(now);
        for peer in self.detector.suspects(now) {
            match self.rank_of(peer) {
                Some(rank) if self.finished => self.let_go(now, rank, lease),
                Some(rank) => {
                    let seconds = self.config.timeout.as_secs_f64();
                    self.fail(now, rank, format!("silent for {seconds} s"), false);
                }
                None => self.detector.forget(peer),
            }
        }
    }

    fn strike_at_random(&mut self, now: Time) {
        let Some(random) = &mut self.random else { return };
        if self.generation.is_none() || self.finished {
            return;
        }
        random.start(now);
        let living = |rank: &Rank| matches!(self.chairs[*rank].phase, Phase::Member | Phase::Ready(_));
        let living: Vec<Rank> =
            (0..self.chairs.len()).filter(living).map(|rank| self.chairs[rank].origin).collect();
        // With nobody to take its place, the last one is spared.
        let last = living.len() == 1 && self.config.on_failure != OnFailure::Rebuild;
        if let Some(rank) = random.strike(now, if last { &[] } else { &living }) {
            let peer = self.living().find(|chair| chair.origin == rank).map(|chair| chair.peer);
            let peer = peer.expect("it is one of the living");
            self.record(Event::RandomKill { rank });
            self.effects.push_back(Effect::Kill(peer));
        }
    }

    /// When [`Arbiter::tick`] is due.
    pub fn poll_timeout(&self) -> Time {
        let random = self.random.as_ref().and_then(RandomKills::due);
        let watch = self.watch.as_ref().and_then(Watch::poll_timeout);
        let accused = self.accused.values().map(|accusation| accusation.due);
        random.into_iter().chain(watch).chain(self.pool.due()).chain(accused).fold(self.beat_due, Time::min)
    }

    /// Records how far a repair is.
    fn note(&mut self) {
        let none = |phase: Phase| !self.chairs.iter().any(|chair| chair.phase == phase);
        let (agreed, respawned) = (none(Phase::Member), none(Phase::Starting));
        if self.generation.is_some() && agreed && !self.noted.0 {
            self.noted.0 = true;
            self.record(Event::Agreed);
        }
        if self.generation.is_some() && respawned && !self.noted.1 {
            self.noted.1 = true;
            self.record(Event::Respawned);
        }
    }

    /// Starts the next generation if everybody is ready for it.
    fn decide(&mut self, now: Time) {
        if self.over || self.finished {
            return;
        }
        self.note();
        let early = planted::has(planted::DECIDES_EARLY) && !self.failed.is_empty();
        let ready = |c: &Chair| {
            matches!(c.phase, Phase::Joined | Phase::Ready(_) | Phase::Vacant)
                || early && c.phase == Phase::Member
        };
        if !self.chairs.iter().all(ready) {
            return;
        }
        let survivors = self.chairs.iter().filter(|c| matches!(c.phase, Phase::Ready(_))).count();
        let unconfirmed = self.failed.values().filter(|loss| !loss.confirmed).count();
        if 2 * survivors < survivors + unconfirmed {
            return; // wait until the operating system has confirmed more deaths
        }
        let failed: Vec<Rank> = std::mem::take(&mut self.failed).into_keys().collect();
        let origins = failed.iter().map(|rank| self.chairs[*rank].origin).collect();
        if self.generation.is_some() && failed.is_empty() {
            self.empty_repairs += 1;
            if let Some((rank, others, why)) = self.cut_off() {
                let cause =
                    format!("its links to {} broke again and again{}", list("rank", &others), because(why));
                self.forgive();
                return self.fail(now, rank, cause, false);
            }
            if self.empty_repairs > self.config.max_restarts {
                let text =
                    "repairs were asked for again and again, for no loss and without progress in between";
                return self.end(1, text.into());
            }
        } else {
            self.forgive();
        }
        let generation = self.generation.map_or(0, |generation| generation + 1);
        let membership = self.close_up(generation, &failed);
        self.generation = Some(generation);
        self.watch.iter_mut().for_each(Watch::clear);
        self.noted = (false, false);
        self.interrupted = false;
        self.accused.clear();
        self.agreements.clear();
        for chair in self.chairs.iter_mut().filter(|chair| chair.phase != Phase::Vacant) {
            chair.phase = Phase::Member;
            (chair.output, chair.resumed, chair.goes_on) = (None, None, false);
        }
        self.pool.decided(now);
        if generation == 0 {
            self.random.iter_mut().for_each(RandomKills::settled);
            self.pool.settled(now);
        }
        let held = self.living().map(|chair| chair.origin).collect();
        self.record(Event::Decided { generation, failed: origins, held });
        self.broadcast(&News::Decided(membership));
    }

    /// The membership of `generation`: with [`OnFailure::Shrink`] the chairs of the lost are taken away.
    fn close_up(&mut self, generation: Generation, failed: &[Rank]) -> Membership {
        let closes = self.config.on_failure == OnFailure::Shrink;
        let kept = |chair: &Chair| !closes || chair.phase != Phase::Vacant;
        let known = |(rank, chair): (Rank, &Chair)| matches!(chair.phase, Phase::Ready(_)).then_some(rank);
        let before = self.chairs.iter().enumerate().filter(|(_, chair)| kept(chair)).map(known).collect();
        self.chairs.retain(kept);
        let report = |c: &Chair| if let Phase::Ready(report) = c.phase { report } else { 0 };
        let seat = |c: &Chair| Seat { peer: c.peer, incarnation: c.incarnation, address: c.address.clone() };
        Membership {
            generation,
            seats: self.chairs.iter().map(seat).collect(),
            compute: self.chairs.iter().filter(|c| c.origin < self.config.compute).count(),
            reports: self.chairs.iter().map(report).collect(),
            failed: failed.to_vec(),
            holes: (0..self.chairs.len()).filter(|rank| self.chairs[*rank].phase == Phase::Vacant).collect(),
            before,
            marked: self.marked,
        }
    }

    /// Ends the job everywhere.
    pub fn end(&mut self, code: i32, message: String) {
        if self.over {
            return;
        }
        self.over = true;
        // Replacements that have not connected yet would find nobody.
        let late =
            self.chairs.iter().filter(|c| c.incarnation > 0 && !c.connected && c.phase == Phase::Starting);
        let late: Vec<Effect> =
            late.map(|chair| chair.peer).chain(self.pool.starting()).map(Effect::Kill).collect();
        self.effects.extend(late);
        let end = News::Ended { code, message: message.clone() };
        let spares: Vec<PeerId> = self.pool.listening().collect();
        spares.into_iter().for_each(|peer| self.send(peer, end.clone()));
        self.broadcast(&end);
        self.effects.push_back(Effect::End { code, message });
    }

    /// One line about what the job waits for, for people.
    pub fn status(&self) -> String {
        let waiting: Vec<Rank> =
            (0..self.chairs.len()).filter(|&rank| self.chairs[rank].phase == Phase::Starting).collect();
        match (self.generation, waiting.is_empty()) {
            (None, _) => format!("starting, {} not joined yet", list("rank", &waiting)),
            (Some(generation), true) => format!("running in generation {generation}"),
            (Some(generation), false) => {
                format!("repairing generation {generation}, {}", list("rank", &waiting))
            }
        }
    }
}

#[cfg(test)]
mod tests;
