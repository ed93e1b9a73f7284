//! Processes that were started and have not joined the job yet.
//!
//! Nothing is heard of them, so silence says nothing; but a process that hangs before it has joined would hold up all the
//! others for ever. How long a start takes depends on the program, the file system and the machine, and the others have
//! shown that: a process is overdue after [`MOST`] times the longest that any of the job has taken, or a heartbeat timeout, or
//! [`LEAST`], whichever is longest. As long as nobody has joined, nobody is waited for, unless the program is known to join: any
//! other may have nothing to do with the library.

use std::time::Duration;

use crate::rank::PeerId;
use crate::time::Time;
use crate::waits::Waits;

/// See the module.
pub(super) const MOST: u32 = 10;
/// See the module. A start takes milliseconds; this is a slow one.
pub(super) const LEAST: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Births {
    /// The heartbeat timeout.
    timeout: Duration,
    starting: Waits,
    /// The longest start so far; none as long as it is not known whether there will be any.
    slowest: Option<Duration>,
}

impl Births {
    /// `joins`: the program is known to join the job.
    pub(super) fn new(timeout: Duration, joins: bool, now: Time) -> Self {
        let slowest = joins.then_some(Duration::ZERO);
        Self { timeout, starting: Waits::new(timeout / 2, now), slowest }
    }

    /// A process runs from now on.
    pub(super) fn started(&mut self, peer: PeerId, now: Time) {
        self.starting.begin(peer, now);
    }

    /// It takes part.
    pub(super) fn joined(&mut self, peer: PeerId, now: Time) {
        if let Some(started) = self.starting.end(peer) {
            self.slowest = self.slowest.max(Some(now.since(started)));
        }
    }

    /// Whether it is waited for.
    pub(super) fn awaits(&self, peer: PeerId) -> bool {
        self.starting.contains(peer)
    }

    /// It is not waited for any more.
    pub(super) fn forget(&mut self, peer: PeerId) {
        self.starting.end(peer);
    }

    /// How long a start may take; none as long as that is not to be said.
    fn patience(&self) -> Option<Duration> {
        self.slowest.map(|slowest| slowest.max(self.timeout).max(LEAST) * MOST)
    }

    /// Who should have joined by now, and how long that should have taken at most. Call it at least every quarter of the heartbeat
    /// timeout.
    pub(super) fn overdue(&mut self, now: Time) -> (Vec<PeerId>, Duration) {
        let patience = self.patience();
        let late = self.starting.longer_than(patience.unwrap_or(Duration::MAX), now);
        (late, patience.unwrap_or(Duration::ZERO))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who is overdue after `seconds`, asked ten times a second.
    fn late(births: &mut Births, seconds: std::ops::Range<u64>) -> Vec<PeerId> {
        let asked = (seconds.start * 10..seconds.end * 10).map(|tenth| Time(tenth * 100_000_000));
        asked.fold(vec![], |_, now| births.overdue(now).0)
    }

    fn at(seconds: u64) -> Time {
        Time(seconds * 1_000_000_000)
    }

    #[test]
    fn nobody_is_late_before_anybody_has_come() {
        let mut births = Births::new(LEAST, false, at(0));
        births.started(PeerId(1), at(0));
        births.started(PeerId(2), at(0));
        assert_eq!(late(&mut births, 0..1000), []);
        // What one has taken, the other may take ten times.
        births.joined(PeerId(1), at(1000));
        assert_eq!(late(&mut births, 1000..9999), []);
        assert_eq!(late(&mut births, 9999..10_001), [PeerId(2)]);
    }

    #[test]
    fn who_is_known_to_join_is_late_though_nobody_has_come() {
        let mut births = Births::new(LEAST, true, at(0));
        births.started(PeerId(1), at(0));
        assert_eq!(late(&mut births, 0..10), []);
        assert_eq!(late(&mut births, 10..12), [PeerId(1)]);
    }

    #[test]
    fn a_quick_start_makes_nobody_impatient() {
        for timeout in [LEAST / 10, LEAST, LEAST * 3] {
            let mut births = Births::new(timeout, false, at(0));
            births.started(PeerId(1), at(0));
            births.started(PeerId(2), at(0));
            births.started(PeerId(3), at(0));
            births.joined(PeerId(1), at(0));
            births.forget(PeerId(3));
            let limit = (timeout.max(LEAST) * MOST).as_secs();
            // The watcher asks often enough for any timeout.
            let asked = |seconds: u64| (0..seconds * 50).map(|step| Time(step * 20_000_000));
            assert_eq!(asked(limit).fold(vec![], |_, now| births.overdue(now).0), []);
            assert_eq!(births.overdue(at(limit).after(Duration::from_millis(20))).0, [PeerId(2)]);
        }
    }

    #[test]
    fn a_watcher_that_is_away_again_and_again_counts_the_time_between() {
        let mut births = Births::new(LEAST, true, at(0));
        births.started(PeerId(1), at(0));
        // In every ten seconds it is away for four.
        let asked = (0..30).flat_map(|ten| late(&mut births, 10 * ten..10 * ten + 6)).count();
        assert!(asked > 0, "it is late after twenty seconds");
        let mut births = Births::new(LEAST, true, at(0));
        births.started(PeerId(1), at(0));
        assert_eq!((late(&mut births, 0..6), late(&mut births, 10..13)), (vec![], vec![]));
    }

    #[test]
    fn time_in_which_the_watcher_was_away_does_not_count() {
        let mut births = Births::new(LEAST, false, at(0));
        births.started(PeerId(1), at(0));
        births.started(PeerId(2), at(0));
        births.joined(PeerId(1), at(0));
        assert_eq!(births.overdue(at(100)).0, []);
        assert_eq!(late(&mut births, 100..110), []);
        assert_eq!(late(&mut births, 110..112), [PeerId(2)]);
    }
}
