//! When lost hosts are tried again: after pauses that grow, and not many of them at a time.
//!
//! Pure: who tries them is in `comeback.rs`. A host that stays for longer than it was waited for is as good as new; one that is lost again
//! sooner waits twice as long, so that a host that comes and goes costs less and less.

use std::collections::BTreeMap;
use std::time::Duration;

use ft_comm::time::Time;

/// The pause after a loss, and the longest one.
const FIRST: Duration = Duration::from_millis(500);
const LAST: Duration = Duration::from_secs(30);
/// Most hosts that are tried at one time.
const AT_ONCE: usize = 4;

/// See the module. Hosts have numbers.
#[derive(Debug, Default)]
pub(super) struct Returns {
    /// Those that were lost at least once.
    hosts: BTreeMap<usize, Course>,
}

/// How it goes with a host.
#[derive(Debug)]
struct Course {
    /// How long it is waited for, or was the last time.
    pause: Duration,
    state: State,
}

/// Where it is.
#[derive(Debug)]
enum State {
    Away { until: Time },
    Tried,
    Back { since: Time },
}

impl Returns {
    /// A host is lost.
    pub(super) fn lost(&mut self, host: usize, now: Time) {
        let pause = match self.hosts.get(&host) {
            Some(Course { pause, state: State::Back { since } }) if now.since(*since) <= *pause => {
                longer(*pause)
            }
            _ => FIRST,
        };
        self.away(host, pause, now);
    }

    fn away(&mut self, host: usize, pause: Duration, now: Time) {
        self.hosts.insert(host, Course { pause, state: State::Away { until: now.after(pause) } });
    }

    /// A host to try now, the one that has waited longest; from now on it is tried.
    pub(super) fn due(&mut self, now: Time) -> Option<usize> {
        let (host, _) = self.next().filter(|(_, until)| *until <= now)?;
        self.hosts.get_mut(&host)?.state = State::Tried;
        Some(host)
    }

    /// When [`Returns::due`] has something to say.
    pub(super) fn due_at(&self) -> Option<Time> {
        self.next().map(|(_, until)| until)
    }

    /// The next one, if not too many are tried.
    fn next(&self) -> Option<(usize, Time)> {
        let tried = self.hosts.values().filter(|course| matches!(course.state, State::Tried)).count();
        let away = self.hosts.iter().filter_map(|(host, course)| match course.state {
            State::Away { until } => Some((*host, until)),
            State::Tried | State::Back { .. } => None,
        });
        away.min_by_key(|(_, until)| *until).filter(|_| tried < AT_ONCE)
    }

    /// A host was tried, and is not there.
    pub(super) fn failed(&mut self, host: usize, now: Time) {
        let pause = self.hosts.get(&host).map_or(FIRST, |course| longer(course.pause));
        self.away(host, pause, now);
    }

    /// A host is not to be tried any more.
    pub(super) fn forget(&mut self, host: usize) {
        self.hosts.remove(&host);
    }

    /// A host is there again.
    pub(super) fn back(&mut self, host: usize, now: Time) {
        if let Some(course) = self.hosts.get_mut(&host) {
            course.state = State::Back { since: now };
        }
    }
}

fn longer(pause: Duration) -> Duration {
    (2 * pause).min(LAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    /// When the next one is tried, in milliseconds.
    fn due_ms(returns: &Returns) -> Option<u64> {
        returns.due_at().map(|at| at.0 / 1_000_000)
    }

    #[test]
    fn a_host_that_stays_away_is_tried_less_and_less_often() {
        let mut returns = Returns::default();
        assert_eq!(due_ms(&returns), None);
        returns.lost(3, at(0));
        let (mut now, mut pauses) = (0, vec![]);
        for _ in 0..9 {
            let due = due_ms(&returns).unwrap();
            assert_eq!(returns.due(at(due - 1)), None);
            assert_eq!(returns.due(at(due)), Some(3));
            assert_eq!((returns.due(at(due)), due_ms(&returns)), (None, None), "it is tried once at a time");
            pauses.push(due - now);
            now = due + 10;
            returns.failed(3, at(now));
        }
        assert_eq!(pauses, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
    }

    #[test]
    fn a_host_that_stays_is_as_good_as_new_and_one_that_flaps_is_not() {
        let mut returns = Returns::default();
        let mut flap = |now: u64, stays: u64| {
            returns.lost(0, at(now));
            let due = due_ms(&returns).unwrap();
            assert_eq!(returns.due(at(due)), Some(0));
            returns.back(0, at(due));
            assert_eq!(due_ms(&returns), None);
            (due - now, due + stays)
        };
        let (mut now, mut pauses) = (0, vec![]);
        for stays in [501, 500, 1000, 2001, 1] {
            let (pause, lost) = flap(now, stays);
            pauses.push(pause);
            now = lost;
        }
        assert_eq!(pauses, [500, 500, 1000, 2000, 500]);
    }

    #[test]
    fn few_are_tried_at_a_time_and_whoever_waits_longest_first() {
        let mut returns = Returns::default();
        (0..9).for_each(|host| returns.lost(host, at(9 - host as u64)));
        let now = at(1000);
        let tried: Vec<usize> = std::iter::from_fn(|| returns.due(now)).collect();
        assert_eq!(tried, [8, 7, 6, 5]);
        returns.back(7, now);
        assert_eq!((returns.due(now), returns.due(now)), (Some(4), None));
    }
}
