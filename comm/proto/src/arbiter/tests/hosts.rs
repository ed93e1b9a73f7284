//! The loss of whole hosts.

use super::*;

const CAUSE: &str = "host b is gone";

impl Job {
    pub(super) fn host_lost(&mut self, host: usize, peers: &[PeerId]) {
        self.arbiter.host_lost(self.now, host, peers, CAUSE);
        self.collect();
    }
}

#[test]
fn all_its_ranks_are_replaced_in_one_repair() {
    let mut job = Job::running(4);
    job.host_lost(1, &[job.peer(2), job.peer(3)]);
    let effects = job.take();
    assert_eq!(started(&effects), [(2, 1), (3, 1)]);
    let lost: Vec<Rank> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Record(Event::Lost { rank, cause, generation: Some(0) }) if cause == CAUSE => Some(*rank),
            _ => None,
        })
        .collect();
    assert_eq!(lost, [2, 3]);
    (0..2).for_each(|rank| job.ready(rank, 0, 0));
    (2..4).for_each(|rank| job.join(rank));
    let decided =
        Effect::Record(Event::Decided { generation: 1, failed: vec![2, 3], held: vec![0, 1, 2, 3] });
    assert!(job.take().contains(&decided));
}

/// It may be cut off: the survivors go on only if they are at least half, or when the lease of the others is past.
#[test]
fn its_processes_are_not_taken_for_dead() {
    let mut job = Job::running(3);
    job.host_lost(1, &[job.peer(1), job.peer(2)]);
    job.ready(0, 0, 0);
    (1..3).for_each(|rank| job.join(rank));
    let has_decided =
        |job: &Job| job.effects.iter().any(|e| matches!(e, Effect::Record(Event::Decided { .. })));
    assert!(!has_decided(&job));
    job.pass(TIMEOUT * (LEASE_TIMEOUTS + 2), &[]);
    assert!(has_decided(&job));
}

#[test]
fn its_spares_take_no_rank() {
    let mut job = Job::with(Config { spares: 2, ..config(2) });
    job.join_all();
    job.pass(Duration::from_millis(100), &[]);
    let spares: Vec<PeerId> = job
        .take()
        .iter()
        .filter_map(|effect| if let Effect::Spare(peer) = effect { Some(*peer) } else { None })
        .collect();
    let [near, far] = spares[..] else { panic!("two spares are started: {spares:?}") };
    assert!(job.arbiter.connected(job.now, near) && job.arbiter.connected(job.now, far));
    // The spare that would be next is on the host that is lost.
    job.host_lost(1, &[job.peer(1), near]);
    let effects = job.take();
    assert!(effects.contains(&Effect::Seat { peer: far, rank: 1, incarnation: 1 }), "{effects:?}");
    assert_eq!(started(&effects), []);
}

/// Two ranks on each of two hosts, and a spare on the second one.
fn with_a_spare_on_the_second_host() -> (Job, PeerId) {
    let messages = MessageSettings { hosts: Some(vec![0, 0, 1, 1]), ..MessageSettings::default() };
    let mut job = Job::with(Config { spares: 1, messages, ..config(4) });
    job.join_all();
    job.pass(Duration::from_millis(100), &[]);
    let is_spare = |effect: &Effect| if let Effect::Spare(peer) = effect { Some(*peer) } else { None };
    let spare = job.take().iter().find_map(is_spare).expect("a spare is started");
    job.arbiter.spare_stands(spare, 1);
    assert!(job.arbiter.connected(job.now, spare));
    job.take();
    (job, spare)
}

#[test]
fn a_spare_elsewhere_is_for_ranks_whose_host_is_lost() {
    let (mut job, spare) = with_a_spare_on_the_second_host();
    job.exits(job.peer(1), Exit::Signal(9));
    let effects = job.take();
    assert!(matches!(started(&effects)[..], [(1, _)]), "on its own host: {effects:?}");
    job.host_lost(0, &[job.peer(0), job.peer(1)]);
    let effects = job.take();
    assert!(effects.contains(&Effect::Seat { peer: spare, rank: 0, incarnation: 1 }), "{effects:?}");
    assert!(matches!(started(&effects)[..], [(1, _)]), "{effects:?}");
}

/// A rank on the host of the spare has it at once.
#[test]
fn a_spare_of_the_same_host_takes_the_rank() {
    let (mut job, spare) = with_a_spare_on_the_second_host();
    job.exits(job.peer(3), Exit::Signal(9));
    let effects = job.take();
    assert!(effects.contains(&Effect::Seat { peer: spare, rank: 3, incarnation: 1 }), "{effects:?}");
}

/// The host is back: its ranks wait for no spare that is elsewhere, and a loss of the host where they are now does not take it again.
#[test]
fn a_host_that_is_back_is_the_home_of_its_ranks_again() {
    let (mut job, spare) = with_a_spare_on_the_second_host();
    job.host_lost(0, &[job.peer(0)]);
    let effects = job.take();
    assert!(effects.contains(&Effect::Seat { peer: spare, rank: 0, incarnation: 1 }), "{effects:?}");
    job.arbiter.host_back(job.now, 0, "a", false);
    job.collect();
    assert_eq!(job.take(), [Effect::Record(Event::HostBack { name: "a".into(), is_new: false })]);
    job.host_lost(1, &[job.peer(0)]);
    assert!(matches!(started(&job.take())[..], [(0, 2)]));
    assert_eq!(job.arbiter.roster.lost_hosts, [1].into());
}

#[test]
fn a_host_without_processes_is_lost_with_a_word() {
    let (mut job, _) = with_a_spare_on_the_second_host();
    let is_told =
        |effects: Vec<Effect>| effects.contains(&Effect::Record(Event::HostLost { cause: CAUSE.into() }));
    job.host_lost(0, &[]);
    assert!(is_told(job.take()));
    // The word of the system on its ranks may be sooner.
    let mut job = Job::running(3);
    let peer = job.peer(1);
    job.exits(peer, Exit::Signal(9));
    assert!(!is_told(job.take()));
    job.host_lost(1, &[peer]);
    assert!(is_told(job.take()));
    job.host_lost(2, &[job.peer(2)]);
    assert!(!is_told(job.take()), "the loss of its rank is");
}

#[test]
fn after_the_agreed_end_its_ranks_count_as_gone() {
    let mut job = Job::running(3);
    (0..3).for_each(|rank| job.done(rank, 0));
    job.host_lost(1, &[job.peer(1), job.peer(2)]);
    assert_eq!(job.ended(), None);
    job.exits(job.peer(0), Exit::Status(0));
    assert_eq!(job.ended(), Some((0, "")));
}

#[test]
fn an_end_in_the_middle_is_the_end() {
    let mut job = Job::with(Config { on_failure: OnFailure::Abort, ..config(3) });
    job.join_all();
    job.take();
    job.host_lost(1, &[job.peer(0), job.peer(1)]);
    let effects = job.take();
    assert_eq!(effects.iter().filter(|effect| matches!(effect, Effect::End { .. })).count(), 1);
    assert_eq!(effects.iter().filter(|e| matches!(e, Effect::Record(Event::Lost { .. }))).count(), 1);
}

#[test]
fn a_generation_that_starts_between_two_losses_gives_the_others_new_numbers() {
    let mut job = Job::with(Config { on_failure: OnFailure::Shrink, ..config(4) });
    job.join_all();
    job.take();
    // All but rank 2 are ready, so its loss lets the next generation start.
    [0, 1, 3].into_iter().for_each(|rank| job.ready(rank, 0, 0));
    job.host_lost(1, &[job.peer(2), job.peer(3)]);
    let lost = |effect: &Effect| match effect {
        Effect::Record(Event::Lost { rank, generation, .. }) => Some((*rank, *generation)),
        _ => None,
    };
    let lost: Vec<_> = job.take().iter().filter_map(lost).collect();
    assert_eq!(lost, [(2, Some(0)), (3, Some(1))]);
}
