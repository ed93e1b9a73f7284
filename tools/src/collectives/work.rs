//! What all ranks do together in a collective, also where the lists of all of them would be long.

use ft_comm::collective::model::Work;
use ft_comm::collective::{Operation, Shape, Step, equal_starts, steps};

/// Ranks from which on not all long lists are counted.
const MANY: usize = 64;

/// The work of all ranks; none where the algorithm does not fit them.
///
/// With many ranks, a list that grows with their number on a rank in the middle is taken for that of all: in such
/// algorithms (rings, exchanges with everyone) all ranks do the same, but for whoever has to scatter first. Others have lists of a few
/// steps on all ranks but the root.
pub(crate) fn work(operation: Operation, algorithm: &str, ranks: usize, bytes: usize) -> Option<Work> {
    let starts = match operation {
        Operation::ReduceScatter => (0..=ranks).map(|rank| rank * bytes / ranks).collect(),
        _ => equal_starts(ranks, bytes),
    };
    let list = |rank: usize| -> Option<Vec<Step>> {
        let shape = Shape { len: bytes, starts: &starts, recv_starts: &starts, ..Shape::new(rank, ranks) };
        steps(operation, algorithm, shape)
    };
    // An odd one is a leaf of every binomial tree.
    let typical = list(((ranks / 2) | 1).min(ranks - 1))?;
    if ranks > MANY && typical.len() >= ranks / 2 {
        let Work { messages, bytes, reduced } = Work::of(typical, 1);
        let all = ranks as f64;
        return Some(Work { messages: all * messages, bytes: all * bytes, reduced: all * reduced });
    }
    Some(Work::of((0..ranks).filter_map(list).flatten(), 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the lists of all ranks.
    fn exact(operation: Operation, algorithm: &str, ranks: usize, bytes: usize) -> Work {
        let starts = match operation {
            Operation::ReduceScatter => (0..=ranks).map(|rank| rank * bytes / ranks).collect(),
            _ => equal_starts(ranks, bytes),
        };
        let lists = (0..ranks).map(|rank| {
            let shape =
                Shape { len: bytes, starts: &starts, recv_starts: &starts, ..Shape::new(rank, ranks) };
            steps(operation, algorithm, shape).unwrap()
        });
        Work::of(lists.flatten(), 1)
    }

    #[test]
    fn the_short_way_counts_as_the_long_one() {
        for operation in Operation::ALL {
            for algorithm in operation.algorithms() {
                for bytes in [8, 1 << 20] {
                    let (long, short) = (
                        exact(operation, algorithm, 128, bytes),
                        work(operation, algorithm, 128, bytes).unwrap(),
                    );
                    // Whoever scatters first has a few steps more than the others; and 8 bytes are no equal parts for all.
                    let near = |a: f64, b: f64| (a - b).abs() <= 0.1 * a.max(b);
                    let right = near(long.messages, short.messages)
                        && (bytes < 128
                            || near(long.bytes, short.bytes) && near(long.reduced, short.reduced));
                    assert!(right, "{operation} {algorithm} of {bytes}: {long:?}, {short:?}");
                }
            }
        }
    }

    #[test]
    fn by_hand() {
        let ring = work(Operation::Allgather, "ring", 1000, 10).unwrap();
        assert_eq!((ring.messages, ring.bytes), (999_000.0, 9_990_000.0));
        let tree = work(Operation::Bcast, "binomial", 4096, 8).unwrap();
        assert_eq!((tree.messages, tree.bytes), (4095.0, 8.0 * 4095.0));
        assert_eq!(work(Operation::Allgather, "recursive-doubling", 6, 8), None);
    }
}
