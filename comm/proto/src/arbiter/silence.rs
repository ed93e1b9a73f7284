//! Ranks that have made no call for long: they compute, or are blocked outside of the library. That
//! may be legitimate, so people get one line, for all ranks that fall silent at about the same
//! time.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::list;
use crate::rank::Rank;
use crate::time::Time;

/// From the first rank that is silent to the line.
const GATHERING: Duration = Duration::from_secs(1);
/// Ranks that are named one by one.
const NAMED_MAX: usize = 16;

/// Since when ranks have made no call, as far as they have reported it and no line has named them.
#[derive(Debug, Default)]
pub(super) struct Silence {
    since: BTreeMap<Rank, Time>,
    due: Option<Time>,
}

impl Silence {
    /// A rank has made no call for this time, or makes calls again if it is zero.
    pub(super) fn heard(&mut self, now: Time, rank: Rank, millis: u64) {
        if millis == 0 {
            return self.ends(rank);
        }
        self.since.insert(rank, Time(now.0.saturating_sub(millis.saturating_mul(1_000_000))));
        self.due = self.due.or(Some(now.after(GATHERING)));
    }

    /// A rank makes calls again, or is lost.
    pub(super) fn ends(&mut self, rank: Rank) {
        self.since.remove(&rank);
        if self.since.is_empty() {
            self.due = None;
        }
    }

    /// Ranks get other numbers, or all are done.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// When [`Silence::tick`] has something to say, unless something changes before.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.due
    }

    /// The line, if it is due, while this number of ranks `wait`.
    pub(super) fn tick(&mut self, now: Time, wait: usize) -> Option<String> {
        self.due.take_if(|due| *due <= now)?;
        let silent = std::mem::take(&mut self.since);
        let ranks: Vec<Rank> = silent.keys().copied().collect();
        let shortest = silent.values().map(|since| now.since(*since)).min()?;
        let who = match ranks.len() {
            ..=NAMED_MAX => list("rank", &ranks),
            many => format!("{many} ranks, rank {} among them,", ranks[0]),
        };
        let (has, computes) = match ranks.len() {
            1 => ("has", "it computes, or is"),
            _ => ("have", "they compute, or are"),
        };
        let waits = match wait {
            0 => String::new(),
            1 => "; 1 rank waits meanwhile".into(),
            many => format!("; {many} ranks wait meanwhile"),
        };
        let seconds = shortest.as_secs_f64();
        Some(format!(
            "{who} {has} made no call for {seconds:.1} s: {computes} blocked outside of the library{waits}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time(100_000_000_000 + ms * 1_000_000)
    }

    #[test]
    fn ranks_that_fall_silent_together_get_one_line() {
        let mut silence = Silence::default();
        silence.heard(at(0), 2, 30_000);
        silence.heard(at(400), 0, 30_000);
        silence.heard(at(500), 1, 30_000);
        silence.heard(at(600), 1, 0);
        assert_eq!((silence.poll_timeout(), silence.tick(at(999), 1)), (Some(at(1000)), None));
        let line = "ranks 0 and 2 have made no call for 30.6 s: they compute, or are blocked outside of the library; 1 rank waits meanwhile";
        assert_eq!(silence.tick(at(1000), 1).as_deref(), Some(line));
        assert_eq!((silence.poll_timeout(), silence.tick(at(9000), 1)), (None, None));
        silence.heard(at(9000), 2, 60_000);
        let line = "rank 2 has made no call for 61.0 s: it computes, or is blocked outside of the library";
        assert_eq!(silence.tick(at(10_000), 0).as_deref(), Some(line));
    }

    #[test]
    fn a_rank_that_calls_again_or_is_lost_is_not_named() {
        let mut silence = Silence::default();
        silence.heard(at(0), 2, 30_000);
        silence.ends(2);
        assert_eq!((silence.poll_timeout(), silence.tick(at(9000), 0)), (None, None));
        (0..20).for_each(|rank| silence.heard(at(9000), rank, 30_000));
        let line = silence.tick(at(10_000), 0).unwrap();
        assert!(line.starts_with("20 ranks, rank 0 among them, have made no call"), "{line}");
    }
}
