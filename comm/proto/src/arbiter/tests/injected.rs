//! Failures that are injected.

use std::collections::BTreeSet;

use super::*;
use crate::fault::KillSpec;

fn kill(spec: &str) -> KillSpec {
    spec.parse().expect("a spec")
}

#[test]
fn an_injected_kill_strikes_all_its_ranks_once() {
    let mut job = Job::with(Config { kills: vec![kill("0,2@step=4")], ..config(3) });
    job.join_all();
    job.take();
    assert_eq!(job.arbiter.unfired(), [0]);
    job.says(2, ToArbiter::Reached { spec: 0 });
    job.says(0, ToArbiter::Reached { spec: 0 });
    let effects = job.take();
    assert_eq!(
        effects,
        [Effect::Record(Event::Struck { spec: 0 }), Effect::Kill(PeerId(1)), Effect::Kill(PeerId(3))]
    );
    assert_eq!(job.arbiter.unfired(), [0; 0]);
    job.dies(0);
    job.take();
    job.join(0);
    let kills = job.take().into_iter().find_map(|effect| match effect {
        Effect::Send { message: News::Welcome(welcome), .. } => Some(welcome.kills),
        _ => None,
    });
    assert_eq!(kills, Some(vec![]), "a spent failure is not handed out again");
}

#[test]
fn an_injected_hang_stops_and_an_exit_asks() {
    let kills = vec![kill("1@step=1:hang"), kill("0@step=2:exit")];
    let mut job = Job::with(Config { kills, ..config(2) });
    job.join_all();
    job.take();
    job.says(1, ToArbiter::Reached { spec: 0 });
    job.says(0, ToArbiter::Reached { spec: 1 });
    let effects = job.take();
    assert!(effects.contains(&Effect::Stop(PeerId(2))));
    assert!(effects.contains(&Effect::Send { to: PeerId(1), message: News::Die }));
    job.exits(PeerId(1), Exit::Status(17));
    assert_eq!(started(&job.take()), [(0, 1)], "no goodbye: a failure");
}

#[test]
fn an_injected_failure_strikes_at_its_time() {
    let mut job = Job::with(Config { kills: vec![kill("1@time=0.5")], ..config(2) });
    job.join_all();
    job.pass(Duration::from_millis(400), &[]);
    assert_eq!(job.arbiter.unfired(), [0]);
    job.pass(Duration::from_millis(200), &[]);
    assert!(job.take().contains(&Effect::Kill(PeerId(2))));
}

#[test]
fn random_kills_wait_while_a_group_has_no_tolerance_left() {
    let mtbf = Mtbf { mean: TIMEOUT * 3, seed: 3, groups: vec![(vec![0, 1, 2], 1)] };
    let mut job = Job::with(Config { mtbf: Some(mtbf), max_restarts: 100, ..config(3) });
    job.join_all();
    job.take();
    let struck = |job: &mut Job| {
        let kill = |effect: &Effect| match effect {
            Effect::Record(Event::RandomKill { rank }) => Some(*rank),
            _ => None,
        };
        job.take().iter().filter_map(kill).collect::<Vec<_>>()
    };
    job.pass(TIMEOUT * 100, &[]);
    let [victim] = struck(&mut job)[..] else { panic!("one is struck, and none before it is back") };
    assert_eq!(job.arbiter.postponed(), 1);
    job.dies(victim);
    job.join(victim);
    (0..3).filter(|rank| *rank != victim).for_each(|rank| job.ready(rank, 0, 0));
    job.pass(TIMEOUT, &[]);
    assert_eq!(struck(&mut job), [], "restored, but not at work yet");
    (0..3).for_each(|rank| job.says(rank, ToArbiter::Resumed { generation: 1, steps_lost: 0 }));
    job.pass(TIMEOUT, &[]);
    assert_eq!(struck(&mut job).len(), 1, "the one that waited");
}

/// Redundancy may lie over other ranks then than at the start.
#[test]
fn random_kills_wait_for_everybody_once_a_host_was_lost() {
    let groups = vec![(vec![0, 2, 4], 2), (vec![1, 3, 5], 2)];
    for (is_lost, due) in [(false, 3), (true, 2)] {
        // None of those that are struck is found to be lost, so none is back.
        let struck = |seed| {
            let mtbf = Mtbf { mean: TIMEOUT * 3, seed, groups: groups.clone() };
            let mut job = Job::with(Config { mtbf: Some(mtbf), max_restarts: 100, ..config(6) });
            job.join_all();
            if is_lost {
                job.host_lost(0, &[]);
            }
            job.take();
            (0..100).for_each(|_| job.pass(TIMEOUT, &[]));
            let victim = |effect: &Effect| match effect {
                Effect::Record(Event::RandomKill { rank }) => Some(*rank),
                _ => None,
            };
            job.take().iter().filter_map(victim).collect::<BTreeSet<_>>().len()
        };
        assert_eq!((0..20).map(struck).max(), Some(due), "at most two of a group");
    }
}
