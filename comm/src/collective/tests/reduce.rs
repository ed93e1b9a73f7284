use super::*;

type Algorithm = fn(Rank, usize, Rank, usize) -> Vec<Step>;

const ALL: [Algorithm; 1] = [reduce_binomial];

/// Every size, with every root up to 17.
fn sizes_and_roots() -> impl Iterator<Item = (usize, Rank)> {
    let all = (1..=17).flat_map(|size| (0..size).map(move |root| (size, root)));
    all.chain((18..=33).flat_map(|size| [(size, 0), (size, size - 1)]))
}

#[test]
fn the_root_gets_the_sum() {
    for algorithm in ALL {
        for (size, root) in sizes_and_roots() {
            for len in lengths(size) {
                let list = |rank| algorithm(rank, size, root, len);
                let buffers = after(list, &[], filled(size, len), |a, b| a + b);
                assert_eq!(buffers[root], sum(size, len), "size {size} root {root} len {len}");
            }
        }
    }
}
