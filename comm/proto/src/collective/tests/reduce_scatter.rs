use super::*;

type Algorithm = fn(Rank, usize, &[usize]) -> Vec<Step>;

const ALL: [Algorithm; 2] = [reduce_scatter_halving, reduce_scatter_pairwise];

/// Unequal parts, and equal ones of all lengths.
fn all_starts(size: usize) -> Vec<Vec<usize>> {
    let equal = |len: usize| (0..=size).map(|rank| rank * len / size).collect();
    let mut starts: Vec<Vec<usize>> = lengths(size).into_iter().map(equal).collect();
    starts.push(unequal(size));
    starts
}

#[test]
fn every_rank_gets_the_sum_of_its_part() {
    for algorithm in ALL {
        for size in 1..=33 {
            for starts in all_starts(size) {
                let len = starts[size];
                let list = |rank| algorithm(rank, size, &starts);
                let buffers = after(list, &[], filled(size, len), |a, b| a + b);
                for (rank, buffer) in buffers.iter().enumerate() {
                    let own = starts[rank]..starts[rank + 1];
                    assert_eq!(buffer[own.clone()], sum(size, len)[own], "size {size} starts {starts:?}");
                }
            }
        }
    }
}

#[test]
fn pairwise_keeps_the_order_of_ranks() {
    for size in 1..=33 {
        for starts in all_starts(size) {
            let list = |rank| reduce_scatter_pairwise(rank, size, &starts);
            let buffers = after(list, &[], affine(size, starts[size]), compose);
            for (rank, buffer) in buffers.iter().enumerate() {
                let own = starts[rank]..starts[rank + 1];
                assert_eq!(buffer[own.clone()], product(0..size, starts[size])[own], "size {size}");
            }
        }
    }
}
