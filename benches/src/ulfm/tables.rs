//! What the numbers say, and what a reader has to know.

use ft_figures::Table;

use super::job::{Change, Side, Start};
use super::row::Row;
use super::sides::{GRACE, Took};
use crate::comparison::{Ratio, Samples, beside, few_rounds, table};
use ft_tools::harness::{Middle, Parting, shown};

/// Fewer rounds are no figures to quote.
const FEWEST: usize = 7;
/// Where ours is measured by another program.
const ELSEWHERE: &str = "elsewhere";

pub(super) type Measured = Samples<Start, Took>;

pub(super) fn all(rows: &[Row], samples: &Measured) -> Vec<(&'static str, Table)> {
    let mut all = vec![("Bars", bars(rows, samples)), ("All figures, ms since the kill", figures(samples))];
    let partings = partings(samples);
    all.extend((!partings.rows.is_empty()).then_some(("How Open MPI ended", partings)));
    all
}

/// Milliseconds of a figure.
fn ms(samples: &Measured, start: Start, name: &str) -> Option<Middle> {
    samples.middle(start, |took| {
        let (_, seconds) = took.figures.iter().find(|(other, _)| *other == name)?;
        Some(seconds * 1e3)
    })
}

fn bars(rows: &[Row], samples: &Measured) -> Table {
    let rows = rows.iter().map(|row| {
        let of = |side, job| ms(samples, Start { side, job: job? }, row.figure);
        let (ours, theirs) = (of(Side::Ours, row.ours), of(Side::Ulfm, row.theirs));
        let words = [
            row.title.to_owned(),
            if row.ours.is_some() { shown(ours) } else { ELSEWHERE.to_owned() },
            if row.theirs.is_some() { shown(theirs) } else { "-".to_owned() },
        ];
        (words, Ratio::of_medians(ours, theirs), row.bar)
    });
    beside(["figure", "ours", "ULFM", "ours / ULFM"], rows)
}

fn figures(samples: &Measured) -> Table {
    let mut starts = samples.jobs();
    starts.sort_by_key(|start| (start.job, start.side));
    let rows = starts.into_iter().flat_map(|start| {
        let names = samples.of(start).next().map_or(&[][..], |sample| &sample.took.figures);
        let row = move |&(name, _): &(&str, f64)| {
            [start.job.to_string(), start.side.to_string(), name.to_owned(), shown(ms(samples, start, name))]
        };
        names.iter().map(row)
    });
    table(["job", "side", "figure", "ms"], rows)
}

/// How many ended so.
fn count(samples: &Measured, start: Start, parting: Parting) -> usize {
    samples.of(start).filter(|sample| sample.took.parting == parting).count()
}

fn word(parting: Parting) -> &'static str {
    match parting {
        Parting::Well => "well",
        Parting::Badly => "badly",
        Parting::Hung => "hung",
    }
}

/// Of each job of theirs, "5 well, 2 hung".
fn partings(samples: &Measured) -> Table {
    let theirs = samples.jobs().into_iter().filter(|start| start.side == Side::Ulfm);
    let rows = theirs.map(|start| {
        let counts =
            [Parting::Well, Parting::Badly, Parting::Hung].map(|how| (count(samples, start, how), how));
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        let words: Vec<String> = counts.map(|(count, how)| format!("{count} {}", word(how))).collect();
        [start.job.to_string(), words.join(", ")]
    });
    table(["job", "ended"], rows)
}

/// One row for each figure of each run.
pub(super) fn measurements(samples: &Measured) -> Table {
    let rows = samples.0.iter().flat_map(|sample| {
        let Start { side, job } = sample.job;
        sample.took.figures.iter().map(move |(figure, seconds)| {
            let [round, ranks, mib, lost, spares] =
                [sample.round, job.ranks, job.mib, job.lost, job.spares].map(|count| count.to_string());
            let (side, task, figure) = (side.to_string(), job.task.to_string(), (*figure).to_owned());
            let change = if job.change == Change::All { "all" } else { "slice" };
            let (change, kept) = (change.to_owned(), job.keeps.to_string());
            let (ms, ended) = (format!("{:.6}", seconds * 1e3), word(sample.took.parting).to_owned());
            let foreign = format!("{:.3}", sample.foreign);
            [round, side, task, ranks, mib, lost, spares, change, kept, figure, ms, ended, foreign]
        })
    });
    let header = [
        "round", "side", "task", "ranks", "mib", "lost", "spares", "change", "kept", "figure", "ms", "ended",
        "foreign",
    ];
    table(header, rows)
}

/// What a reader has to know to read the tables.
pub(super) fn notes(rows: &[Row], rounds: usize, with_ulfm: bool, samples: &Measured) -> Vec<String> {
    let mut all = Vec::new();
    let mut say = |applies: bool, text: &str| all.extend(applies.then(|| text.to_owned()));
    let has = |is: fn(&Row) -> bool| rows.iter().any(is);
    say(!with_ulfm, "ULFM was not measured: --openmpi DIR names the folder of Open MPI 5.");
    say(
        has(|row| row.figure == "known"),
        "Last survivor knows: ours is an upper bound, detection and agreement, that is until the launcher has heard that \
         all survivors have stopped; theirs is the error that the last survivor gets.",
    );
    say(
        has(|row| row.theirs.is_some_and(|job| job.lost == 2)),
        "Two at once: theirs is timed from the later of the two deaths, ours from that of the rank that was noticed first.",
    );
    say(has(|row| row.ours.is_none()), "Rows without figures of ours: `examples/survivors` has them.");
    let theirs = samples.jobs().into_iter().filter(|start| start.side == Side::Ulfm && start.job.lost > 0);
    let theirs: Vec<Start> = theirs.collect();
    let ended = |how| theirs.iter().map(|start| count(samples, *start, how)).sum::<usize>();
    let [well, badly, hung] = [Parting::Well, Parting::Badly, Parting::Hung].map(ended);
    let parted = format!(
        "Of {} recoveries of ULFM with the right answer {hung} hung in MPI_Finalize (they were killed {} s after all ranks had \
         answered) and {badly} ended with an error; they count.",
        well + badly + hung,
        GRACE.as_secs()
    );
    say(!theirs.is_empty(), &parted);
    all.extend(few_rounds(rounds, FEWEST));
    all
}

#[cfg(test)]
mod tests {
    use super::super::job::Job;
    use super::super::job::tests::{AGREE, FRESH, SHRINK};
    use super::*;
    use crate::comparison::Sample;

    fn samples() -> Measured {
        let sample = |round, side, job: Job, seconds: f64, parting| {
            let figures = vec![("known", seconds / 4.0), ("resumed", seconds)];
            Sample { round, job: Start { side, job }, took: Took { figures, parting }, foreign: 0.0 }
        };
        let spare = Job { spares: 1, ..FRESH };
        Samples(vec![
            sample(0, Side::Ours, FRESH, 0.016, Parting::Well),
            sample(0, Side::Ulfm, FRESH, 0.064, Parting::Hung),
            sample(1, Side::Ours, FRESH, 0.024, Parting::Well),
            sample(1, Side::Ulfm, FRESH, 0.064, Parting::Badly),
            sample(0, Side::Ulfm, SHRINK, 0.004, Parting::Well),
            sample(0, Side::Ours, spare, 0.004, Parting::Well),
            sample(0, Side::Ulfm, AGREE, 0.004, Parting::Hung),
        ])
    }

    fn rows(names: &[&str]) -> Vec<Row> {
        Row::choose(names, false).unwrap()
    }

    #[test]
    fn tables_by_hand() {
        let rows = rows(&["fresh-8x1", "spare-8x1", "two-8x1", "known-4x1", "shrink-8x1"]);
        let bars = bars(&rows, &samples()).rows;
        let title = "fresh process, 8 ranks x 1 MiB";
        assert_eq!(bars[0], [title, "20.0 [16.0..24.0]", "64.0 [64.0..64.0]", "0.312", "<= 0.08", "NO"]);
        assert_eq!(bars[1][3..], ["0.062", "<= 0.05", "NO"], "a spare is held against a fresh process");
        assert_eq!(bars[2][1..], ["", "", "", "<= 0.4", "?"]);
        assert_eq!(bars[3][1..], ["", "-", "", "", ""]);
        assert_eq!(bars[4][1..], [ELSEWHERE, "4.00", "", "", ""]);
        let known = ["rebuild, 8 ranks x 1 MiB, 1 lost", "ulfm", "known", "16.0 [16.0..16.0]"];
        assert_eq!(figures(&samples()).rows[2], known);
        assert_eq!(partings(&samples()).rows[0], [known[0], "1 badly, 1 hung"]);
    }

    #[test]
    fn one_row_a_figure() {
        let rows = measurements(&samples()).rows;
        assert_eq!(rows.len(), 2 * 7);
        assert_eq!(rows[3].join(","), "0,ulfm,rebuild,8,1,1,0,slice,false,resumed,64.000000,hung,0.000");
    }

    #[test]
    fn notes_say_what_applies() {
        let none = Samples(vec![]);
        assert_eq!(notes(&rows(&["fresh-8x1"]), FEWEST, true, &none), [""; 0]);
        assert_eq!(notes(&rows(&["known-8x64", "two-8x1", "agree-8"]), 1, false, &none).len(), 5);
        let said = notes(&rows(&["fresh-8x1"]), FEWEST, true, &samples());
        let parted = "Of 3 recoveries of ULFM with the right answer 1 hung in MPI_Finalize ";
        assert!(said[0].starts_with(parted) && said[0].contains(" and 1 ended with an error;"), "{said:?}");
    }
}
