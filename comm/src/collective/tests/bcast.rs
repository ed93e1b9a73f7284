use super::*;

type Algorithm = fn(Rank, usize, Rank, usize) -> Vec<Step>;

const ALL: [Algorithm; 1] = [bcast_binomial];

#[test]
fn all_ranks_get_the_buffer_of_every_root() {
    for algorithm in ALL {
        for (size, root) in (1..=17).flat_map(|size| (0..size).map(move |root| (size, root))) {
            for len in lengths(size) {
                let buffers = moved(|rank| algorithm(rank, size, root, len), &[], filled(size, len));
                let expected = &filled(size, len)[root];
                assert!(buffers.iter().all(|buffer| buffer == expected), "size {size} root {root} len {len}");
            }
        }
        for size in 18..=33 {
            for len in lengths(size) {
                let buffers = moved(|rank| algorithm(rank, size, 1, len), &[], filled(size, len));
                assert!(
                    buffers.iter().all(|buffer| *buffer == filled(size, len)[1]),
                    "size {size} len {len}"
                );
            }
        }
    }
}
