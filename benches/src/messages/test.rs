//! What is timed: one list for all sides.

use std::fmt;
use std::str::FromStr;

/// What the ranks do in one iteration of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// One message there and one back; the value is half of that time.
    Latency,
    /// The same; the value is the speed.
    PingPong,
    /// Messages from rank 0 to rank 1, several at once ([`Test::window`]), then an answer of 8 bytes.
    OneWay,
    /// Ranks 0 and 1 send to each other at once; the speed is that of one direction.
    Exchange,
    /// The same; the value is their number, as in `osu_mbw_mr`.
    Rate,
    /// The same in one write; raw sockets only.
    RateCoalesced,
    /// What an iteration of conjugate gradients sends: a halo of so many bytes to the other rank and back, planned once, then three
    /// sums of one number.
    Iteration,
    /// `MPI_Barrier`.
    Barrier,
    /// `MPI_Bcast`; the root goes round.
    Bcast,
    /// `MPI_Allreduce` of sums of 64-bit floats, in place.
    Allreduce,
    /// `MPI_Alltoall`; the bytes are those of a pair.
    Alltoall,
    /// `MPI_Allgather`; the bytes are those of a rank.
    Allgather,
    /// The launcher, a barrier, the end of the job; seen from outside.
    Start,
}

/// Long messages under way at once.
pub const WINDOW: usize = 4;
/// Messages under way at once that are not long.
pub const BURST: usize = 64;
/// A longer one is long.
pub const SHORT: usize = 64 * KIB;
/// Sums of an [`Operation::Iteration`].
pub const SUMS: usize = 3;

const NAMES: [(Operation, &str); 13] = [
    (Operation::Latency, "latency"),
    (Operation::PingPong, "pingpong"),
    (Operation::OneWay, "oneway"),
    (Operation::Exchange, "exchange"),
    (Operation::Rate, "rate"),
    (Operation::RateCoalesced, "rate-coalesced"),
    (Operation::Iteration, "iteration"),
    (Operation::Barrier, "barrier"),
    (Operation::Bcast, "bcast"),
    (Operation::Allreduce, "allreduce"),
    (Operation::Alltoall, "alltoall"),
    (Operation::Allgather, "allgather"),
    (Operation::Start, "start"),
];

impl Operation {
    /// The word that stands for it in commands and lines.
    pub fn name(self) -> &'static str {
        NAMES[self as usize].1
    }

    /// The unit of its values.
    pub fn unit(self) -> &'static str {
        match self {
            Self::PingPong | Self::OneWay | Self::Exchange => "GB/s",
            Self::Rate | Self::RateCoalesced => "Mmsg/s",
            Self::Start => "s",
            _ => "us",
        }
    }

    /// Whether larger values are better.
    pub fn is_speed(self) -> bool {
        self.unit().ends_with("/s")
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Operation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = NAMES.iter().find(|(_, name)| *name == text).map(|(operation, _)| *operation);
        found.ok_or_else(|| {
            format!("'{text}' is no test; there are {}", NAMES.map(|(_, name)| name).join(", "))
        })
    }
}

/// An operation with a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Test {
    /// What is done.
    pub operation: Operation,
    /// Bytes of a message, or as the operation says; 0 for a barrier.
    pub bytes: usize,
}

impl Test {
    /// Messages under way at once before each answer.
    pub fn window(self) -> usize {
        match self.operation {
            Operation::OneWay if self.bytes > SHORT => WINDOW,
            Operation::OneWay | Operation::Rate | Operation::RateCoalesced => BURST,
            _ => 0,
        }
    }

    /// The value of so many `seconds` an iteration.
    pub fn value(self, seconds: f64) -> f64 {
        let (bytes, window) = (self.bytes as f64, self.window() as f64);
        match self.operation {
            Operation::Latency => seconds / 2.0 * 1e6,
            Operation::PingPong => 2.0 * bytes / seconds * 1e-9,
            Operation::OneWay => window * bytes / seconds * 1e-9,
            Operation::Exchange => bytes / seconds * 1e-9,
            Operation::Rate | Operation::RateCoalesced => window / seconds * 1e-6,
            Operation::Start => seconds,
            _ => seconds * 1e6,
        }
    }
}

impl fmt::Display for Test {
    /// As `NAME:BYTES`, which the programs of all sides understand.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.operation, self.bytes)
    }
}

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

const fn test(operation: Operation, bytes: usize) -> Test {
    Test { operation, bytes }
}

/// Tests of two ranks, each on a core of its own.
pub const POINT_TO_POINT: [Test; 14] = [
    test(Operation::Latency, 8),
    test(Operation::Latency, KIB),
    test(Operation::PingPong, 64 * KIB),
    test(Operation::PingPong, MIB),
    test(Operation::PingPong, 16 * MIB),
    test(Operation::OneWay, KIB),
    test(Operation::OneWay, 64 * KIB),
    test(Operation::OneWay, MIB),
    test(Operation::OneWay, 16 * MIB),
    test(Operation::Exchange, MIB),
    test(Operation::Exchange, 16 * MIB),
    test(Operation::Rate, 8),
    test(Operation::RateCoalesced, 8),
    test(Operation::Iteration, KIB),
];

/// Tests of any number of ranks.
pub const COLLECTIVES: [Test; 12] = [
    test(Operation::Barrier, 0),
    test(Operation::Bcast, 8),
    test(Operation::Bcast, 64 * KIB),
    test(Operation::Bcast, MIB),
    test(Operation::Allreduce, 8),
    test(Operation::Allreduce, 64 * KIB),
    test(Operation::Allreduce, 8 * MIB),
    test(Operation::Alltoall, 8),
    test(Operation::Alltoall, 64 * KIB),
    test(Operation::Allgather, 8),
    test(Operation::Allgather, 64 * KIB),
    test(Operation::Allgather, MIB),
];

/// What a program is told to measure: every word is `NAME` or `NAME:BYTES`, no words mean everything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection(Vec<(Operation, Option<usize>)>);

impl Selection {
    /// Reads the words of a command.
    ///
    /// # Errors
    /// A word that names no test.
    pub fn of(words: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self, String> {
        let read = |word: &str| {
            let Some((name, bytes)) = word.split_once(':') else { return Ok((word.parse()?, None)) };
            let bytes = bytes.parse().map_err(|_| format!("'{word}': '{bytes}' is no number of bytes"))?;
            let known = POINT_TO_POINT.iter().chain(&COLLECTIVES);
            let operation = name.parse()?;
            match known.clone().any(|test| (test.operation, test.bytes) == (operation, bytes)) {
                true => Ok((operation, Some(bytes))),
                false => Err(format!("there is no {operation} of {bytes} bytes")),
            }
        };
        words.into_iter().map(|word| read(word.as_ref())).collect::<Result<_, _>>().map(Self)
    }

    /// Whether the test is to be made.
    pub fn has(&self, test: Test) -> bool {
        let Self(words) = self;
        let named = |&(operation, bytes): &(Operation, Option<usize>)| {
            operation == test.operation && bytes.is_none_or(|bytes| bytes == test.bytes)
        };
        words.is_empty() || words.iter().any(named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        for (at, (operation, name)) in NAMES.into_iter().enumerate() {
            assert_eq!(operation as usize, at, "the table has the order of the operations");
            assert_eq!(name.parse(), Ok(operation));
        }
        assert!(
            "ring".parse::<Operation>().unwrap_err().starts_with("'ring' is no test; there are latency, ")
        );
    }

    #[test]
    fn values_by_hand() {
        let near = |value: f64, expected: f64| assert!((value / expected - 1.0).abs() < 1e-12, "{value}");
        near(test(Operation::Latency, 8).value(10e-6), 5.0);
        near(test(Operation::PingPong, 1_000_000).value(1e-3), 2.0);
        near(test(Operation::OneWay, 1_000_000).value(1e-3), 4.0);
        near(test(Operation::OneWay, 1000).value(1e-3), 0.064);
        near(test(Operation::Exchange, 1_000_000).value(1e-3), 1.0);
        near(test(Operation::Rate, 8).value(1e-6), 64.0);
        near(test(Operation::Barrier, 0).value(3e-6), 3.0);
        near(test(Operation::Start, 0).value(0.25), 0.25);
        assert!(Operation::Rate.is_speed() && !Operation::Start.is_speed() && !Operation::Bcast.is_speed());
    }

    #[test]
    fn words_select() {
        let selected = |words: &[&str]| -> Vec<String> {
            let selection = Selection::of(words).unwrap();
            COLLECTIVES.iter().filter(|test| selection.has(**test)).map(ToString::to_string).collect()
        };
        assert_eq!(selected(&[]).len(), COLLECTIVES.len());
        assert_eq!(selected(&["allreduce:8", "barrier"]), ["barrier:0", "allreduce:8"]);
        assert_eq!(selected(&["bcast"]), ["bcast:8", "bcast:65536", "bcast:1048576"]);
        assert_eq!(Selection::of(["bcast:9"]), Err("there is no bcast of 9 bytes".into()));
        assert!(Selection::of(["bcast:many"]).is_err() && Selection::of(["scan"]).is_err());
    }
}
