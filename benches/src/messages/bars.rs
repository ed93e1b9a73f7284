//! What `ft-comm` has to reach: ratios to sockets alone and to MPI.

use super::plan::{START, START_RANKS};
use super::test::{COLLECTIVES, Operation, Test};
use ft_tools::recovery::bytes;

/// Which of its transports has to reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ours {
    /// TCP.
    Tcp,
    /// What it chooses by itself.
    Default,
}

/// Who of MPI it is held against, the better one of both libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rival {
    /// Over TCP.
    Tcp,
    /// Open MPI over shared memory.
    SharedMemory,
    /// Over whatever starts fastest.
    Any,
}

/// What is read from the measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// One test.
    Test(Test),
    /// The slowest collective of so many bytes or fewer.
    Slowest(usize),
}

/// One figure and what it has to be. Limits on times are upper ones, those on speeds lower ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// What it is called.
    pub figure: String,
    /// What is read.
    pub subject: Subject,
    /// Ranks of the job.
    pub ranks: usize,
    /// Over which transport.
    pub ours: Ours,
    /// Against whom.
    pub rival: Rival,
    /// Times the figure of sockets alone under the same congestion control.
    pub of_raw: Option<f64>,
    /// Times the figure of the rival.
    pub of_mpi: Option<f64>,
    /// In the unit of the figure.
    pub at_most: Option<f64>,
}

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Between two ranks over TCP: the test, its limits against sockets and against MPI.
const PAIR: [(Operation, usize, Option<f64>, f64); 8] = [
    (Operation::Latency, 8, Some(1.2), 0.85),
    (Operation::Latency, KIB, Some(1.25), 0.75),
    (Operation::PingPong, 64 * KIB, Some(0.85), 1.5),
    (Operation::OneWay, MIB, Some(0.95), 1.0),
    (Operation::OneWay, 16 * MIB, Some(0.95), 1.0),
    (Operation::Exchange, MIB, Some(0.95), 1.0),
    (Operation::Exchange, 16 * MIB, Some(0.95), 1.0),
    (Operation::Rate, 8, None, 8.0),
];

/// Collectives over TCP: the test, its limit against MPI, and the smallest number of ranks.
const OVER_TCP: [(Operation, usize, f64, usize); 7] = [
    (Operation::Barrier, 0, 0.85, 2),
    (Operation::Allreduce, 8, 0.8, 2),
    (Operation::Allreduce, 64 * KIB, 0.65, 2),
    (Operation::Allreduce, 8 * MIB, 0.75, 2),
    (Operation::Bcast, MIB, 0.6, 4),
    (Operation::Alltoall, 64 * KIB, 0.6, 4),
    (Operation::Allgather, MIB, 0.75, 4),
];

/// Collectives against shared memory, with limits for 4 and 8 ranks.
const SAME_HOST: [(Operation, usize); 3] =
    [(Operation::Bcast, MIB), (Operation::Allreduce, 8 * MIB), (Operation::Allgather, MIB)];
const SAME_HOST_LIMITS: [(usize, f64); 2] = [(4, 1.0), (8, 1.2)];

/// No collective of up to so many bytes and with so many ranks takes longer than so many microseconds.
const SMALL: (usize, usize, f64) = (64 * KIB, 8, 2000.0);

/// Times the faster MPI.
const START_LIMIT: f64 = 0.5;

impl Bar {
    /// All bars for collectives of these `ranks`, on a machine of so many `cores`.
    pub(crate) fn all(ranks: &[usize], cores: usize) -> Vec<Self> {
        let mut all = Vec::new();
        for (operation, bytes, of_raw, of_mpi) in PAIR {
            let bar = Self::of(Test { operation, bytes }, 2, Ours::Tcp, Rival::Tcp);
            all.push(Self { of_raw, of_mpi: Some(of_mpi), ..bar });
        }
        for (operation, bytes, of_mpi, fewest) in OVER_TCP {
            for &ranks in ranks.iter().filter(|&&ranks| ranks >= fewest) {
                let bar = Self::of(Test { operation, bytes }, ranks, Ours::Tcp, Rival::Tcp);
                all.push(Self { of_mpi: Some(of_mpi), ..bar });
            }
        }
        for (operation, bytes) in SAME_HOST {
            for (ranks, of_mpi) in SAME_HOST_LIMITS.into_iter().filter(|(limited, _)| ranks.contains(limited))
            {
                let bar = Self::of(Test { operation, bytes }, ranks, Ours::Default, Rival::SharedMemory);
                let figure = format!("same host: {}", bar.figure);
                all.push(Self { figure, of_mpi: Some(of_mpi), ..bar });
            }
        }
        let (small, crowd, at_most) = SMALL;
        for ours in [Ours::Tcp, Ours::Default].into_iter().filter(|_| ranks.contains(&crowd)) {
            let over = if ours == Ours::Tcp { "TCP" } else { "default" };
            let figure = format!(
                "slowest collective up to {}, {crowd} ranks on {cores} cores, {over}",
                bytes(small as u64)
            );
            let rival = if ours == Ours::Tcp { Rival::Tcp } else { Rival::SharedMemory };
            let bar = Self::of(COLLECTIVES[0], crowd, ours, rival);
            all.push(Self { figure, subject: Subject::Slowest(small), at_most: Some(at_most), ..bar });
        }
        for ranks in START_RANKS {
            let bar = Self::of(START, ranks, Ours::Default, Rival::Any);
            all.push(Self { of_mpi: Some(START_LIMIT), ..bar });
        }
        all
    }

    fn of(test: Test, ranks: usize, ours: Ours, rival: Rival) -> Self {
        Self {
            figure: name(test, ranks),
            subject: Subject::Test(test),
            ranks,
            ours,
            rival,
            of_raw: None,
            of_mpi: None,
            at_most: None,
        }
    }

    /// The operation that is read, the first one of several.
    pub(crate) fn operation(&self) -> Operation {
        match self.subject {
            Subject::Test(test) => test.operation,
            Subject::Slowest(_) => Operation::Barrier,
        }
    }

    /// The tests that have to be there.
    pub(crate) fn tests(&self) -> Vec<Test> {
        match self.subject {
            Subject::Test(test) => vec![test],
            Subject::Slowest(most) => COLLECTIVES.into_iter().filter(|test| test.bytes <= most).collect(),
        }
    }

    /// The limits in words.
    pub(crate) fn words(&self) -> String {
        let sign = if self.operation().is_speed() { ">=" } else { "<=" };
        let unit = self.operation().unit();
        let all = [
            self.of_raw.map(|limit| format!("{sign} {limit} raw")),
            self.of_mpi.map(|limit| format!("{sign} {limit} MPI")),
            self.at_most.map(|limit| format!("<= {limit} {unit}")),
        ];
        all.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// A test with its size and ranks.
pub(crate) fn name(test: Test, ranks: usize) -> String {
    let words = match test.operation {
        Operation::Latency | Operation::PingPong => "ping-pong",
        Operation::OneWay => "one way",
        Operation::Exchange => "both ways",
        Operation::Rate => "rate of 64 isends",
        Operation::RateCoalesced => "rate of 64 in one write",
        other => other.name(),
    };
    let size = if test.bytes > 0 { format!(" {}", bytes(test.bytes as u64)) } else { String::new() };
    let is_of_pair = super::test::POINT_TO_POINT.iter().any(|pair| pair.operation == test.operation);
    let ranks = if is_of_pair { String::new() } else { format!(", {ranks} ranks") };
    format!("{words}{size}{ranks}").replace('\u{a0}', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bars() {
        let all = Bar::all(&[2, 4, 8], 2);
        assert_eq!(all.len(), 8 + (4 * 3 + 3 * 2) + 3 * 2 + 2 + 4);
        let words = |figure: &str| all.iter().find(|bar| bar.figure == figure).unwrap().words();
        assert_eq!(words("ping-pong 8 B"), "<= 1.2 raw, <= 0.85 MPI");
        assert_eq!(words("ping-pong 64 KiB"), ">= 0.85 raw, >= 1.5 MPI");
        assert_eq!(words("rate of 64 isends 8 B"), ">= 8 MPI");
        assert_eq!(words("barrier, 2 ranks"), "<= 0.85 MPI");
        assert_eq!(words("same host: bcast 1 MiB, 8 ranks"), "<= 1.2 MPI");
        assert_eq!(words("start, 16 ranks"), "<= 0.5 MPI");
        let slowest = "slowest collective up to 64 KiB, 8 ranks on 2 cores, TCP";
        assert_eq!(
            all.iter().find(|bar| bar.figure.replace('\u{a0}', " ") == slowest).unwrap().words(),
            "<= 2000 us"
        );
        assert!(all.iter().all(|bar| !bar.figure.starts_with("bcast") || bar.ranks >= 4));
        // A bar that reads what nobody measures would never be met.
        let measured = |test: &Test| {
            super::super::test::POINT_TO_POINT.contains(test) || COLLECTIVES.contains(test) || *test == START
        };
        assert!(all.iter().all(|bar| !bar.tests().is_empty() && bar.tests().iter().all(measured)));
    }

    #[test]
    fn ranks_that_are_not_measured_have_no_bars() {
        let all = Bar::all(&[2], 2);
        assert_eq!(all.len(), 8 + 4 + 4);
    }
}
