//! Which of the watched processes have fallen silent.
//!
//! A process that has sent nothing for the timeout is suspected. The watcher itself may have been stopped or
//! starved meanwhile, and then the silence is its own: if it was not asked for half the timeout, it discards
//! its evidence and starts to count afresh.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::rank::PeerId;
use crate::time::Time;

/// See the module.
#[derive(Debug)]
pub struct Detector {
    timeout: Duration,
    heard: BTreeMap<PeerId, Time>,
    asked: Time,
}

impl Detector {
    /// Suspects whoever is silent for `timeout`.
    pub fn new(timeout: Duration, now: Time) -> Self {
        Self { timeout, heard: BTreeMap::new(), asked: now }
    }

    /// `peer` gave a sign of life; it is watched from now on.
    pub fn heard(&mut self, peer: PeerId, now: Time) {
        self.heard.insert(peer, now);
    }

    /// `peer` is not watched any more.
    pub fn forget(&mut self, peer: PeerId) {
        self.heard.remove(&peer);
    }

    /// Who has been silent for the timeout. Call it at least every quarter of the timeout.
    pub fn suspects(&mut self, now: Time) -> Vec<PeerId> {
        let starved = now.since(self.asked) > self.timeout / 2;
        self.asked = now;
        if starved {
            self.heard.values_mut().for_each(|heard| *heard = now);
        }
        let silent = |(peer, heard): (&PeerId, &Time)| (now.since(*heard) > self.timeout).then_some(*peer);
        self.heard.iter().filter_map(silent).collect()
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
}
