use super::*;

type Algorithm = fn(Rank, usize, Rank, usize) -> Vec<Step>;

const ALL: [Algorithm; 5] = [
    bcast_binomial,
    bcast_linear,
    |rank, size, root, len| bcast_pipeline(rank, size, root, len, 1),
    |rank, size, root, len| bcast_pipeline(rank, size, root, len, 4),
    bcast_scatter_allgather,
];

#[test]
fn all_ranks_get_the_buffer_of_every_root() {
    for algorithm in ALL {
        for (size, root) in sizes_and_roots() {
            for len in lengths(size) {
                let buffers = moved(|rank| algorithm(rank, size, root, len), &[], filled(size, len));
                let expected = &filled(size, len)[root];
                assert!(buffers.iter().all(|buffer| buffer == expected), "size {size} root {root} len {len}");
            }
        }
    }
}

#[test]
fn nobody_is_sent_what_it_has() {
    for (size, root) in sizes_and_roots() {
        let len = 3 * size;
        let received = |rank: Rank| -> usize {
            let length = |step: &Step| if let Step::Recv { part, .. } = step { part.len() } else { 0 };
            bcast_scatter_allgather(rank, size, root, len).iter().map(length).sum()
        };
        for rank in 0..size {
            assert_eq!(
                received(rank),
                if rank == root { 0 } else { len },
                "size {size} root {root} rank {rank}"
            );
        }
    }
}
