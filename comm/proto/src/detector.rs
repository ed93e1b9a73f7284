//! Which of the watched processes have fallen silent.
//!
//! A process that has sent nothing for the timeout is suspected. The watcher itself may have been stopped or
//! starved meanwhile, half the timeout or longer, and then the silence of that time is its own and does not count.

use std::time::Duration;

use crate::rank::PeerId;
use crate::time::Time;
use crate::waits::Waits;

/// A failure detector: which of the watched processes have been silent for too long.
#[derive(Debug)]
pub struct Detector {
    timeout: Duration,
    silent: Waits,
}

impl Detector {
    /// Suspects whoever is silent for `timeout`.
    pub fn new(timeout: Duration, now: Time) -> Self {
        Self { timeout, silent: Waits::new(timeout / 2, now) }
    }

    /// `peer` gave a sign of life; it is watched from now on.
    pub fn heard(&mut self, peer: PeerId, now: Time) {
        self.silent.begin(peer, now);
    }

    /// `peer` is not watched any more.
    pub fn forget(&mut self, peer: PeerId) {
        self.silent.end(peer);
    }

    /// Who has been silent for `limit`. Call it as [`Detector::suspects`].
    pub fn silent_for(&mut self, limit: Duration, now: Time) -> Vec<PeerId> {
        self.silent.longer_than(limit, now)
    }

    /// Who has been silent for the timeout. Call it at least every quarter of the timeout.
    pub fn suspects(&mut self, now: Time) -> Vec<PeerId> {
        self.silent_for(self.timeout, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    #[test]
    fn suspects_the_silent_one() {
        let mut detector = Detector::new(Duration::from_millis(1000), at(0));
        detector.heard(PeerId(1), at(0));
        detector.heard(PeerId(2), at(0));
        for ms in (100..=1000).step_by(100) {
            detector.heard(PeerId(1), at(ms));
            assert_eq!(detector.suspects(at(ms)), []);
        }
        assert_eq!(detector.suspects(at(1001)), [PeerId(2)]);
        detector.forget(PeerId(2));
        assert_eq!(detector.suspects(at(1100)), []);
    }

    #[test]
    fn a_starved_watcher_blames_nobody() {
        let mut detector = Detector::new(Duration::from_millis(1000), at(0));
        detector.heard(PeerId(1), at(0));
        assert_eq!(detector.suspects(at(5000)), [], "the watcher itself was away");
        assert_eq!(detector.suspects(at(5400)), []);
        assert_eq!(detector.suspects(at(5800)), []);
        assert_eq!(detector.suspects(at(6100)), [PeerId(1)]);
    }

    #[test]
    fn a_watcher_that_is_starved_in_every_timeout_notices_all_the_same() {
        let mut detector = Detector::new(Duration::from_millis(1000), at(0));
        detector.heard(PeerId(1), at(0));
        // It runs for 0.8 s and is away for 0.6 s, again and again.
        let asked = (0..10).flat_map(|turn| (0..=8).map(move |tenth| at(turn * 1400 + tenth * 100)));
        let suspected = asked.into_iter().any(|now| detector.suspects(now) == [PeerId(1)]);
        assert!(suspected);
    }
}
