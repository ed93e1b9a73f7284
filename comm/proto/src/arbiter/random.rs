//! Random kills at a mean time between failures: when the next one is due, and whom it strikes.
//!
//! The times between kills are exponential, so that kills are a Poisson process; times and victims come from a seed
//! and are the same in every run, in this order. A kill that might cost a group more than it survives waits until the
//! group is whole again; once a host was lost, until all groups are.

use std::collections::BTreeSet;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::rank::Rank;
use crate::time::Time;

/// Random kills, as they were ordered.
#[derive(Clone, Debug, PartialEq)]
pub struct Mtbf {
    /// Mean time between two kills of the job.
    pub mean: Duration,
    /// Where times and victims come from.
    pub seed: u64,
    /// Ranks that protect each other, and how many of them may be lost at once. A rank in no group may always be.
    pub groups: Vec<(Vec<Rank>, usize)>,
}

/// Random kills under way.
#[derive(Debug)]
pub(super) struct RandomKills {
    order: Mtbf,
    random: Pcg64,
    due: Option<Time>,
    /// The kill that is due waits already.
    waiting: bool,
    postponed: u32,
    /// Ranks that were lost, until all are back at work.
    unsettled: BTreeSet<Rank>,
    /// Ranks that were struck and are not known to be lost yet.
    struck: BTreeSet<Rank>,
}

impl RandomKills {
    pub(super) fn new(order: Mtbf) -> Self {
        Self {
            random: Pcg64::seed_from_u64(order.seed),
            order,
            due: None,
            waiting: false,
            postponed: 0,
            unsettled: BTreeSet::new(),
            struck: BTreeSet::new(),
        }
    }

    /// The clock starts with the job, once all ranks have joined.
    pub(super) fn start(&mut self, now: Time) {
        if self.due.is_none() {
            self.schedule(now);
        }
    }

    fn schedule(&mut self, now: Time) {
        // 1 - u lies in (0, 1].
        let units = -(1.0 - self.random.random::<f64>()).ln();
        // A time that no clock reaches never comes.
        let pause = Duration::try_from_secs_f64(self.order.mean.as_secs_f64() * units);
        self.due = Some(now.after(pause.unwrap_or(Duration::MAX)));
    }

    /// When [`RandomKills::strike`] is due next.
    pub(super) fn due(&self) -> Option<Time> {
        self.due.filter(|_| !self.waiting)
    }

    /// Whom to kill now, if anybody: one of `living` (in order), unless some group has no tolerance left beside those
    /// that are lost and not back at work.
    pub(super) fn strike(&mut self, now: Time, living: &[Rank]) -> Option<Rank> {
        if living.is_empty() || self.due.is_none_or(|due| now < due) {
            return None;
        }
        if !self.order.groups.iter().all(|(members, tolerance)| {
            members.iter().filter(|rank| self.unsettled.contains(rank)).count() < *tolerance
        }) {
            self.postponed += u32::from(!self.waiting);
            self.waiting = true;
            return None;
        }
        self.waiting = false;
        let victim = living[self.random.random_range(0..living.len())];
        self.schedule(now);
        // Two kills before the first is noticed must not pass for one.
        self.unsettled.insert(victim);
        self.struck.insert(victim);
        Some(victim)
    }

    /// `rank` is known to be lost, in whatever way.
    pub(super) fn lost(&mut self, rank: Rank) {
        self.unsettled.insert(rank);
        self.struck.remove(&rank);
    }

    /// Ranks may have moved, and be in other groups than at the start. From now on all ranks count as one group, which may lose what the weakest
    /// group may lose: then no group has lost more, whoever is in it.
    pub(super) fn moved(&mut self) {
        let groups = std::mem::take(&mut self.order.groups);
        if let Some(least) = groups.iter().map(|(_, tolerance)| *tolerance).min() {
            let all: BTreeSet<Rank> = groups.into_iter().flat_map(|(members, _)| members).collect();
            self.order.groups.push((all.into_iter().collect(), least));
        }
    }

    /// All ranks are at work, but for those that were struck and have not been missed yet: what waits may strike.
    pub(super) fn settled(&mut self) {
        self.unsettled.clone_from(&self.struck);
        self.waiting = false;
    }

    /// How many kills had to wait.
    pub(super) fn postponed(&self) -> u32 {
        self.postponed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(seed: u64) -> Mtbf {
        Mtbf { mean: Duration::from_secs(2), seed, groups: vec![(vec![0, 1, 2, 3], 1)] }
    }

    /// Times and victims of the first `count` kills when every loss is settled at once.
    fn kills(seed: u64, count: usize) -> Vec<(Time, Rank)> {
        let mut random = RandomKills::new(order(seed));
        random.start(Time(0));
        let mut struck = vec![];
        while struck.len() < count {
            let now = random.due().expect("scheduled");
            struck.extend(random.strike(now, &[0, 1, 2, 3]).map(|rank| (now, rank)));
            struck.last().into_iter().for_each(|(_, rank)| random.lost(*rank));
            random.settled();
        }
        struck
    }

    #[test]
    fn kills_come_from_the_seed_at_the_mean_time_and_strike_everybody() {
        let first = kills(7, 4000);
        assert_eq!(first, kills(7, 4000));
        assert_ne!(first[..10], kills(8, 10));
        let mean = first.last().unwrap().0.seconds() / 4000.0;
        assert!((1.9..2.1).contains(&mean), "{mean}");
        for rank in 0..4 {
            let share = first.iter().filter(|(_, struck)| *struck == rank).count();
            assert!((900..1100).contains(&share), "rank {rank}: {share}");
        }
    }

    #[test]
    fn a_kill_beyond_the_tolerance_waits_and_is_counted_once() {
        let mut random = RandomKills::new(order(1));
        random.start(Time(0));
        let late = Time(u64::MAX / 2);
        random.lost(2);
        assert_eq!(random.strike(late, &[0, 1, 3]), None);
        assert_eq!(random.strike(late, &[0, 1, 3]), None);
        assert_eq!((random.postponed(), random.due()), (1, None));
        random.settled();
        let struck = random.strike(late, &[0, 1, 2, 3]).expect("the one that waited");
        assert_eq!(random.postponed(), 1);
        // It has not been missed yet when the others report that they are at work.
        random.settled();
        assert_eq!(random.strike(Time(u64::MAX), &[0, 1, 2, 3]), None);
        random.lost(struck);
        random.settled();
        assert!(random.strike(Time(u64::MAX), &[0, 1, 2, 3]).is_some());
    }

    #[test]
    fn nothing_strikes_before_the_start_or_too_early() {
        let mut random = RandomKills::new(order(1));
        assert_eq!((random.due(), random.strike(Time(1), &[0])), (None, None));
        random.start(Time(5));
        let due = random.due().unwrap();
        assert!(due > Time(5));
        assert_eq!(random.strike(Time(due.0 - 1), &[0]), None);
    }
}
