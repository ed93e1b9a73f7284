//! Processes that hang before they have joined.

use super::*;

/// What a start may take where all are quick.
const PATIENCE: Duration = Duration::from_secs(10);
const LITTLE: Duration = Duration::from_millis(200);

/// The launcher carries out what is wanted, and starts what is to be started.
fn start_all(job: &mut Job) -> Vec<Effect> {
    let effects = job.take();
    for effect in &effects {
        if let Effect::Start { peer, .. } | Effect::Spare(peer) = effect {
            job.arbiter.started(job.now, *peer);
        }
    }
    effects
}

/// A job of two ranks in generation 0.
fn running() -> Job {
    let mut job = Job::new(2);
    start_all(&mut job);
    job.join_all();
    job.take();
    job
}

fn lost(effects: &[Effect]) -> Vec<(Rank, &str)> {
    let lost = |effect| match effect {
        &Effect::Record(Event::Lost { rank, ref cause, .. }) => Some((rank, cause.as_str())),
        _ => None,
    };
    effects.iter().filter_map(lost).collect()
}

#[test]
fn a_replacement_that_hangs_before_it_has_connected_is_replaced() {
    let mut job = running();
    job.dies(1);
    start_all(&mut job);
    job.ready(0, 0, 0);
    job.take();
    job.pass(PATIENCE - LITTLE, &[]);
    assert_eq!(lost(&job.effects), []);
    job.pass(LITTLE * 2, &[]);
    let effects = job.take();
    assert_eq!(lost(&effects), [(1, "it had not joined the job 10 s after its start")]);
    assert!(effects.contains(&Effect::Kill(PeerId(3))));
    assert_eq!(started(&effects), [(1, 2)]);
    assert!(!job.arbiter.connected(job.now, PeerId(3)), "it has gone on, too late");
    job.join(1);
    assert_eq!(decided(&job.take()).len(), 1);
}

#[test]
fn one_that_hangs_between_its_connection_and_its_joining_is_replaced() {
    let mut job = running();
    job.dies(1);
    start_all(&mut job);
    job.ready(0, 0, 0);
    job.take();
    // Its service thread beats, which the program does not need.
    assert!(job.arbiter.connected(job.now, PeerId(3)));
    job.pass(PATIENCE + LITTLE, &[]);
    assert_eq!(started(&start_all(&mut job)), [(1, 2)]);
    // One that is silent altogether is found out sooner.
    assert!(job.arbiter.connected(job.now, PeerId(4)));
    job.pass(TIMEOUT + LITTLE, &[1]);
    assert_eq!(started(&job.take()), [(1, 3)]);
}

#[test]
fn at_the_start_it_is_waited_for_as_soon_as_another_has_joined() {
    let mut job = Job::new(2);
    start_all(&mut job);
    job.pass(PATIENCE * 10, &[]);
    assert_eq!(job.take(), [], "nobody uses the library, nobody is waited for");
    job.join(0);
    job.pass(PATIENCE * 89, &[]);
    assert_eq!(started(&job.take()), [], "the other one took a hundred seconds, too");
    job.pass(PATIENCE * 2, &[]);
    assert_eq!(started(&job.take()), [(1, 1)]);
    job.join(1);
    assert_eq!(decided(&job.take())[0].0.generation, 0);
}

#[test]
fn starts_that_hang_again_and_again_end_the_job() {
    let mut job = Job::new(2);
    start_all(&mut job);
    job.join(0);
    for incarnation in 1..=3 {
        job.pass(PATIENCE + LITTLE, &[]);
        assert_eq!(started(&start_all(&mut job)), [(1, incarnation)]);
    }
    job.pass(PATIENCE + LITTLE, &[]);
    let (code, message) = job.ended().expect("ended");
    assert!(code == 1 && message.contains("rank 1 failed 4 times in a row"), "{message}");
    assert!(message.contains("had not joined the job 10 s after its start"), "{message}");
}

#[test]
fn a_spare_that_does_not_come_is_put_to_death_and_another_is_started() {
    let mut job = Job::with(Config { spares: 1, ..config(1) });
    start_all(&mut job);
    job.join_all();
    job.pass(LITTLE, &[]);
    start_all(&mut job);
    job.pass(PATIENCE + LITTLE, &[]);
    let effects = start_all(&mut job);
    assert!(effects.contains(&Effect::Kill(PeerId(2))) && effects.contains(&Effect::Spare(PeerId(3))));
    // One that has come may wait for ever, but not any more when it has a rank.
    assert!(job.arbiter.connected(job.now, PeerId(3)));
    job.pass(PATIENCE * 2, &[]);
    job.dies(0);
    job.take();
    job.pass(PATIENCE + LITTLE, &[]);
    assert_eq!(lost(&job.take()).len(), 1);
}

#[test]
fn one_that_is_stopped_before_anybody_has_joined_is_replaced() {
    let mut job = Job::new(2);
    start_all(&mut job);
    job.arbiter.stopped(job.now, PeerId(1), true);
    job.arbiter.stopped(job.now, PeerId(2), true);
    job.pass(PATIENCE - LITTLE, &[]);
    job.arbiter.stopped(job.now, PeerId(2), false);
    job.pass(LITTLE * 2, &[]);
    let effects = job.take();
    assert_eq!(started(&effects), [(0, 1)]);
    assert_eq!(lost(&effects), [(0, "it was stopped for 10 s before it had joined the job")]);
}

#[test]
fn one_that_is_stopped_between_its_last_word_and_its_end_is_put_to_death() {
    let mut job = running();
    job.arbiter.stopped(job.now, PeerId(1), true);
    job.pass(PATIENCE * 2, &[]);
    assert!(!job.take().contains(&Effect::Kill(PeerId(1))), "it beats all the same, or its silence is seen");
    job.arbiter.stopped(job.now, PeerId(1), false);
    job.done(0, 0);
    job.done(1, 0);
    for rank in [0, 1] {
        job.says(rank, ToArbiter::Goodbye { code: None, message: String::new() });
        job.arbiter.disconnected(job.now, job.peer(rank));
    }
    job.exits(PeerId(1), Exit::Status(0));
    job.arbiter.stopped(job.now, PeerId(2), true);
    job.pass(PATIENCE - LITTLE, &[]);
    assert!(!job.take().contains(&Effect::Kill(PeerId(2))));
    job.pass(LITTLE * 2, &[]);
    let effects = job.take();
    assert_eq!(effects.iter().filter(|effect| **effect == Effect::Kill(PeerId(2))).count(), 1);
    job.exits(PeerId(2), Exit::Signal(9));
    assert_eq!(job.ended().map(|(code, _)| code), Some(0), "it had done all");
}

#[test]
fn who_has_died_is_not_late() {
    let mut job = Job::new(2);
    start_all(&mut job);
    job.join(0);
    job.dies(1);
    start_all(&mut job);
    job.join(1);
    job.take();
    job.pass(PATIENCE * 3, &[]);
    assert_eq!(lost(&job.take()), []);
}

#[test]
fn one_that_fails_before_it_has_joined_says_why() {
    let mut job = Job::new(2);
    job.arbiter.said(PeerId(2), b"one\ntwo\n");
    job.arbiter.said(PeerId(2), b"\n  three\x07 \nfour\nfive\n");
    job.dies(1);
    assert_eq!(lost(&job.take()), [(1, "killed by signal 9: two; three; four; five")]);
    // What the one before it has said is not its own, nor is what a member says a cause.
    job.dies(1);
    assert_eq!(lost(&job.take()), [(1, "killed by signal 9")]);
    job.join_all();
    job.arbiter.said(job.peer(1), b"step 7\n");
    job.dies(1);
    assert_eq!(lost(&job.take()), [(1, "killed by signal 9")]);

    let mut job = Job::new(2);
    job.arbiter.said(PeerId(1), b"no license\n");
    job.exits(PeerId(1), Exit::Status(4));
    assert_eq!(job.ended(), Some((4, "rank 0 exited with status 4 before it joined the job: no license")));
}
