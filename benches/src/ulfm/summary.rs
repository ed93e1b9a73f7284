//! Medians over rounds, and ratios of them.

use std::collections::BTreeMap;
use std::fmt;

use super::figure::Figure;
use super::job::{Job, Side};
use super::row::Row;
use super::session::Sample;
use ft_tools::harness::{Middle, Parting};

/// How the launcher of Open MPI ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Partings {
    /// As it should.
    pub well: usize,
    /// With an error, after the right answer.
    pub badly: usize,
    /// Not by itself.
    pub hung: usize,
}

/// "5 well, 2 hung".
impl fmt::Display for Partings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [(self.well, "well"), (self.badly, "badly"), (self.hung, "hung")];
        let said = counts.into_iter().filter(|(count, _)| *count > 0);
        let said: Vec<String> = said.map(|(count, how)| format!("{count} {how}")).collect();
        f.write_str(&said.join(", "))
    }
}

/// Medians of everything, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    middles: BTreeMap<(Job, Side, Figure), Middle>,
    partings: BTreeMap<Job, Partings>,
}

/// A row beside the figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// Milliseconds of ours.
    pub ours: Option<Middle>,
    /// Milliseconds of ULFM.
    pub theirs: Option<Middle>,
    /// The one over the other.
    pub ratio: Option<f64>,
    /// Whether the bar is kept; none where there is no bar or a figure is missing.
    pub is_met: Option<bool>,
    /// Of the runs of ULFM.
    pub partings: Partings,
}

impl Summary {
    /// Of all that was measured.
    pub fn of(samples: &[Sample]) -> Self {
        let mut values: BTreeMap<(Job, Side, Figure), Vec<f64>> = BTreeMap::new();
        let mut partings: BTreeMap<Job, Partings> = BTreeMap::new();
        for Sample { side, job, figures, parting, .. } in samples {
            for (figure, seconds) in figures {
                values.entry((*job, *side, *figure)).or_default().push(seconds * 1e3);
            }
            if *side == Side::Ulfm {
                let of_job = partings.entry(*job).or_default();
                *match parting {
                    Parting::Well => &mut of_job.well,
                    Parting::Badly => &mut of_job.badly,
                    Parting::Hung => &mut of_job.hung,
                } += 1;
            }
        }
        let middles = values.into_iter().filter_map(|(key, values)| Some((key, Middle::of(&values)?)));
        Self { middles: middles.collect(), partings }
    }

    /// One figure.
    pub fn get(&self, job: Job, side: Side, figure: Figure) -> Option<Middle> {
        self.middles.get(&(job, side, figure)).copied()
    }

    /// All figures, in their order.
    pub(super) fn all(&self) -> impl Iterator<Item = (Job, Side, Figure, Middle)> {
        self.middles.iter().map(|(&(job, side, figure), &middle)| (job, side, figure, middle))
    }

    /// Holds a row against the figures.
    pub fn read(&self, row: &Row) -> Reading {
        let of = |side, job: Option<Job>| self.get(job?, side, row.figure);
        let (ours, theirs) = (of(Side::Ours, row.ours), of(Side::Ulfm, row.theirs));
        let ratio = ours.zip(theirs).map(|(ours, theirs)| ours.median / theirs.median);
        let is_met = ratio.zip(row.bar).map(|(ratio, bar)| ratio <= bar);
        let partings = row.theirs.and_then(|job| self.partings.get(&job).copied()).unwrap_or_default();
        Reading { ours, theirs, ratio, is_met, partings }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::job::tests::FRESH;
    use super::*;

    /// With one figure, which is in both kinds of rows.
    pub(in super::super) fn sample(round: usize, side: Side, job: Job, seconds: f64) -> Sample {
        let figures = vec![(Figure::Known, seconds / 4.0), (Figure::Resumed, seconds)];
        Sample { round, side, job, figures, parting: Parting::Well, foreign: 0.0 }
    }

    fn row(name: &str) -> Row {
        Row::choose(&[name], true).unwrap().swap_remove(0)
    }

    #[test]
    fn medians_and_their_ratio() {
        let summary = |ours: f64| {
            Summary::of(&[
                sample(0, Side::Ours, FRESH, 9.0),
                sample(0, Side::Ulfm, FRESH, 10.0),
                sample(1, Side::Ours, FRESH, ours),
                Sample { parting: Parting::Badly, ..sample(1, Side::Ulfm, FRESH, 8.0) },
                sample(2, Side::Ours, FRESH, 1.0),
                Sample { parting: Parting::Hung, ..sample(2, Side::Ulfm, FRESH, 90.0) },
            ])
        };
        let reading = summary(2.5).read(&row("fresh-8x1"));
        let middle = |median, lowest, highest| Some(Middle { median, lowest, highest, starts: 3 });
        assert_eq!(reading.ours, middle(2500.0, 1000.0, 9000.0));
        assert_eq!(reading.theirs, middle(10_000.0, 8000.0, 90_000.0));
        assert_eq!((reading.ratio, reading.is_met), (Some(0.25), Some(true)));
        assert_eq!(reading.partings, Partings { well: 1, badly: 1, hung: 1 });
        assert_eq!(reading.partings.to_string(), "1 well, 1 badly, 1 hung");
        assert_eq!(summary(2.6).read(&row("fresh-8x1")).is_met, Some(false));
    }

    #[test]
    fn a_spare_is_held_against_a_fresh_process() {
        let spare = Job { spares: 1, ..FRESH };
        let summary = Summary::of(&[sample(0, Side::Ours, spare, 0.5), sample(0, Side::Ulfm, FRESH, 4.0)]);
        let reading = summary.read(&row("spare-8x1"));
        assert_eq!((reading.ratio, reading.is_met), (Some(0.125), Some(false)));
        let fresh = summary.read(&row("fresh-8x1"));
        assert_eq!((fresh.ours, fresh.ratio, fresh.is_met), (None, None, None));
    }

    #[test]
    fn what_is_alone_has_no_ratio() {
        let job = row("known-4x1").ours.unwrap();
        let summary = Summary::of(&[sample(0, Side::Ours, job, 1.0)]);
        let reading = summary.read(&row("known-4x1"));
        assert_eq!((reading.ours.unwrap().median, reading.ratio, reading.is_met), (250.0, None, None));
        let shrink = row("shrink-8x1").theirs.unwrap();
        let summary = Summary::of(&[sample(0, Side::Ulfm, shrink, 1.0)]);
        let reading = summary.read(&row("shrink-8x1"));
        assert_eq!((reading.ours, reading.theirs.unwrap().median), (None, 1000.0));
    }
}
