//! Ranks that are silent, and whether the job would survive their loss.

use super::*;

/// A job whose ranks form one group that survives `tolerance` losses.
fn protected(total: usize, tolerance: usize) -> Job {
    let mut job = Job::with(Config { groups: vec![((0..total).collect(), tolerance)], ..config(total) });
    job.join_all();
    (0..total).for_each(|rank| job.says(rank, ToArbiter::Mark { number: 1 }));
    job.effects.clear();
    job
}

fn events(effects: &[Effect]) -> Vec<Event> {
    let event = |effect: &Effect| match effect {
        Effect::Record(event @ (Event::Silent { .. } | Event::HeardAgain { .. } | Event::Lost { .. })) => {
            Some(event.clone())
        }
        _ => None,
    };
    effects.iter().filter_map(event).collect()
}

fn is_lost(events: &[Event], rank: Rank) -> bool {
    events.iter().any(|event| matches!(event, Event::Lost { rank: lost, .. } if *lost == rank))
}

#[test]
fn silence_of_the_only_rank_is_a_warning() {
    let mut job = protected(1, 0);
    job.pass(TIMEOUT * 5, &[0]);
    let limit = TIMEOUT * 60;
    assert_eq!(events(&job.take()), [Event::Silent { rank: 0, timeout: TIMEOUT, limit }]);
    job.says(0, ToArbiter::Beat { step: 7 });
    assert!(
        matches!(events(&job.take())[..], [Event::HeardAgain { rank: 0, silent }] if silent >= TIMEOUT * 4)
    );
    job.pass(TIMEOUT * 61, &[0]);
    let last = events(&job.take());
    assert!(is_lost(&last, 0), "{last:?}");
}

#[test]
fn silence_of_more_ranks_than_may_be_lost_is_a_warning() {
    let mut job = protected(3, 1);
    job.pass(TIMEOUT * 3, &[1, 2]);
    let seen = events(&job.take());
    assert!(seen.len() == 2 && !is_lost(&seen, 1) && !is_lost(&seen, 2), "{seen:?}");
    // One of them comes back: the other one can be replaced.
    job.pass(TIMEOUT / 2, &[1]);
    let seen = events(&job.take());
    assert!(is_lost(&seen, 1) && !is_lost(&seen, 2), "{seen:?}");
    // Until that is restored, no other rank can.
    job.pass(TIMEOUT * 3, &[0]);
    let seen = events(&job.take());
    assert!(!is_lost(&seen, 0) && !seen.is_empty(), "{seen:?}");
}

#[test]
fn silence_of_a_rank_that_can_be_replaced_is_a_loss() {
    let mut job = protected(3, 1);
    job.pass(TIMEOUT * 2, &[1]);
    assert!(is_lost(&events(&job.take()), 1));
    let abort = Config { on_failure: OnFailure::Abort, ..config(2) };
    let mut job = Job::with(abort);
    job.join_all();
    job.pass(TIMEOUT * 2, &[1]);
    assert_eq!(job.ended(), None, "the loss would end the job");
}
