//! What the model says, for numbers of ranks that nobody here has, and beside the clock where they can be had.

use ft_comm::collective::{Machine, Operation, cost, model};
use serde::Serialize;

use super::measured::{Case, name};
use super::order::{MODEL_SIZES, fits};
use super::work::work;

/// Numbers of ranks that are asked for: powers of two up to 2 to this.
const MOST_DOUBLINGS: u32 = 12;

/// Predicted times of one algorithm with one size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// The operation.
    #[serde(serialize_with = "name")]
    pub operation: Operation,
    /// Name of the algorithm.
    pub algorithm: String,
    /// Bytes, as tables choose by.
    pub bytes: usize,
    /// By rising number of ranks.
    pub points: Vec<Predicted>,
}

/// Predicted seconds of a call.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Predicted {
    /// Number of ranks.
    pub ranks: usize,
    /// All ranks on this host, on its cores.
    pub one_host_s: f64,
    /// One rank a host, with links between hosts as fast as those measured within this one.
    pub many_hosts_s: f64,
}

/// A measured time beside the predicted one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Checked {
    /// The operation.
    #[serde(serialize_with = "name")]
    pub operation: Operation,
    /// Name of the algorithm.
    pub algorithm: String,
    /// Bytes, as tables choose by.
    pub bytes: usize,
    /// Number of ranks.
    pub ranks: usize,
    /// Median seconds.
    pub measured_s: f64,
    /// What the model says of one host.
    pub predicted_s: f64,
    /// Measured over predicted.
    pub ratio: f64,
}

/// One call on `ranks` ranks; none where the algorithm does not fit them.
///
/// The cost formula gives the critical path in constant time. Ranks that share cores need at least the time of all their
/// work on them.
pub(crate) fn predict(
    operation: Operation,
    algorithm: &str,
    bytes: usize,
    ranks: usize,
    machine: &Machine,
) -> Option<Predicted> {
    if !fits(operation, algorithm, ranks, true) {
        return None;
    }
    let cost = cost(operation, algorithm)?(ranks, bytes as f64);
    let alone_s = cost.seconds(machine);
    let one_host_s = match ranks <= machine.cores {
        true => alone_s,
        false => model::seconds(&cost, &work(operation, algorithm, ranks, bytes)?, ranks, machine),
    };
    Some(Predicted { ranks, one_host_s, many_hosts_s: alone_s })
}

/// All operations and algorithms for 2 to 4096 ranks.
pub(crate) fn predictions(machine: &Machine) -> Vec<Prediction> {
    let mut all = Vec::new();
    for operation in Operation::ALL {
        let sizes = if operation == Operation::Barrier { &[0][..] } else { &MODEL_SIZES };
        for &bytes in sizes {
            all.extend(operation.algorithms().map(|algorithm| {
                Prediction {
                    operation,
                    algorithm: algorithm.to_owned(),
                    bytes,
                    points: (1..=MOST_DOUBLINGS)
                        .filter_map(|doublings| predict(operation, algorithm, bytes, 1 << doublings, machine))
                        .collect(),
                }
            }));
        }
    }
    all
}

/// Measured beside predicted.
pub(crate) fn checks(cases: &[Case], machine: &Machine) -> Vec<Checked> {
    let check = |case: &Case| {
        let Case { operation, ranks, bytes, ref algorithm, time } = *case;
        let predicted_s = predict(operation, algorithm, bytes, ranks, machine)?.one_host_s;
        Some(Checked {
            operation,
            algorithm: algorithm.clone(),
            bytes,
            ranks,
            measured_s: time.median,
            predicted_s,
            ratio: time.median / predicted_s,
        })
    };
    cases.iter().filter_map(check).collect()
}

#[cfg(test)]
mod tests {
    use super::super::ranges::tests::case;
    use super::*;

    const MACHINE: Machine =
        Machine { latency_s: 8e-6, overhead_s: 1e-6, byte_s: 1e-9, reduce_byte_s: 5e-10, cores: 2 };

    #[test]
    fn by_hand() {
        let near = |is: f64, due: f64| assert!((is / due - 1.0).abs() < 1e-9, "{is} {due}");
        // Two ranks: one message of 10 us + 1 MiB.
        let message = |bytes: f64| 1e-5 + bytes * 1e-9;
        let two = predict(Operation::Bcast, "binomial", 1 << 20, 2, &MACHINE).unwrap();
        near(two.one_host_s, message(1048576.0));
        // 4096 ranks: 12 rounds; on two cores the 4095 messages are more.
        let many = predict(Operation::Bcast, "binomial", 1 << 20, 4096, &MACHINE).unwrap();
        near(many.many_hosts_s, 12.0 * message(1048576.0));
        near(many.one_host_s, 4095.0 * (2e-6 + 1048576e-9) / 2.0);
        assert_eq!(predict(Operation::Allgather, "recursive-doubling", 8, 6, &MACHINE), None);
    }

    #[test]
    fn everything_is_predicted_and_more_bytes_take_longer() {
        let all = predictions(&MACHINE);
        assert!(all.iter().all(|of| of.points.len() == 12 && of.points[11].ranks == 4096));
        for pair in all.windows(2).filter(|pair| pair[0].algorithm == pair[1].algorithm) {
            assert!(pair[0].points[11].one_host_s <= pair[1].points[11].one_host_s, "{pair:?}");
        }
        for of in &all {
            assert!(
                of.points
                    .iter()
                    .all(|point| 0.0 < point.many_hosts_s && point.many_hosts_s <= point.one_host_s)
            );
        }
    }

    #[test]
    fn the_ratio_is_measured_over_predicted() {
        let cases = [case(Operation::Bcast, 2, 0, "binomial", 3e-5)];
        let [check] = &checks(&cases, &MACHINE)[..] else { panic!("one") };
        assert!((check.ratio - 3.0).abs() < 1e-9, "{check:?}");
    }
}
