//! Replacements that wait before they are started.
//!
//! The first replacement of a rank starts immediately, while the kernel still takes apart the lost
//! process. If it fails as well before any progress, its predecessors may still hold what it needs:
//! memory, a file lock, a port. So each further attempt waits, longer each time.

use std::time::Duration;

use crate::rank::PeerId;
use crate::time::Time;

/// The pause before the second attempt. Each pause after it is [`FACTOR`] times as long, up to
/// [`LONGEST`].
const SHORTEST: Duration = Duration::from_millis(50);
const FACTOR: u32 = 4;
const LONGEST: Duration = Duration::from_secs(2);

/// Processes that are to be started, and when.
#[derive(Debug, Default)]
pub(super) struct Restarts(Vec<(Time, PeerId)>);

impl Restarts {
    /// Returns `true` if the replacement of a rank that has failed so often in a row waits.
    /// Otherwise it starts now.
    pub(super) fn postpones(&mut self, now: Time, peer: PeerId, failures: u32) -> bool {
        let Some(pause) = pause_after(failures) else { return false };
        self.0.push((now.after(pause), peer));
        true
    }

    /// Takes the processes whose pause is over.
    pub(super) fn due(&mut self, now: Time) -> Vec<PeerId> {
        self.0.extract_if(.., |(at, _)| *at <= now).map(|(_, peer)| peer).collect()
    }

    /// When the next pause is over.
    pub(super) fn next(&self) -> Option<Time> {
        self.0.iter().map(|(at, _)| *at).min()
    }
}

/// The pause before the replacement of a rank that has failed so often in a row; none before the
/// first.
fn pause_after(failures: u32) -> Option<Duration> {
    let attempt = failures.checked_sub(2)?;
    let factor = FACTOR.saturating_pow(attempt);
    Some(SHORTEST.checked_mul(factor).unwrap_or(LONGEST).min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_with_failures_in_a_row_and_end_somewhere() {
        let pauses: Vec<u64> =
            (1..6).map(|failures| pause_after(failures).unwrap_or_default().as_millis() as u64).collect();
        assert_eq!(pauses, [0, 50, 200, 800, 2000]);
        assert_eq!(pause_after(u32::MAX), Some(LONGEST));
    }

    #[test]
    fn postponed_process_is_due_once() {
        let (mut restarts, now) = (Restarts::default(), Time(7));
        assert!(!restarts.postpones(now, PeerId(1), 1));
        assert!(restarts.postpones(now, PeerId(2), 3) && restarts.postpones(now, PeerId(3), 2));
        let [soon, later] = [SHORTEST, SHORTEST * FACTOR].map(|pause| now.after(pause));
        assert_eq!((restarts.next(), restarts.due(now)), (Some(soon), vec![]));
        assert_eq!((restarts.due(soon), restarts.next()), (vec![PeerId(3)], Some(later)));
        assert_eq!((restarts.due(later), restarts.due(later)), (vec![PeerId(2)], vec![]));
    }
}
