//! The thread that makes the calls of the program, as the service thread sees it: whether it makes
//! any, and whether it lives.
//!
//! A heartbeat is a sign of life of the service thread alone. So when no call was made for a while
//! the service thread looks whether the other one still exists; its end is a failure of the rank. A
//! thread that exists and makes no calls computes, or is blocked outside of the library: the
//! launcher gets told, for people, and nothing follows.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::thread::{Pid, gettid};

use crate::time::Time;
use ft_proto::wire::control::ToArbiter;

/// Without a call for this long a rank is spoken of, where no time was set.
const NOTABLE: Duration = Duration::from_secs(30);
/// Between two looks at a thread that makes no calls.
const EXAMINED_EVERY: Duration = Duration::from_secs(1);
/// What counts of the time between two looks of the service thread: more than that has passed if
/// the process was stopped.
const PASSED_MAX: Duration = Duration::from_secs(1);

/// Counts the calls of a program. Clones count together; one thread counts, others read.
#[derive(Clone, Debug, Default)]
pub struct Calls(Arc<AtomicU64>);

impl Calls {
    /// Counts one more: a call, or a look of one that waits.
    #[inline]
    pub fn count(&self) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    fn number(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Caller {
    calls: Calls,
    thread: Pid,
    /// Calls when it was looked at last, and when that was.
    number: u64,
    looked: Time,
    /// For how long it has made no call.
    silent: Duration,
    /// How long that was when the thread was looked up last.
    examined: Duration,
    /// After which time it is spoken of; none before the launcher has said so, and when all ranks
    /// are done.
    limit: Option<Duration>,
    is_said: bool,
    is_dead: bool,
}

impl Caller {
    /// The thread that calls this makes the `calls`.
    pub(super) fn new(calls: Calls, now: Time) -> Self {
        Self {
            number: calls.number(),
            calls,
            thread: gettid(),
            looked: now,
            silent: Duration::ZERO,
            examined: Duration::ZERO,
            limit: None,
            is_said: false,
            is_dead: false,
        }
    }

    /// The rank has joined the job, which has set this time for its watchdog.
    pub(super) fn watch(&mut self, now: Time, watchdog: Option<Duration>) {
        (self.looked, self.limit) = (now, Some(watchdog.unwrap_or(NOTABLE)));
    }

    /// All ranks are done: calls are not expected any more.
    pub(super) fn rest(&mut self) {
        self.limit = None;
    }

    /// What the launcher is to be told.
    pub(super) fn look(&mut self, now: Time) -> Option<ToArbiter> {
        let limit = self.limit?;
        let passed = now.since(std::mem::replace(&mut self.looked, now)).min(PASSED_MAX);
        let number = self.calls.number();
        if number != self.number {
            (self.number, self.examined) = (number, Duration::ZERO);
            let silent = std::mem::take(&mut self.silent);
            // A program that computes for long does so again and again: it is spoken of once.
            return std::mem::take(&mut self.is_said).then(|| {
                self.limit = Some(limit.max(silent * 2));
                ToArbiter::Silent { millis: 0 }
            });
        }
        self.silent += passed;
        if !self.is_dead && self.silent >= self.examined + EXAMINED_EVERY {
            self.examined = self.silent;
            self.is_dead = has_ended(self.thread);
            if self.is_dead {
                let why = "the thread that makes its calls has ended, though the process has not".into();
                return Some(ToArbiter::Dead { why });
            }
        }
        if self.is_said || self.silent < limit {
            return None;
        }
        self.is_said = true;
        Some(ToArbiter::Silent { millis: u64::try_from(self.silent.as_millis()).unwrap_or(u64::MAX) })
    }
}

/// Whether a thread of this process has ended, or is what is left of one until the whole process
/// ends.
fn has_ended(thread: Pid) -> bool {
    match fs::read_to_string(format!("/proc/self/task/{thread}/stat")) {
        // The name before may have brackets of its own.
        Ok(stat) => {
            let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
            matches!(state, Some('Z' | 'X' | 'x'))
        }
        Err(error) => error.kind() == ErrorKind::NotFound && Path::new("/proc/self/task").exists(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEAT: u64 = 100;

    fn at(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    fn silent(ms: u64) -> ToArbiter {
        ToArbiter::Silent { millis: ms }
    }

    /// What is said from one time to another, with a look every tenth of a second.
    fn looks(caller: &mut Caller, from: u64, to: u64) -> Vec<(u64, ToArbiter)> {
        let at = |ms: u64| caller.look(at(ms)).map(|said| (ms, said));
        (from..to).step_by(BEAT as usize).filter_map(at).collect()
    }

    #[test]
    fn a_thread_that_makes_no_calls_is_spoken_of_once_and_later_next_time() {
        let calls = Calls::default();
        let mut caller = Caller::new(calls.clone(), at(0));
        assert_eq!(looks(&mut caller, 0, 90_000), [], "the rank has not joined");
        caller.watch(at(90_000), None);
        for ms in (90_000..150_000).step_by(1000) {
            calls.count();
            assert_eq!(looks(&mut caller, ms, ms + 1000), []);
        }
        // It was seen at 149 s to have made a call.
        assert_eq!(looks(&mut caller, 150_000, 200_000), [(179_000, silent(30_000))]);
        calls.count();
        assert_eq!(looks(&mut caller, 200_000, 200_200), [(200_000, silent(0))]);
        // That was 50.9 s.
        assert_eq!(looks(&mut caller, 200_200, 400_000), [(301_800, silent(101_800))]);
        caller.rest();
        calls.count();
        assert_eq!(looks(&mut caller, 400_000, 900_000), [], "all are done");
    }

    #[test]
    fn a_process_that_was_stopped_is_not_spoken_of() {
        let mut caller = Caller::new(Calls::default(), at(0));
        caller.watch(at(0), Some(Duration::from_secs(5)));
        assert_eq!(looks(&mut caller, 0, 1000), []);
        assert_eq!(looks(&mut caller, 60_000, 62_000), []);
        assert!(!looks(&mut caller, 62_000, 66_000).is_empty());
    }

    #[test]
    fn a_thread_that_has_ended_is_dead_and_one_that_lives_is_not() {
        let new = || {
            let mut caller = Caller::new(Calls::default(), at(0));
            caller.watch(at(0), None);
            caller
        };
        assert_eq!(looks(&mut new(), 0, 5000), []);
        let mut caller = std::thread::scope(|scope| scope.spawn(new).join()).expect("it does not panic");
        // A thread that was joined may still be about to leave the kernel.
        while !has_ended(caller.thread) {
            std::thread::yield_now();
        }
        let said = looks(&mut caller, 0, 5000);
        assert!(matches!(said[..], [(1000, ToArbiter::Dead { .. })]), "{said:?}");
    }
}
