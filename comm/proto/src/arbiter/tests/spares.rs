//! Processes that were started ahead of a loss.

use super::*;

fn with_spares(total: usize, spares: usize) -> Job {
    let mut job = Job::with(Config { spares, ..config(total) });
    job.join_all();
    job.pass(Duration::from_millis(100), &[]);
    job
}

fn spares(effects: &[Effect]) -> Vec<PeerId> {
    let spare = |effect: &Effect| if let Effect::Spare(peer) = effect { Some(*peer) } else { None };
    effects.iter().filter_map(spare).collect()
}

fn seated(effects: &[Effect]) -> Vec<(PeerId, Rank, u32)> {
    let seat = |effect: &Effect| match effect {
        Effect::Seat { peer, rank, incarnation } => Some((*peer, *rank, *incarnation)),
        _ => None,
    };
    effects.iter().filter_map(seat).collect()
}

#[test]
fn a_spare_takes_the_rank_of_a_lost_one_and_is_made_up_for_when_all_work() {
    let mut job = with_spares(2, 1);
    assert_eq!(spares(&job.take()), [PeerId(3)], "once the job runs");
    assert!(job.arbiter.connected(job.now, PeerId(3)));
    assert!(!job.arbiter.connected(job.now, PeerId(3)), "once only");
    job.pass(Duration::from_secs(20), &[]);
    let beats = |e: &&Effect| matches!(e, Effect::Send { to: PeerId(3), message: News::Beat });
    assert!(job.take().iter().filter(beats).count() > 150, "its lease goes on");

    job.dies(1);
    let effects = job.take();
    assert_eq!((seated(&effects), started(&effects)), (vec![(PeerId(3), 1, 1)], vec![]));
    let welcome = |e: &&Effect| matches!(e, Effect::Send { to: PeerId(3), message: News::Welcome(w) } if w.rank == 1 && w.incarnation == 1);
    assert_eq!(effects.iter().filter(welcome).count(), 1);
    job.ready(0, 0, 0);
    job.says(1, ToArbiter::Join { address: "a spare's".into(), report: 0 });
    let all = decided(&job.take());
    assert_eq!((all.len(), all[0].0.seats[1].address.as_str()), (1, "a spare's"));

    job.pass(Duration::from_millis(300), &[]);
    assert_eq!(spares(&job.take()), [], "nothing disturbs the restore");
    (0..2).for_each(|rank| job.says(rank, ToArbiter::Resumed { generation: 1, steps_lost: 0 }));
    job.pass(Duration::from_millis(100), &[]);
    assert_eq!(spares(&job.take()), [PeerId(4)]);
    assert_eq!(job.arbiter.spares_used(), 1);
}

#[test]
fn spares_have_memory_ready_for_the_rank_that_needs_the_most() {
    let told = |job: &mut Job| {
        let prepare = |effect: &Effect| match effect {
            Effect::Send { to, message: News::Prepare { pieces } } => Some((*to, pieces.clone())),
            _ => None,
        };
        job.take().iter().filter_map(prepare).collect::<Vec<_>>()
    };
    let mut job = with_spares(2, 2);
    assert!(job.arbiter.connected(job.now, PeerId(3)));
    job.collect();
    assert_eq!(told(&mut job), [], "nobody keeps anything");
    job.says(0, ToArbiter::Keeps { pieces: vec![70, 20] });
    assert_eq!(told(&mut job), [(PeerId(3), vec![70, 20])], "the other one does not listen yet");
    job.says(1, ToArbiter::Keeps { pieces: vec![60, 20] });
    assert_eq!(told(&mut job), []);
    job.says(1, ToArbiter::Keeps { pieces: vec![60, 30, 10] });
    assert_eq!(told(&mut job), [(PeerId(3), vec![70, 30, 10])]);
    assert!(job.arbiter.connected(job.now, PeerId(4)));
    job.collect();
    assert_eq!(told(&mut job), [(PeerId(4), vec![70, 30, 10])], "who comes later hears of it at once");

    let mut job = with_spares(2, 0);
    job.says(0, ToArbiter::Keeps { pieces: vec![70, 20] });
    assert_eq!(told(&mut job), []);
}

#[test]
fn a_pool_is_filled_up_although_nobody_says_that_he_works() {
    let mut job = with_spares(2, 1);
    assert!(job.arbiter.connected(job.now, PeerId(3)));
    job.dies(1);
    job.ready(0, 0, 0);
    job.says(1, ToArbiter::Join { address: String::new(), report: 0 });
    job.take();
    job.pass(Duration::from_millis(900), &[]);
    assert_eq!(spares(&job.take()), []);
    job.pass(Duration::from_millis(300), &[]);
    assert_eq!(spares(&job.take()), [PeerId(4)]);
}

#[test]
fn without_a_spare_that_listens_a_process_is_started() {
    let mut job = with_spares(3, 1);
    job.take();
    job.dies(1);
    let effects = job.take();
    assert_eq!((seated(&effects), started(&effects)), (vec![], vec![(1, 1)]), "it has not connected yet");
    assert!(job.arbiter.connected(job.now, PeerId(4)));
    job.dies(0);
    job.dies(2);
    let effects = job.take();
    assert_eq!(seated(&effects), [(PeerId(4), 0, 1)]);
    assert_eq!(started(&effects), [(2, 1)], "there was one only");
}

#[test]
fn a_spare_that_dies_with_its_rank_is_replaced() {
    let mut job = with_spares(2, 2);
    assert!([3, 4].into_iter().all(|peer| job.arbiter.connected(job.now, PeerId(peer))));
    job.dies(1);
    job.ready(0, 0, 0);
    job.dies(1);
    assert_eq!(seated(&job.take()), [(PeerId(3), 1, 1), (PeerId(4), 1, 2)]);
    // A second one that never says a word is found out by its silence.
    job.pass(TIMEOUT + Duration::from_millis(200), &[1]);
    assert_eq!(started(&job.take()), [(1, 3)]);
}

#[test]
fn spares_that_end_again_and_again_are_given_up() {
    let mut job = with_spares(1, 1);
    let mut count = 0;
    while let [spare] = spares(&job.take())[..] {
        count += 1;
        assert!(job.arbiter.connected(job.now, spare));
        job.exits(spare, Exit::Status(1));
        job.pass(Duration::from_millis(200), &[]);
    }
    assert_eq!(count, 4, "the first and three more");
    assert_eq!(job.ended(), None, "the job goes on without");
}

#[test]
fn spares_end_with_the_job() {
    let mut job = with_spares(1, 2);
    assert!(job.arbiter.connected(job.now, PeerId(2)));
    job.take();
    job.done(0, 0);
    job.exits(PeerId(1), Exit::Status(0));
    let effects = job.take();
    let end = |e: &Effect| matches!(e, Effect::Send { to: PeerId(2), message: News::Ended { code: 0, .. } });
    assert!(effects.iter().any(end));
    assert!(effects.contains(&Effect::Kill(PeerId(3))), "that one does not listen yet");
}
