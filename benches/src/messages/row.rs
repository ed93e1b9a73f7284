//! What `ft-comm` has to reach: ratios of its time to that without a message layer and to that of MPI.

use super::case::{START, START_RANKS, Task};
use super::side::Side;
use super::test::{COLLECTIVES, Operation, POINT_TO_POINT, Test};
use crate::comparison::Bar;
use ft_tools::recovery::bytes;

/// Who is read.
#[derive(Debug)]
pub(super) struct Field {
    /// Ours.
    pub(super) ours: Side,
    /// Without a message layer, sockets under the same congestion control: the first one that is there.
    pub(super) raw: &'static [Side],
    /// MPICH, the best of these.
    pub(super) mpich: &'static [Side],
    /// Open MPI, the best of these.
    pub(super) openmpi: &'static [Side],
}

/// Where the congestion control of the system is that of `ft-comm`, there is one kind of sockets.
const TCP: Field = Field {
    ours: Side::CommTcp,
    raw: &[Side::RawTcpLikeComm, Side::RawTcp],
    mpich: &[Side::Mpich],
    openmpi: &[Side::OpenMpi],
};
const SAME_HOST: Field = Field {
    ours: Side::Comm,
    raw: &[Side::RawMemory],
    mpich: &[Side::MpichShared],
    openmpi: &[Side::OpenMpiShared],
};
const FASTEST: Field = Field {
    ours: Side::Comm,
    raw: &[],
    mpich: &[Side::Mpich, Side::MpichShared],
    openmpi: &[Side::OpenMpi, Side::OpenMpiShared],
};

/// One figure and what it has to be.
pub(super) struct Row {
    /// What it is called.
    pub(super) figure: String,
    /// The tests that are read, of which the slowest counts.
    pub(super) tests: Vec<Test>,
    /// What it is measured in.
    pub(super) task: Task,
    /// Who is compared.
    pub(super) field: &'static Field,
    /// The limit of the ratio of its time to that without a message layer,
    pub(super) of_raw: Option<Bar>,
    /// of that to the better MPI,
    pub(super) of_mpi: Option<Bar>,
    /// and of itself.
    pub(super) itself: Option<Bar>,
}

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Between two ranks over TCP: the test, the limits of its time against sockets and against MPI.
const PAIR: [(Operation, usize, Option<f64>, f64); 8] = [
    (Operation::Latency, 8, Some(1.15), 0.85),
    (Operation::Latency, KIB, Some(1.25), 0.75),
    (Operation::PingPong, 64 * KIB, Some(1.15), 0.67),
    (Operation::OneWay, MIB, Some(1.05), 1.0),
    (Operation::OneWay, 16 * MIB, Some(1.05), 1.0),
    (Operation::Exchange, MIB, Some(1.05), 1.0),
    (Operation::Exchange, 16 * MIB, Some(1.05), 1.0),
    (Operation::Rate, 8, None, 0.125),
];

/// Collectives over TCP: the test, its limit against MPI with two ranks, and with more.
const OVER_TCP: [(Operation, usize, Option<f64>, f64); 7] = [
    (Operation::Barrier, 0, Some(1.0), 0.85),
    (Operation::Allreduce, 8, Some(1.0), 0.8),
    (Operation::Allreduce, 64 * KIB, Some(0.65), 0.65),
    (Operation::Allreduce, 8 * MIB, Some(0.75), 0.75),
    (Operation::Bcast, MIB, None, 0.6),
    (Operation::Alltoall, 64 * KIB, None, 0.6),
    (Operation::Allgather, MIB, None, 0.75),
];

/// Between two ranks of a host: the limit against the better MPI in shared memory.
const SHARED_PAIR: [(Operation, usize, f64); 11] = [
    (Operation::Latency, 8, 1.2),
    (Operation::Latency, KIB, 1.2),
    (Operation::PingPong, 64 * KIB, 1.0),
    (Operation::PingPong, MIB, 0.95),
    (Operation::PingPong, 16 * MIB, 0.75),
    (Operation::Rate, 8, 1.0),
    (Operation::OneWay, KIB, 1.0),
    (Operation::OneWay, 64 * KIB, 1.0),
    (Operation::OneWay, MIB, 0.95),
    (Operation::OneWay, 16 * MIB, 0.75),
    (Operation::Iteration, KIB, 1.0),
];

/// Collectives within a host, with the limit for two ranks, for up to seven, and for eight and more.
const SHARED: [(Operation, usize, [Option<f64>; 3]); 7] = [
    (Operation::Barrier, 0, [Some(1.2), Some(0.8), Some(0.8)]),
    (Operation::Allreduce, 8, [Some(1.2), Some(0.8), Some(0.8)]),
    (Operation::Allreduce, 64 * KIB, [Some(0.9); 3]),
    (Operation::Allreduce, 8 * MIB, [None, Some(1.0), Some(1.2)]),
    (Operation::Alltoall, 64 * KIB, [Some(1.1); 3]),
    (Operation::Bcast, MIB, [None, Some(1.0), Some(1.0)]),
    (Operation::Allgather, MIB, [None, Some(1.0), Some(1.2)]),
];

/// No collective of up to so many bytes and with so many ranks takes longer than so many microseconds.
const SMALL: (usize, usize, f64) = (64 * KIB, 8, 2000.0);

/// Times the faster MPI.
const START_LIMIT: f64 = 0.5;

impl Row {
    fn new(operation: Operation, bytes: usize, ranks: usize, field: &'static Field) -> Self {
        let test = Test { operation, bytes };
        Self {
            figure: name(test, ranks),
            tests: vec![test],
            task: Task::of(test, ranks),
            field,
            of_raw: None,
            of_mpi: None,
            itself: None,
        }
    }

    fn limited(self, of_raw: Option<f64>, of_mpi: f64) -> Self {
        Self { of_raw: of_raw.map(Bar::AtMost), of_mpi: Some(Bar::AtMost(of_mpi)), ..self }
    }

    fn same_host(operation: Operation, bytes: usize, ranks: usize, of_mpi: f64) -> Self {
        let row = Self::new(operation, bytes, ranks, &SAME_HOST).limited(None, of_mpi);
        Self { figure: format!("same host: {}", row.figure), ..row }
    }

    /// The operation that is read, the first one of several.
    pub(super) fn operation(&self) -> Operation {
        self.tests[0].operation
    }

    /// The limits in words.
    pub(super) fn words(&self) -> String {
        let bars = [(self.of_raw, "raw"), (self.of_mpi, "MPI"), (self.itself, self.operation().unit())];
        let words = bars.into_iter().filter_map(|(bar, of)| Some(format!("{} {of}", bar?)));
        words.collect::<Vec<_>>().join(", ")
    }
}

/// All rows for collectives of these `ranks`, on a machine of so many `cores`.
pub(super) fn all(ranks: &[usize], cores: usize) -> Vec<Row> {
    let pair = PAIR.map(|(operation, bytes, of_raw, of_mpi)| {
        Row::new(operation, bytes, 2, &TCP).limited(of_raw, of_mpi)
    });
    let over_tcp = OVER_TCP.into_iter().flat_map(|(operation, bytes, of_two, of_more)| {
        let limits = ranks.iter().map(move |&ranks| (ranks, if ranks == 2 { of_two } else { Some(of_more) }));
        limits.filter_map(move |(ranks, of_mpi)| {
            Some(Row::new(operation, bytes, ranks, &TCP).limited(None, of_mpi?))
        })
    });
    let shared_pair =
        SHARED_PAIR.map(|(operation, bytes, of_mpi)| Row::same_host(operation, bytes, 2, of_mpi));
    let shared = SHARED.into_iter().flat_map(|(operation, bytes, limits)| {
        let limit = move |ranks| limits[[3, 8].iter().filter(|from| ranks >= **from).count()];
        ranks.iter().filter_map(move |&ranks| Some(Row::same_host(operation, bytes, ranks, limit(ranks)?)))
    });
    let is_small = ranks.contains(&SMALL.1);
    let small = [(&TCP, "TCP"), (&SAME_HOST, "default")].into_iter().filter(|_| is_small);
    let start =
        START_RANKS.map(|ranks| Row::new(START.operation, 0, ranks, &FASTEST).limited(None, START_LIMIT));
    let small = small.map(|(field, over)| slowest(field, over, cores));
    pair.into_iter().chain(over_tcp).chain(shared_pair).chain(shared).chain(small).chain(start).collect()
}

/// The slowest one of small collectives.
fn slowest(field: &'static Field, over: &str, cores: usize) -> Row {
    let (most, ranks, at_most) = SMALL;
    let size = bytes(most as u64).replace('\u{a0}', " ");
    Row {
        figure: format!("slowest collective up to {size}, {ranks} ranks on {cores} cores, {over}"),
        tests: COLLECTIVES.into_iter().filter(|test| test.bytes <= most).collect(),
        itself: Some(Bar::AtMost(at_most)),
        ..Row::new(Operation::Barrier, 0, ranks, field)
    }
}

/// A test with its size and ranks.
pub(super) fn name(test: Test, ranks: usize) -> String {
    let words = match test.operation {
        Operation::Latency | Operation::PingPong => "ping-pong",
        Operation::OneWay => "one way",
        Operation::Exchange => "both ways",
        Operation::Rate => "rate of 64 isends",
        Operation::RateCoalesced => "rate of 64 in one write",
        Operation::Iteration => "messages of a CG iteration, halo",
        other => other.name(),
    };
    let size = if test.bytes > 0 { format!(" {}", bytes(test.bytes as u64)) } else { String::new() };
    let ranks = if POINT_TO_POINT.contains(&test) { String::new() } else { format!(", {ranks} ranks") };
    format!("{words}{size}{ranks}").replace('\u{a0}', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_their_limits() {
        let all = all(&[2, 4, 8], 2);
        assert_eq!(all.len(), 8 + (4 * 3 + 3 * 2) + 11 + (4 * 3 + 3 * 2) + 2 + 4);
        let words = |figure: &str| all.iter().find(|row| row.figure == figure).unwrap().words();
        assert_eq!(words("ping-pong 8 B"), "<= 1.15 raw, <= 0.85 MPI");
        assert_eq!(words("ping-pong 64 KiB"), "<= 1.15 raw, <= 0.67 MPI");
        assert_eq!(words("rate of 64 isends 8 B"), "<= 0.125 MPI");
        assert_eq!(words("barrier, 2 ranks"), "<= 1 MPI");
        assert_eq!(words("barrier, 4 ranks"), "<= 0.85 MPI");
        assert_eq!(words("same host: ping-pong 8 B"), "<= 1.2 MPI");
        assert_eq!(words("same host: messages of a CG iteration, halo 1 KiB"), "<= 1 MPI");
        assert_eq!(words("same host: barrier, 2 ranks"), "<= 1.2 MPI");
        assert_eq!(words("same host: barrier, 4 ranks"), "<= 0.8 MPI");
        assert_eq!(words("same host: allreduce 8 MiB, 8 ranks"), "<= 1.2 MPI");
        assert_eq!(words("start, 16 ranks"), "<= 0.5 MPI");
        assert_eq!(words("slowest collective up to 64 KiB, 8 ranks on 2 cores, TCP"), "<= 2000 us");
        assert!(all.iter().all(|row| !row.figure.starts_with("bcast") || row.task.ranks() >= 4));
        // A row that reads what nobody measures would never be met.
        let measured =
            |test: &Test| POINT_TO_POINT.contains(test) || COLLECTIVES.contains(test) || *test == START;
        assert!(all.iter().all(|row| !row.tests.is_empty() && row.tests.iter().all(measured)));
    }

    #[test]
    fn ranks_that_are_not_measured_have_no_rows() {
        assert_eq!(all(&[2], 2).len(), 8 + 4 + 11 + 4 + 4);
    }
}
