//! How processes are lost, and what follows: the operating system's word, broken links, silence, whole hosts.

use std::time::Duration;

use super::chairs::Phase;
use super::roster::Roster;
use super::{Effect, Event, Exit, OnFailure};
use crate::error::list;
use crate::member::LEASE_TIMEOUTS;
use crate::rank::{PeerId, Rank};
use crate::time::Time;

/// Why a process counts as lost.
const LINK_BROKE: &str = "its link to the launcher broke";

/// A rank whose loss the job would not survive is waited for until it has been silent for
/// `PATIENCE`, and for `PATIENCE_TIMEOUTS` heartbeat timeouts.
const PATIENCE: Duration = Duration::from_secs(60);
const PATIENCE_TIMEOUTS: u32 = 10;
/// How Rust programs end that panic: by unwinding, or by `panic = "abort"` (SIGABRT).
const PANICS: [Exit; 2] = [Exit::Status(101), Exit::Signal(6)];

/// How a process ends that another one kills.
const KILLED: Exit = Exit::Signal(9);
/// Exit status of a job that has lost more than it can do without.
const BEYOND: i32 = 3;

impl Roster {
    /// A process has exited: the operating system's word. `struck`: it was told to, without goodbye.
    pub(super) fn exited(&mut self, now: Time, peer: PeerId, exit: Exit, struck: bool) {
        self.births.forget(peer);
        self.stops.forget(peer);
        let cause = match exit {
            Exit::Status(code) => format!("exited with status {code} without goodbye"),
            Exit::Signal(signal) => format!("killed by signal {signal}"),
        };
        let Some(rank) = self.chairs.rank_of(peer) else {
            if !self.spare_gone(now, peer, &cause) {
                self.repair.confirm(peer);
                self.decide(now);
            }
            return;
        };
        if self.ending.is_over {
            return;
        }
        if self.ending.is_finished {
            return self.done_and_gone(rank, exit);
        }
        let chair = &mut self.chairs[rank];
        let said = chair.last_words(PANICS.contains(&exit));
        // A replacement that does not come is one more failure.
        let first = chair.phase == Phase::Starting && chair.incarnation == 0;
        match exit {
            Exit::Status(code) if chair.leaving => self.left(rank, code),
            Exit::Status(code) if first && !struck => self.never_joined(rank, code, &said),
            _ => self.fail(now, rank, cause + &said, Some(exit)),
        }
    }

    /// A rank has said goodbye and is gone, and not all are done.
    fn left(&mut self, rank: Rank, code: i32) {
        let lost = self.repair.lost();
        let after = match lost.is_empty() {
            true => "before all ranks were done".into(),
            false => format!("after the failure of {}", list("rank", &lost)),
        };
        self.end(code.max(1), format!("rank {rank} left the job {after} (status {code})"));
    }

    /// A program that has nothing to do with this library, or never came to use it.
    fn never_joined(&mut self, rank: Rank, code: i32, said: &str) {
        if code == 0 {
            self.chairs[rank].phase = Phase::Gone;
            return self.end_when_all_are_gone();
        }
        self.end(code, format!("rank {rank} exited with status {code} before it joined the job{said}"));
    }

    /// Whether the process that is gone was a spare.
    fn spare_gone(&mut self, now: Time, peer: PeerId, cause: &str) -> bool {
        self.births.forget(peer);
        let was_spare = self.pool.gone(peer, now);
        if was_spare && !self.ending.is_over {
            self.out.record(self.pool.account(Some(cause.to_owned())));
        }
        was_spare
    }

    /// The control link of a process broke.
    pub(super) fn disconnected(&mut self, now: Time, peer: PeerId) {
        let Some(rank) = self.chairs.rank_of(peer) else {
            if self.spare_gone(now, peer, LINK_BROKE) {
                self.out.kill(peer);
            }
            return;
        };
        self.chairs[rank].connected = false;
        if !self.ending.is_over && !self.ending.is_finished && !self.chairs[rank].leaving {
            self.fail(now, rank, LINK_BROKE.into(), None);
        }
    }

    /// A host is lost, and with it these processes, all at once. That they have ended is likely but not certain: the host
    /// may be cut off.
    pub(super) fn host_lost(&mut self, now: Time, host: usize, peers: &[PeerId], cause: &str) {
        let (seated, others): (Vec<PeerId>, Vec<PeerId>) =
            peers.iter().partition(|peer| self.chairs.rank_of(**peer).is_some());
        self.lost_hosts.insert(host);
        self.redundancy.moved();
        // Spares first: none of them may take the place of another process of that host.
        let spares = others.into_iter().filter(|peer| self.spare_gone(now, *peer, cause)).count();
        if seated.is_empty() && spares == 0 && !self.ending.is_over {
            self.out.record(Event::HostLost { cause: cause.to_owned() });
        }
        for peer in seated {
            // The loss before may have started a generation, in which ranks have other numbers.
            let Some(rank) = self.chairs.rank_of(peer) else { continue };
            if self.ending.is_over {
                return;
            }
            self.chairs[rank].connected = false;
            if self.ending.is_finished {
                // All are done, and what its end would have been is not to be known.
                self.chairs[rank].phase = Phase::Gone;
                self.end_when_all_are_gone();
            } else {
                self.fail(now, rank, cause.to_owned(), None);
            }
        }
    }

    /// A host that was lost is a place for processes again. Ranks that have moved stay where they are until they are lost there.
    pub(super) fn host_back(&mut self, host: usize, name: &str, is_new: bool) {
        self.lost_hosts.remove(&host);
        if !self.ending.is_over {
            self.out.record(Event::HostBack { name: name.to_owned(), is_new });
        }
    }

    /// Finds those who have been waited for, or silent, for too long.
    pub(super) fn look_for_losses(&mut self, now: Time) {
        // One timeout more than the lease, as its end takes a little as well.
        let lease = self.config.timeout * (LEASE_TIMEOUTS + 1);
        if self.repair.expire(now, lease) {
            self.decide(now);
        }
        let (overdue, patience) = self.births.overdue(now);
        let cause = format!("it had not joined the job {} s after its start", patience.as_secs_f64());
        overdue.into_iter().for_each(|peer| self.never_came(now, peer, cause.clone()));
        for peer in self.stops.overdue(now) {
            self.stopped_for_long(now, peer);
        }
        self.judge(now);
        let suspects = self.detector.suspects(now);
        // Together: of two that are silent, one may be all that the job survives.
        let silent: Vec<Rank> = suspects.iter().filter_map(|peer| self.chairs.rank_of(*peer)).collect();
        let limit = PATIENCE.max(self.config.timeout * PATIENCE_TIMEOUTS);
        let (bears, overdue) = (self.bears(&silent), self.detector.silent_for(limit, now));
        for peer in suspects {
            match self.chairs.rank_of(peer) {
                Some(rank) if self.ending.is_finished => self.let_go(now, rank, lease),
                Some(rank) if bears || overdue.contains(&peer) => {
                    let silent = if bears { self.config.timeout } else { limit };
                    self.fail(now, rank, format!("silent for {} s", silent.as_secs_f64()), None);
                }
                Some(rank) => self.wait_for(now, rank, limit),
                None => self.detector.forget(peer),
            }
        }
    }

    /// Returns `true` if the job survives the loss of these ranks.
    pub(super) fn bears(&self, ranks: &[Rank]) -> bool {
        if self.generation.is_none() {
            return true; // they have done nothing yet
        }
        let one_too_many = |rank: &Rank| self.chairs[*rank].failures >= self.config.max_restarts;
        if self.config.on_failure == OnFailure::Abort
            || !self.does_without() && ranks.iter().any(one_too_many)
        {
            return ranks.is_empty();
        }
        let mut computing = (0..self.chairs.len())
            .filter(|rank| self.chairs[*rank].is_held() && self.chairs[*rank].origin < self.config.compute);
        let is_one_left = computing.any(|rank| !ranks.contains(&rank));
        let origins: Vec<Rank> = ranks.iter().map(|rank| self.chairs[*rank].origin).collect();
        (is_one_left || !self.does_without()) && self.redundancy.bears(&origins)
    }

    /// Waits for a silent rank that cannot be replaced, because it may only be slow.
    fn wait_for(&mut self, now: Time, rank: Rank, limit: Duration) {
        let chair = &mut self.chairs[rank];
        if chair.silent.is_none() {
            chair.silent = Some(now);
            let rank = chair.origin;
            self.out.record(Event::Silent { rank, timeout: self.config.timeout, limit });
        }
    }

    /// A process has not joined in time: it hangs.
    fn never_came(&mut self, now: Time, peer: PeerId, cause: String) {
        match self.chairs.rank_of(peer) {
            Some(rank) if !self.ending.is_over => self.fail(now, rank, cause, None),
            Some(_) => {}
            None => {
                self.spare_gone(now, peer, &cause);
                self.out.kill(peer);
            }
        }
    }

    /// A process was stopped by a signal, and that for too long if nothing is to be heard of it: before it has joined, or when all
    /// are done and it has closed its link.
    fn stopped_for_long(&mut self, now: Time, peer: PeerId) {
        let has_closed = |rank: Rank| !self.chairs[rank].connected;
        if self.births.awaits(peer) {
            let seconds = self.stops.most().as_secs_f64();
            let cause = format!("it was stopped for {seconds} s before it had joined the job");
            self.never_came(now, peer, cause);
        } else if self.ending.is_finished && self.chairs.rank_of(peer).is_some_and(has_closed) {
            self.out.kill(peer);
        } else {
            return; // its heartbeat says so
        }
        self.stops.forget(peer);
    }

    /// Ranks that were accused, and nobody else was lost meanwhile that would explain it.
    fn judge(&mut self, now: Time) {
        while let Some((rank, by, because)) = self.suspicion.convict(now) {
            if self.chairs[rank].phase == Phase::Member && !self.ending.is_finished {
                let by = self.chairs[by].origin;
                self.fail(now, rank, format!("its link to rank {by} broke{because}"), None);
            }
        }
    }

    /// The process of a rank says that the thread which computes has ended: it will never do
    /// anything.
    pub(super) fn dead(&mut self, now: Time, rank: Rank, why: String) {
        let chair = &self.chairs[rank];
        if !self.ending.is_over && !self.ending.is_finished && !chair.leaving {
            self.fail(now, rank, why, None);
        }
    }

    /// A rank is lost. `exit` is how its process has ended, if it certainly has.
    pub(super) fn fail(&mut self, now: Time, rank: Rank, cause: String, exit: Option<Exit>) {
        let chair = &mut self.chairs[rank];
        let confirmed = exit.is_some();
        // SIGKILL comes from outside. The victim was at work if it had joined, so a new process
        // probably lacks nothing.
        let lacks = exit.is_some_and(|exit| chair.phase == Phase::Starting || exit != KILLED);
        chair.failures += 1;
        let (lost, origin, was_member) = (chair.peer, chair.origin, chair.is_member());
        self.detector.forget(lost);
        self.redundancy.lost(origin);
        self.births.forget(lost);
        self.repair.start_again();
        self.suspicion.explained(rank);
        let generation = self.generation.filter(|_| was_member);
        self.out.record(Event::Lost { rank: origin, cause: cause.clone(), generation });
        if !confirmed {
            self.put_to_death(now, rank);
        }
        if let Some(text) = self.is_too_much(rank, &cause) {
            return self.end(1, text);
        }
        if self.does_without() {
            self.chairs[rank].vacate();
            if self.chairs.held().all(|chair| chair.origin >= self.config.compute) {
                let text = format!("no rank that computes is left (the last was rank {origin}: {cause})");
                return self.end(BEYOND, text);
            }
        } else {
            self.replace(now, rank, lacks);
        }
        if was_member {
            self.repair.lose(rank, lost, now, confirmed);
            self.interrupt();
            self.settle_agreements();
        }
        self.finish();
        self.decide(now);
    }

    /// Why the job ends with the loss of this rank, if it does.
    fn is_too_much(&self, rank: Rank, cause: &str) -> Option<String> {
        let (origin, failures) = (self.chairs[rank].origin, self.chairs[rank].failures);
        if self.config.on_failure == OnFailure::Abort {
            return Some(format!("rank {origin} failed ({cause}) and --on-failure is abort"));
        }
        let limit = self.config.max_restarts;
        if self.does_without() || failures <= limit {
            return None;
        }
        let times = match failures {
            1 => format!("once ({cause})"),
            _ => format!("{failures} times in a row without progress in between (last: {cause})"),
        };
        Some(format!("rank {origin} failed {times}, --max-restarts is {limit}"))
    }

    /// Gives the rank to a spare, or to a new process, on its host unless that is lost. The process
    /// is started after a pause if the last one failed again because it lacked something.
    fn replace(&mut self, now: Time, rank: Rank, lacks: bool) {
        let spare = self.pool.take(self.home(rank));
        let peer = spare.unwrap_or_else(|| self.chairs.number());
        self.chairs[rank].refill(peer);
        let incarnation = self.chairs[rank].incarnation;
        if spare.is_some() {
            self.births.started(peer, now);
            self.out.push(Effect::Seat { peer, rank, incarnation });
            self.welcome(now, rank);
        } else if !lacks || !self.restarts.postpones(now, peer, self.chairs[rank].failures) {
            self.out.push(Effect::Start { rank, peer, incarnation });
        }
    }

    /// Puts the process of a rank to death, if the launcher can reach it; else its lease runs out.
    pub(super) fn put_to_death(&mut self, now: Time, rank: Rank) {
        let chair = &self.chairs[rank];
        if now >= chair.out_of_reach_until {
            self.out.kill(chair.peer);
        }
    }
}
