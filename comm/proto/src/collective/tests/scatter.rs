use super::*;

/// The buffers of all ranks after a scatter of unequal parts, the root's left out.
fn scattered(size: usize, root: Rank, starts: &[usize], list: impl Fn(Rank) -> Vec<Step>) -> Vec<Vec<u64>> {
    let mut inputs = vec![Vec::new(); size];
    inputs[root] = (0..starts[size] as u64).collect();
    let own = |rank: Rank| if rank == root { 0 } else { starts[rank + 1] - starts[rank] };
    moved(list, &inputs, (0..size).map(|rank| vec![u64::MAX; own(rank)]).collect())
}

#[test]
fn scatter_from_every_root() {
    for size in 1..=33 {
        for root in (0..size).filter(|root| size <= 17 || root % 7 == 0) {
            for starts in [unequal(size), equal_starts(size, 3), equal_starts(size, 0)] {
                let part = |rank: Rank| (starts[rank] as u64..starts[rank + 1] as u64).collect();
                let expected: Vec<Vec<u64>> =
                    (0..size).map(|rank| if rank == root { Vec::new() } else { part(rank) }).collect();
                let own = |rank: Rank| starts[rank + 1] - starts[rank];
                let known = |rank| if rank == root { &starts[..] } else { &[] };
                let linear = |rank| scatter_linear(rank, size, root, own(rank), known(rank));
                assert_eq!(scattered(size, root, &starts, linear), expected, "linear, {size} from {root}");
                let binomial = |rank| scatter_binomial(rank, size, root, &starts);
                assert_eq!(
                    scattered(size, root, &starts, binomial),
                    expected,
                    "binomial, {size} from {root}"
                );
            }
        }
    }
}

#[test]
fn costs_are_as_documented() {
    for size in 1..=33 {
        let starts = equal_starts(size, 10);
        let sent = |list: &[Step]| -> usize {
            list.iter().map(|step| if let Step::Send { part, .. } = step { part.len() } else { 0 }).sum()
        };
        let linear = scatter_linear(0, size, 0, 10, &starts);
        assert_eq!(linear.len() as f64, scatter_linear::cost(size, 10.0).rounds);
        assert_eq!(sent(&linear) as f64, scatter_linear::cost(size, 10.0).bytes);
        let binomial = scatter_binomial(0, size, 0, &starts);
        assert_eq!(binomial.len() as f64, scatter_binomial::cost(size, 10.0).rounds);
        assert_eq!(sent(&binomial) as f64, scatter_binomial::cost(size, 10.0).bytes);
    }
}
