use super::*;

/// Gathers these parts on all ranks; the algorithm takes the rank.
fn allgather(size: usize, starts: &[usize], list: impl Fn(Rank) -> Vec<Step>) {
    let expected: Vec<u64> = (0..starts[size] as u64).collect();
    let own = |rank: Rank| {
        let mut buffer = vec![u64::MAX; starts[size]];
        let own = starts[rank]..starts[rank + 1];
        buffer[own.clone()].copy_from_slice(&expected[own]);
        buffer
    };
    let buffers = moved(list, &[], (0..size).map(own).collect());
    assert!(buffers.iter().all(|buffer| *buffer == expected), "size {size}");
}

#[test]
fn allgather_of_any_parts() {
    for size in 1..=33 {
        for starts in [unequal(size), equal_starts(size, 2), equal_starts(size, 0)] {
            allgather(size, &starts, |rank| allgather_dissemination(rank, size, &starts));
            allgather(size, &starts, |rank| allgather_ring(rank, size, &starts));
            if size.is_power_of_two() {
                allgather(size, &starts, |rank| allgather_recursive_doubling(rank, size, &starts));
            }
        }
    }
}

#[test]
#[should_panic(expected = "recursive doubling of 6 ranks")]
fn recursive_doubling_is_for_powers_of_two() {
    allgather_recursive_doubling(0, 6, &equal_starts(6, 1));
}

#[test]
fn costs_are_as_documented() {
    let received = |steps: Vec<Step>| -> f64 {
        steps
            .iter()
            .map(|step| if let Step::Recv { part, .. } = step { part.len() } else { 0 })
            .sum::<usize>() as f64
    };
    for size in 1..=33 {
        let starts = equal_starts(size, 10);
        let ring = allgather_ring(0, size, &starts);
        assert_eq!(ring.len() as f64, 2.0 * allgather_ring::cost(size, 10.0).rounds);
        assert_eq!(received(ring), allgather_ring::cost(size, 10.0).bytes);
        let dissemination = allgather_dissemination(0, size, &starts);
        assert_eq!(received(dissemination), allgather_dissemination::cost(size, 10.0).bytes);
        if size.is_power_of_two() {
            let doubling = allgather_recursive_doubling(0, size, &starts);
            assert_eq!(doubling.len() as f64, 2.0 * allgather_recursive_doubling::cost(size, 10.0).rounds);
            assert_eq!(received(doubling), allgather_recursive_doubling::cost(size, 10.0).bytes);
        }
    }
}
