//! How long each of some processes has been waited for, by a watcher that may be stopped or starved itself.
//!
//! Time in which the watcher did not run says nothing about those that it watches, so it does not count. A watcher that is starved
//! again and again still counts the time between. When it comes back, what was sent to it meanwhile may still be on its way: for a
//! while it blames nobody.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::rank::PeerId;
use crate::time::Time;

/// See the module.
#[derive(Debug)]
pub(crate) struct Waits {
    /// A watcher that was not asked for so long was away.
    absence: Duration,
    since: BTreeMap<PeerId, Time>,
    asked: Time,
    /// Nobody is blamed before.
    mild_until: Time,
}

impl Waits {
    /// Nobody is waited for. A watcher that does not ask for longer than `absence` is taken to be away; for so long it is mild when
    /// it is back.
    pub(crate) fn new(absence: Duration, now: Time) -> Self {
        Self { absence, since: BTreeMap::new(), asked: now, mild_until: now }
    }

    /// `peer` is waited for from now on, whether it was before or not.
    pub(crate) fn begin(&mut self, peer: PeerId, now: Time) {
        self.since.insert(peer, now);
    }

    /// `peer` is not waited for any more. Gives since when it was.
    pub(crate) fn end(&mut self, peer: PeerId) -> Option<Time> {
        self.since.remove(&peer)
    }

    /// Whether `peer` is waited for.
    pub(crate) fn contains(&self, peer: PeerId) -> bool {
        self.since.contains_key(&peer)
    }

    /// Who has been waited for longer than `limit`. Call it at least twice in the absence given to [`Waits::new`].
    pub(crate) fn longer_than(&mut self, limit: Duration, now: Time) -> Vec<PeerId> {
        let away = now.since(self.asked);
        self.asked = now;
        if away > self.absence {
            self.since.values_mut().for_each(|since| *since = since.after(away).min(now));
            self.mild_until = now.after(self.absence);
        }
        if now < self.mild_until {
            return vec![];
        }
        let late = |(peer, since): (&PeerId, &Time)| (now.since(*since) > limit).then_some(*peer);
        self.since.iter().filter_map(late).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(seconds: f64) -> Time {
        Time((seconds * 1e9) as u64)
    }

    /// When `PeerId(1)`, waited for since the start, is late, asked every quarter second of the `spans`.
    fn late(limit: u32, spans: &[(f64, f64)]) -> Option<f64> {
        let mut waits = Waits::new(SECOND, at(0.0));
        waits.begin(PeerId(1), at(0.0));
        let quarters = |&(from, to): &(f64, f64)| {
            (0..((to - from) * 4.0) as u32).map(move |n| from + f64::from(n) / 4.0)
        };
        spans.iter().flat_map(quarters).find(|&now| !waits.longer_than(SECOND * limit, at(now)).is_empty())
    }

    #[test]
    fn who_is_waited_for_longer_than_the_limit_is_late() {
        assert_eq!(late(3, &[(0.0, 9.0)]), Some(3.25));
        let mut waits = Waits::new(SECOND, at(0.0));
        (1..=3).for_each(|peer| waits.begin(PeerId(peer), at(0.0)));
        waits.begin(PeerId(2), at(0.5));
        assert_eq!(waits.end(PeerId(3)), Some(at(0.0)));
        assert_eq!(waits.end(PeerId(3)), None);
        assert_eq!((waits.contains(PeerId(1)), waits.contains(PeerId(3))), (true, false));
        assert_eq!(waits.longer_than(SECOND / 2, at(0.9)), [PeerId(1)]);
    }

    #[test]
    fn time_in_which_the_watcher_was_away_does_not_count() {
        assert_eq!(late(3, &[(0.0, 2.0), (100.0, 109.0)]), Some(101.5));
        // It counts from the last time it was there, also for who came while it was away.
        let mut waits = Waits::new(SECOND, at(0.0));
        waits.begin(PeerId(1), at(49.0));
        assert_eq!(waits.longer_than(SECOND, at(50.0)), []);
        assert_eq!(waits.longer_than(SECOND, at(51.0)), []);
        assert_eq!(waits.longer_than(SECOND, at(51.1)), [PeerId(1)]);
    }

    #[test]
    fn a_watcher_that_is_starved_again_and_again_counts_the_time_between() {
        // In every ten seconds it is there for two.
        let spans: Vec<(f64, f64)> =
            (0..20).map(|ten| (10.0 * f64::from(ten), 10.0 * f64::from(ten) + 2.0)).collect();
        assert_eq!(late(3, &spans), Some(11.5));
    }

    #[test]
    fn a_watcher_that_is_back_blames_nobody_for_a_while() {
        assert_eq!(late(3, &[(0.0, 3.25), (10.0, 10.75)]), None);
        assert_eq!(late(3, &[(0.0, 3.25), (10.0, 11.25)]), Some(11.0));
    }
}
