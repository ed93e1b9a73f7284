//! The bag alone, and many of them under random losses.

use proptest::prelude::*;

use super::*;

fn done(task: TaskId) -> Fact {
    Fact { done: [Some(task), None], progress: 0 }
}

#[test]
fn ranks_get_a_task_and_a_reserve_and_take_over_the_reserves_of_others() {
    let mut bag = Bag::new(5, 3);
    assert_eq!([0, 1, 2].map(|rank| bag.task_of(rank)), [Some(0), Some(1), Some(2)]);
    assert_eq!([0, 1, 2].map(|rank| bag.reserve_of(rank)), [Some(3), Some(4), None]);
    bag.meet(&[Fact { done: [None, None], progress: 7 }, Fact::default(), done(2)]);
    assert_eq!(
        (bag.task_of(2), bag.reserve_of(1)),
        (Some(4), None),
        "rank 2 takes what rank 1 has in reserve"
    );
    bag.meet(&[Fact { done: [Some(0), Some(3)], progress: 0 }, done(1), done(4)]);
    assert!(bag.is_empty());
    assert!(bag.runs().iter().all(|runs| runs.len() == 1 && runs[0].outcome == Outcome::Done));
    assert_eq!(bag.runs()[4][0].rank, 2);
}

#[test]
fn what_a_lost_rank_held_is_run_again_and_the_account_says_so() {
    let mut bag = Bag::new(2, 2);
    bag.meet(&[Fact { done: [None; 2], progress: 5 }, Fact { done: [None; 2], progress: 9 }]);
    assert_eq!(bag.lose(1, None), 9);
    assert_eq!(bag.lose(1, None), 0, "told again after another failure");
    bag.deal();
    assert_eq!(bag.task_of(1), Some(1));
    bag.meet(&[done(0), done(1)]);
    let run = |outcome, steps_lost| Run { rank: 1, outcome, steps_lost, resumed: 0 };
    assert_eq!(bag.runs()[1], [run(Outcome::Lost, 9), run(Outcome::Done, 0)]);
}

#[test]
fn a_task_that_a_checkpoint_had_goes_on_in_the_middle() {
    let mut bag = Bag::new(4, 2);
    bag.meet(&[Fact::default(), Fact { done: [None; 2], progress: 9 }]);
    assert_eq!(bag.lose(1, Some((1, 6))), 3);
    assert_eq!((bag.task_of(1), bag.reserve_of(1)), (Some(1), Some(3)));
    bag.meet(&[Fact::default(), done(1)]);
    assert_eq!(bag.runs()[1], [Run { rank: 1, outcome: Outcome::Done, steps_lost: 3, resumed: 1 }]);
    // The checkpoint had a task that is done since.
    assert_eq!(bag.lose(1, Some((1, 6))), 0);
    assert_eq!(bag.runs()[3].last().map(|run| run.outcome), Some(Outcome::Lost));
}

#[test]
fn newcomers_get_what_nobody_holds_any_more() {
    let mut bag = Bag::new(6, 2);
    let round = bag.round();
    bag.join(2);
    bag.retire(1);
    assert!(bag.round() > round && bag.ranks().eq([0, 2, 3]) && bag.size() == 4);
    assert_eq!([bag.task_of(2), bag.task_of(3)], [None; 2], "not before they are dealt to");
    bag.deal();
    assert_eq!([0, 2, 3].map(|rank| bag.task_of(rank)), [Some(0), Some(1), Some(3)]);
    assert_eq!([0, 2, 3].map(|rank| bag.reserve_of(rank)), [Some(2), Some(4), Some(5)]);
}

#[test]
fn facts_travel_as_words() {
    for fact in [Fact::default(), done(0), Fact { done: [Some(7), Some(0)], progress: u64::MAX }] {
        assert_eq!(Fact::from_words(&fact.to_words()), fact);
    }
}

proptest! {
    /// Ranks finish tasks, are lost, and tell what is known already: in the end each task is done, and at no time do
    /// two ranks hold the same.
    #[test]
    fn every_task_is_done_and_none_is_held_twice(
        tasks in 0..20usize,
        ranks in 1..6usize,
        events in proptest::collection::vec((0..6usize, 0..4u8), 0..100),
    ) {
        let mut bag = Bag::new(tasks, ranks);
        let mut last = vec![Fact::default(); ranks];
        for (rank, what) in events {
            let rank = rank % ranks;
            match what {
                0 => {
                    bag.lose(rank, bag.task_of(rank).filter(|task| task % 2 == 0).map(|task| (task, 1)));
                    bag.deal();
                }
                1 => bag.meet(&last), // told twice
                _ => {
                    last = vec![Fact { done: [None; 2], progress: 2 }; ranks];
                    last[rank].done = [bag.task_of(rank), bag.reserve_of(rank).filter(|_| what == 3)];
                    bag.meet(&last);
                }
            }
            let mut held: Vec<TaskId> =
                (0..ranks).flat_map(|rank| [bag.task_of(rank), bag.reserve_of(rank)]).flatten().collect();
            let count = held.len();
            held.sort_unstable();
            held.dedup();
            prop_assert_eq!(held.len(), count);
            prop_assert!(held.iter().all(|task| !bag.is_done(*task)));
            prop_assert!(bag.is_empty() || !held.is_empty(), "work is left and nobody is at it");
        }
        for _ in 0..=tasks {
            let facts: Vec<Fact> =
                (0..ranks).map(|rank| Fact { done: [bag.task_of(rank), None], progress: 0 }).collect();
            bag.meet(&facts);
        }
        prop_assert!(bag.is_empty());
    }
}
