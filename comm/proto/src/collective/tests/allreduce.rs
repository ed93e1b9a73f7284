use super::*;

type Algorithm = fn(Rank, usize, usize) -> Vec<Step>;

const ALL: [Algorithm; 5] = [
    allreduce_halving_doubling,
    allreduce_linear,
    allreduce_recursive_doubling,
    allreduce_ring,
    allreduce_tree,
];
const IN_ORDER: [Algorithm; 4] =
    [allreduce_halving_doubling, allreduce_linear, allreduce_recursive_doubling, allreduce_tree];

#[test]
fn allreduce_adds_everything() {
    for algorithm in ALL {
        for size in 1..=33 {
            for len in lengths(size) {
                let list = |rank| algorithm(rank, size, len);
                let buffers = after(list, &[], filled(size, len), |a, b| a + b);
                assert!(buffers.iter().all(|buffer| *buffer == sum(size, len)), "size {size} len {len}");
            }
        }
    }
}

#[test]
fn allreduce_has_one_order_on_all_ranks() {
    for algorithm in ALL {
        for size in 1..=33 {
            let len = size + 1;
            for op in [grouped, ordered] {
                let buffers = after(|rank| algorithm(rank, size, len), &[], filled(size, len), op);
                assert!(buffers.iter().all(|buffer| *buffer == buffers[0]), "size {size}");
            }
        }
    }
}

#[test]
fn allreduce_keeps_the_order_of_ranks() {
    for algorithm in IN_ORDER {
        for size in 1..=33 {
            for len in lengths(size) {
                let buffers = after(|rank| algorithm(rank, size, len), &[], affine(size, len), compose);
                assert!(
                    buffers.iter().all(|buffer| *buffer == product(0..size, len)),
                    "size {size} len {len}"
                );
            }
        }
    }
}

#[test]
fn one_rank_combines_as_all_would() {
    for size in 1..=33 {
        let result = |algorithm: Algorithm| {
            after(|rank| algorithm(rank, size, 3), &[], filled(size, 3), grouped).swap_remove(0)
        };
        assert_eq!(result(allreduce_linear), result(allreduce_recursive_doubling), "size {size}");
    }
}
