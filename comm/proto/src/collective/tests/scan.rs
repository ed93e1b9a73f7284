use super::*;

type Algorithm = fn(Rank, usize, usize) -> Vec<Step>;

#[test]
fn scan_is_the_product_up_to_the_rank() {
    for algorithm in [scan_linear as Algorithm, scan_recursive_doubling] {
        for size in 1..=33 {
            for len in lengths(size) {
                let buffers = after(|rank| algorithm(rank, size, len), &[], affine(size, len), compose);
                for (rank, buffer) in buffers.iter().enumerate() {
                    assert_eq!(*buffer, product(0..rank + 1, len), "size {size} len {len} rank {rank}");
                }
            }
        }
    }
}

#[test]
fn exscan_is_the_product_below_the_rank() {
    for algorithm in [exscan_linear as Algorithm, exscan_recursive_doubling] {
        for size in 1..=33 {
            for len in lengths(size) {
                let buffers = after(|rank| algorithm(rank, size, len), &[], affine(size, len), compose);
                assert_eq!(buffers[0], affine(size, len)[0], "rank 0 keeps its buffer");
                for (rank, buffer) in buffers.iter().enumerate().skip(1) {
                    assert_eq!(*buffer, product(0..rank, len), "size {size} len {len} rank {rank}");
                }
            }
        }
    }
}
