//! Times of the algorithms, by round and over all rounds.

use std::collections::BTreeMap;

use ft_comm::collective::Operation;
use serde::{Serialize, Serializer};

use crate::recovery::Spread;

/// What one job said of one algorithm.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// From 0.
    pub round: usize,
    /// Ranks of the job.
    pub ranks: usize,
    /// The operation.
    #[serde(serialize_with = "name")]
    pub operation: Operation,
    /// Of the buffer, or of the part of one rank, as tables choose by.
    pub bytes: usize,
    /// Name of the algorithm.
    pub algorithm: String,
    /// Of one call, in the middle of some batches.
    pub seconds: f64,
    /// Calls of a batch.
    pub calls: usize,
}

/// An algorithm over all rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Case {
    /// The operation.
    #[serde(serialize_with = "name")]
    pub operation: Operation,
    /// Ranks of the job.
    pub ranks: usize,
    /// As [`Sample::bytes`].
    pub bytes: usize,
    /// Name of the algorithm.
    pub algorithm: String,
    /// Seconds of one call.
    pub time: Spread,
}

/// Cases in the order of operations, ranks and bytes, algorithms in that of their operation.
pub(crate) fn cases(samples: &[Sample]) -> Vec<Case> {
    let mut times: BTreeMap<(Operation, usize, usize, usize), Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        let place =
            sample.operation.algorithms().position(|name| name == sample.algorithm).unwrap_or(usize::MAX);
        times.entry((sample.operation, sample.ranks, sample.bytes, place)).or_default().push(sample);
    }
    let case = |((operation, ranks, bytes, _), samples): (_, Vec<&Sample>)| Case {
        operation,
        ranks,
        bytes,
        algorithm: samples[0].algorithm.clone(),
        time: Spread::of(samples.iter().map(|sample| sample.seconds)),
    };
    times.into_iter().map(case).collect()
}

pub(crate) fn name<S: Serializer>(operation: &Operation, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(operation.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_brought_together() {
        let sample = |round, algorithm: &str, seconds| Sample {
            round,
            ranks: 4,
            operation: Operation::Bcast,
            bytes: 8,
            algorithm: algorithm.into(),
            seconds,
            calls: 1,
        };
        let samples = [
            sample(0, "pipeline", 5.0),
            sample(0, "binomial", 1.0),
            sample(1, "pipeline", 7.0),
            sample(1, "binomial", 3.0),
            sample(2, "binomial", 2.0),
        ];
        let seen: Vec<_> =
            cases(&samples).into_iter().map(|case| (case.algorithm, case.time.median)).collect();
        assert_eq!(seen, [("binomial".to_owned(), 2.0), ("pipeline".to_owned(), 6.0)]);
    }
}
