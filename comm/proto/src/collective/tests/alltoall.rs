use super::*;

/// Length of the part from one rank to another; some are empty.
fn length(from: Rank, to: Rank) -> usize {
    (5 * from + 3 * to) % 4
}

/// Exchanges parts of these lengths and checks where they come to. `list` takes the rank and the starts of what it
/// sends and receives.
fn exchange(
    size: usize,
    length: impl Fn(Rank, Rank) -> usize,
    list: impl Fn(Rank, &[usize], &[usize]) -> Vec<Step>,
) {
    let starts = |length: &dyn Fn(Rank) -> usize| {
        let mut starts = vec![0];
        (0..size).for_each(|rank| starts.push(starts[rank] + length(rank)));
        starts
    };
    let sends = |rank: Rank| starts(&|to| length(rank, to));
    let recvs = |rank: Rank| starts(&|from| length(from, rank));
    let part = |from: Rank, to: Rank| (0..length(from, to)).map(move |at| value(from * size + to, at));
    let inputs: Vec<Vec<u64>> =
        (0..size).map(|rank| (0..size).flat_map(|to| part(rank, to)).collect()).collect();
    let expected: Vec<Vec<u64>> =
        (0..size).map(|rank| (0..size).flat_map(|from| part(from, rank)).collect()).collect();
    // The caller copies what a rank has for itself.
    let mut buffers: Vec<Vec<u64>> = expected.iter().map(|buffer| vec![u64::MAX; buffer.len()]).collect();
    for (rank, buffer) in buffers.iter_mut().enumerate() {
        let own = recvs(rank)[rank]..recvs(rank)[rank + 1];
        buffer[own.clone()].copy_from_slice(&expected[rank][own]);
    }
    let buffers = moved(|rank| list(rank, &sends(rank), &recvs(rank)), &inputs, buffers);
    assert_eq!(buffers, expected, "{size} ranks");
}

#[test]
fn alltoall_of_unequal_parts() {
    for size in 1..=33 {
        exchange(size, length, |rank, sends, recvs| alltoall_pairwise(rank, size, sends, recvs));
        exchange(size, length, |rank, sends, recvs| alltoall_linear(rank, size, sends, recvs));
    }
}

#[test]
fn alltoall_of_equal_parts() {
    for size in 1..=33 {
        for len in [0, 1, 3] {
            exchange(size, |_, _| len, |rank, _, _| alltoall_bruck(rank, size, len));
        }
    }
}

/// Pairwise, a rank has at most one message each way under way; linear, none waits for another.
#[test]
fn rounds_are_as_documented() {
    for size in 2..=17 {
        let starts = equal_starts(size, 1);
        let pairwise = alltoall_pairwise(1, size, &starts, &starts);
        for round in pairwise.split(|step| *step == Step::Fence) {
            assert!(matches!(round, [Step::Recv { .. }, Step::Send { .. }]), "{round:?}");
        }
        assert_eq!(pairwise.split(|step| *step == Step::Fence).count(), size - 1);
        let linear = alltoall_linear(1, size, &starts, &starts);
        assert!(linear.len() == 2 * (size - 1) && !linear.contains(&Step::Fence));
    }
}

#[test]
fn costs_are_as_documented() {
    for size in 2..=33 {
        let bruck = alltoall_bruck(1, size, 10);
        let sends: Vec<usize> = bruck
            .iter()
            .filter_map(|step| if let Step::Send { part, .. } = step { Some(part.len()) } else { None })
            .collect();
        let copies = bruck.iter().filter(|step| matches!(step, Step::Copy { .. })).count();
        let cost = alltoall_bruck::cost(size, 10.0);
        assert_eq!((sends.len() as f64, sends.iter().sum::<usize>() as f64), (cost.rounds, cost.bytes));
        assert_eq!(10.0 * copies as f64, cost.reduced);
    }
}
