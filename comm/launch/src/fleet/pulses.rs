//! Signs of life that ranks give in the memory of their host, where the launcher or an agent looks at them: who is heard so needs no
//! message, and gets none.

use std::collections::HashMap;
use std::time::Duration;

use super::Fleet;
use super::news::Report;
use ft_comm::time::Time;
use ft_proto::rank::PeerId;

/// A process that has given a sign of life in memory within so many intervals looks there for the launcher's.
const INTERVALS: u32 = 3;

/// See the module.
#[derive(Debug)]
pub(super) struct Pulses {
    interval: Duration,
    /// When it is to be looked again at those of this host.
    pub(super) due: Time,
    heard: HashMap<PeerId, Time>,
}

impl Pulses {
    pub(super) fn new(interval: Duration, now: Time) -> Self {
        Self { interval, due: now, heard: HashMap::new() }
    }

    /// These have given signs of life.
    pub(super) fn heard(&mut self, now: Time, of: &[(PeerId, u64)]) {
        self.heard.extend(of.iter().map(|(peer, _)| (*peer, now)));
    }

    pub(super) fn forget(&mut self, peer: PeerId) {
        self.heard.remove(&peer);
    }

    /// Whether the process gets signs of life in memory.
    fn has(&self, now: Time, peer: PeerId) -> bool {
        self.heard.get(&peer).is_some_and(|at| now <= at.after(INTERVALS * self.interval))
    }
}

impl Fleet {
    /// Whether a process gets signs of life without a message.
    pub(crate) fn is_answered(&self, now: Time, peer: PeerId) -> bool {
        self.pulses.has(now, peer)
    }

    /// Who of this host has given a sign of life, if it is time to look.
    pub(super) fn feel(&mut self, now: Time) -> Option<Report> {
        if now < self.pulses.due {
            return None;
        }
        self.pulses.due = now.after(self.pulses.interval);
        let of = self.crew.look(true);
        self.pulses.heard(now, &of);
        (!of.is_empty()).then_some(Report::Alive { of })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_heard_lately_needs_no_message() {
        let (interval, at) = (Duration::from_millis(100), |ms: u64| Time(ms * 1_000_000));
        let mut pulses = Pulses::new(interval, at(0));
        assert!(!pulses.has(at(0), PeerId(1)), "nothing is known of it");
        pulses.heard(at(10), &[(PeerId(1), 0), (PeerId(2), 5)]);
        pulses.forget(PeerId(2));
        let has = |ms: u64| [1, 2].map(|peer| pulses.has(at(ms), PeerId(peer)));
        assert_eq!([has(10), has(310), has(311)], [[true, false], [true, false], [false, false]]);
    }
}
