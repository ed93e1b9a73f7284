use super::*;

#[test]
fn allgather_of_unequal_parts() {
    for size in 1..=33 {
        let starts = unequal(size);
        let expected: Vec<u64> = (0..starts[size] as u64).collect();
        let own = |rank: Rank| {
            let mut buffer = vec![u64::MAX; starts[size]];
            let own = starts[rank]..starts[rank + 1];
            buffer[own.clone()].copy_from_slice(&expected[own]);
            buffer
        };
        let buffers =
            moved(|rank| allgather_dissemination(rank, size, &starts), &[], (0..size).map(own).collect());
        assert!(buffers.iter().all(|buffer| *buffer == expected), "size {size}");
    }
}
