use super::*;

/// The buffer of the root after a gather of unequal parts.
fn gathered(size: usize, root: Rank, starts: &[usize], list: impl Fn(Rank) -> Vec<Step>) -> Vec<u64> {
    let inputs: Vec<Vec<u64>> =
        (0..size).map(|rank| (starts[rank]..starts[rank + 1]).map(|at| at as u64).collect()).collect();
    let mut buffers = vec![Vec::new(); size];
    buffers[root] = vec![u64::MAX; starts[size]];
    buffers[root][starts[root]..starts[root + 1]].copy_from_slice(&inputs[root]);
    moved(list, &inputs, buffers).swap_remove(root)
}

#[test]
fn gather_to_every_root() {
    for size in 1..=33 {
        for root in (0..size).filter(|root| size <= 17 || root % 7 == 0) {
            for starts in [unequal(size), equal_starts(size, 3), equal_starts(size, 0)] {
                let expected: Vec<u64> = (0..starts[size] as u64).collect();
                let own = |rank: Rank| starts[rank + 1] - starts[rank];
                let known = |rank| if rank == root { &starts[..] } else { &[] };
                let linear = |rank| gather_linear(rank, size, root, own(rank), known(rank));
                assert_eq!(gathered(size, root, &starts, linear), expected, "linear, {size} to {root}");
                let binomial = |rank| gather_binomial(rank, size, root, &starts);
                assert_eq!(gathered(size, root, &starts, binomial), expected, "binomial, {size} to {root}");
            }
        }
    }
}

#[test]
fn costs_are_as_documented() {
    for size in 1..=33 {
        let starts = equal_starts(size, 10);
        let received = |list: Vec<Step>| -> usize {
            list.iter().map(|step| if let Step::Recv { part, .. } = step { part.len() } else { 0 }).sum()
        };
        let linear = gather_linear(0, size, 0, 10, &starts);
        assert_eq!(linear.len() as f64, gather_linear::cost(size, 10.0).rounds);
        assert_eq!(received(linear) as f64, gather_linear::cost(size, 10.0).bytes);
        let binomial = gather_binomial(0, size, 0, &starts);
        assert_eq!(binomial.len() as f64, gather_binomial::cost(size, 10.0).rounds);
        assert_eq!(received(binomial) as f64, gather_binomial::cost(size, 10.0).bytes);
    }
}
