//! Links that break between ranks that live.

use super::*;

#[test]
fn a_broken_link_interrupts_all_and_is_repaired_without_a_loss() {
    let mut job = Job::running(3);
    job.says(0, ToArbiter::Suspect { generation: 0, rank: 2, goes_on: false, why: String::new() });
    assert_eq!(told(&job.take()).len(), 3);
    (0..3).for_each(|rank| job.ready(rank, 0, 0));
    let all = decided(&job.take());
    assert_eq!((all[0].0.generation, all[0].0.failed.len()), (1, 0));
}

#[test]
fn a_rank_whose_links_never_hold_is_replaced() {
    let mut job = Job::running(4);
    for generation in 0..2 {
        // All lose their links to rank 1, who names one of them; and once two others by chance.
        job.says(0, ToArbiter::Suspect { generation, rank: 1, goes_on: false, why: String::new() });
        job.says(2, ToArbiter::Suspect { generation, rank: 1, goes_on: false, why: String::new() });
        let why = "connection refused".to_owned();
        job.says(1, ToArbiter::Suspect { generation, rank: 0, goes_on: false, why });
        if generation == 1 {
            job.says(3, ToArbiter::Suspect { generation, rank: 2, goes_on: false, why: String::new() });
        }
        assert_eq!(started(&job.take()), [], "it may be chance");
        (0..4).for_each(|rank| job.ready(rank, generation, 0));
    }
    let effects = job.take();
    assert_eq!(started(&effects), [(1, 1)]);
    assert!(effects.contains(&Effect::Kill(PeerId(2))), "it lives, and must not go on");
    let lost = |e: &Effect| match e {
        Effect::Record(Event::Lost { rank: 1, cause, .. }) => Some(cause.clone()),
        _ => None,
    };
    assert_eq!(
        effects.iter().find_map(lost).as_deref(),
        Some("its links to ranks 0 and 2 broke again and again: connection refused")
    );
    job.join(1);
    let all = decided(&job.take());
    assert_eq!((all.len(), &all[0].0.failed[..]), (1, &[1][..]));
}

#[test]
fn of_two_ranks_without_a_link_one_after_the_other_is_replaced_but_not_for_ever() {
    let mut job = Job::running(2);
    let mut generation = 0;
    while job.ended().is_none() {
        let peers = [job.peer(0), job.peer(1)];
        job.says(0, ToArbiter::Suspect { generation, rank: 1, goes_on: false, why: String::new() });
        (0..2).for_each(|rank| job.ready(rank, generation, 0));
        if let Some(&rank) = job.arbiter.roster.repair.lost().first() {
            job.exits(peers[rank], Exit::Signal(9));
            job.join(rank);
        }
        generation += 1;
    }
    let (code, message) = job.ended().expect("ended");
    assert!(code == 1 && message.contains("rank 1 failed 4 times in a row"), "{message}");
    assert_eq!(generation, 14, "each pair of processes had links twice");
    let replaced: Vec<Rank> = started(&job.take()).into_iter().map(|(rank, _)| rank).collect();
    assert_eq!(replaced, [1, 0, 1, 0, 1, 0]);
}

#[test]
fn repairs_for_no_reason_end_the_job() {
    let mut job = Job::running(2);
    for generation in 0..4 {
        (0..2).for_each(|rank| job.ready(rank, generation, 0));
    }
    let (code, message) = job.ended().expect("ended");
    assert!(code == 1 && message.starts_with("repairs were asked for again and again"), "{message}");
}

#[test]
fn a_link_to_a_rank_that_does_not_exist_is_no_reason_for_a_repair() {
    let mut job = Job::running(2);
    for goes_on in [false, true] {
        job.says(0, ToArbiter::Suspect { generation: 0, rank: 2, goes_on, why: String::new() });
    }
    assert_eq!(job.take(), []);
    (0..2).for_each(|generation| (0..2).for_each(|rank| job.ready(rank, generation, 0)));
    assert_eq!(decided(&job.take()).len(), 2, "nobody is lost for it");
}
