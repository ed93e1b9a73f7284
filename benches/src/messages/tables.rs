//! What the numbers say.

use ft_figures::Table;

use super::case::{Job, Task};
use super::measured::{COLUMNS, Measured};
use super::row::{Row, name};
use super::side::Side;
use super::test::{Operation, Test};
use crate::comparison::{Ratio, Samples, Trial, met, table};
use ft_tools::harness::{Middle, shown};

pub(super) type All = Samples<Job, Vec<Measured>>;

/// The middle of a test over process starts.
fn middle(samples: &All, side: Side, task: Task, test: Test) -> Option<Middle> {
    let read = |lines: &Vec<Measured>| lines.iter().find(|line| line.test == test).map(|line| line.value);
    samples.middle(Job { task, side }, read)
}

/// A row beside the figures.
struct Reading {
    ours: Option<Middle>,
    raw: Option<Middle>,
    mpich: Option<Middle>,
    openmpi: Option<Middle>,
    to_raw: Option<Ratio>,
    /// Of ours to the better MPI.
    to_mpi: Option<Ratio>,
}

impl Reading {
    fn of(row: &Row, samples: &All) -> Self {
        let figure = |side: Side| figure(row, samples, side);
        let is_there = |side: &&Side| samples.0.iter().any(|sample| sample.job.side == **side);
        let first = |sides: &[Side]| sides.iter().find(is_there).and_then(|&side| figure(side));
        let better = |a: Middle, b: Middle| better(row.operation(), a, b);
        let best = |sides: &[Side]| sides.iter().filter_map(|&side| figure(side)).reduce(better);
        let (ours, raw) = (first(row.field.ours), first(row.field.raw));
        let (mpich, openmpi) = (best(row.field.mpich), best(row.field.openmpi));
        let mpi = mpich.into_iter().chain(openmpi).reduce(better);
        let (to_raw, to_mpi) = (Ratio::of_medians(ours, raw), Ratio::of_medians(ours, mpi));
        Self { ours, raw, mpich, openmpi, to_raw, to_mpi }
    }

    fn trials(&self, row: &Row) -> [Trial; 3] {
        let median = |ratio: Option<Ratio>| ratio.map(|ratio| ratio.median);
        [
            (row.of_raw, median(self.to_raw)),
            (row.of_mpi, median(self.to_mpi)),
            (row.itself, self.ours.map(|ours| ours.median)),
        ]
    }
}

/// What a side has in a row: the slowest of several tests, which all have to be there.
fn figure(row: &Row, samples: &All, side: Side) -> Option<Middle> {
    let tests = row.tests.iter().map(|&test| middle(samples, side, row.task, test));
    let slower = |a: Middle, b: Middle| if a.median >= b.median { a } else { b };
    tests.collect::<Option<Vec<_>>>()?.into_iter().reduce(slower)
}

fn better(operation: Operation, a: Middle, b: Middle) -> Middle {
    if (a.median > b.median) == operation.is_speed() { a } else { b }
}

/// The rows that have figures of ours: where nothing was measured nothing was asked.
pub(super) fn bars(rows: &[Row], samples: &All) -> Table {
    let readings = rows.iter().map(|row| (row, Reading::of(row, samples)));
    let rows = readings.filter(|(_, reading)| reading.ours.is_some()).map(|(row, reading)| {
        let ratio = |ratio: Option<Ratio>| ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"));
        [
            row.figure.clone(),
            row.operation().unit().to_owned(),
            shown(reading.ours),
            shown(reading.raw),
            shown(reading.mpich),
            shown(reading.openmpi),
            ratio(reading.to_raw),
            ratio(reading.to_mpi),
            row.words(),
            met(&reading.trials(row)).to_owned(),
        ]
    });
    table(["figure", "unit", "ours", "raw", "MPICH", "Open MPI", "x raw", "x MPI", "bar", "met"], rows)
}

/// Every test, with a column for each side.
pub(super) fn figures(sides: &[Side], samples: &All) -> Table {
    let lines = samples.0.iter().flat_map(|sample| &sample.took);
    let mut tests: Vec<(Test, usize)> = lines.map(|line| (line.test, line.ranks)).collect();
    tests.sort_unstable();
    tests.dedup();
    let rows = tests.into_iter().map(|(test, ranks)| {
        let cell = |&side| shown(middle(samples, side, Task::of(test, ranks), test));
        let start = [name(test, ranks), test.operation.unit().to_owned()];
        start.into_iter().chain(sides.iter().map(cell)).collect()
    });
    let header = ["figure", "unit"].map(str::to_owned).into_iter();
    Table { header: header.chain(sides.iter().map(ToString::to_string)).collect(), rows: rows.collect() }
}

/// One row for each line that a program printed.
pub(super) fn measurements(congestion: &str, samples: &All) -> Table {
    let rows = samples.0.iter().flat_map(|sample| {
        let row = move |line: &Measured| {
            let (round, side) = (sample.round.to_string(), sample.job.side.to_string());
            [round, side, congestion.to_owned(), line.to_string(), format!("{:.3}", sample.foreign)]
        };
        sample.took.iter().map(row)
    });
    table(["round", "side", "congestion", COLUMNS, "foreign"], rows)
}

#[cfg(test)]
mod tests {
    use super::super::case::START;
    use super::super::row;
    use super::super::test::COLLECTIVES;
    use super::*;
    use crate::comparison::Sample;

    const LATENCY: Test = Test { operation: Operation::Latency, bytes: 8 };
    const RATE: Test = Test { operation: Operation::Rate, bytes: 8 };

    /// One start in each round.
    fn samples(values: &[(Side, Test, usize, &[f64])]) -> All {
        let sample = |side, test, ranks, round, value| {
            let line = Measured { test, ranks, value, p10: value, p90: value, batches: 21, iterations: 3 };
            Sample { round, job: Job { task: Task::of(test, ranks), side }, took: vec![line], foreign: 0.0 }
        };
        let starts = values.iter().flat_map(|&(side, test, ranks, values)| {
            values.iter().enumerate().map(move |(round, &value)| sample(side, test, ranks, round, value))
        });
        Samples(starts.collect())
    }

    /// The row of a figure, from the ratio to sockets on.
    fn read(figure: &str, samples: &All) -> [String; 4] {
        let row = row::all(&[2, 4, 8], 2).into_iter().find(|row| row.figure == figure).unwrap();
        let bars = bars(&[row], samples).rows.swap_remove(0);
        bars[6..].to_vec().try_into().unwrap()
    }

    #[test]
    fn times_against_the_faster_one() {
        let read = |ours| {
            let figures = samples(&[
                (Side::Comm, LATENCY, 2, &[100.0]),
                (Side::CommTcp, LATENCY, 2, &[ours]),
                (Side::RawTcp, LATENCY, 2, &[1.0]),
                (Side::RawTcpLikeComm, LATENCY, 2, &[3.5]),
                (Side::Mpich, LATENCY, 2, &[6.0]),
                (Side::OpenMpi, LATENCY, 2, &[5.0]),
                (Side::OpenMpiShared, LATENCY, 2, &[0.5]),
            ]);
            read("ping-pong 8 B", &figures)
        };
        let bar = "<= 1.2 raw, <= 0.85 MPI";
        assert_eq!(read(4.0), ["1.14", "0.80", bar, "yes"]);
        // 4.2 is 1.2 x 3.5, but 4.25 is 0.85 x 5; so the first limit is missed in between.
        assert_eq!(read(4.21), ["1.20", "0.84", bar, "NO"]);
    }

    #[test]
    fn speeds_against_the_faster_one() {
        let read = |ours| {
            let mpi = [(Side::Mpich, RATE, 2, &[0.25][..]), (Side::OpenMpi, RATE, 2, &[0.125])];
            let figures = samples(&[&[(Side::Comm, RATE, 2, &[ours][..])], &mpi[..]].concat());
            read("rate of 64 isends 8 B", &figures)
        };
        assert_eq!(read(2.0), ["", "8.00", ">= 8 MPI", "yes"]);
        assert_eq!(read(1.99)[3], "NO");
    }

    #[test]
    fn what_is_missing_leaves_it_open() {
        let read = |ours| {
            let figures = [(Side::Comm, LATENCY, 2, &[ours][..]), (Side::RawTcp, LATENCY, 2, &[3.5])];
            read("ping-pong 8 B", &samples(&figures))[3].clone()
        };
        assert_eq!((read(4.0), read(7.0)), ("?".into(), "NO".into()), "whatever MPI does");
        let row = row::all(&[2], 2);
        assert_eq!(bars(&row, &samples(&[(Side::Mpich, LATENCY, 2, &[1.0])])).rows.len(), 0);
    }

    #[test]
    fn the_start_is_held_against_the_fastest() {
        let figures = samples(&[
            (Side::Comm, START, 4, &[0.05]),
            (Side::Mpich, START, 4, &[0.2]),
            (Side::MpichShared, START, 4, &[0.11]),
            (Side::OpenMpi, START, 4, &[0.15]),
            (Side::OpenMpiShared, START, 4, &[0.14]),
        ]);
        assert_eq!(read("start, 4 ranks", &figures), ["", "0.45", "<= 0.5 MPI", "yes"]);
    }

    #[test]
    fn the_slowest_counts_and_all_have_to_be_there() {
        let small: Vec<Test> = COLLECTIVES.into_iter().filter(|test| test.bytes <= 64 << 10).collect();
        let read = |tests: &[Test], slowest: f64| {
            let values: Vec<[f64; 1]> =
                (0..tests.len()).map(|at| [if at == 1 { slowest } else { 50.0 }]).collect();
            let figures: Vec<_> = tests
                .iter()
                .zip(&values)
                .map(|(&test, value)| (Side::CommTcp, test, 8, &value[..]))
                .collect();
            let rows = row::all(&[8], 2).into_iter().filter(|row| row.itself.is_some()).take(1);
            let rows = bars(&rows.collect::<Vec<_>>(), &samples(&figures)).rows;
            rows.first().map(|row| (row[2].clone(), row[9].clone()))
        };
        assert_eq!(read(&small, 1999.0), Some(("1999".into(), "yes".into())));
        assert_eq!(read(&small, 2001.0), Some(("2001".into(), "NO".into())));
        assert_eq!(read(&small[1..], 1999.0), None);
    }

    #[test]
    fn every_side_has_a_column_and_every_line_a_row() {
        let samples = samples(&[
            (Side::Comm, LATENCY, 2, &[4.5, 5.5]),
            (Side::RawTcp, LATENCY, 2, &[3.0, 3.0]),
            (Side::Comm, COLLECTIVES[0], 2, &[9.0]),
        ]);
        let figures = figures(&[Side::RawTcp, Side::Comm, Side::Mpich], &samples);
        assert_eq!(figures.header, ["figure", "unit", "raw tcp", "comm", "mpich tcp"]);
        assert_eq!(figures.rows[0], ["ping-pong 8 B", "us", "3.00 [3.00..3.00]", "5.00 [4.50..5.50]", ""]);
        assert_eq!(figures.rows[1], ["barrier, 2 ranks", "us", "", "9.00", ""]);
        let lines = measurements("bbr", &samples);
        assert!(lines.header.join(",").starts_with("round,side,congestion,test,ranks,bytes,value,unit,"));
        assert_eq!(
            lines.rows[1].join(","),
            "1,comm,bbr,latency,2,8,5.500000,us,5.500000,5.500000,21,3,0.000"
        );
    }
}
