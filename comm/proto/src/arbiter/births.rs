//! Processes that were started and have not joined the job yet.
//!
//! Nothing is heard of them, so silence says nothing; but a process that hangs before it has joined would hold up all the
//! others for ever. How long a start takes depends on the program, the file system and the machine, and the others have
//! shown that: a process is overdue after [`MOST`] times the longest that any of the job has taken, or a heartbeat timeout, or
//! [`LEAST`], whichever is longest. As long as nobody has joined, nobody is waited for, unless the program is known to join: any
//! other may have nothing to do with the library. But one that is stopped (SIGSTOP) does nothing at all, so it is overdue
//! after [`MOST`] times the timeout or [`LEAST`] of that, whatever it is.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::rank::PeerId;
use crate::time::Time;

/// See the module.
const MOST: u32 = 10;
/// See the module. A start takes milliseconds; this is a slow one.
const LEAST: Duration = Duration::from_secs(1);

/// A process that has not joined.
#[derive(Debug)]
struct Birth {
    started: Time,
    /// Since when it is stopped, if it is.
    stopped: Option<Time>,
}

#[derive(Debug)]
pub(super) struct Births {
    /// The heartbeat timeout.
    timeout: Duration,
    under_way: BTreeMap<PeerId, Birth>,
    /// The longest start so far; none as long as it is not known whether there will be any.
    slowest: Option<Duration>,
    asked: Time,
}

impl Births {
    /// `joins`: the program is known to join the job.
    pub(super) fn new(timeout: Duration, joins: bool, now: Time) -> Self {
        let slowest = joins.then_some(Duration::ZERO);
        Self { timeout, under_way: BTreeMap::new(), slowest, asked: now }
    }

    /// A process runs from now on.
    pub(super) fn started(&mut self, peer: PeerId, now: Time) {
        self.under_way.insert(peer, Birth { started: now, stopped: None });
    }

    /// It is stopped, or goes on.
    pub(super) fn stopped(&mut self, peer: PeerId, is_stopped: bool, now: Time) {
        if let Some(birth) = self.under_way.get_mut(&peer) {
            birth.stopped = is_stopped.then_some(now);
        }
    }

    /// It takes part.
    pub(super) fn joined(&mut self, peer: PeerId, now: Time) {
        if let Some(birth) = self.under_way.remove(&peer) {
            self.slowest = self.slowest.max(Some(now.since(birth.started)));
        }
    }

    /// It is not waited for any more.
    pub(super) fn forget(&mut self, peer: PeerId) {
        self.under_way.remove(&peer);
    }

    /// How long a process may be stopped.
    fn rest(&self) -> Duration {
        self.timeout.max(LEAST) * MOST
    }

    /// How long a start may take; none as long as that is not to be said.
    fn patience(&self) -> Option<Duration> {
        self.slowest.map(|slowest| (slowest * MOST).max(self.rest()))
    }

    /// Who should have joined by now, and what is wrong with it. Call it often: a watcher that was stopped itself for half a
    /// heartbeat timeout begins to count afresh.
    pub(super) fn overdue(&mut self, now: Time) -> Vec<(PeerId, String)> {
        if now.since(self.asked) > self.timeout / 2 {
            for birth in self.under_way.values_mut() {
                *birth = Birth { started: now, stopped: birth.stopped.map(|_| now) };
            }
        }
        self.asked = now;
        let (patience, rest) = (self.patience(), self.rest());
        let cause = |birth: &Birth| match (patience, birth.stopped) {
            (_, Some(since)) if now.since(since) > rest => {
                Some(format!("it was stopped for {} s before it had joined the job", rest.as_secs_f64()))
            }
            (Some(patience), _) if now.since(birth.started) > patience => {
                Some(format!("it had not joined the job {} s after its start", patience.as_secs_f64()))
            }
            _ => None,
        };
        self.under_way.iter().filter_map(|(peer, birth)| Some((*peer, cause(birth)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(births: &mut Births, now: Time) -> Vec<PeerId> {
        births.overdue(now).into_iter().map(|(peer, _)| peer).collect()
    }

    /// Who is overdue after `seconds`, asked ten times a second.
    fn late(births: &mut Births, seconds: std::ops::Range<u64>) -> Vec<PeerId> {
        let asked = (seconds.start * 10..seconds.end * 10).map(|tenth| Time(tenth * 100_000_000));
        asked.fold(vec![], |_, now| who(births, now))
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
            assert_eq!(asked(limit).fold(vec![], |_, now| who(&mut births, now)), []);
            assert_eq!(who(&mut births, at(limit).after(Duration::from_millis(20))), [PeerId(2)]);
        }
    }

    #[test]
    fn a_watcher_that_was_away_counts_afresh() {
        let mut births = Births::new(LEAST, false, at(0));
        births.started(PeerId(1), at(0));
        births.started(PeerId(2), at(0));
        births.joined(PeerId(1), at(0));
        assert_eq!(who(&mut births, at(100)), []);
        assert_eq!(late(&mut births, 100..110), []);
        assert_eq!(late(&mut births, 110..112), [PeerId(2)]);
    }

    #[test]
    fn one_that_is_stopped_is_late_whatever_it_is() {
        let mut births = Births::new(LEAST, false, at(0));
        (1..=3).for_each(|peer| births.started(PeerId(peer), at(0)));
        assert_eq!(late(&mut births, 0..100), []);
        births.stopped(PeerId(1), true, at(100));
        births.stopped(PeerId(2), true, at(100));
        births.stopped(PeerId(9), true, at(100));
        assert_eq!(late(&mut births, 100..110), []);
        births.stopped(PeerId(2), false, at(110));
        assert_eq!(late(&mut births, 110..112), [PeerId(1)]);
        let cause = "it was stopped for 10 s before it had joined the job".to_owned();
        assert_eq!(births.overdue(at(112)), [(PeerId(1), cause)]);
        births.forget(PeerId(1));
        // The launcher and all others were stopped together.
        births.stopped(PeerId(2), true, at(112));
        assert_eq!(who(&mut births, at(200)), []);
        births.stopped(PeerId(2), false, at(200));
        assert_eq!(late(&mut births, 200..300), []);
    }
}
