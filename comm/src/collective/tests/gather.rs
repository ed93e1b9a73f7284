use super::*;

#[test]
fn gather_to_every_root() {
    for size in 1..=17 {
        for root in 0..size {
            let len = 3;
            let mut buffers = filled(size, len);
            let own = std::mem::replace(&mut buffers[root], vec![0; size * len]);
            buffers[root][root * len..(root + 1) * len].copy_from_slice(&own);
            let buffers = moved(|rank| gather_linear(rank, size, root, len), &[], buffers);
            assert_eq!(buffers[root], filled(size, len).concat());
        }
    }
}
