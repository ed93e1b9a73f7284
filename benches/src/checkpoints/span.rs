//! The time that several processes of one host take for something together.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of the clock that all processes of a host share (`CLOCK_MONOTONIC`).
pub fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Seconds from the first rank's start to the last rank's end, of each of the occasions that every rank gives its start and
/// end of, in nanoseconds; of those that all ranks have.
pub fn spans(ranks: &[Vec<[u64; 2]>]) -> Vec<f64> {
    let occasions = ranks.iter().map(Vec::len).min().unwrap_or(0);
    let span = |occasion: usize| {
        let first = ranks.iter().map(|times| times[occasion][0]).min().unwrap_or(0);
        let last = ranks.iter().map(|times| times[occasion][1]).max().unwrap_or(0);
        last.saturating_sub(first) as f64 / 1e9
    };
    (0..occasions).map(span).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_the_first_start_to_the_last_end() {
        let ranks = [vec![[10, 30], [100, 101]], vec![[5, 20], [90, 95], [1, 2]], vec![[15, 40], [99, 190]]];
        assert_eq!(spans(&ranks), [35e-9, 100e-9]);
        assert_eq!(spans(&[]).len(), 0);
    }

    #[test]
    fn the_clock_goes_on() {
        let before = now_ns();
        assert!(before > 0 && now_ns() >= before);
    }
}
