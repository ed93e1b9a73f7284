//! Medians over process starts, and ratios of them.

use std::collections::BTreeMap;

use super::bars::{Bar, Ours, Rival};
use super::session::Sample;
use super::side::Side;
use super::test::{Operation, Test};
use ft_tools::harness::Middle;

/// Medians of everything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary(BTreeMap<(Test, usize, Side), Middle>);

/// A bar beside the figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// `ft-comm`.
    pub ours: Option<Middle>,
    /// Sockets alone, under the same congestion control.
    pub raw: Option<Middle>,
    /// MPICH as the bar has it.
    pub mpich: Option<Middle>,
    /// Open MPI as the bar has it.
    pub openmpi: Option<Middle>,
    /// Ours over that of sockets.
    pub to_raw: Option<f64>,
    /// Ours over that of the better MPI.
    pub to_mpi: Option<f64>,
    /// Whether all limits are kept; none where a figure is missing that might decide it.
    pub is_met: Option<bool>,
}

impl Summary {
    /// Of all that was measured.
    pub fn of(samples: &[Sample]) -> Self {
        let mut values: BTreeMap<_, Vec<f64>> = BTreeMap::new();
        for Sample { side, measured, .. } in samples {
            values.entry((measured.test, measured.ranks, *side)).or_default().push(measured.value);
        }
        Self(values.into_iter().filter_map(|(key, values)| Some((key, Middle::of(&values)?))).collect())
    }

    /// One figure.
    pub fn get(&self, test: Test, ranks: usize, side: Side) -> Option<Middle> {
        self.0.get(&(test, ranks, side)).copied()
    }

    /// Tests and ranks that anybody measured, in their order.
    pub(crate) fn tests(&self) -> Vec<(Test, usize)> {
        let mut all: Vec<(Test, usize)> = self.0.keys().map(|&(test, ranks, _)| (test, ranks)).collect();
        all.dedup();
        all
    }

    /// Holds a bar against the figures.
    pub fn read(&self, bar: &Bar) -> Reading {
        let is_there = |side: Side| self.0.keys().any(|&(.., there)| there == side);
        // A launcher without a choice has one transport, a system whose congestion control suits one kind of sockets.
        let or = |side, other| if is_there(side) { side } else { other };
        let ours = match bar.ours {
            Ours::Tcp => or(Side::CommTcp, Side::Comm),
            Ours::Default => Side::Comm,
        };
        let (mpich, openmpi): (&[Side], &[Side]) = match bar.rival {
            Rival::Tcp => (&[Side::Mpich], &[Side::OpenMpi]),
            Rival::SharedMemory => (&[], &[Side::OpenMpiShared]),
            Rival::Any => (&[Side::Mpich, Side::MpichShared], &[Side::OpenMpi, Side::OpenMpiShared]),
        };
        let operation = bar.operation();
        let best = |sides: &[Side]| {
            sides.iter().filter_map(|&side| self.figure(bar, side)).reduce(|a, b| better(operation, a, b))
        };
        let raw = match bar.ours {
            Ours::Tcp => self.figure(bar, or(Side::RawTcpLikeComm, Side::RawTcp)),
            Ours::Default => None,
        };
        let (ours, mpich, openmpi) = (self.figure(bar, ours), best(mpich), best(openmpi));
        let mpi = [mpich, openmpi].into_iter().flatten().reduce(|a, b| better(operation, a, b));
        let ratio = |other: Option<Middle>| Some(ours?.median / other?.median);
        let (to_raw, to_mpi) = (ratio(raw), ratio(mpi));
        let is_met = verdict(
            operation,
            [(bar.of_raw, to_raw), (bar.of_mpi, to_mpi), (bar.at_most, ours.map(|ours| ours.median))],
        );
        Reading { ours, raw, mpich, openmpi, to_raw, to_mpi, is_met }
    }

    /// The figure of a bar: the worst of several.
    fn figure(&self, bar: &Bar, side: Side) -> Option<Middle> {
        let all: Option<Vec<Middle>> =
            bar.tests().into_iter().map(|test| self.get(test, bar.ranks, side)).collect();
        let slower = |a: Middle, b: Middle| if a.median >= b.median { a } else { b };
        all?.into_iter().reduce(slower)
    }
}

fn better(operation: Operation, a: Middle, b: Middle) -> Middle {
    if (a.median > b.median) == operation.is_speed() { a } else { b }
}

/// Missed if one limit is, unknown if one that is left cannot be tried.
fn verdict(operation: Operation, tries: [(Option<f64>, Option<f64>); 3]) -> Option<bool> {
    let keeps = |limit: f64, value: f64| if operation.is_speed() { value >= limit } else { value <= limit };
    let tried = tries.into_iter().filter_map(|(limit, value)| Some((limit?, value)));
    let outcomes: Vec<Option<bool>> =
        tried.map(|(limit, value)| value.map(|value| keeps(limit, value))).collect();
    if outcomes.contains(&Some(false)) {
        return Some(false);
    }
    (!outcomes.is_empty() && outcomes.iter().all(Option::is_some)).then_some(true)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::measured::Measured;
    use super::super::test::COLLECTIVES;
    use super::*;

    pub(crate) fn sample(round: usize, side: Side, test: Test, ranks: usize, value: f64) -> Sample {
        let measured = Measured { test, ranks, value, p10: value, p90: value, batches: 21, iterations: 3 };
        Sample { round, side, measured, foreign: 0.0 }
    }

    fn summary(values: &[(Side, Test, usize, &[f64])]) -> Summary {
        let samples = values.iter().flat_map(|&(side, test, ranks, values)| {
            let one = move |(round, &value): (usize, &f64)| sample(round, side, test, ranks, value);
            values.iter().enumerate().map(one)
        });
        Summary::of(&samples.collect::<Vec<_>>())
    }

    fn bar(figure: &str) -> Bar {
        Bar::all(&[2, 4, 8], 2).into_iter().find(|bar| bar.figure == figure).unwrap()
    }

    const LATENCY: Test = Test { operation: Operation::Latency, bytes: 8 };
    const RATE: Test = Test { operation: Operation::Rate, bytes: 8 };

    #[test]
    fn medians_over_starts() {
        let summary =
            summary(&[(Side::Comm, LATENCY, 2, &[5.0, 3.0, 4.0]), (Side::Comm, LATENCY, 4, &[1.0])]);
        let middle = summary.get(LATENCY, 2, Side::Comm).unwrap();
        assert_eq!(middle, Middle { median: 4.0, lowest: 3.0, highest: 5.0, starts: 3 });
        assert_eq!(summary.get(LATENCY, 2, Side::Mpich), None);
        assert_eq!(summary.tests(), [(LATENCY, 2), (LATENCY, 4)]);
    }

    #[test]
    fn times_against_the_faster_one() {
        let figures = |ours| {
            summary(&[
                (Side::Comm, LATENCY, 2, &[100.0]),
                (Side::CommTcp, LATENCY, 2, &[ours]),
                (Side::RawTcp, LATENCY, 2, &[1.0]),
                (Side::RawTcpLikeComm, LATENCY, 2, &[3.5]),
                (Side::Mpich, LATENCY, 2, &[6.0]),
                (Side::OpenMpi, LATENCY, 2, &[5.0]),
                (Side::OpenMpiShared, LATENCY, 2, &[0.5]),
            ])
        };
        let reading = figures(4.0).read(&bar("ping-pong 8 B"));
        assert_eq!(
            (reading.to_raw, reading.to_mpi, reading.is_met),
            (Some(4.0 / 3.5), Some(0.8), Some(true))
        );
        assert_eq!(reading.mpich.unwrap().median, 6.0);
        // 4.2 is 1.2 x 3.5, but 4.25 is 0.85 x 5; so the first limit is missed in between.
        assert_eq!(figures(4.21).read(&bar("ping-pong 8 B")).is_met, Some(false));
        assert_eq!(figures(9.0).read(&bar("ping-pong 8 B")).is_met, Some(false));
    }

    #[test]
    fn speeds_against_the_faster_one() {
        let figures = |ours| {
            summary(&[
                (Side::Comm, RATE, 2, &[ours]),
                (Side::Mpich, RATE, 2, &[0.25]),
                (Side::OpenMpi, RATE, 2, &[0.125]),
            ])
        };
        let bar = bar("rate of 64 isends 8 B");
        assert_eq!((figures(2.0).read(&bar).to_mpi, figures(2.0).read(&bar).is_met), (Some(8.0), Some(true)));
        assert_eq!(figures(1.99).read(&bar).is_met, Some(false));
    }

    #[test]
    fn what_is_missing_leaves_it_open() {
        let no_mpi = summary(&[(Side::Comm, LATENCY, 2, &[4.0]), (Side::RawTcp, LATENCY, 2, &[3.5])]);
        let reading = no_mpi.read(&bar("ping-pong 8 B"));
        assert_eq!((reading.is_met, reading.to_mpi), (None, None));
        assert!(reading.to_raw.is_some());
        let slow = summary(&[(Side::Comm, LATENCY, 2, &[7.0]), (Side::RawTcp, LATENCY, 2, &[3.5])]);
        assert_eq!(slow.read(&bar("ping-pong 8 B")).is_met, Some(false), "whatever MPI does");
        assert_eq!(Summary::default().read(&bar("ping-pong 8 B")).is_met, None);
    }

    #[test]
    fn the_start_is_held_against_the_fastest() {
        let start = Test { operation: Operation::Start, bytes: 0 };
        let figures = summary(&[
            (Side::Comm, start, 4, &[0.05]),
            (Side::Mpich, start, 4, &[0.2]),
            (Side::MpichShared, start, 4, &[0.11]),
            (Side::OpenMpi, start, 4, &[0.15]),
            (Side::OpenMpiShared, start, 4, &[0.14]),
        ]);
        let reading = figures.read(&bar("start, 4 ranks"));
        assert_eq!((reading.mpich.unwrap().median, reading.openmpi.unwrap().median), (0.11, 0.14));
        assert_eq!((reading.to_mpi, reading.is_met), (Some(0.05 / 0.11), Some(true)));
    }

    #[test]
    fn the_slowest_counts_and_all_have_to_be_there() {
        let small: Vec<Test> = COLLECTIVES.into_iter().filter(|test| test.bytes <= 64 << 10).collect();
        let samples = |tests: &[Test], slowest: f64| -> Vec<Sample> {
            let value = |at: usize| if at == 1 { slowest } else { 50.0 };
            tests.iter().enumerate().map(|(at, &test)| sample(0, Side::CommTcp, test, 8, value(at))).collect()
        };
        let bar = Bar::all(&[8], 2).into_iter().find(|bar| bar.at_most.is_some()).unwrap();
        let read = |tests: &[Test], slowest| Summary::of(&samples(tests, slowest)).read(&bar);
        assert_eq!((read(&small, 1999.0).is_met, read(&small, 2001.0).is_met), (Some(true), Some(false)));
        assert_eq!(read(&small, 1999.0).ours.unwrap().median, 1999.0);
        assert_eq!(read(&small[1..], 1999.0).is_met, None);
    }
}
