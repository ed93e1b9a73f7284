//! Lost ranks that nobody replaces, and agreements of those that are left.

use super::*;
use crate::wire::control::{CommunicatorId, Word};

fn job(on_failure: OnFailure, total: usize) -> Job {
    let mut job = Job::with(Config { on_failure, ..config(total) });
    job.join_all();
    job.take();
    job
}

fn only(job: &mut Job) -> Membership {
    let mut all = decided(&job.take());
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0).0
}

#[test]
fn survivors_close_up() {
    let mut job = job(OnFailure::Shrink, 4);
    let peers: Vec<PeerId> = (0..4).map(|rank| job.peer(rank)).collect();
    job.dies(1);
    assert_eq!(started(&job.take()), []);
    [0, 2, 3].into_iter().for_each(|rank| job.ready(rank, 0, rank as u64));
    let membership = only(&mut job);
    assert_eq!(
        membership.seats.iter().map(|seat| seat.peer).collect::<Vec<_>>(),
        [peers[0], peers[2], peers[3]]
    );
    assert_eq!((membership.failed, membership.before), (vec![1], vec![Some(0), Some(2), Some(3)]));
    assert_eq!((membership.reports, membership.compute, membership.holes), (vec![0, 2, 3], 3, vec![]));
    // Rank 1 is now who was rank 2, whom people know by that number.
    job.dies(1);
    let lost = |effect: &Effect| matches!(effect, Effect::Record(Event::Lost { rank: 2, .. }));
    assert!(job.take().iter().any(lost));
    job.ready(0, 1, 0);
    job.ready(2, 1, 0);
    assert_eq!(only(&mut job).before, [Some(0), Some(2)]);
    // The last ones are done.
    job.done(0, 2);
    job.done(1, 2);
    assert!(job.arbiter.roster.ending.is_finished);
}

#[test]
fn a_job_without_any_rank_that_computes_ends() {
    let mut job = Job::with(Config { compute: 2, on_failure: OnFailure::Shrink, ..config(3) });
    job.join_all();
    job.dies(0);
    job.dies(1);
    assert_eq!(job.ended().map(|(code, _)| code), Some(3));
}

#[test]
fn before_the_start_ranks_are_replaced_in_every_mode() {
    let mut job = Job::with(Config { on_failure: OnFailure::Shrink, ..config(2) });
    job.join(0);
    let peer = job.peer(1);
    job.arbiter.connected(job.now, peer);
    job.take();
    job.dies(1);
    assert_eq!(started(&job.take()), [(1, 1)]);
    job.join(1);
    assert_eq!(only(&mut job).seats.len(), 2);
}

#[test]
fn holes_stay_and_are_not_waited_for() {
    let mut job = job(OnFailure::Blank, 3);
    job.dies(1);
    job.ready(0, 0, 5);
    job.ready(2, 0, 7);
    let membership = only(&mut job);
    assert_eq!((membership.holes, membership.failed), (vec![1], vec![1]));
    assert_eq!((membership.before, membership.reports), (vec![Some(0), None, Some(2)], vec![5, 0, 7]));
    job.dies(0);
    job.ready(2, 1, 0);
    let membership = only(&mut job);
    assert_eq!((membership.holes, membership.failed), (vec![0, 1], vec![0]));
    job.done(2, 2);
    let finished = |effect: &Effect| match effect {
        Effect::Record(Event::Finished { outputs }) => Some(outputs.clone()),
        _ => None,
    };
    assert_eq!(job.take().iter().find_map(finished), Some(vec![vec![], vec![], vec![2]]));
}

#[test]
fn who_goes_on_is_done_whatever_becomes_of_the_others() {
    for (mode, goes_on, over) in [
        (OnFailure::Blank, true, true),
        (OnFailure::Shrink, true, true),
        (OnFailure::Blank, false, false),
        (OnFailure::Rebuild, true, false),
    ] {
        let mut job = job(mode, 2);
        job.says(0, ToArbiter::Finalize { generation: 0, output: vec![], goes_on });
        job.dies(1);
        assert_eq!(job.arbiter.roster.ending.is_finished, over, "{mode:?} {goes_on}");
    }
}

#[test]
fn of_two_that_cannot_speak_and_go_on_one_is_lost() {
    let mut job = job(OnFailure::Blank, 3);
    let accuse = |rank| ToArbiter::Suspect { generation: 0, rank, goes_on: true, why: String::new() };
    // Rank 2 dies, which explains that its link broke: nobody else is lost.
    job.says(0, accuse(2));
    job.dies(2);
    job.pass(TIMEOUT, &[]);
    let lost =
        |job: &mut Job| job.take().iter().filter(|e| matches!(e, Effect::Record(Event::Lost { .. }))).count();
    assert_eq!(lost(&mut job), 1);
    // Both live, and accuse each other.
    job.says(0, accuse(1));
    job.says(1, accuse(0));
    job.pass(TIMEOUT, &[]);
    assert_eq!(job.arbiter.roster.repair.lost(), [1, 2]);
}

/// What ranks are told of agreements: to whom, flags and who has failed.
fn verdicts(job: &mut Job) -> Vec<(PeerId, u64, Vec<Rank>, Vec<Rank>)> {
    let told = |effect: Effect| match effect {
        Effect::Send { to, message: News::Agreed { verdict, .. } } => {
            let agreement = verdict.agreement;
            Some((to, agreement.flags, agreement.failed, agreement.unacknowledged))
        }
        _ => None,
    };
    job.take().into_iter().filter_map(told).collect()
}

fn gives(number: u32, flags: u64, acknowledged: Vec<Rank>) -> ToArbiter {
    let word = Word::Gives { members: vec![0, 1, 2], flags, context: 0, acknowledged };
    ToArbiter::Agree { generation: 0, of: CommunicatorId { context: 8, first: 0 }, number, word }
}

#[test]
fn the_living_decide_when_all_have_spoken() {
    let mut job = job(OnFailure::Blank, 3);
    job.dies(1);
    job.says(0, gives(1, 0b110, vec![1]));
    let asked =
        |effect: &Effect| matches!(effect, Effect::Send { message: News::Asked { number: 1, .. }, .. });
    assert_eq!(job.take().iter().filter(|effect| asked(effect)).count(), 1);
    job.says(2, gives(1, 0b011, vec![]));
    let peers = [job.peer(0), job.peer(2)];
    assert_eq!(verdicts(&mut job), peers.map(|peer| (peer, 0b010, vec![1], vec![1])));
    // A death takes a word away that was waited for.
    job.says(0, gives(2, 0b100, vec![1]));
    job.dies(2);
    assert_eq!(verdicts(&mut job), [(peers[0], 0b100, vec![1, 2], vec![2])]);
}

#[test]
fn what_one_knows_is_what_came_out() {
    let mut job = job(OnFailure::Blank, 3);
    job.dies(1);
    // Rank 2 has finished the first round and is in the second already.
    job.says(2, gives(2, 1, vec![1]));
    job.says(0, gives(1, 0, vec![]));
    let known = crate::wire::control::Verdict {
        agreement: crate::rank::Agreement { flags: 7, ..Default::default() },
        context: 0,
    };
    job.says(
        2,
        ToArbiter::Agree {
            generation: 0,
            of: CommunicatorId { context: 8, first: 0 },
            number: 1,
            word: Word::Knows(known),
        },
    );
    assert_eq!(verdicts(&mut job), [(job.peer(0), 7, vec![], vec![])]);
    job.says(0, gives(2, 3, vec![1]));
    assert_eq!(verdicts(&mut job).len(), 2);
}
