use super::*;

/// A tenth of a second.
const PATIENCE: Duration = Duration::from_millis(100);

fn at(ms: u64) -> Time {
    Time(1_000_000_000 + ms * 1_000_000)
}

fn recv(ranks: &[Rank], tag: u32) -> Wait {
    let awaited = if ranks.is_empty() { Awaited::Anybody } else { Awaited::Ranks(ranks.to_vec()) };
    Wait { call: "recv".into(), context: 2, tag: Some(tag), awaited, millis: 100, place: None }
}

fn watch(ranks: usize) -> Watch {
    Watch::new(Some(PATIENCE), ranks)
}

/// The account that is due at `now`; the time at which it is due has come, and not before.
fn account(watch: &mut Watch, now: Time) -> String {
    assert!(watch.poll_timeout().is_some_and(|due| due <= now), "nothing is due");
    watch.tick(now).expect("an account is due")
}

#[test]
fn a_cycle_of_all_ranks_is_named_at_once() {
    let mut watch = watch(2);
    watch.waiting(at(0), 0, recv(&[1], 5));
    assert_eq!(watch.tick(at(1)), None);
    watch.waiting(at(2), 1, recv(&[0], 6));
    assert_eq!(
        account(&mut watch, at(2)),
        "no rank is moving: a deadlock?\n  rank 0 waits in recv for rank 1, tag 5, since 0.1 s\n  \
         rank 1 waits in recv for rank 0, tag 6, since 0.1 s\n  rank 0 waits for rank 1, which waits for rank 0"
    );
    assert_eq!((watch.tick(at(9000)), watch.poll_timeout()), (None, None));
}

#[test]
fn a_rank_that_computes_is_named_after_another_patience() {
    let mut watch = watch(3);
    watch.waiting(at(0), 2, recv(&[1], 5));
    watch.waiting(at(50), 0, recv(&[], 5));
    assert_eq!(watch.poll_timeout(), Some(at(100)));
    assert_eq!(watch.tick(at(99)), None);
    assert_eq!(
        account(&mut watch, at(100)),
        "2 of 3 ranks wait\n  rank 0 waits in recv for any rank, tag 5, since 0.1 s\n  \
         rank 2 waits in recv for rank 1, tag 5, since 0.2 s\n  rank 1 computes: it is in no call that waits long"
    );
}

#[test]
fn only_news_is_told() {
    let mut watch = watch(3);
    watch.waiting(at(0), 0, recv(&[1], 1));
    account(&mut watch, at(100));
    assert_eq!(watch.tick(at(5000)), None);
    // Another one waits, and at last all.
    watch.waiting(at(5000), 1, recv(&[2], 1));
    assert_eq!(watch.tick(at(5099)), None);
    assert!(account(&mut watch, at(5100)).starts_with("2 of 3 ranks wait"));
    watch.waiting(at(5101), 2, recv(&[0], 1));
    let text = account(&mut watch, at(5101));
    assert!(
        text.ends_with("rank 0 waits for rank 1, which waits for rank 2, which waits for rank 0"),
        "{text}"
    );
    // That one of them moves is no bad news; that it waits again is.
    watch.moving(1);
    assert_eq!((watch.tick(at(9000)), watch.poll_timeout()), (None, None));
    watch.waiting(at(9000), 1, recv(&[0], 2));
    assert!(account(&mut watch, at(9000)).contains("rank 1 waits in recv for rank 0, tag 2"));
}

#[test]
fn waits_that_are_over_in_time_are_not_told() {
    let mut watch = watch(2);
    watch.waiting(at(0), 0, recv(&[1], 1));
    watch.moving(0);
    assert_eq!((watch.tick(at(1000)), watch.poll_timeout()), (None, None));
    // Both waited, but never both at the moment of the look.
    watch.waiting(at(1000), 0, recv(&[1], 1));
    watch.waiting(at(1001), 1, recv(&[0], 1));
    watch.moving(0);
    assert_eq!(watch.tick(at(1001)), None);
    assert!(account(&mut watch, at(1100)).starts_with("1 of 2 ranks wait"));
}

#[test]
fn a_lost_rank_is_dropped_and_a_generation_clears() {
    let mut watch = watch(3);
    for rank in 0..2 {
        watch.waiting(at(0), rank, recv(&[2], 1));
    }
    watch.waiting(at(0), 2, recv(&[0], 1));
    watch.lost(2);
    // Two of two living ranks wait, but one is on its way.
    assert_eq!(watch.tick(at(99)), None);
    let text = account(&mut watch, at(100));
    assert!(text.starts_with("2 of 3 ranks wait"), "{text}");
    assert!(text.ends_with("since 0.2 s\n  rank 2 is lost and not back yet"), "{text}");
    watch.waiting(at(200), 2, Wait { awaited: Awaited::Others, ..recv(&[], 1) });
    watch.clear();
    assert_eq!((watch.tick(at(9000)), watch.poll_timeout()), (None, None));
    // Nothing of before is left: one wait is not all.
    watch.waiting(at(9000), 0, recv(&[2], 1));
    assert_eq!(watch.tick(at(9000)), None);
    let text = account(&mut watch, at(9100));
    assert!(text.ends_with("ranks 1 and 2 compute: they are in no call that waits long"), "{text}");
}

#[test]
fn cycles_are_found_behind_chains_and_branches() {
    let cycle = |waits: &[&[Rank]]| {
        let mut watch = watch(waits.len());
        for (rank, awaited) in waits.iter().enumerate().filter(|(_, awaited)| !awaited.is_empty()) {
            watch.waiting(at(0), rank, recv(awaited, 1));
        }
        watch.cycle()
    };
    assert_eq!(cycle(&[&[0]]), Some(vec![0]));
    assert_eq!(cycle(&[&[1], &[2], &[]]), None);
    assert_eq!(cycle(&[&[1], &[2], &[3], &[1]]), Some(vec![1, 2, 3]));
    assert_eq!(cycle(&[&[1, 2], &[], &[3], &[4, 0], &[]]), Some(vec![0, 2, 3]));
    // Two ways to one rank are no cycle.
    assert_eq!(cycle(&[&[1, 2], &[3], &[3], &[]]), None);
    let mut watch = watch(1);
    watch.waiting(at(0), 0, recv(&[0], 1));
    assert!(account(&mut watch, at(0)).ends_with("rank 0 waits for itself"));
}

#[test]
fn what_cannot_be_is_ignored() {
    let mut watch = watch(2);
    watch.waiting(at(0), 7, recv(&[0], 1));
    watch.moving(7);
    watch.lost(7);
    assert_eq!(watch.poll_timeout(), None);
    watch.waiting(at(0), 0, Wait { millis: u64::MAX, ..recv(&[9, 1, 1, usize::MAX], 1) });
    let text = account(&mut watch, at(100));
    assert!(text.contains("rank 0 waits in recv for rank 1, tag 1, since 1.1 s"), "{text}");
}

#[test]
fn who_has_set_no_time_is_told_when_asking_alone() {
    let mut watch = Watch::new(None, 2);
    watch.waiting(at(500), 0, recv(&[1], 5));
    watch.waiting(at(600), 1, recv(&[0], 6));
    assert_eq!((watch.poll_timeout(), watch.tick(at(90_000))), (None, None));
    assert_eq!(watch.wait_of(0), Some((&recv(&[1], 5), at(400))));
    watch.moving(0);
    assert_eq!((watch.wait_of(0), watch.wait_of(1).is_some()), (None, true));
    assert_eq!([None, Some(PATIENCE)].map(patience), [NOTABLE, PATIENCE]);
}
