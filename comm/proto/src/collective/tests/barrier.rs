use super::*;

type Algorithm = fn(Rank, usize) -> Vec<Step>;

const ALL: [Algorithm; 3] = [barrier_dissemination, barrier_linear, barrier_tree];

#[test]
fn every_rank_hears_from_every_other() {
    for algorithm in ALL {
        for size in 1..=33 {
            for mode in [Mode::Buffered, Mode::Synchronous] {
                let lists = (0..size).map(|rank| algorithm(rank, size)).collect();
                let heard = run::<u64>(lists, &[], &mut vec![Vec::new(); size], |a, _| *a, mode);
                assert!(heard.iter().all(|ranks| *ranks == (1 << size) - 1), "size {size}");
            }
        }
    }
}
