//! When to ask whether awaited ranks are still in reach: a call that has waited for one heartbeat timeout asks, and again
//! after each further one. What the service thread makes of it is in `service/questions.rs`.
//!
//! Movement on other links is no answer, so only the end of the call ends the doubt.

use std::time::Duration;

use crate::time::Time;
use ft_proto::rank::Rank;

/// Most ranks that are asked at a time; the others have their turn later.
const ASKED_MAX: usize = 16;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Doubt {
    /// How long a call waits before it asks; without it it never does.
    patience: Option<Duration>,
    since: Option<Time>,
    /// Where the next turn begins.
    turn: usize,
}

impl Doubt {
    /// Of a rank that asks after this long.
    pub(super) fn new(patience: Duration) -> Self {
        Self { patience: Some(patience), since: None, turn: 0 }
    }

    /// The call waits; true if it is to ask now.
    pub(super) fn look(&mut self, now: Time) -> bool {
        let Some(patience) = self.patience else { return false };
        let asks = now.since(*self.since.get_or_insert(now)) >= patience;
        if asks {
            self.since = Some(now);
        }
        asks
    }

    /// Whom to ask of those that are `awaited`: all, or so many that they all have their turn.
    pub(super) fn choose(&mut self, mut awaited: Vec<Rank>) -> Vec<Rank> {
        awaited.sort_unstable();
        awaited.dedup();
        if awaited.len() > ASKED_MAX {
            let first = self.turn % awaited.len();
            self.turn = first + ASKED_MAX;
            awaited.rotate_left(first);
            awaited.truncate(ASKED_MAX);
        }
        awaited
    }

    /// The call returns.
    pub(super) fn over(&mut self) {
        self.since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    #[test]
    fn a_call_asks_once_in_a_timeout_until_it_returns() {
        let mut doubt = Doubt::new(Duration::from_millis(100));
        let asks: Vec<u64> = (0..=350).step_by(50).filter(|ms| doubt.look(at(*ms))).collect();
        assert_eq!(asks, [100, 200, 300]);
        doubt.over();
        assert!(!doubt.look(at(360)) && !doubt.look(at(459)) && doubt.look(at(460)));
        assert!(!Doubt::default().look(Time(u64::MAX)));
    }

    #[test]
    fn of_many_ranks_all_have_their_turn() {
        let mut doubt = Doubt::new(Duration::from_millis(100));
        assert_eq!(doubt.choose(vec![3, 1, 3]), [1, 3]);
        let mut asked: Vec<Rank> = (0..3).flat_map(|_| doubt.choose((0..40).collect())).collect();
        assert_eq!(asked.len(), 3 * ASKED_MAX);
        asked.sort_unstable();
        asked.dedup();
        assert_eq!(asked, (0..40).collect::<Vec<_>>());
    }
}
