//! How processes end, and what follows: the operating system's word, broken links, silence.

use std::cmp::Reverse;
use std::time::Duration;

use super::suspicion::{Accusation, because};
use super::{Arbiter, Chair, Effect, Event, Exit, Loss, OnFailure, Phase, Words};
use crate::error::list;
use crate::rank::{PeerId, Rank};
use crate::time::Time;

/// Why a process counts as lost.
const LINK_BROKE: &str = "its link to the launcher broke";

/// Exit status of a job that has lost more than it can do without.
const BEYOND: i32 = 3;

/// So often the link between two living ranks may break without progress in between; then one of them is lost.
const BREAKS: u32 = 2;

impl Arbiter {
    /// A process has exited: the operating system's word.
    pub fn exited(&mut self, now: Time, peer: PeerId, exit: Exit) {
        let dying = self.dying.remove(&peer);
        self.births.forget(peer);
        self.stops.forget(peer);
        let cause = match exit {
            Exit::Status(code) => format!("exited with status {code} without goodbye"),
            Exit::Signal(signal) => format!("killed by signal {signal}"),
        };
        let said = self.last_words(peer);
        let Some(rank) = self.rank_of(peer) else {
            if self.spare_gone(now, peer, &cause) {
                return;
            }
            for loss in self.failed.values_mut() {
                loss.confirmed |= loss.peer == peer;
            }
            return self.decide(now);
        };
        if self.over {
            return;
        }
        if self.finished {
            self.chairs[rank].phase = Phase::Gone;
            let origin = self.chairs[rank].origin;
            // A program's own status speaks for itself. Who is killed when all are done has done all; who crashes has not.
            let (code, text) = match exit {
                Exit::Status(code) => (code, String::new()),
                Exit::Signal(signal) => (
                    if is_crash(signal) { 128 + signal } else { 0 },
                    format!("rank {origin} was killed by signal {signal} after all ranks were done"),
                ),
            };
            if code > self.exit_code || self.exit_text.is_empty() && code == self.exit_code {
                (self.exit_code, self.exit_text) = (code, text);
            }
            return self.end_when_all_are_gone();
        }
        let joined = self.chairs[rank].phase != Phase::Starting;
        if let (true, Exit::Status(code)) = (self.chairs[rank].leaving, exit) {
            let lost: Vec<Rank> = self.failed.keys().copied().collect();
            let after = match lost.is_empty() {
                true => "before all ranks were done".into(),
                false => format!("after the failure of {}", list("rank", &lost)),
            };
            return self.end(code.max(1), format!("rank {rank} left the job {after} (status {code})"));
        }
        // A replacement that does not come is one more failure.
        let first = !joined && self.chairs[rank].incarnation == 0;
        match exit {
            // A program that has nothing to do with this library, or never came to use it.
            Exit::Status(0) if first && !dying => {
                self.chairs[rank].phase = Phase::Gone;
                self.end_when_all_are_gone();
            }
            Exit::Status(code) if first && !dying => {
                self.end(
                    code,
                    format!("rank {rank} exited with status {code} before it joined the job{said}"),
                );
            }
            _ => self.fail(now, rank, cause + &said, true),
        }
    }

    /// What a process has printed to standard error: before it has joined that says why it cannot.
    pub fn said(&mut self, peer: PeerId, lines: &[u8]) {
        let Some(rank) = self.rank_of(peer) else { return };
        let chair = &mut self.chairs[rank];
        if chair.phase == Phase::Starting {
            chair.words.add(lines);
        }
    }

    /// The end of a sentence about a process that is gone: why it could not join, in its own words.
    fn last_words(&mut self, peer: PeerId) -> String {
        let rank = self.rank_of(peer).filter(|rank| self.chairs[*rank].phase == Phase::Starting);
        rank.map_or(String::new(), |rank| std::mem::take(&mut self.chairs[rank].words).end_of_sentence())
    }

    /// Whether the process that is gone was a spare.
    pub(super) fn spare_gone(&mut self, now: Time, peer: PeerId, cause: &str) -> bool {
        self.births.forget(peer);
        let was_spare = self.pool.gone(peer, now);
        if was_spare && !self.over {
            self.record(self.pool.account(Some(cause.to_owned())));
        }
        was_spare
    }

    pub(super) fn end_when_all_are_gone(&mut self) {
        if self.living().all(|chair| chair.phase == Phase::Gone) {
            let (code, text) = (self.exit_code, std::mem::take(&mut self.exit_text));
            self.end(code, text);
        } else if !self.finished && self.chairs.iter().any(|chair| chair.phase == Phase::Joined) {
            let gone = self.chairs.iter().position(|chair| chair.phase == Phase::Gone).unwrap_or(0);
            self.end(1, format!("rank {gone} exited without joining the job while others joined it"));
        }
    }

    /// The control link of a process broke.
    pub fn disconnected(&mut self, now: Time, peer: PeerId) {
        let Some(rank) = self.rank_of(peer) else {
            if self.spare_gone(now, peer, LINK_BROKE) {
                self.effects.push_back(Effect::Kill(peer));
            }
            return;
        };
        self.chairs[rank].connected = false;
        if !self.over && !self.finished && !self.chairs[rank].leaving {
            self.fail(now, rank, LINK_BROKE.into(), false);
        }
    }

    /// A process has not joined in time: it hangs.
    pub(super) fn never_came(&mut self, now: Time, peer: PeerId, cause: String) {
        match self.rank_of(peer) {
            Some(rank) if !self.over => self.fail(now, rank, cause, false),
            Some(_) => {}
            None => {
                self.spare_gone(now, peer, &cause);
                self.effects.push_back(Effect::Kill(peer));
            }
        }
    }

    /// A process was stopped by a signal, and that for too long if nothing is to be heard of it: before it has joined, or when all
    /// are done and it has closed its link.
    pub(super) fn stopped_for_long(&mut self, now: Time, peer: PeerId) {
        if self.births.awaits(peer) {
            let seconds = self.stops.most().as_secs_f64();
            self.never_came(
                now,
                peer,
                format!("it was stopped for {seconds} s before it had joined the job"),
            );
        } else if self.finished && self.rank_of(peer).is_some_and(|rank| !self.chairs[rank].connected) {
            self.effects.push_back(Effect::Kill(peer));
        } else {
            return; // its heartbeat says so
        }
        self.stops.forget(peer);
    }

    /// All are done, but the end of this process cannot be seen behind a cut link: after its lease it is past.
    pub(super) fn let_go(&mut self, now: Time, rank: Rank, lease: Duration) {
        let chair = &mut self.chairs[rank];
        // A link that was closed in order says that the exit is still to be seen.
        if !chair.connected || chair.phase == Phase::Gone {
            return;
        }
        if now.since(*chair.silent.get_or_insert(now)) > lease {
            chair.phase = Phase::Gone;
            let peer = chair.peer;
            self.put_to_death(now, peer);
            self.end_when_all_are_gone();
        }
    }

    /// Nothing is held against links that broke so far.
    pub(super) fn forgive(&mut self) {
        self.empty_repairs = 0;
        self.broken.clear();
    }

    /// When new links between living ranks broke as well: the rank that most such pairs have in common, and the others of
    /// these pairs, with the reason for one of them. Of several it is one that has not been replaced for that, of these the highest. A network can be cut
    /// between two hosts that both reach the launcher; one of them has to go, and its replacement may be elsewhere.
    pub(super) fn cut_off(&self) -> Option<(Rank, Vec<Rank>, &str)> {
        if self.empty_repairs < BREAKS {
            return None; // it may have been chance
        }
        let pairs = || self.broken.iter().filter(|(_, broken)| broken.times >= BREAKS).map(|(pair, _)| *pair);
        let others = |rank: Rank| -> Vec<Rank> {
            pairs()
                .filter(|(a, b)| *a == rank || *b == rank)
                .map(|(a, b)| if a == rank { b } else { a })
                .collect()
        };
        let worst = pairs().flat_map(|(a, b)| [a, b]);
        let worst =
            worst.max_by_key(|rank| (others(*rank).len(), Reverse(self.chairs[*rank].failures), *rank))?;
        let of_worst = self.broken.iter().filter(|((a, b), _)| *a == worst || *b == worst);
        let why = of_worst.map(|(_, broken)| broken.why()).find(|why| !why.is_empty());
        Some((worst, others(worst), why.unwrap_or_default()))
    }

    /// A rank is lost; `confirmed` if its end is certain.
    pub(super) fn fail(&mut self, now: Time, rank: Rank, cause: String, confirmed: bool) {
        let chair = &mut self.chairs[rank];
        let (lost, origin) = (chair.peer, chair.origin);
        let member = matches!(chair.phase, Phase::Member | Phase::Ready(_));
        self.detector.forget(lost);
        self.births.forget(lost);
        self.noted = (false, false);
        self.random.iter_mut().for_each(|random| random.lost(origin));
        self.watch.iter_mut().for_each(|watch| watch.lost(rank));
        chair.failures += 1;
        let failures = chair.failures;
        let generation = self.generation.filter(|_| member);
        self.accused.retain(|other, accusation| *other != rank && accusation.by != rank);
        self.record(Event::Lost { rank: origin, cause: cause.clone(), generation });
        if !confirmed {
            self.put_to_death(now, lost);
        }
        if self.config.on_failure == OnFailure::Abort {
            return self.end(1, format!("rank {origin} failed ({cause}) and --on-failure is abort"));
        }
        if !self.does_without() && failures > self.config.max_restarts {
            let limit = self.config.max_restarts;
            let times = match failures {
                1 => format!("once ({cause})"),
                _ => format!("{failures} times in a row without progress in between (last: {cause})"),
            };
            let text = format!("rank {origin} failed {times}, --max-restarts is {limit}");
            return self.end(1, text);
        }
        if self.does_without() {
            self.vacate(rank);
            if self.living().all(|chair| chair.origin >= self.config.compute) {
                return self.end(
                    BEYOND,
                    format!("no rank that computes is left (the last was rank {origin}: {cause})"),
                );
            }
        } else {
            self.replace(now, rank);
        }
        if member {
            self.failed.insert(rank, Loss { peer: lost, since: now, confirmed });
            self.interrupt();
            self.settle_agreements();
        }
        self.finish();
        self.decide(now);
    }

    /// Nobody takes the rank.
    fn vacate(&mut self, rank: Rank) {
        let chair = &mut self.chairs[rank];
        (chair.phase, chair.connected) = (Phase::Vacant, false);
        (chair.output, chair.leaving) = (None, false);
    }

    /// The link of `rank` to `other` broke, and `rank` goes on without a repair that would renew it. Unless one of them
    /// turns out to be dead, `other` counts as lost after a while: for two that cannot speak one is too many.
    pub(super) fn accuse(&mut self, now: Time, rank: Rank, other: Rank, why: &str) {
        let both = [rank, other].into_iter();
        let living =
            both.clone().all(|rank| matches!(self.chairs.get(rank), Some(c) if c.phase == Phase::Member));
        if living && !both.clone().any(|rank| self.accused.contains_key(&rank)) {
            self.accused.insert(other, Accusation::new(rank, now.after(self.config.interval), why));
        }
    }

    /// Ranks that were accused, and nobody else was lost meanwhile that would explain it.
    pub(super) fn judge(&mut self, now: Time) {
        let due = self.accused.iter().filter(|(_, accusation)| accusation.due <= now);
        let due: Vec<Rank> = due.map(|(rank, _)| *rank).collect();
        for rank in due {
            let Some(Accusation { by, why, .. }) = self.accused.remove(&rank) else { continue };
            if self.chairs[rank].phase == Phase::Member && !self.finished {
                let by = self.chairs[by].origin;
                self.fail(now, rank, format!("its link to rank {by} broke{}", because(&why)), false);
            }
        }
    }

    /// What can be said of agreements under way, to whom.
    pub(super) fn settle_agreements(&mut self) {
        let Some(generation) = self.generation else { return };
        let takes_part = |c: &Chair| c.phase == Phase::Member;
        let voters: Vec<bool> = self.chairs.iter().map(takes_part).collect();
        let gone: Vec<Rank> = (0..self.chairs.len())
            .filter(|rank| self.chairs[*rank].phase == Phase::Vacant || self.failed.contains_key(rank))
            .collect();
        for (rank, message) in self.agreements.settle(generation, &voters, &gone) {
            self.send(self.chairs[rank].peer, message);
        }
    }

    /// Gives the rank to a spare, or to a new process.
    fn replace(&mut self, now: Time, rank: Rank) {
        let spare = self.pool.take();
        let peer = spare.unwrap_or_else(|| self.number());
        let chair = &mut self.chairs[rank];
        (chair.peer, chair.phase) = (peer, Phase::Starting);
        chair.incarnation += 1;
        chair.words = Words::default();
        (chair.connected, chair.output, chair.leaving) = (false, None, false);
        let incarnation = chair.incarnation;
        if spare.is_some() {
            self.births.started(peer, now);
            self.effects.push_back(Effect::Seat { peer, rank, incarnation });
            self.welcome(now, rank);
        } else {
            self.effects.push_back(Effect::Start { rank, peer, incarnation });
        }
    }

    /// The number of a new process.
    pub(super) fn number(&mut self) -> PeerId {
        let peer = PeerId(self.next_peer);
        self.next_peer += 1;
        peer
    }
}

/// Whether a process gets this signal for something that it does wrong itself: those whose default action dumps its memory
/// (signal(7)).
fn is_crash(signal: i32) -> bool {
    matches!(signal, 3..=8 | 11 | 24 | 25 | 31)
}
