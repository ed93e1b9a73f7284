//! Every algorithm for sizes 1 to 33, all ranks in one thread: results against a serial reference, no
//! deadlock, no message left over, and the cost that the docs state.

use std::collections::{HashMap, VecDeque};

use super::*;
use crate::rank::Rank;

/// Runs the step lists of all ranks; sends are buffered, receives block. Panics on deadlock or left-overs.
fn run(lists: Vec<Vec<Step>>, buffers: &mut [Vec<u64>], op: fn(u64, u64) -> u64) {
    let mut wires: HashMap<(Rank, Rank), VecDeque<Vec<u64>>> = HashMap::new();
    let mut lists: Vec<VecDeque<Step>> = lists.into_iter().map(VecDeque::from).collect();
    loop {
        let mut moved = false;
        for rank in 0..lists.len() {
            while let Some(step) = lists[rank].front() {
                match step {
                    Step::Send { to, part } => {
                        assert_ne!(*to, rank, "nobody sends to itself");
                        let message = buffers[rank][part.range.clone()].to_vec();
                        wires.entry((rank, *to)).or_default().push_back(message);
                    }
                    Step::Recv { from, part } | Step::RecvReduce { from, part, .. } => {
                        let Some(message) = wires.get_mut(&(*from, rank)).and_then(VecDeque::pop_front)
                        else {
                            break;
                        };
                        let target = &mut buffers[rank][part.range.clone()];
                        assert_eq!(message.len(), target.len(), "both sides agree on the length");
                        let reduce = matches!(step, Step::RecvReduce { .. });
                        for (mine, theirs) in target.iter_mut().zip(message) {
                            *mine = if reduce { op(*mine, theirs) } else { theirs };
                        }
                    }
                    other => panic!("{other:?}"),
                }
                lists[rank].pop_front();
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    assert!(lists.iter().all(VecDeque::is_empty), "deadlock: {lists:?}");
    assert!(wires.values().all(VecDeque::is_empty), "messages left over");
}

fn lengths(size: usize) -> Vec<usize> {
    vec![0, 1, size.saturating_sub(1), size, size + 1, 3 * size + 2]
}

fn value(rank: Rank, at: usize) -> u64 {
    (rank as u64 + 1) * 1_000 + at as u64
}

fn filled(size: usize, len: usize) -> Vec<Vec<u64>> {
    (0..size).map(|rank| (0..len).map(|at| value(rank, at)).collect()).collect()
}

fn sum(size: usize, len: usize) -> Vec<u64> {
    (0..len).map(|at| (0..size).map(|rank| value(rank, at)).sum()).collect()
}

#[test]
fn allreduce_adds_everything() {
    for algorithm in [allreduce_recursive_doubling, allreduce_ring] {
        for size in 1..=33 {
            for len in lengths(size) {
                let mut buffers = filled(size, len);
                run((0..size).map(|rank| algorithm(rank, size, len)).collect(), &mut buffers, |a, b| a + b);
                assert!(buffers.iter().all(|buffer| *buffer == sum(size, len)), "size {size} len {len}");
            }
        }
    }
}

/// An operation that shows its own order: the result names the shape of the tree. It must be the same on all
/// ranks, as a commutative float operation then has the same bits.
#[test]
fn allreduce_has_one_order_on_all_ranks() {
    let commutative = |a: u64, b: u64| {
        let (low, high) = (a.min(b), a.max(b));
        low.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ high.rotate_left(17)
    };
    for algorithm in [allreduce_recursive_doubling, allreduce_ring] {
        for size in 1..=33 {
            let len = size + 1;
            let mut buffers = filled(size, len);
            run((0..size).map(|rank| algorithm(rank, size, len)).collect(), &mut buffers, commutative);
            assert!(buffers.iter().all(|buffer| *buffer == buffers[0]), "size {size}");
        }
    }
}

#[test]
fn reduce_and_bcast_for_every_root() {
    for size in 1..=17 {
        for root in 0..size {
            for len in lengths(size) {
                let mut buffers = filled(size, len);
                let lists = (0..size).map(|rank| reduce_binomial(rank, size, root, len)).collect();
                run(lists, &mut buffers, |a, b| a + b);
                assert_eq!(buffers[root], sum(size, len));
                let lists = (0..size).map(|rank| bcast_binomial(rank, size, root, len)).collect();
                run(lists, &mut buffers, |a, b| a + b);
                assert!(buffers.iter().all(|buffer| *buffer == sum(size, len)));
            }
        }
    }
}

#[test]
fn gather_to_every_root() {
    for size in 1..=17 {
        for root in 0..size {
            let len = 3;
            let mut buffers = filled(size, len);
            let own = std::mem::replace(&mut buffers[root], vec![0; size * len]);
            buffers[root][root * len..(root + 1) * len].copy_from_slice(&own);
            run((0..size).map(|rank| gather_linear(rank, size, root, len)).collect(), &mut buffers, |a, _| a);
            let expected: Vec<u64> = filled(size, len).concat();
            assert_eq!(buffers[root], expected);
        }
    }
}

#[test]
fn allgather_of_unequal_parts() {
    for size in 1..=33 {
        let mut starts = vec![0];
        (0..size).for_each(|rank| starts.push(starts[rank] + (rank * 7) % 4));
        let expected: Vec<u64> = (0..starts[size] as u64).collect();
        let mut buffers: Vec<Vec<u64>> = (0..size)
            .map(|rank| {
                let mut buffer = vec![u64::MAX; starts[size]];
                let own = starts[rank]..starts[rank + 1];
                buffer[own.clone()].copy_from_slice(&expected[own]);
                buffer
            })
            .collect();
        let lists = (0..size).map(|rank| allgather_dissemination(rank, size, &starts)).collect();
        run(lists, &mut buffers, |a, _| a);
        assert!(buffers.iter().all(|buffer| *buffer == expected), "size {size}");
    }
}

#[test]
fn barrier_separates_before_and_after() {
    // Every rank must have heard, directly or not, from every other: spread sets of ranks with the messages.
    for size in 1..=33 {
        let lists: Vec<_> = (0..size).map(|rank| barrier_dissemination(rank, size)).collect();
        let rounds = lists[0].len() / 2;
        assert_eq!(rounds, usize::ilog2(size.max(1)) as usize + usize::from(!size.is_power_of_two()));
        let mut knows: Vec<u64> = (0..size).map(|rank| 1 << rank).collect();
        for round in 0..rounds {
            let before = knows.clone();
            for rank in 0..size {
                let Step::Recv { from, .. } = lists[rank][2 * round + 1] else { panic!() };
                knows[rank] |= before[from];
            }
        }
        assert!(knows.iter().all(|set| set.count_ones() as usize == size), "size {size}");
    }
}

#[test]
fn costs_are_as_documented() {
    let sent = |steps: &[Step]| -> usize {
        steps.iter().map(|step| if let Step::Send { part, .. } = step { part.len() } else { 0 }).sum()
    };
    for size in 2..=16 {
        let len = size * 10;
        let ring = allreduce_ring(1 % size, size, len);
        assert_eq!(sent(&ring), 2 * len * (size - 1) / size);
        let doubling = allreduce_recursive_doubling(0, 8, len);
        assert_eq!(sent(&doubling), 3 * len);
    }
}
