//! Cuts of links, injected: who is cut off from whom, and whom the launcher cannot reach itself.
//!
//! A cut lies between the processes that hold its ranks when it strikes, as between their hosts. A replacement may be
//! elsewhere and is not cut off: otherwise no job could survive a cut that lasts.

use super::{Arbiter, Effect, Event};
use crate::fault::{CutSpec, Far, When};
use crate::rank::{PeerId, Rank};
use crate::time::Time;
use crate::wire::control::News;

/// Nothing passes between two processes.
#[derive(Debug)]
struct Cut {
    spec: usize,
    one: PeerId,
    other: PeerId,
    /// Without it for ever.
    until: Option<Time>,
}

/// The cuts of a job that have struck.
#[derive(Debug, Default)]
pub(super) struct Cuts(Vec<Cut>);

impl Cuts {
    /// Those in force that `peer` has to do with, with the process at the other end.
    fn of(&self, now: Time, peer: PeerId) -> impl Iterator<Item = (&Cut, PeerId)> {
        let cuts = self.0.iter().filter(move |cut| cut.until.is_none_or(|until| now < until));
        cuts.filter_map(move |cut| match peer {
            _ if cut.one == peer => Some((cut, cut.other)),
            _ if cut.other == peer => Some((cut, cut.one)),
            _ => None,
        })
    }
}

impl Arbiter {
    /// The cut at this position, counted behind all kills, strikes.
    pub(super) fn cut(&mut self, now: Time, position: usize) {
        let kills = self.config.kills.len();
        let Some(cut) = position.checked_sub(kills).and_then(|at| self.config.cuts.get(at)).cloned() else {
            return;
        };
        // When all are done there is nothing left to fail.
        if self.finished || !self.fired.insert(position) {
            return;
        }
        self.record(Event::Cut { spec: position - kills });
        let holders = |ranks: &[Rank]| -> Vec<PeerId> {
            self.living().filter(|chair| ranks.contains(&chair.origin)).map(|chair| chair.peer).collect()
        };
        let far = match &cut.far {
            Far::Ranks(ranks) => holders(ranks),
            Far::Launcher => vec![PeerId::LAUNCHER],
        };
        let near = holders(&cut.near);
        let until = cut.lasts().map(|lasts| now.after(lasts));
        for (one, other) in near.iter().flat_map(|one| far.iter().map(move |other| (*one, *other))) {
            self.cuts.0.push(Cut { spec: position, one, other, until });
        }
        for peer in near.into_iter().chain(far).filter(|peer| *peer != PeerId::LAUNCHER) {
            self.tell_cut(now, peer, position);
        }
    }

    /// Tells a process whom the cut at this position separates it from.
    fn tell_cut(&mut self, now: Time, peer: PeerId, spec: usize) {
        let cuts = self.cuts.of(now, peer).filter(|(cut, _)| cut.spec == spec);
        let (until, peers): (Vec<_>, Vec<_>) = cuts.map(|(cut, other)| (cut.until, other)).unzip();
        let Some(until) = until.first() else { return };
        let millis =
            until.map(|until| u64::try_from(until.since(now).as_millis()).unwrap_or(u64::MAX).max(1));
        self.send(peer, News::Cut { spec, peers, millis });
    }

    /// A process has come that could not be told before of the cuts it has to do with.
    pub(super) fn tell_cuts(&mut self, now: Time, peer: PeerId) {
        let mut specs: Vec<usize> = self.cuts.of(now, peer).map(|(cut, _)| cut.spec).collect();
        specs.dedup();
        specs.into_iter().for_each(|spec| self.tell_cut(now, peer, spec));
    }

    /// The cuts that strike at a time, when it has come.
    pub(super) fn cut_on_time(&mut self, now: Time) {
        let elapsed = now.since(self.started).as_secs_f64();
        let due = |cut: &CutSpec| matches!(cut.point.when, When::Seconds(at) if elapsed >= at);
        let kills = self.config.kills.len();
        let due: Vec<usize> = (0..self.config.cuts.len())
            .filter(|at| due(&self.config.cuts[*at]))
            .map(|at| kills + at)
            .collect();
        due.into_iter().for_each(|position| self.cut(now, position));
    }

    /// Puts a process to death, if the launcher can reach it; else its lease runs out.
    pub(super) fn put_to_death(&mut self, now: Time, peer: PeerId) {
        if !self.cuts.of(now, peer).any(|(_, other)| other == PeerId::LAUNCHER) {
            self.effects.push_back(Effect::Kill(peer));
        }
    }

    /// A process speaks that holds no rank any more: it was declared lost while it was silent. It is told to end.
    pub(super) fn fence(&mut self, peer: PeerId) {
        if !self.over && !self.pool.listening().any(|spare| spare == peer) {
            let message = "declared lost while nothing was heard of it; another process has its rank".into();
            self.send(peer, News::Ended { code: 1, message });
        }
    }
}
