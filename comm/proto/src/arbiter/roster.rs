//! The membership protocol: who is in the job, and when the next generation starts ([`super`] says how).
//!
//! The roster is told what processes say and what becomes of them; what it wants done, and what it records, lies in its outbox.
//! What follows from the end of a process is in `losses.rs`, the end of the job in `ending.rs`.

use std::collections::BTreeSet;

use super::agreements::Agreements;
use super::births::Births;
use super::chairs::{Chairs, Phase};
use super::ending::Ending;
use super::outbox::Outbox;
use super::pool::Pool;
use super::redundancy::Redundancy;
use super::repair::Repair;
use super::restarts::Restarts;
use super::stops::Stops;
use super::suspicion::Suspicion;
use super::{Config, Effect, Event, OnFailure};
use crate::detector::Detector;
use crate::planted;
use crate::rank::{Generation, Membership, PeerId, Rank};
use crate::time::Time;
use crate::wire::control::{News, ToArbiter, Welcome};

/// See the module.
#[derive(Debug)]
pub(super) struct Roster {
    pub(super) config: Config,
    pub(super) generation: Option<Generation>,
    pub(super) chairs: Chairs,
    pub(super) repair: Repair,
    pub(super) suspicion: Suspicion,
    agreements: Agreements,
    pub(super) pool: Pool,
    /// Hosts that are lost.
    pub(super) lost_hosts: BTreeSet<usize>,
    pub(super) detector: Detector,
    pub(super) redundancy: Redundancy,
    pub(super) births: Births,
    pub(super) restarts: Restarts,
    pub(super) stops: Stops,
    beat_due: Time,
    /// Progress was marked: what is lost now cannot be had by starting again.
    marked: bool,
    pub(super) ending: Ending,
    pub(super) out: Outbox,
}

impl Roster {
    /// The first effects start the processes of the job.
    pub(super) fn new(config: Config, now: Time) -> Self {
        let chairs = Chairs::new(config.total);
        let mut out = Outbox::default();
        for (rank, chair) in chairs.iter().enumerate() {
            out.push(Effect::Start { rank, peer: chair.peer, incarnation: 0 });
        }
        Self {
            generation: None,
            chairs,
            repair: Repair::default(),
            suspicion: Suspicion::default(),
            agreements: Agreements::default(),
            pool: Pool::new(config.spares),
            lost_hosts: BTreeSet::new(),
            detector: Detector::new(config.timeout, now),
            redundancy: Redundancy::new(&config.groups),
            births: Births::new(config.timeout, config.joins, now),
            restarts: Restarts::default(),
            stops: Stops::new(config.timeout, now),
            beat_due: now,
            marked: false,
            ending: Ending::default(),
            out,
            config,
        }
    }

    /// Whether lost ranks are missed from the next repair on, and not replaced.
    pub(super) fn does_without(&self) -> bool {
        self.generation.is_some() && matches!(self.config.on_failure, OnFailure::Shrink | OnFailure::Blank)
    }

    /// A process has opened its control link; false if nobody waits for it (any more).
    pub(super) fn connected(&mut self, now: Time, peer: PeerId) -> bool {
        if self.ending.is_over {
            return false;
        }
        match self.chairs.rank_of(peer) {
            Some(rank) if self.chairs[rank].phase == Phase::Starting && !self.chairs[rank].connected => {
                self.welcome(now, rank);
                true
            }
            None if self.pool.connected(peer) => {
                self.births.joined(peer, now);
                self.provide_for([peer]);
                self.out.record(self.pool.account(None));
                true
            }
            _ => false,
        }
    }

    /// Tells a process that has connected which rank it has.
    pub(super) fn welcome(&mut self, now: Time, rank: Rank) {
        let chair = &mut self.chairs[rank];
        chair.connected = true;
        self.detector.heard(chair.peer, now);
        let welcome = Welcome {
            rank,
            incarnation: chair.incarnation,
            compute: self.config.compute,
            total: self.config.total,
            joining: self.generation.map_or(0, |generation| generation + 1),
            heartbeat_ms: self.config.interval.as_millis() as u64,
            timeout_ms: self.config.timeout.as_millis() as u64,
            on_failure: self.config.on_failure,
            messages: self.config.messages.clone(),
            layers: self.config.layers.clone(),
            kills: vec![],
        };
        self.out.send(chair.peer, News::Welcome(welcome));
    }

    /// The host of a rank, if there are several and it is not lost.
    pub(super) fn home(&self, rank: Rank) -> Option<usize> {
        let host = *self.config.messages.hosts.as_ref()?.get(rank)?;
        (!self.lost_hosts.contains(&host)).then_some(host)
    }

    /// A process lives. Gives its rank, if it has one and the job is not over. One that has none any more was declared lost while
    /// it was silent: it is told to end.
    pub(super) fn heard(&mut self, now: Time, peer: PeerId) -> Option<Rank> {
        if self.ending.is_over {
            return None;
        }
        let Some(rank) = self.chairs.rank_of(peer) else {
            if !self.pool.listening().any(|spare| spare == peer) {
                let why = "declared lost while nothing was heard of it; another process has its rank";
                self.out.send(peer, News::Ended { code: 1, message: why.into() });
            }
            return None;
        };
        self.detector.heard(peer, now);
        if let Some(since) = self.chairs[rank].silent.take().filter(|_| !self.ending.is_finished) {
            let silent = self.config.timeout + now.since(since);
            self.out.record(Event::HeardAgain { rank: self.chairs[rank].origin, silent });
        }
        Some(rank)
    }

    /// A rank has said something.
    pub(super) fn handle(&mut self, now: Time, rank: Rank, message: ToArbiter) {
        if message.generation().is_some_and(|of| self.generation != Some(of)) {
            return; // it is old
        }
        match message {
            ToArbiter::Join { address, report } => self.join(now, rank, address, report),
            ToArbiter::Suspect { rank: other, goes_on, why, .. } => {
                self.suspect(now, rank, other, goes_on, &why);
            }
            ToArbiter::Agree { of, number, word, .. } => {
                self.agreements.heard(rank, of, number, word);
                self.settle_agreements();
            }
            ToArbiter::Revoke { generation, context, members } => {
                let members = members.into_iter().filter_map(|rank| self.chairs.get(rank));
                let members = members.filter(|chair| chair.connected).map(|chair| chair.peer);
                self.out.broadcast(members, &News::Revoked { generation, context });
            }
            ToArbiter::Ready { report, .. } => self.ready(now, rank, report),
            ToArbiter::Resumed { generation, steps_lost } => self.resumed(now, rank, generation, steps_lost),
            ToArbiter::Mark { number } => self.mark(rank, number),
            ToArbiter::Beat { step } => self.chairs[rank].step = step,
            ToArbiter::Finalize { output, goes_on, .. } => self.finalize(rank, output, goes_on),
            ToArbiter::Goodbye { code: Some(code), message } => self.aborted(rank, code, message),
            ToArbiter::Goodbye { code: None, .. } => self.chairs[rank].leaving = true,
            // To the roster these are signs of life.
            ToArbiter::Reached { .. }
            | ToArbiter::Activity { .. }
            | ToArbiter::Progress { .. }
            | ToArbiter::Waiting(_)
            | ToArbiter::Moving
            | ToArbiter::Refused { .. }
            | ToArbiter::Saved(_)
            | ToArbiter::Account { .. }
            | ToArbiter::Done { .. }
            | ToArbiter::Silent { .. } => {}
            ToArbiter::Dead { why } => self.dead(now, rank, why),
            ToArbiter::Keeps { pieces } => self.keeps(pieces),
        }
    }

    fn join(&mut self, now: Time, rank: Rank, address: String, report: u64) {
        let chair = &mut self.chairs[rank];
        if chair.phase == Phase::Starting {
            (chair.address, chair.phase) = (address, Phase::Joined(report));
            self.births.joined(chair.peer, now);
            self.decide(now);
        }
    }

    /// The link of `rank` to `other` broke. A repair renews it; if `rank` goes on without one, and neither turns out to be dead,
    /// `other` counts as lost after a while: for two that cannot speak one is too many.
    fn suspect(&mut self, now: Time, rank: Rank, other: Rank, goes_on: bool, why: &str) {
        let Some(suspected) = self.chairs.get(other) else { return };
        if !goes_on {
            self.suspicion.broke(rank, other, why);
            self.interrupt();
        } else if [&self.chairs[rank], suspected].iter().all(|chair| chair.phase == Phase::Member) {
            self.suspicion.accuse(rank, other, now.after(self.config.interval), why);
        }
    }

    fn ready(&mut self, now: Time, rank: Rank, report: u64) {
        if self.chairs[rank].phase == Phase::Member {
            self.chairs[rank].phase = Phase::Ready(report);
            self.interrupt();
            self.settle_agreements();
            self.decide(now);
        }
    }

    /// A rank keeps so much memory: spares are to have it ready.
    fn keeps(&mut self, pieces: Vec<u64>) {
        if self.pool.needs(pieces) {
            let spares: Vec<PeerId> = self.pool.listening().collect();
            self.provide_for(spares);
        }
    }

    fn provide_for(&mut self, spares: impl IntoIterator<Item = PeerId>) {
        if let Some(pieces) = self.pool.provision() {
            self.out.broadcast(spares.into_iter(), &News::Prepare { pieces });
        }
    }

    fn resumed(&mut self, now: Time, rank: Rank, generation: Generation, steps_lost: u64) {
        self.chairs[rank].resumed = Some(steps_lost);
        if let Some(steps_lost) = self.chairs.all_resumed() {
            self.redundancy.settled();
            self.pool.settled(now);
            self.out.record(Event::Resumed { generation, steps_lost });
        }
    }

    fn mark(&mut self, rank: Rank, number: u64) {
        self.marked = true;
        self.out.record(Event::Marked { rank: self.chairs[rank].origin, number });
        self.chairs.iter_mut().for_each(|chair| chair.failures = 0);
        self.suspicion.forgive();
    }

    fn finalize(&mut self, rank: Rank, output: Vec<u8>, goes_on: bool) {
        let goes_on = goes_on && self.does_without();
        if goes_on || !self.repair.is_under_way() {
            (self.chairs[rank].output, self.chairs[rank].goes_on) = (Some(output), goes_on);
            self.finish();
        }
    }

    /// Tells the members to stop using the current generation.
    pub(super) fn interrupt(&mut self) {
        let Some(generation) = self.generation else { return };
        let news = self.repair.interrupt();
        self.pool.interrupted();
        self.chairs.interrupt();
        if let Some(ranks) = news {
            let members = self.chairs.members().map(|chair| chair.peer);
            self.out.broadcast(members, &News::Failed { generation, ranks });
        }
    }

    /// What can be said of agreements under way, to whom.
    pub(super) fn settle_agreements(&mut self) {
        let Some(generation) = self.generation else { return };
        let voters: Vec<bool> = self.chairs.iter().map(|chair| chair.phase == Phase::Member).collect();
        let gone = |rank: &Rank| !self.chairs[*rank].is_held() || self.repair.has_lost(*rank);
        let gone: Vec<Rank> = (0..self.chairs.len()).filter(gone).collect();
        for (rank, message) in self.agreements.settle(generation, &voters, &gone) {
            self.out.send(self.chairs[rank].peer, message);
        }
    }

    /// Starts the next generation if everybody is ready for it.
    pub(super) fn decide(&mut self, now: Time) {
        if self.ending.is_over || self.ending.is_finished {
            return;
        }
        self.note();
        let failed = self.repair.lost();
        let early = planted::has(planted::DECIDES_EARLY) && !failed.is_empty();
        if !self.chairs.are_ready(early) || !self.repair.lets_go_on(self.chairs.survivors()) {
            return;
        }
        if self.generation.is_none() || self.config.on_failure == OnFailure::Shrink && !failed.is_empty() {
            self.suspicion.forgive(); // ranks that close up have other numbers
        } else if !failed.is_empty() {
            self.suspicion.replaces(&failed);
        } else if !self.replaces_nobody(now) {
            return;
        }
        self.begin(now, failed);
    }

    /// Records how far a repair is.
    fn note(&mut self) {
        if self.generation.is_some() {
            let (agreed, respawned) = (!self.chairs.any(Phase::Member), !self.chairs.any(Phase::Starting));
            self.repair.note(agreed, respawned).for_each(|event| self.out.record(event));
        }
    }

    /// A repair without a loss renews links. False if that has happened too often: somebody is lost for it, or the job ends.
    fn replaces_nobody(&mut self, now: Time) -> bool {
        let repairs = self.suspicion.replaces_nobody();
        if let Some((rank, cause)) = self.suspicion.cut_off(|rank| self.chairs[rank].failures) {
            self.fail(now, rank, cause, None);
            return false;
        }
        let too_often = repairs > self.config.max_restarts;
        if too_often {
            let text = "repairs were asked for again and again, for no loss and without progress in between";
            self.end(1, format!("{text}{}", self.suspicion));
        }
        !too_often
    }

    /// The next generation starts, without the members that `failed`.
    fn begin(&mut self, now: Time, failed: Vec<Rank>) {
        let origins = failed.iter().map(|rank| self.chairs[*rank].origin).collect();
        let generation = self.generation.map_or(0, |generation| generation + 1);
        let seats = self.chairs.begin(self.config.on_failure == OnFailure::Shrink, self.config.compute);
        let membership = Membership { generation, failed, marked: self.marked, ..seats };
        self.generation = Some(generation);
        self.repair = Repair::default();
        self.suspicion.begin();
        self.agreements.clear();
        if !self.marked {
            self.redundancy.settled(); // nothing is lost that starting again does not give back
        } else if self.does_without() && !membership.failed.is_empty() {
            self.redundancy.moved();
        }
        self.pool.decided(now);
        if generation == 0 {
            self.pool.settled(now);
        }
        let held = self.chairs.held().map(|chair| chair.origin).collect();
        self.out.record(Event::Decided { generation, failed: origins, held });
        self.out.broadcast(self.chairs.listening(), &News::Decided(membership));
    }

    /// Heartbeats and timeouts.
    pub(super) fn tick(&mut self, now: Time) {
        if now >= self.beat_due {
            self.beat_due = now.after(self.config.interval);
            self.out.broadcast(self.chairs.listening().chain(self.pool.listening()), &News::Beat);
        }
        for peer in self.restarts.due(now) {
            // It may not be needed any more.
            if let Some(rank) = self.chairs.rank_of(peer) {
                let incarnation = self.chairs[rank].incarnation;
                self.out.push(Effect::Start { rank, peer, incarnation });
            }
        }
        for _ in 0..self.pool.missing(now, self.config.max_restarts) {
            let peer = self.chairs.number();
            self.pool.started(peer);
            self.out.push(Effect::Spare(peer));
        }
        self.look_for_losses(now);
    }

    /// When [`Roster::tick`] is due.
    pub(super) fn poll_timeout(&self) -> Time {
        let due = self.pool.due().into_iter().chain(self.suspicion.due()).chain(self.restarts.next());
        due.fold(self.beat_due, Time::min)
    }
}
