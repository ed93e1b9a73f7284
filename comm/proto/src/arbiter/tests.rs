//! The arbiter alone: what the launcher hears, and what it is to do then.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::member::LEASE_TIMEOUTS;
use crate::rank::{Generation, Membership, Seat};
use crate::settings::MessageSettings;

mod births;
mod cuts;
mod hosts;
mod injected;
mod links;
mod modes;
mod silence;
mod spares;
mod view;
mod watchdog;

const TIMEOUT: Duration = Duration::from_millis(1000);

/// A job and its time; what the arbiter wants is collected.
struct Job {
    arbiter: Arbiter,
    now: Time,
    effects: Vec<Effect>,
}

impl Job {
    fn with(config: Config) -> Self {
        let mut job = Self { arbiter: Arbiter::new(config, Time(0)), now: Time(0), effects: vec![] };
        job.collect();
        job
    }

    fn new(total: usize) -> Self {
        Self::with(config(total))
    }

    /// A job of `total` ranks in generation 0.
    fn running(total: usize) -> Self {
        let mut job = Self::new(total);
        job.join_all();
        job.effects.clear();
        job
    }

    fn collect(&mut self) {
        self.effects.extend(std::iter::from_fn(|| self.arbiter.poll_effect()));
    }

    /// What was wanted since this was last asked.
    fn take(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    fn peer(&self, rank: Rank) -> PeerId {
        self.arbiter.roster.chairs[rank].peer
    }

    fn says(&mut self, rank: Rank, message: ToArbiter) {
        let peer = self.peer(rank);
        self.arbiter.handle(self.now, peer, message);
        self.collect();
    }

    fn join(&mut self, rank: Rank) {
        let peer = self.peer(rank);
        assert!(self.arbiter.connected(self.now, peer));
        self.says(rank, ToArbiter::Join { address: format!("at {}", peer.0), report: 0 });
    }

    fn join_all(&mut self) {
        (0..self.arbiter.roster.chairs.len()).for_each(|rank| self.join(rank));
    }

    fn ready(&mut self, rank: Rank, generation: Generation, report: u64) {
        self.says(rank, ToArbiter::Ready { generation, report });
    }

    fn done(&mut self, rank: Rank, generation: Generation) {
        self.says(rank, ToArbiter::Finalize { generation, output: vec![rank as u8], goes_on: false });
    }

    fn exits(&mut self, peer: PeerId, exit: Exit) {
        self.arbiter.exited(self.now, peer, exit);
        self.collect();
    }

    fn dies(&mut self, rank: Rank) {
        self.exits(self.peer(rank), Exit::Signal(9));
    }

    /// Time passes; all but `silent` send their heartbeats.
    fn pass(&mut self, span: Duration, silent: &[Rank]) {
        let end = self.now.after(span);
        while self.now < end {
            self.now = self.now.after(Duration::from_millis(100));
            for rank in (0..self.arbiter.roster.chairs.len()).filter(|rank| !silent.contains(rank)) {
                let peer = self.peer(rank);
                if self.arbiter.roster.chairs[rank].connected {
                    self.arbiter.handle(self.now, peer, ToArbiter::Beat { step: 0 });
                }
            }
            self.arbiter.tick(self.now);
            self.collect();
        }
    }

    fn ended(&self) -> Option<(i32, &str)> {
        self.effects.iter().find_map(|effect| match effect {
            Effect::End { code, message } => Some((*code, message.as_str())),
            _ => None,
        })
    }
}

fn config(total: usize) -> Config {
    Config {
        compute: total,
        total,
        on_failure: OnFailure::Rebuild,
        spares: 0,
        joins: false,
        max_restarts: 3,
        interval: TIMEOUT / 10,
        timeout: TIMEOUT,
        groups: vec![],
        messages: MessageSettings::default(),
        layers: BTreeMap::new(),
        kills: vec![],
        cuts: vec![],
        mtbf: None,
    }
}

/// The memberships that were sent, with the number of those who got them.
fn decided(effects: &[Effect]) -> Vec<(Membership, usize)> {
    let mut all: Vec<(Membership, usize)> = vec![];
    for effect in effects {
        let Effect::Send { message: News::Decided(membership), .. } = effect else { continue };
        match all.iter_mut().find(|(known, _)| known == membership) {
            Some((_, count)) => *count += 1,
            None => all.push((membership.clone(), 1)),
        }
    }
    all
}

fn started(effects: &[Effect]) -> Vec<(Rank, u32)> {
    let start = |effect: &Effect| match effect {
        Effect::Start { rank, incarnation, .. } => Some((*rank, *incarnation)),
        _ => None,
    };
    effects.iter().filter_map(start).collect()
}

/// Who was told of which losses.
fn told(effects: &[Effect]) -> Vec<(PeerId, Vec<Rank>)> {
    let told = |effect: &Effect| match effect {
        Effect::Send { to, message: News::Failed { ranks, .. } } => Some((*to, ranks.clone())),
        _ => None,
    };
    effects.iter().filter_map(told).collect()
}

/// Else a repair would cost messages by the square of the ranks.
#[test]
fn members_are_told_of_a_loss_once_however_many_say_that_they_have_stopped() {
    let mut job = Job::running(5);
    job.dies(2);
    let peers: Vec<PeerId> = [0, 1, 3, 4].map(|rank| job.peer(rank)).into();
    let due =
        |lost: &[Rank], peers: &[PeerId]| peers.iter().map(|peer| (*peer, lost.to_vec())).collect::<Vec<_>>();
    assert_eq!(told(&job.take()), due(&[2], &peers));
    [0, 1].into_iter().for_each(|rank| job.ready(rank, 0, 0));
    assert_eq!(told(&job.take()), []);
    job.dies(4);
    assert_eq!(told(&job.take()), due(&[2, 4], &peers[..3]));
    job.ready(3, 0, 0);
    assert_eq!(told(&job.take()), []);
}

#[test]
fn generation_0_starts_when_all_have_joined() {
    let mut job = Job::new(3);
    assert_eq!(started(&job.take()), [(0, 0), (1, 0), (2, 0)]);
    job.join(2);
    job.join(0);
    assert_eq!(decided(&job.effects), []);
    job.join(1);
    let all = decided(&job.take());
    let (membership, count) = &all[0];
    assert_eq!((all.len(), *count, membership.generation), (1, 3, 0));
    assert_eq!(membership.seats[1], Seat { peer: PeerId(2), incarnation: 0, address: "at 2".into() });
    assert!(membership.failed.is_empty());
}

#[test]
fn strangers_and_second_links_are_refused() {
    let mut job = Job::new(2);
    assert!(!job.arbiter.connected(Time(0), PeerId(7)));
    assert!(job.arbiter.connected(Time(0), PeerId(1)));
    assert!(!job.arbiter.connected(Time(0), PeerId(1)));
}

#[test]
fn a_loss_is_repaired_when_survivors_and_replacement_are_ready() {
    let mut job = Job::running(3);
    job.dies(1);
    let effects = job.take();
    assert_eq!(started(&effects), [(1, 1)]);
    assert_eq!(told(&effects), [(PeerId(1), vec![1]), (PeerId(3), vec![1])]);
    job.ready(0, 0, 10);
    job.join(1);
    assert_eq!(decided(&job.effects), [], "rank 2 still uses generation 0");
    job.ready(2, 0, 12);
    let all = decided(&job.take());
    let (membership, count) = &all[0];
    assert_eq!((*count, membership.generation, &membership.failed[..]), (3, 1, &[1][..]));
    assert_eq!(membership.reports, [10, 0, 12]);
    assert_eq!(membership.seats[1], Seat { peer: PeerId(4), incarnation: 1, address: "at 4".into() });
}

#[test]
fn the_welcome_of_a_replacement_names_the_repair_it_joins() {
    let mut job = Job::running(2);
    job.dies(0);
    job.join(0);
    let welcome = job.take().into_iter().find_map(|effect| match effect {
        Effect::Send { message: News::Welcome(welcome), .. } => Some(welcome),
        _ => None,
    });
    let welcome = welcome.expect("a welcome");
    assert_eq!((welcome.rank, welcome.incarnation, welcome.joining), (0, 1, 1));
}

#[test]
fn several_losses_make_one_repair() {
    let mut job = Job::running(4);
    job.dies(1);
    job.dies(3);
    for rank in [0, 2] {
        job.ready(rank, 0, 0);
    }
    job.join(1);
    assert_eq!(decided(&job.effects), []);
    job.join(3);
    let all = decided(&job.take());
    assert_eq!((all.len(), &all[0].0.failed[..]), (1, &[1, 3][..]));
}

#[test]
fn a_survivor_that_dies_while_it_waits_joins_the_lost() {
    let mut job = Job::running(3);
    job.dies(0);
    job.ready(1, 0, 5);
    job.dies(1);
    job.join(0);
    job.ready(2, 0, 7);
    assert_eq!(decided(&job.effects), []);
    job.join(1);
    let all = decided(&job.take());
    assert_eq!((&all[0].0.failed[..], &all[0].0.reports[..]), (&[0, 1][..], &[0, 0, 7][..]));
}

#[test]
fn a_replacement_that_dies_is_replaced() {
    let mut job = Job::running(2);
    job.dies(1);
    job.ready(0, 0, 0);
    job.dies(1);
    assert_eq!(started(&job.take()), [(1, 1)]);
    // What has ended the first may pass: memory that is not free yet, a port.
    assert!(job.arbiter.poll_timeout() <= job.now.after(Duration::from_millis(50)));
    job.pass(Duration::from_millis(100), &[]);
    assert_eq!(started(&job.take()), [(1, 2)]);
    job.join(1);
    let all = decided(&job.take());
    assert_eq!((all.len(), all[0].0.seats[1].incarnation), (1, 2));
}

/// However often a rank at work is killed, its next process starts immediately.
#[test]
fn kills_of_a_rank_at_work_are_followed_by_no_pause() {
    let mut job = Job::running(2);
    for incarnation in 1..4 {
        job.dies(1);
        assert_eq!(started(&job.take()), [(1, incarnation)]);
        job.join(1);
        job.take();
    }
}

#[test]
fn a_loss_after_the_decision_starts_the_next_repair() {
    let mut job = Job::running(2);
    job.dies(1);
    job.ready(0, 0, 0);
    job.join(1);
    job.dies(1);
    job.ready(0, 0, 0);
    job.join(1);
    assert_eq!(decided(&job.take()).len(), 1, "to be ready for generation 0 is old news");
    job.ready(0, 1, 0);
    assert_eq!(decided(&job.take())[0].0.generation, 2);
}

#[test]
fn silence_is_a_loss_and_the_silent_one_is_killed() {
    let mut job = Job::running(3);
    job.pass(TIMEOUT + Duration::from_millis(200), &[2]);
    let effects = job.take();
    assert_eq!(started(&effects), [(2, 1)]);
    assert!(effects.contains(&Effect::Kill(PeerId(3))));
    assert_eq!(told(&effects).len(), 2);
}

#[test]
fn a_minority_waits_for_the_deaths_to_be_confirmed() {
    let mut job = Job::running(3);
    job.arbiter.disconnected(job.now, PeerId(2));
    job.arbiter.disconnected(job.now, PeerId(3));
    job.collect();
    job.ready(0, 0, 0);
    job.join(1);
    job.join(2);
    assert_eq!(decided(&job.take()), [], "two that may live against one");
    job.exits(PeerId(3), Exit::Signal(9));
    assert_eq!(decided(&job.take())[0].0.failed, [1, 2], "half and the launcher");
}

#[test]
fn a_death_that_is_never_confirmed_counts_when_its_lease_has_run_out() {
    let mut job = Job::running(3);
    for peer in [2, 3] {
        job.arbiter.disconnected(job.now, PeerId(peer));
    }
    job.collect();
    job.ready(0, 0, 0);
    job.join(1);
    job.join(2);
    job.pass(TIMEOUT * LEASE_TIMEOUTS, &[]);
    assert_eq!(decided(&job.effects), [], "it may still be there");
    job.pass(TIMEOUT * 2, &[]);
    assert_eq!(decided(&job.take())[0].0.failed, [1, 2]);
}

#[test]
fn half_of_the_members_and_the_launcher_go_on() {
    let mut job = Job::running(2);
    job.arbiter.disconnected(job.now, PeerId(2));
    job.collect();
    job.ready(0, 0, 0);
    job.join(1);
    assert_eq!(decided(&job.take())[0].0.failed, [1]);
}

#[test]
fn who_was_replaced_is_not_listened_to() {
    let mut job = Job::running(2);
    let zombie = job.peer(1);
    job.arbiter.disconnected(job.now, zombie);
    job.collect();
    job.take();
    for message in [
        ToArbiter::Ready { generation: 0, report: 9 },
        ToArbiter::Finalize { generation: 0, output: vec![], goes_on: false },
        ToArbiter::Goodbye { code: Some(5), message: "zombie".into() },
    ] {
        job.arbiter.handle(job.now, zombie, message);
    }
    job.collect();
    let end = |e: &Effect| matches!(e, Effect::Send { to, message: News::Ended { .. } } if *to == zombie);
    assert!(job.take().iter().all(end), "all that it is told is to end");
    assert!(!job.arbiter.connected(job.now, zombie));
}

#[test]
fn a_goodbye_with_a_status_ends_the_job_everywhere() {
    let mut job = Job::running(3);
    job.says(1, ToArbiter::Goodbye { code: Some(7), message: "no such file".into() });
    assert_eq!(job.ended(), Some((7, "no such file")));
    let ends =
        job.effects.iter().filter(|e| matches!(e, Effect::Send { message: News::Ended { code: 7, .. }, .. }));
    assert_eq!(ends.count(), 3);
    job.take();
    job.dies(0);
    assert_eq!(job.take(), [], "nothing follows the end");
}

#[test]
fn abort_with_the_status_of_a_success_is_a_failure() {
    for (code, due) in [(0, 1), (256, 1), (-1, 1), (300, 1), (1, 1), (255, 255)] {
        let mut job = Job::running(2);
        job.says(1, ToArbiter::Goodbye { code: Some(code), message: "no rows".into() });
        assert_eq!(job.ended(), Some((due, "no rows")), "abort({code})");
    }
    let mut job = Job::running(2);
    job.says(1, ToArbiter::Goodbye { code: Some(0), message: String::new() });
    assert_eq!(job.ended(), Some((1, "rank 1 aborted the job with status 0")));
}

#[test]
fn a_rank_that_leaves_early_ends_the_job() {
    for (status, due) in [(0, 1), (5, 5)] {
        let mut job = Job::running(2);
        job.says(0, ToArbiter::Goodbye { code: None, message: String::new() });
        job.exits(PeerId(1), Exit::Status(status));
        let (code, message) = job.ended().expect("ended");
        assert_eq!(code, due);
        assert!(message.starts_with("rank 0 left the job before all ranks were done"), "{message}");
    }
}

#[test]
fn a_rank_that_fails_again_and_again_ends_the_job() {
    let mut job = Job::running(2);
    for generation in 0..3 {
        job.dies(1);
        job.ready(0, generation, 0);
        job.join(1);
    }
    assert_eq!(job.ended(), None);
    job.dies(1);
    let (code, message) = job.ended().expect("ended");
    assert!(code == 1 && message.contains("rank 1 failed 4 times in a row"), "{message}");
}

#[test]
fn progress_forgives_failures() {
    let mut job = Job::running(2);
    for generation in 0..10 {
        job.dies(1);
        job.ready(0, generation, 0);
        job.join(1);
        job.says(0, ToArbiter::Mark { number: 1 });
    }
    assert_eq!(job.ended(), None);
}

#[test]
fn a_loss_ends_the_job_if_so_ordered() {
    let mut job = Job::with(Config { on_failure: OnFailure::Abort, ..config(2) });
    job.join_all();
    job.dies(0);
    let (code, message) = job.ended().expect("ended");
    assert!(code == 1 && message.contains("killed by signal 9") && message.contains("abort"), "{message}");
    assert_eq!(started(&job.take()), [(0, 0), (1, 0)]);
}

#[test]
fn finalize_is_agreed() {
    let mut job = Job::running(2);
    job.done(0, 0);
    assert_eq!(job.take(), []);
    job.done(1, 0);
    let effects = job.take();
    assert_eq!(effects[0], Effect::Record(Event::Finished { outputs: vec![vec![0], vec![1]] }));
    let finalized = |e: &&Effect| matches!(e, Effect::Send { message: News::Finalized, .. });
    assert_eq!(effects.iter().filter(finalized).count(), 2);
    job.exits(PeerId(1), Exit::Status(0));
    assert_eq!(job.ended(), None);
    job.exits(PeerId(2), Exit::Status(4));
    assert_eq!(job.ended(), Some((4, "")), "a program's own status passes through");
}

#[test]
fn who_is_killed_when_all_are_done_has_done_all_but_a_crash_is_none_of_it() {
    for (signal, status) in [(9, 0), (15, 0), (11, 139), (6, 134)] {
        let mut job = Job::running(2);
        (0..2).for_each(|rank| job.done(rank, 0));
        job.exits(PeerId(1), Exit::Signal(signal));
        job.exits(PeerId(2), Exit::Status(0));
        let text = format!("rank 0 was killed by signal {signal} after all ranks were done");
        assert_eq!(job.ended(), Some((status, text.as_str())));
    }
    // A program's own status counts more.
    let mut job = Job::running(2);
    (0..2).for_each(|rank| job.done(rank, 0));
    job.exits(PeerId(1), Exit::Signal(9));
    job.exits(PeerId(2), Exit::Status(4));
    assert_eq!(job.ended(), Some((4, "")));
}

#[test]
fn an_end_that_nobody_can_see_does_not_hold_up_the_job() {
    let mut job = Job::running(2);
    job.done(0, 0);
    job.done(1, 0);
    job.exits(PeerId(1), Exit::Status(0));
    job.pass(TIMEOUT * (LEASE_TIMEOUTS + 3), &[]);
    assert_eq!(job.ended(), None, "it lives, and may take its time");
    job.pass(TIMEOUT * (LEASE_TIMEOUTS + 3), &[1]);
    assert_eq!(job.ended(), Some((0, "")));

    let mut job = Job::running(1);
    job.done(0, 0);
    job.arbiter.disconnected(job.now, PeerId(1));
    job.pass(TIMEOUT * (LEASE_TIMEOUTS + 3), &[0]);
    assert_eq!(job.ended(), None, "it has left the library, its exit will be seen");
}

#[test]
fn a_loss_before_all_are_done_takes_finalize_back() {
    let mut job = Job::running(3);
    job.done(0, 0);
    job.done(1, 0);
    job.dies(2);
    job.done(1, 0);
    (0..2).for_each(|rank| job.ready(rank, 0, 0));
    job.join(2);
    job.take();
    job.done(0, 1);
    job.done(1, 0);
    job.done(2, 1);
    assert_eq!(job.take(), [], "rank 1 is done in an old generation only");
    job.done(1, 1);
    assert!(matches!(job.take()[0], Effect::Record(Event::Finished { .. })));
}

#[test]
fn a_program_that_never_joins_passes_its_status_through() {
    let mut job = Job::new(2);
    job.exits(PeerId(1), Exit::Status(0));
    job.exits(PeerId(2), Exit::Status(0));
    assert_eq!(job.ended(), Some((0, "")));

    let mut job = Job::new(2);
    job.exits(PeerId(1), Exit::Status(3));
    assert_eq!(job.ended(), Some((3, "rank 0 exited with status 3 before it joined the job")));
}

#[test]
fn a_process_that_is_killed_before_it_joins_is_replaced() {
    let mut job = Job::new(2);
    job.dies(1);
    assert_eq!(started(&job.take()), [(0, 0), (1, 0), (1, 1)]);
    job.join_all();
    let all = decided(&job.take());
    assert_eq!((all[0].0.generation, all[0].0.failed.len()), (0, 0), "it was no member yet");
}

#[test]
fn the_most_steps_lost_are_told_when_all_work_again() {
    let mut job = Job::running(2);
    job.dies(1);
    job.ready(0, 0, 0);
    job.join(1);
    job.take();
    job.says(0, ToArbiter::Resumed { generation: 1, steps_lost: 3 });
    job.says(0, ToArbiter::Resumed { generation: 0, steps_lost: 9 });
    assert_eq!(job.take(), []);
    job.says(1, ToArbiter::Resumed { generation: 1, steps_lost: 0 });
    assert_eq!(job.take(), [Effect::Record(Event::Resumed { generation: 1, steps_lost: 3 })]);
}

#[test]
fn what_is_said_for_people_is_passed_on_and_is_a_sign_of_life() {
    let mut job = Job::running(2);
    let line = || "half".to_owned();
    for _ in 0..30 {
        job.pass(Duration::from_millis(100), &[1]);
        job.says(1, ToArbiter::Progress { done: Some(500), line: line() });
    }
    job.says(1, ToArbiter::Activity { name: "step".into() });
    job.says(1, ToArbiter::Refused { count: 2 });
    let account = || vec![5];
    job.says(1, ToArbiter::Account { generation: 7, account: account() });
    let events = job.take().into_iter().filter_map(|effect| match effect {
        Effect::Record(event) => Some(event),
        _ => None,
    });
    let events: Vec<Event> = events.collect();
    assert_eq!(events[29], Event::Progress { rank: 1, done: Some(500), line: line() });
    let rest = [
        Event::Activity { rank: 1, name: "step".into() },
        Event::Refused { count: 2 },
        Event::Account { rank: 1, generation: 7, account: account() },
    ];
    assert_eq!(events[30..], rest, "and nobody is lost");
}

#[test]
fn a_replacement_that_does_not_come_is_one_more_failure() {
    let mut job = Job::running(2);
    job.dies(1);
    job.ready(0, 0, 0);
    for exit in [Exit::Status(0), Exit::Status(1)] {
        job.exits(job.peer(1), exit);
        assert_eq!(job.ended(), None);
        job.pass(Duration::from_millis(300), &[]);
    }
    assert_eq!(started(&job.take()), [(1, 1), (1, 2), (1, 3)]);
    job.exits(job.peer(1), Exit::Status(0));
    assert!(job.ended().is_some_and(|(code, text)| code == 1 && text.contains("--max-restarts")));
}
