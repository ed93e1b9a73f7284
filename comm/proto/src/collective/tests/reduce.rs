use super::*;

type Algorithm = fn(Rank, usize, Rank, usize) -> Vec<Step>;

const ALL: [Algorithm; 2] = [reduce_binomial, reduce_scatter_gather];

#[test]
fn the_root_gets_the_product_in_the_order_of_ranks() {
    for algorithm in ALL {
        for (size, root) in sizes_and_roots() {
            for len in lengths(size) {
                let buffers = after(|rank| algorithm(rank, size, root, len), &[], affine(size, len), compose);
                assert_eq!(buffers[root], product(0..size, len), "size {size} root {root} len {len}");
            }
        }
    }
}

#[test]
fn the_grouping_is_the_same_for_every_root() {
    for algorithm in ALL {
        for size in 1..=17 {
            let len = size + 1;
            let at = |root| {
                let list = |rank| algorithm(rank, size, root, len);
                after(list, &[], filled(size, len), ordered).swap_remove(root)
            };
            assert!((0..size).all(|root| at(root) == at(0)), "size {size}");
        }
    }
}
