use super::*;

/// A periodic line, where a rank of two has the same neighbor on both sides: messages are told apart by their order.
#[test]
fn neighbors_of_a_periodic_line() {
    for size in 2..=9 {
        let (left, right) = (|rank| (rank + size - 1) % size, |rank| (rank + 1) % size);
        let inputs: Vec<Vec<u64>> = (0..size).map(|rank| vec![value(rank, 0), value(rank, 1)]).collect();
        let list = |rank: Rank| {
            let sends = [(left(rank), 0..1), (right(rank), 1..2)];
            let recvs = [(right(rank), 1..2), (left(rank), 0..1)];
            neighbor_linear(&sends, &recvs)
        };
        let buffers = moved(list, &inputs, vec![vec![0; 2]; size]);
        for (rank, buffer) in buffers.iter().enumerate() {
            assert_eq!(*buffer, [value(left(rank), 1), value(right(rank), 0)], "rank {rank} of {size}");
        }
    }
}
