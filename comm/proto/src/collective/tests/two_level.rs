//! Two levels, wherever ranks are: the bits of the algorithm that they stand for, and few messages between hosts.

use super::*;

/// By rank the label of its host, for each of many placements of `size` ranks: all together, each alone, runs, turns, and by chance.
pub(super) fn placements(size: usize) -> Vec<Vec<usize>> {
    let mut state = size as u64;
    let mut below = |limit: u64| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        ((state >> 33) % limit) as usize
    };
    let mut all = vec![vec![7; size], (0..size).rev().collect()];
    for hosts in 2..5 {
        all.push((0..size).map(|rank| rank * hosts / size).collect());
        all.push((0..size).map(|rank| rank % hosts).collect());
        all.extend((0..4).map(|_| (0..size).map(|_| below(hosts as u64)).collect::<Vec<_>>()));
    }
    all
}

fn with_placements(check: impl Fn(usize, &[usize])) {
    (1..=17).for_each(|size| placements(size).iter().for_each(|labels| check(size, labels)));
}

/// Doubles whose sums depend on the order, as bits.
fn doubles(size: usize, len: usize) -> Vec<Vec<u64>> {
    let value = |rank: Rank, at: usize| (1.0 / (value(rank, at) as f64)) * [1.0, 1e9, 1e-9][(rank + at) % 3];
    (0..size).map(|rank| (0..len).map(|at| value(rank, at).to_bits()).collect()).collect()
}

fn added(a: &u64, b: &u64) -> u64 {
    (f64::from_bits(*a) + f64::from_bits(*b)).to_bits()
}

/// Operations that depend on the grouping of their operands, on their order too, and on neither.
const OPERATIONS: [fn(&u64, &u64) -> u64; 4] = [added, grouped, ordered, |a, b| a.wrapping_add(*b)];

#[test]
fn an_allreduce_has_the_bits_of_recursive_doubling() {
    with_placements(|size, labels| {
        for (op, len) in OPERATIONS.into_iter().zip([3, 1, 2, 0]) {
            let due =
                after(|rank| allreduce_recursive_doubling(rank, size, len), &[], doubles(size, len), op);
            let got = after(|rank| allreduce_two_level(rank, size, len, labels), &[], doubles(size, len), op);
            assert_eq!(got, due, "{labels:?}");
        }
    });
}

#[test]
fn a_reduction_has_the_bits_of_the_binomial_tree() {
    with_placements(|size, labels| {
        for root in 0..size {
            for (op, len) in OPERATIONS.into_iter().zip([3, 1, 2, 0]) {
                let due = after(|rank| reduce_binomial(rank, size, root, len), &[], doubles(size, len), op);
                let got = after(
                    |rank| reduce_two_level(rank, size, root, len, labels),
                    &[],
                    doubles(size, len),
                    op,
                );
                assert_eq!(got[root], due[root], "{labels:?}, root {root}");
            }
        }
    });
}

#[test]
fn a_barrier_hears_from_everybody_and_a_broadcast_and_an_allgather_reach_all() {
    with_placements(|size, labels| {
        for mode in [Mode::Buffered, Mode::Synchronous] {
            let lists = (0..size).map(|rank| barrier_two_level(rank, size, labels)).collect();
            let heard = run::<u64>(lists, &[], &mut vec![Vec::new(); size], |a, _| *a, mode);
            assert!(heard.iter().all(|ranks| *ranks == (1 << size) - 1), "{labels:?}");
        }
        for root in 0..size {
            let list = |rank| bcast_two_level(rank, size, root, 3, labels);
            let buffers = moved(list, &[], filled(size, 3));
            assert!(buffers.iter().all(|buffer| *buffer == filled(size, 3)[root]), "{labels:?}, root {root}");
        }
        for starts in [equal_starts(size, 2), unequal(size)] {
            let whole: Vec<u64> = (0..starts[size]).map(|at| value(7, at)).collect();
            let own = |rank: Rank| {
                let part = starts[rank]..starts[rank + 1];
                (0..starts[size]).map(|at| if part.contains(&at) { whole[at] } else { u64::MAX }).collect()
            };
            let list = |rank| allgather_two_level(rank, size, &starts, labels);
            let buffers = moved(list, &[], (0..size).map(own).collect());
            assert!(buffers.iter().all(|buffer| *buffer == whole), "{labels:?}");
        }
    });
}

/// Messages and elements from one host to another.
fn between_hosts(list: impl Fn(Rank) -> Vec<Step>, labels: &[usize]) -> (usize, usize) {
    let of_rank = |rank: Rank| {
        list(rank).into_iter().filter_map(move |step| match step {
            Step::Send { to, part } if labels[to] != labels[rank] => Some(part.len()),
            _ => None,
        })
    };
    let sent: Vec<usize> = (0..labels.len()).flat_map(of_rank).collect();
    (sent.len(), sent.iter().sum())
}

#[test]
fn leaders_alone_speak_with_other_hosts() {
    for (labels, given) in [
        // Each host has a whole branch of the order: one value.
        ((0..16).map(|rank| rank / 4).collect::<Vec<_>>(), 1),
        // Turns: no two neighbors are on one host, so all values go to all leaders.
        ((0..16).map(|rank| rank % 4).collect(), 4),
    ] {
        let of = |list: &dyn Fn(Rank) -> Vec<Step>| between_hosts(list, &labels);
        assert_eq!(of(&|rank| barrier_two_level(rank, 16, &labels)), (8, 0));
        assert_eq!(of(&|rank| bcast_two_level(rank, 16, 5, 3, &labels)), (3, 9));
        assert_eq!(of(&|rank| reduce_two_level(rank, 16, 5, 3, &labels)), (3, 9 * given));
        let (messages, elements) = of(&|rank| allreduce_two_level(rank, 16, 3, &labels));
        // Two rounds of the leaders; what goes round the end goes in two messages.
        assert!((8..=10).contains(&messages) && elements == 36 * given, "{messages} of {elements}");
        let (messages, elements) = of(&|rank| allgather_two_level(rank, 16, &equal_starts(16, 3), &labels));
        assert!((8..=10).contains(&messages) && elements == 144, "{messages} of {elements}");
    }
}
