//! The account of failures, for programs and for people.

use std::time::Duration;

use ft_checkpoint::{RebuiltDoubles, RestoreSeconds, Stats};
use ft_comm::list;
use ft_launch::Failure;
use serde::Serialize;

use crate::words::count;

/// Most failures that people are told of one by one.
const SHOWN: usize = 10;
/// Of a rank whose checkpoint was in memory that has outlived its process.
const FOUND: &str = "found again in memory";

/// One failure in the report.
#[derive(Debug, Serialize)]
pub(super) struct FailureReport {
    ranks: Vec<usize>,
    point: String,
    detect_s: Option<f64>,
    repair_s: Option<f64>,
    /// Part of `repair_s`.
    agree_s: Option<f64>,
    /// Part of `repair_s`.
    respawn_s: Option<f64>,
    restore_s: Option<f64>,
    /// Where `restore_s` went, on the rank that took longest.
    restore: Option<RestoreSeconds>,
    steps_lost: u64,
    /// Spare hosts on which replacements were started.
    spare_hosts: Vec<String>,
    /// Whether others took the ranks; none if the job ended before.
    replaced: Option<bool>,
    /// How many ranks there are after it.
    #[serde(skip)]
    held: usize,
    /// All ranks were not there yet.
    #[serde(skip)]
    at_start: bool,
}

impl FailureReport {
    pub(super) fn new(failure: &Failure, stats: &Stats) -> Self {
        let seconds = |span: Option<Duration>| span.map(|span| span.as_secs_f64());
        Self {
            ranks: failure.ranks.clone(),
            point: failure.point.clone(),
            detect_s: seconds(failure.detect),
            repair_s: seconds(failure.repair),
            agree_s: seconds(failure.agree),
            respawn_s: seconds(failure.respawn),
            restore: stats.restores.iter().find(|r| Some(r.generation) == failure.generation).cloned(),
            restore_s: seconds(failure.restore),
            steps_lost: failure.steps_lost,
            spare_hosts: failure.spare_hosts.clone(),
            replaced: failure.held.as_ref().map(|_| !failure.is_final()),
            held: failure.held.as_ref().map_or(0, Vec::len),
            at_start: failure.generation == Some(0),
        }
    }

    /// What is known of it, in one line; `rebuilt` says where lost states come from.
    fn line(&self, closes: bool, rebuilt: &str) -> String {
        let ms = |seconds: f64| format!("{:.1} ms", seconds * 1e3);
        let mut parts: Vec<String> = vec![];
        // When a process died by itself nobody knows.
        parts.extend(self.detect_s.map(|seconds| format!("noticed after {}", ms(seconds))));
        let Some((replaced, repair)) = self.replaced.zip(self.repair_s) else {
            parts.push("the job ended before it was repaired".into());
            return self.said(&parts);
        };
        let repair = ms(repair);
        let on = match &self.spare_hosts[..] {
            [] => String::new(),
            [host] => format!(" on the spare host {host}"),
            hosts => format!(" on the spare hosts {}", hosts.join(", ")),
        };
        parts.push(match (replaced, closes) {
            (true, _) => format!("replaced{on} in {repair}"),
            (false, true) => format!("{} closed up in {repair}", count(self.held as u64, "rank")),
            (false, false) => format!("{} went on after {repair}", count(self.held as u64, "rank")),
        });
        if let Some(restore) = self.restore_s.filter(|_| !self.at_start) {
            let kept = self.restore.as_ref().map_or(0, |restore| restore.kept as usize);
            let how = match (self.restore.is_some(), kept) {
                (false, _) => "at work again".to_owned(),
                (true, 0) => rebuilt.to_owned(),
                (true, kept) if kept >= self.ranks.len() => FOUND.to_owned(),
                (true, kept) => format!("{kept} {FOUND}, the others {rebuilt}"),
            };
            parts.push(format!("{how} in {}", ms(restore)));
            parts.push(format!("{} done again", count(self.steps_lost, "step")));
            let stayed = self.restore.as_ref().map_or(0, |restore| restore.stayed);
            parts.extend(
                (stayed > 0).then(|| format!("{} stayed where they were", count(u64::from(stayed), "rank"))),
            );
            let doubles = self.restore.iter().flat_map(|restore| &restore.doubles);
            parts.extend(doubles.map(|RebuiltDoubles { rank, within, .. }| {
                format!("doubles of rank {rank} rebuilt within {within:.1e}")
            }));
        }
        self.said(&parts)
    }

    fn said(&self, parts: &[String]) -> String {
        format!("{} failed ({}): {}", list("rank", &self.ranks), self.point, parts.join(", "))
    }
}

/// The failures for people, a line each; those that are too many in one. `closes`: the others close up when somebody is lost
/// for good; `rebuilt` says where lost states come from.
pub(super) fn lines(failures: &[FailureReport], closes: bool, rebuilt: &str) -> Vec<String> {
    let mut lines: Vec<String> =
        failures.iter().take(SHOWN).map(|failure| failure.line(closes, rebuilt)).collect();
    if failures.len() > SHOWN {
        let ranks: usize = failures.iter().map(|failure| failure.ranks.len()).sum();
        lines.push(format!("... {} failures in all, of {ranks} ranks", failures.len()));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn failure() -> Failure {
        Failure {
            ranks: vec![2],
            point: "step=20".into(),
            detect: Some(MS),
            repair: Some(2 * MS),
            agree: Some(MS),
            respawn: Some(2 * MS),
            held: Some(vec![0, 1, 2, 3]),
            generation: Some(1),
            restore: Some(3 * MS),
            steps_lost: 1,
            spare_hosts: vec![],
        }
    }

    fn line(failure: &Failure, closes: bool) -> String {
        let restores = vec![RestoreSeconds { generation: 1, ..RestoreSeconds::default() }];
        let stats = Stats { restores, ..Stats::default() };
        FailureReport::new(failure, &stats).line(closes, "rebuilt in memory")
    }

    #[test]
    fn only_what_is_known_is_said() {
        let of = |change: fn(&mut Failure)| {
            let mut failure = failure();
            change(&mut failure);
            line(&failure, false)
        };
        assert_eq!(
            of(|_| {}),
            "rank 2 failed (step=20): noticed after 1.0 ms, replaced in 2.0 ms, rebuilt in memory in 3.0 ms, 1 step done again"
        );
        assert_eq!(
            of(|f| (f.ranks, f.point, f.detect) = (vec![2, 3], "host b is gone".into(), None)),
            "ranks 2 and 3 failed (host b is gone): replaced in 2.0 ms, rebuilt in memory in 3.0 ms, 1 step done again"
        );
        assert!(
            of(|f| f.spare_hosts = vec!["n9".into()]).contains(", replaced on the spare host n9 in 2.0 ms,")
        );
        assert!(
            of(|f| f.spare_hosts = vec!["a".into(), "b".into()]).contains(" on the spare hosts a, b in ")
        );
        assert_eq!(
            of(|f| (f.held, f.repair, f.restore) = (None, None, None)),
            "rank 2 failed (step=20): noticed after 1.0 ms, the job ended before it was repaired"
        );
        // Nothing was there to be rebuilt.
        assert_eq!(
            of(|f| (f.generation, f.restore) = (Some(0), Some(Duration::ZERO))),
            "rank 2 failed (step=20): noticed after 1.0 ms, replaced in 2.0 ms"
        );
        assert_eq!(
            of(|f| (f.generation, f.steps_lost) = (Some(2), 2)),
            "rank 2 failed (step=20): noticed after 1.0 ms, replaced in 2.0 ms, at work again in 3.0 ms, 2 steps done again"
        );
    }

    #[test]
    fn what_has_outlived_its_process_was_not_rebuilt() {
        let of = |ranks: Vec<usize>, kept| {
            let restores = vec![RestoreSeconds { generation: 1, kept, ..RestoreSeconds::default() }];
            let stats = Stats { restores, ..Stats::default() };
            FailureReport::new(&Failure { ranks, ..failure() }, &stats).line(false, "rebuilt in memory")
        };
        assert!(of(vec![2], 1).contains(", found again in memory in 3.0 ms,"));
        assert!(of(vec![1, 2], 2).contains(", found again in memory in 3.0 ms,"));
        assert!(
            of(vec![1, 2, 3], 2)
                .contains(", 2 found again in memory, the others rebuilt in memory in 3.0 ms,")
        );
        assert!(of(vec![1], 0).contains(", rebuilt in memory in 3.0 ms,"));
    }

    #[test]
    fn what_was_rounded_says_how_far() {
        let within = |rank, within| RebuiltDoubles { rank, within, relative: within / 10.0 };
        let doubles = vec![within(2, 3.14e-13), within(5, 1e-12)];
        let restores = vec![RestoreSeconds { generation: 1, doubles, ..RestoreSeconds::default() }];
        let stats = Stats { restores, ..Stats::default() };
        let line = FailureReport::new(&failure(), &stats).line(false, "rebuilt in memory");
        let end = "1 step done again, doubles of rank 2 rebuilt within 3.1e-13, doubles of rank 5 rebuilt within 1.0e-12";
        assert!(line.ends_with(end), "{line}");
    }

    #[test]
    fn whom_nobody_replaced_is_not_back() {
        let lost = Failure { held: Some(vec![0, 1, 3]), respawn: None, generation: Some(2), ..failure() };
        assert_eq!(
            line(&lost, true),
            "rank 2 failed (step=20): noticed after 1.0 ms, 3 ranks closed up in 2.0 ms, at work again in 3.0 ms, 1 step \
             done again"
        );
        let last = Failure { held: Some(vec![0]), restore: None, ..lost };
        assert_eq!(
            line(&last, false),
            "rank 2 failed (step=20): noticed after 1.0 ms, 1 rank went on after 2.0 ms"
        );
    }

    #[test]
    fn many_failures_are_not_told_one_by_one() {
        let all: Vec<FailureReport> =
            (0..12).map(|_| FailureReport::new(&failure(), &Stats::default())).collect();
        let lines = lines(&all, false, "rebuilt in memory");
        assert_eq!((lines.len(), lines[10].as_str()), (11, "... 12 failures in all, of 12 ranks"));
    }
}
