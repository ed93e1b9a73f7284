//! A machine of the model from a few measurements of messages.

use ft_comm::collective::Machine;
use serde::{Deserialize, Serialize};

use crate::recovery::Spread;

/// Bytes of a short message.
pub const SHORT_BYTES: usize = 8;
/// Bytes of a long message: more than is sent without asking, as in large collectives.
pub const LONG_BYTES: usize = 1 << 20;

/// What was measured between two ranks, and in the memory of one; in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Links {
    /// Half a round trip of a short message.
    pub short_s: f64,
    /// The same of a long one.
    pub long_s: f64,
    /// Each of many short messages one after the other.
    pub each_s: f64,
    /// Per byte of a long buffer that is added to another.
    pub reduce_byte_s: f64,
}

impl Links {
    /// The medians.
    pub(crate) fn middle(all: &[Self]) -> Self {
        let of = |field: fn(&Self) -> f64| Spread::of(all.iter().map(field)).median;
        Self {
            short_s: of(|links| links.short_s),
            long_s: of(|links| links.long_s),
            each_s: of(|links| links.each_s),
            reduce_byte_s: of(|links| links.reduce_byte_s),
        }
    }
}

/// Solves the model of LogGP ([`Machine`]) for two messages.
///
/// A message of `n` bytes takes `2 o + L + n G`, so `G` is the difference of the two by their bytes. In a row of short
/// messages both sides work at once, so each costs `o`; if that is more than half of one alone, `o` is that half. `L`
/// is what is left of the short message.
pub fn fit(links: &Links, cores: usize) -> Machine {
    let Links { short_s, long_s, each_s, reduce_byte_s } = *links;
    let byte_s = ((long_s - short_s) / (LONG_BYTES - SHORT_BYTES) as f64).max(0.0);
    let overhead_s = each_s.clamp(0.0, short_s / 2.0);
    let latency_s = (short_s - 2.0 * overhead_s - SHORT_BYTES as f64 * byte_s).max(0.0);
    Machine { latency_s, overhead_s, byte_s, reduce_byte_s, cores }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_that_the_times_are_of_is_found_again() {
        let machine =
            Machine { latency_s: 5e-6, overhead_s: 1e-6, byte_s: 2e-10, reduce_byte_s: 1e-10, cores: 2 };
        let there = |bytes: usize| 5e-6 + 2.0 * 1e-6 + bytes as f64 * 2e-10;
        let links = Links {
            short_s: there(SHORT_BYTES),
            long_s: there(LONG_BYTES),
            each_s: 1e-6,
            reduce_byte_s: 1e-10,
        };
        let found = fit(&links, 2);
        for (is, due) in [
            (found.latency_s, machine.latency_s),
            (found.overhead_s, machine.overhead_s),
            (found.byte_s, machine.byte_s),
            (found.reduce_byte_s, machine.reduce_byte_s),
        ] {
            assert!((is / due - 1.0).abs() < 1e-6, "{found:?}");
        }
        assert_eq!(found.cores, 2);
    }

    #[test]
    fn nothing_is_negative() {
        // A row that costs more than a message alone, and a long one that is faster than a short one.
        let links = Links { short_s: 2e-6, long_s: 1e-6, each_s: 9e-6, reduce_byte_s: 0.0 };
        let found = fit(&links, 1);
        assert_eq!((found.latency_s, found.overhead_s, found.byte_s), (0.0, 1e-6, 0.0));
    }

    #[test]
    fn one_odd_round_moves_little() {
        let links = |short_s| Links { short_s, ..Links::default() };
        assert_eq!(Links::middle(&[links(1.0), links(50.0), links(2.0)]).short_s, 2.0);
    }
}
