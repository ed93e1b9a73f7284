//! What has happened in a job, for people who look on: the newest of it, in an order that has numbers, and a value over all of the time.
//! Its memory is bounded, whatever happens and for however long.

use std::collections::VecDeque;

use serde::Serialize;

use crate::seen::Seen;
use ft_proto::arbiter::Event;
use ft_proto::rank::Rank;

/// Entries that are kept.
const ENTRIES_MAX: usize = 20_000;
/// Longest text of others in an entry, in characters.
const TEXT_MAX: usize = 400;
/// Points of the value that are kept.
const POINTS_MAX: usize = 600;
/// Seconds from one point to the next, as long as they fit.
const APART_S: f64 = 0.1;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Chronicle {
    entries: VecDeque<Entry>,
    /// Number of the oldest entry.
    oldest: u64,
    /// The newest progress that no failure undoes.
    mark: Option<u64>,
    value: Option<Series>,
}

/// Something that has happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Entry {
    /// Seconds since the start of the job.
    at: f64,
    #[serde(flatten)]
    what: What,
}

/// What it was.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum What {
    /// A process on this host has the rank.
    Stands { rank: Rank, host: String },
    /// From now on the rank does this.
    Does { rank: Rank, what: String },
    /// The rank is lost.
    Lost { rank: Rank, cause: String },
    /// A host is lost, or takes processes again.
    Host { name: String, back: bool },
    /// A generation starts, after the loss of these ranks.
    Generation { number: u32, lost: Vec<Rank> },
    /// All ranks work again.
    Resumed { again: u64 },
    /// Progress that no failure undoes.
    Mark { number: u64 },
    /// It is in files, or could not be written.
    Saved { number: u32, error: Option<String> },
    /// The watchdog's account.
    Stalled { account: String },
}

/// A value over time, with as many points as there is room for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Series {
    name: String,
    /// Seconds and values.
    points: Vec<(f64, f64)>,
    #[serde(skip)]
    apart: f64,
}

impl Series {
    fn new(name: String) -> Self {
        Self { name, points: vec![], apart: APART_S }
    }

    /// One more value; those of before are thinned out when there are too many.
    fn add(&mut self, at: f64, value: f64) {
        if self.points.last().is_some_and(|(last, _)| at - last < self.apart) {
            return;
        }
        self.points.push((at, value));
        if self.points.len() >= POINTS_MAX {
            let mut number = 0;
            self.points.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.apart *= 2.0;
        }
    }
}

impl Series {
    /// The newest point alone.
    pub(super) fn newest(&self) -> Self {
        let points = self.points.last().copied().into_iter().collect();
        Self { name: self.name.clone(), points, apart: self.apart }
    }
}

impl Chronicle {
    /// Takes note; says whether that is to be shown at once.
    pub(super) fn note(&mut self, seen: Seen<'_>, at: f64) -> bool {
        let Some(what) = self.what(seen, at) else { return false };
        let is_urgent = !matches!(what, What::Does { .. } | What::Mark { .. });
        if self.entries.len() == ENTRIES_MAX {
            self.entries.pop_front();
            self.oldest += 1;
        }
        self.entries.push_back(Entry { at, what });
        is_urgent
    }

    fn what(&mut self, seen: Seen<'_>, at: f64) -> Option<What> {
        let short = |text: &str| text.chars().take(TEXT_MAX).collect::<String>();
        Some(match seen {
            Seen::Stands { rank, host } => What::Stands { rank, host: host.to_owned() },
            Seen::Host { name, is_back } => What::Host { name: name.to_owned(), back: is_back },
            Seen::Saving { .. } => return None,
            Seen::Event(event) => match event {
                Event::Activity { rank, name } => What::Does { rank: *rank, what: short(name) },
                Event::Lost { rank, cause, .. } => What::Lost { rank: *rank, cause: short(cause) },
                Event::Decided { generation, failed, .. } => {
                    What::Generation { number: *generation, lost: failed.clone() }
                }
                Event::Resumed { steps_lost, .. } => What::Resumed { again: *steps_lost },
                Event::Saved { saved, .. } => {
                    What::Saved { number: saved.number, error: saved.error.as_deref().map(short) }
                }
                Event::Stalled { account } => What::Stalled { account: short(account) },
                // All ranks say so, one after the other.
                Event::Marked { number, .. } if self.mark.is_none_or(|mark| mark < *number) => {
                    self.mark = Some(*number);
                    What::Mark { number: *number }
                }
                Event::Progress { done, line, .. } => {
                    self.measure(at, *done, line);
                    return None;
                }
                _ => return None,
            },
        })
    }

    /// A value of a line about the work, or else the share that is done.
    fn measure(&mut self, at: f64, done: Option<u16>, line: &str) {
        let share = || done.map(|done| ("% done", f64::from(done) / 10.0));
        let Some((name, value)) = reading(line).or_else(share) else { return };
        if self.value.as_ref().is_none_or(|series| series.name != name) {
            self.value = Some(Series::new(name.to_owned()));
        }
        self.value.iter_mut().for_each(|series| series.add(at, value));
    }

    /// The value over time, if there is one.
    pub(super) fn value(&self) -> Option<&Series> {
        self.value.as_ref()
    }

    /// Entries from a number on, a few at most, and the number behind them.
    pub(super) fn since(&self, number: u64, most: usize) -> (Vec<&Entry>, u64) {
        // What is not there any more cannot be told, and a number that was not given yet is of another job.
        let end = self.end();
        let from = if number > end { self.oldest } else { number.max(self.oldest) };
        let entries: Vec<&Entry> =
            self.entries.iter().skip((from - self.oldest) as usize).take(most).collect();
        let next = from + entries.len() as u64;
        (entries, next)
    }

    /// Number of the next entry.
    pub(super) fn end(&self) -> u64 {
        self.oldest + self.entries.len() as u64
    }
}

/// The value that a line about the work is drawn by: in the last of its parts, between commas, that is a name and a number which is
/// not whole, as whole ones count things.
fn reading(line: &str) -> Option<(&str, f64)> {
    line.rsplit(", ").find_map(|part| {
        let (name, number) = part.trim().rsplit_once(' ')?;
        let is_fraction = number.contains(['.', 'e', 'E']);
        let value = number.parse().ok().filter(|value: &f64| is_fraction && value.is_finite())?;
        (!name.contains(|c: char| c.is_ascii_digit()) && name.len() <= 40).then_some((name, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(number: u64) -> Event {
        Event::Marked { rank: 0, number }
    }

    #[test]
    fn entries_are_told_once_and_in_order() {
        let mut chronicle = Chronicle::default();
        assert!(chronicle.note(Seen::Stands { rank: 0, host: "a" }, 0.5));
        assert!(!chronicle.note(Seen::Event(&marked(1)), 1.0));
        assert!(!chronicle.note(Seen::Event(&marked(1)), 1.1), "the others say the same");
        let lost = Event::Lost { rank: 0, cause: "x".repeat(10_000), generation: None };
        assert!(chronicle.note(Seen::Event(&lost), 2.0), "a loss is shown at once");
        let (two, next) = chronicle.since(0, 2);
        let text = serde_json::to_string(&two).unwrap();
        assert_eq!(
            text,
            "[{\"at\":0.5,\"stands\":{\"rank\":0,\"host\":\"a\"}},{\"at\":1.0,\"mark\":{\"number\":1}}]"
        );
        let (rest, end) = chronicle.since(next, 100);
        assert_eq!((next, end, rest.len()), (2, 3, 1));
        assert!(serde_json::to_string(&rest).unwrap().len() < TEXT_MAX + 100);
        assert_eq!(chronicle.since(end, 100), (vec![], 3));
        assert_eq!(chronicle.since(u64::MAX, 100).0.len(), 3, "a number of another job");
    }

    #[test]
    fn what_is_old_makes_room() {
        let mut chronicle = Chronicle::default();
        for number in 0..ENTRIES_MAX as u64 + 500 {
            chronicle.note(Seen::Event(&marked(number)), number as f64);
        }
        let (entries, next) = chronicle.since(0, 1);
        assert_eq!((entries[0].at, next, chronicle.entries.len()), (500.0, 501, ENTRIES_MAX));
    }

    #[test]
    fn a_value_keeps_its_begin_and_its_end() {
        let mut chronicle = Chronicle::default();
        for step in 0..100_000_u32 {
            let line = format!("iteration {step}, relative residual {:.2e}", 1.0 / f64::from(step + 1));
            let event = Event::Progress { rank: 0, done: None, line };
            assert!(!chronicle.note(Seen::Event(&event), 0.05 * f64::from(step)));
        }
        let series = chronicle.value().unwrap();
        assert_eq!((&*series.name, series.points[0]), ("relative residual", (0.0, 1.0)));
        assert!((POINTS_MAX / 2 - 1..POINTS_MAX).contains(&series.points.len()), "{}", series.points.len());
        assert!(series.points.last().unwrap().0 > 4900.0);
        assert!(series.points.is_sorted_by(|one, other| one.0 < other.0));
        assert_eq!(chronicle.end(), 0);
    }

    #[test]
    fn numbers_of_a_line_are_read() {
        for (line, value) in [
            ("iteration 12, relative residual 2.50e-5", Some(("relative residual", 2.5e-5))),
            ("step 7, largest change 0.5", Some(("largest change", 0.5))),
            ("iteration 3 of 75, zeta 59.1", Some(("zeta", 59.1))),
            ("zeta 1.5, 300 Mop/s", Some(("zeta", 1.5))),
            ("residual inf", None),
            ("residual 1e999", None),
            ("round 3, token 12", None),
            ("step 5 of 100", None),
            ("3 of 10 shots, 1.2 a minute", None),
            ("1.5", None),
            ("", None),
            (", ,  , 1.5", None),
        ] {
            assert_eq!(reading(line), value, "{line}");
        }
    }

    #[test]
    fn a_share_is_drawn_where_there_is_no_value() {
        let mut chronicle = Chronicle::default();
        let event = Event::Progress { rank: 0, done: Some(425), line: "3 of 7 shots".into() };
        chronicle.note(Seen::Event(&event), 1.0);
        let text = serde_json::to_string(chronicle.value().unwrap()).unwrap();
        assert_eq!(text, "{\"name\":\"% done\",\"points\":[[1.0,42.5]]}");
    }
}
