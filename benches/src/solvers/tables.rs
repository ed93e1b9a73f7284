//! What the numbers say.

use ft_figures::Table;

use super::case::{CASES, DOTS, Figure, MESSAGES_US, SMALL};
use super::sides::{Figures, Job};
use crate::comparison::{Bar, Ratio, Samples, met, table};
use ft_tools::harness::shown;

pub(super) type Measured = Samples<Job, Figures>;

/// What was done.
pub(super) fn head(rounds: usize, petsc: &str) -> String {
    format!(
        "{rounds} rounds; PETSc {petsc}; ours and PETSc are medians over rounds of the best of a start [lowest..highest]; ours / PETSc \
         is the median of the ratios in a round [lowest..highest], best / best that of the bests of all rounds"
    )
}

pub(super) fn all(samples: &Measured) -> Vec<(&'static str, Table)> {
    let tables = [
        ("Beside PETSc", beside(samples)),
        ("Messages of an iteration, us", messages(samples)),
        ("Dot products", dots(samples)),
    ];
    tables.into_iter().filter(|(_, table)| !table.rows.is_empty()).collect()
}

/// A figure of a job.
type Of = (Job, Figure);

fn read(figure: Figure) -> impl Fn(&Figures) -> Option<f64> {
    move |figures| figures.get(&figure).copied()
}

/// One figure over another: in words, and the ratio that counts.
fn compared(samples: &Measured, what: String, above: Of, below: Of, bar: Option<f64>) -> Option<[String; 7]> {
    let pairs = samples.pairs((above.0, read(above.1)), (below.0, read(below.1)));
    let ratio = Ratio::in_rounds(&pairs.iter().map(|(_, [above, below])| above / below).collect::<Vec<_>>())?;
    let (factor, unit) = above.1.unit();
    let words = |of: Of| shown(samples.middle(of.0, |figures| Some(factor * read(of.1)(figures)?)));
    let best = |of: Of| samples.middle(of.0, read(of.1)).map_or(f64::NAN, |middle| middle.lowest);
    let bar = bar.map(Bar::AtMost);
    Some([
        format!("{what}{unit}"),
        words(above),
        words(below),
        ratio.to_string(),
        format!("{:.2}", best(above) / best(below)),
        bar.map_or_else(String::new, |bar| bar.to_string()),
        met(&[(bar, Some(ratio.median))]).to_owned(),
    ])
}

fn beside(samples: &Measured) -> Table {
    let jobs = samples.jobs();
    let ours = jobs
        .iter()
        .filter_map(|job| if let Job::Ours { case, ranks } = *job { Some((case, ranks)) } else { None });
    let rows = ours.flat_map(|(case, ranks)| {
        let [ours, petsc] = Job::beside(case, ranks);
        CASES[case].task.figures().iter().filter_map(move |&figure| {
            let bar = CASES[case].bars.iter().find(|(of, _)| *of == figure).map(|(_, bar)| *bar);
            let what = format!("{}, {ranks} ranks, {figure}", CASES[case].name);
            compared(samples, what, (ours, figure), (petsc, figure), bar)
        })
    });
    table(["case", "ours", "PETSc", "ours / PETSc", "best / best", "bar", "met"], rows)
}

fn dots(samples: &Measured) -> Table {
    let rows = DOTS.into_iter().filter_map(|(n, bar)| {
        let [ours, plain] = [Figure::Reproducible, Figure::Plain].map(|figure| (Job::Dot(n), figure));
        compared(samples, format!("n = {n}"), ours, plain, Some(bar))
    });
    table(["vectors", "reproducible", "plain", "reproducible / plain", "best / best", "bar", "met"], rows)
}

/// What an iteration on two ranks takes beyond half of one on one rank, of bests.
fn messages(samples: &Measured) -> Table {
    let rows = CASES.iter().position(|case| case.name == SMALL).into_iter().flat_map(|case| {
        [0, 1].into_iter().filter_map(move |side| {
            let us = |ranks| {
                let job = Job::beside(case, ranks)[side];
                Some(1e6 * samples.middle(job, read(Figure::Iteration))?.lowest)
            };
            let (one, two) = (us(1)?, us(2)?);
            let took = two - one / 2.0;
            let bar = (side == 0).then_some(Bar::AtMost(MESSAGES_US));
            Some([
                ["ours", "PETSc"][side].to_owned(),
                format!("{one:.2}"),
                format!("{two:.2}"),
                format!("{took:.2}"),
                bar.map_or_else(String::new, |bar| bar.to_string()),
                met(&[(bar, Some(took))]).to_owned(),
            ])
        })
    });
    table(["side", "1 rank", "2 ranks", "messages", "bar", "met"], rows)
}

/// One row for each figure of each start.
pub(super) fn measurements(samples: &Measured) -> Table {
    let rows = samples.0.iter().flat_map(|sample| {
        sample.took.iter().map(move |(figure, value)| {
            let (round, job) = (sample.round.to_string(), format!("\"{}\"", sample.job));
            [round, job, figure.to_string(), format!("{value:.9e}"), format!("{:.3}", sample.foreign)]
        })
    });
    table(["round", "job", "figure", "value", "foreign"], rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::Sample;

    fn samples(name: &str, figure: Figure, times: &[(usize, [f64; 2])]) -> Measured {
        let case = CASES.iter().position(|case| case.name == name).unwrap();
        let starts = times.iter().enumerate().flat_map(|(round, &(ranks, seconds))| {
            let sample = move |(job, seconds)| Sample {
                round,
                job,
                took: Figures::from([(figure, seconds)]),
                foreign: 0.0,
            };
            Job::beside(case, ranks).into_iter().zip(seconds).map(sample)
        });
        Samples(starts.collect())
    }

    #[test]
    fn ratios_are_those_of_rounds_and_of_bests() {
        let times = [(1, [2e-6, 4e-6]), (1, [3e-6, 3e-6]), (1, [1.5e-6, 5e-6])];
        let samples = samples("jacobi-494_bus", Figure::Iteration, &times);
        let rows = all(&samples)[0].1.rows.clone();
        let due = "jacobi-494_bus, 1 ranks, iteration, us|2.00 [1.50..3.00]|4.00 [3.00..5.00]|0.50 [0.30..1.00]|0.50|<= 1|yes";
        assert_eq!(rows, [due.split('|').collect::<Vec<_>>()]);
        assert_eq!(
            measurements(&samples).rows[1].join(","),
            "0,\"PETSc: jacobi-494_bus, 1 ranks\",iteration,4.000000000e-6,0.000"
        );
    }

    #[test]
    fn messages_are_what_two_ranks_take_beyond_their_work() {
        let samples =
            samples(SMALL, Figure::Iteration, &[(1, [2e-6, 3e-6]), (2, [9e-6, 4e-6]), (2, [8e-6, 5e-6])]);
        let rows = messages(&samples).rows;
        assert_eq!(rows[0].join("|"), "ours|2.00|8.00|7.00|<= 6|NO");
        assert_eq!(rows[1].join("|"), "PETSc|3.00|4.00|2.50||");
    }

    #[test]
    fn what_was_not_measured_has_no_rows() {
        assert_eq!(all(&Samples(vec![])).len(), 0);
    }
}
