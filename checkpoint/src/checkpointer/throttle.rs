//! How fast an asynchronous checkpoint may be exchanged: in rounds, each of which has its share of the time.

use std::num::NonZero;
use std::time::Duration;

use crate::exchange::Round;

/// Time of a round, at least.
const ROUND: Duration = Duration::from_millis(50);
/// Bytes of the longest part of a state that are worth a round.
const ROUND_BYTES: u64 = 64 << 10;

/// Bytes of a rank's state a second at most; none: as fast as it can.
#[derive(Clone, Copy, Default)]
pub(super) struct Throttle(pub(super) Option<NonZero<u64>>);

impl Throttle {
    /// In how many rounds a part is exchanged that is `longest` bytes long at some rank; the same on all ranks.
    pub(super) fn rounds(self, longest: u64) -> usize {
        let rounds = (self.seconds(longest) / ROUND.as_secs_f64()).ceil();
        (rounds as u64).clamp(1, longest.div_ceil(ROUND_BYTES).max(1)) as usize
    }

    /// Whether this round has had its share of the time, `spent` after the exchange began.
    pub(super) fn is_over(self, longest: u64, Round { number, of }: Round, spent: Duration) -> bool {
        let due = self.seconds(longest) * (number + 1) as f64 / of as f64;
        of == 1 || spent.as_secs_f64() >= due
    }

    /// Seconds that the exchange of one part takes at least.
    fn seconds(self, longest: u64) -> f64 {
        self.0.map_or(0.0, |throttle| longest as f64 / throttle.get() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_limit_there_is_one_round_that_waits_for_nothing() {
        let throttle = Throttle::default();
        assert_eq!(throttle.rounds(1 << 40), 1);
        assert!(throttle.is_over(1 << 40, Round { number: 0, of: 1 }, Duration::ZERO));
    }

    #[test]
    fn rounds_share_the_time() {
        let throttle = Throttle(NonZero::new(1 << 20));
        let (longest, of) = (1 << 20, throttle.rounds(1 << 20));
        assert_eq!(of, 16, "a second has 20 rounds, but 1 MiB is worth 16");
        let is_over =
            |number, millis| throttle.is_over(longest, Round { number, of }, Duration::from_millis(millis));
        assert!(!is_over(7, 499) && is_over(7, 500));
        assert!(!is_over(15, 999) && is_over(15, 1000));
        assert_eq!(throttle.rounds(0), 1);
    }
}
