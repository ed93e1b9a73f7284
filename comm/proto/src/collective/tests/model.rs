use super::*;
use crate::collective::model::{Work, predict, seconds};

const MACHINE: Machine =
    Machine { latency_s: 100.0, overhead_s: 10.0, byte_s: 1.0, reduce_byte_s: 0.25, cores: 2 };

fn critical(lists: &[Vec<Step>]) -> f64 {
    predict(lists, 1, &MACHINE).critical_s
}

#[test]
fn there_and_back_takes_two_messages() {
    let lists =
        [vec![Step::send(1, 0..8), Step::recv(1, 0..8)], vec![Step::recv(0, 0..8), Step::send(0, 0..8)]];
    assert_eq!(critical(&lists), 2.0 * (10.0 + 100.0 + 8.0 + 10.0));
}

#[test]
fn a_rank_takes_one_message_at_a_time() {
    let root = vec![Step::recv(1, 0..20), Step::recv(2, 20..40)];
    let lists = [root, vec![Step::send(0, 0..20)], vec![Step::send(0, 0..20)]];
    assert_eq!(critical(&lists), 10.0 + 100.0 + 20.0 + 20.0 + 10.0);
}

#[test]
fn messages_of_one_sender_overlap_in_flight_only() {
    let to_both = |second: std::ops::Range<usize>| {
        vec![
            vec![Step::send(1, 0..8), Step::send(2, second)],
            vec![Step::recv(0, 0..8)],
            vec![Step::recv(0, 0..8)],
        ]
    };
    // The second one has its overhead while the bytes of the first leave.
    assert_eq!(critical(&to_both(8..16)), 10.0 + 10.0 + 8.0 + 100.0 + 10.0);
    // The same part leaves for one rank after the other.
    assert_eq!(critical(&to_both(0..8)), 10.0 + 8.0 + 10.0 + 8.0 + 100.0 + 10.0);
}

#[test]
fn hazards_fences_and_reductions_take_their_time() {
    // The copy waits for the receive, the reduction for the copy, and the fence keeps the last message back.
    let first = vec![
        Step::recv(1, 0..8),
        Step::copy(0..8, Part::scratch(0..8)),
        Step::reduce(Part::scratch(0..4), 0..4, Order::MineFirst),
        Step::recv(1, 0..0),
        Step::Fence,
        Step::send(1, 0..0),
    ];
    let second = vec![Step::send(0, 0..8), Step::send(0, 0..0), Step::recv(0, 0..0)];
    let here = 10.0 + 100.0 + 8.0 + 10.0;
    let worked = here + 2.0 + 1.0;
    // The second message is there already and costs its overhead.
    assert_eq!(critical(&[first, second]), worked + 10.0 + 10.0 + 100.0 + 10.0);
}

#[test]
fn many_ranks_on_few_cores_take_as_long_as_all_their_work() {
    let size = 32;
    let work = |list: fn(Rank, usize) -> Vec<Step>| Work::of((0..size).flat_map(|rank| list(rank, size)), 1);
    let (tree, dissemination) = (work(barrier_tree), work(barrier_dissemination));
    assert_eq!((tree.messages, dissemination.messages), (62.0, 160.0));
    let time = |cost: Cost, work: &Work, cores| {
        seconds(&cost, work, size, &Machine { latency_s: 1.0, cores, ..MACHINE })
    };
    let (up_down, rounds) = (barrier_tree::cost(size, 0.0), barrier_dissemination::cost(size, 0.0));
    // With a core each the fewest rounds win, on two cores the fewest messages.
    assert!(time(rounds, &dissemination, size) < time(up_down, &tree, size));
    assert!(time(rounds, &dissemination, 2) > time(up_down, &tree, 2));
    assert_eq!(time(rounds, &dissemination, 2), 160.0 * 20.0 / 2.0);
}

#[test]
#[should_panic(expected = "do not come to an end")]
fn a_deadlock_has_no_time() {
    critical(&[vec![Step::recv(1, 0..0)], vec![Step::recv(0, 0..0)]]);
}
