//! Processes that a signal has stopped (SIGSTOP). They do nothing at all, which the system tells their parent.
//!
//! Of one that takes part the heartbeat says the same sooner. But of one that has not joined yet, or that has closed its link
//! since all are done, nothing is heard anyway, and how long it may take only its program knows: it would hold up the job for
//! ever. It is lost after [`MOST`] times the heartbeat timeout or [`LEAST`] of that.

use std::time::Duration;

use super::births::{LEAST, MOST};
use crate::rank::PeerId;
use crate::time::Time;
use crate::waits::Waits;

#[derive(Debug)]
pub(super) struct Stops {
    /// The heartbeat timeout.
    timeout: Duration,
    stopped: Waits,
}

impl Stops {
    /// Nobody is stopped.
    pub(super) fn new(timeout: Duration, now: Time) -> Self {
        Self { timeout, stopped: Waits::new(timeout / 2, now) }
    }

    /// A process is stopped, or goes on.
    pub(super) fn stopped(&mut self, peer: PeerId, is_stopped: bool, now: Time) {
        match is_stopped {
            true => self.stopped.begin(peer, now),
            false => self.forget(peer),
        }
    }

    /// It has ended.
    pub(super) fn forget(&mut self, peer: PeerId) {
        self.stopped.end(peer);
    }

    /// How long a stop may be.
    pub(super) fn most(&self) -> Duration {
        self.timeout.max(LEAST) * MOST
    }

    /// Who has been stopped for too long. Call it at least every quarter of the heartbeat timeout.
    pub(super) fn overdue(&mut self, now: Time) -> Vec<PeerId> {
        self.stopped.longer_than(self.most(), now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who is overdue after `seconds`, asked ten times a second.
    fn late(stops: &mut Stops, seconds: std::ops::Range<u64>) -> Vec<PeerId> {
        let asked = (seconds.start * 10..seconds.end * 10).map(|tenth| Time(tenth * 100_000_000));
        asked.fold(vec![], |_, now| stops.overdue(now))
    }

    fn at(seconds: u64) -> Time {
        Time(seconds * 1_000_000_000)
    }

    #[test]
    fn a_stop_is_too_long_after_ten_seconds_or_timeouts() {
        for timeout in [LEAST / 2, LEAST, LEAST * 3] {
            let limit = (timeout.max(LEAST) * MOST).as_secs();
            let mut stops = Stops::new(timeout, at(0));
            (1..=3).for_each(|peer| stops.stopped(PeerId(peer), true, at(0)));
            assert_eq!(late(&mut stops, 0..limit), []);
            stops.stopped(PeerId(2), false, at(limit));
            stops.forget(PeerId(3));
            assert_eq!(late(&mut stops, limit..limit + 1), [PeerId(1)]);
        }
    }

    #[test]
    fn a_watcher_that_is_starved_again_and_again_counts_the_time_between() {
        let mut stops = Stops::new(LEAST, at(0));
        stops.stopped(PeerId(1), true, at(0));
        assert_eq!((late(&mut stops, 0..6), late(&mut stops, 10..13)), (vec![], vec![]));
        assert_eq!(late(&mut stops, 20..26), [PeerId(1)]);
    }

    #[test]
    fn time_in_which_the_watcher_was_stopped_with_the_others_does_not_count() {
        let mut stops = Stops::new(LEAST, at(0));
        stops.stopped(PeerId(1), true, at(0));
        assert_eq!(stops.overdue(at(100)), []);
        assert_eq!(late(&mut stops, 100..110), []);
        assert_eq!(late(&mut stops, 110..112), [PeerId(1)]);
    }
}
