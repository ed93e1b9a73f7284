//! What the numbers say, and what a reader has to know.

use ft_figures::Table;
use serde_json::{Value, json};

use super::job::{Job, Sizes};
use super::row::{Row, TABLES};
use super::took::Took;
use crate::comparison::{Ratio, Samples, Watch, beside, few_rounds, table, verdict};
use ft_tools::harness::{Middle, shown};

/// Fewer rounds are no figures to quote.
const FEWEST: usize = 7;

pub(super) type Measured = Samples<Job, Took>;

/// What was done.
pub(super) fn head(rounds: usize, Sizes { mib, repeats, .. }: &Sizes) -> String {
    format!(
        "{rounds} rounds, {mib} MiB a rank; ms are medians over rounds [lowest..highest], each the median of {repeats} checkpoints from \
         the first rank's start to the last rank's end; ratios are those within a round, medians [with bounds of 95 %]"
    )
}

pub(super) fn all(rows: &[Row], samples: &Measured, mib: usize) -> Vec<(&'static str, Table)> {
    let bars = TABLES.into_iter().enumerate().map(|(at, (title, header))| {
        let rows = rows.iter().filter(|row| row.table == at).map(|row| {
            let words = [row.title.clone(), shown(ms(samples, row.above)), shown(ms(samples, row.below))];
            (words, ratio(samples, row), Some(row.bar))
        });
        (title, beside(header, rows))
    });
    let more = [("The disk", disk(samples, mib)), ("Where the time goes, ms", parts(samples))];
    bars.chain(more).filter(|(_, table)| !table.rows.is_empty()).collect()
}

fn ms(samples: &Measured, job: Job) -> Option<Middle> {
    samples.middle(job, |took| Some(took.seconds * 1e3))
}

fn ratio(samples: &Measured, row: &Row) -> Option<Ratio> {
    let seconds = |took: &Took| Some(took.seconds);
    let pairs = samples.pairs((row.above, seconds), (row.below, seconds));
    Ratio::with_confidence(&pairs.into_iter().map(|(_, [above, below])| above / below).collect::<Vec<_>>())
}

/// The speed of the disk, as its writers see it.
fn disk(samples: &Measured, mib: usize) -> Table {
    let rows = samples.jobs().into_iter().filter_map(|job| {
        let (Job::File(ranks) | Job::Shared(ranks)) = job else { return None };
        let megabytes = ((ranks * mib) << 20) as f64 / 1e6;
        let speed = samples.middle(job, |took| Some(megabytes / took.seconds));
        Some([job.to_string(), shown(ms(samples, job)), shown(speed)])
    });
    table(["job", "ms", "MB/s of all ranks"], rows)
}

/// Medians of the phases.
fn parts(samples: &Measured) -> Table {
    let jobs = samples.jobs().into_iter().filter(|job| !matches!(job, Job::Solver { .. }));
    let rows = jobs.filter_map(|job| {
        let parts = &samples.of(job).next()?.took.parts;
        let part = |(at, (name, _)): (usize, &(&str, f64))| {
            let ms = samples.middle(job, |took| Some(took.parts[at].1 * 1e3))?;
            Some(format!("{name} {:.1}", ms.median))
        };
        let parts: Vec<String> = parts.iter().enumerate().filter_map(part).collect();
        (!parts.is_empty()).then(|| [job.to_string(), parts.join(", ")])
    });
    table(["job", "at the rank where it took longest"], rows)
}

/// One row for each figure of each job.
pub(super) fn measurements(samples: &Measured) -> Table {
    let rows = samples.0.iter().flat_map(|sample| {
        let figures =
            std::iter::once(("seconds", sample.took.seconds)).chain(sample.took.parts.iter().copied());
        figures.map(move |(figure, value)| {
            let (round, job) = (sample.round.to_string(), format!("\"{}\"", sample.job));
            [round, job, figure.to_owned(), format!("{value:.9}"), format!("{:.3}", sample.foreign)]
        })
    });
    table(["round", "job", "figure", "value", "foreign"], rows)
}

/// The rows.
pub(super) fn json(
    rows: &[Row],
    samples: &Measured,
    watch: &Watch<'_>,
    rounds: usize,
    mib: usize,
    remarks: &[String],
) -> Value {
    let rows = rows.iter().map(|row| {
        let ms = |job| ms(samples, job).map(|middle| middle.median);
        let ratio = ratio(samples, row);
        let (median, bounds) = (ratio.map(|ratio| ratio.median), ratio.and_then(|ratio| ratio.bounds));
        json!({
            "row": row.name, "above": row.above.to_string(), "below": row.below.to_string(),
            "above_ms": ms(row.above), "below_ms": ms(row.below), "ratio": median,
            "low": bounds.map(|[low, _]| low), "high": bounds.map(|[_, high]| high),
            "bar": row.bar.to_string(), "met": verdict(&[(Some(row.bar), median)]),
        })
    });
    let rows: Vec<Value> = rows.collect();
    json!({"machine": watch.machine, "rounds": rounds, "mib": mib, "rows": rows, "remarks": remarks})
}

/// What a reader has to know to read the tables.
pub(super) fn notes(rows: &[Row], sizes: &Sizes, rounds: usize, with_mpi: bool) -> Vec<String> {
    let mut all = Vec::new();
    let mut say = |applies: bool, text: String| all.extend(applies.then_some(text));
    let has = |is: fn(&Job) -> bool| rows.iter().any(|row| is(&row.above) || is(&row.below));
    say(
        !with_mpi && has(|job| matches!(job, Job::Shared(_))),
        "The shared file was not measured: --openmpi DIR names the folder of Open MPI.".into(),
    );
    say(
        has(|job| matches!(job, Job::Solver { .. })),
        format!(
            "The solver has {} ranks and takes an asynchronous checkpoint every {} s.",
            sizes.solver_ranks, sizes.interval_s
        ),
    );
    say(
        has(|job| matches!(job, Job::Rebuild(_))),
        "A rebuild is the whole restore, from the end of the repair until all ranks go on with checked bytes; who waits for the one \
         that rebuilds does so in its load."
            .into(),
    );
    all.extend(few_rounds(rounds, FEWEST));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::Sample;

    fn rows() -> Vec<Row> {
        Row::choose(&["floor-4-unix-xor", "file-4-unix-xor", "held-4", "rebuild-4"]).unwrap()
    }

    fn samples() -> Measured {
        let (ours, floor) = (rows()[0].above, rows()[0].below);
        let sample = |round, job, seconds, parts| {
            let took = Took { seconds, parts, answer: None };
            Sample { round, job, took, foreign: 0.25 }
        };
        Samples(vec![
            sample(0, ours, 0.4, vec![("copy", 0.1)]),
            sample(0, floor, 0.2, vec![]),
            sample(0, Job::File(4), 0.8, vec![]),
            sample(1, floor, 0.4, vec![]),
            sample(1, ours, 0.5, vec![("copy", 0.2)]),
            sample(2, ours, 0.5, vec![("copy", 0.3)]),
            sample(2, floor, 0.5, vec![]),
        ])
    }

    #[test]
    fn tables_by_hand() {
        let tables = all(&rows(), &samples(), 64);
        let titles: Vec<&str> = tables.iter().map(|(title, _)| *title).collect();
        assert_eq!(titles, [TABLES[0].0, TABLES[1].0, TABLES[3].0, "The disk", "Where the time goes, ms"]);
        let row = |table: usize, row: usize| tables[table].1.rows[row].join("|");
        assert_eq!(
            row(0, 0),
            "4 ranks, unix, xor|500 [400..500]|400 [200..500]|1.25 [1.00..2.00]|<= 1.3|yes"
        );
        assert_eq!(row(1, 0), "4 ranks, unix, xor|800|500 [400..500]|2.00 [2.00..2.00]|>= 1.8|yes");
        let title = "held by an asynchronous checkpoint over the copy alone, 4 ranks";
        assert_eq!(row(2, 0), format!("{title}||||<= 1.3|?"));
        assert_eq!(row(3, 0), "a file a rank: 4 ranks|800|336");
        assert_eq!(row(4, 0), "ours: 4 ranks, unix, xor|copy 200.0");
        let json = json(&rows(), &samples(), &Watch::unseen(&|| false), 3, 64, &[]);
        assert_eq!((&json["rows"][0]["ratio"], &json["rows"][2]["met"]), (&json!(1.25), &Value::Null));
    }

    #[test]
    fn one_line_a_figure() {
        let rows = measurements(&samples()).rows;
        assert_eq!(rows.len(), 7 + 3);
        assert_eq!(rows[1].join(","), "0,\"ours: 4 ranks, unix, xor\",copy,0.100000000,0.250");
    }

    #[test]
    fn notes_say_what_applies() {
        let sizes = Sizes { mib: 64, repeats: 3, solver_ranks: 4, solver_s: 10.0, interval_s: 2.0 };
        let said = notes(&Row::choose(&["shared-4", "held", "solver", "rebuild"]).unwrap(), &sizes, 2, false);
        assert_eq!(said.len(), 4, "{said:?}");
        assert!(said[1].contains("4 ranks and takes an asynchronous checkpoint every 2 s"), "{said:?}");
        assert_eq!(notes(&Row::choose(&["floor", "file"]).unwrap(), &sizes, FEWEST, false), [""; 0]);
    }
}
