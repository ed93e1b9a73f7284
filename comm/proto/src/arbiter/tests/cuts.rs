//! Injected cuts: who is told what, and whom the launcher cannot reach meanwhile.

use super::*;
use crate::fault::CutSpec;

fn cuts(specs: &[&str]) -> Vec<CutSpec> {
    specs.iter().map(|text| text.parse().unwrap()).collect()
}

/// A job of `total` ranks in generation 0, with these cuts.
fn job(total: usize, specs: &[&str]) -> Job {
    let mut job = Job::with(Config { cuts: cuts(specs), ..config(total) });
    job.join_all();
    job.effects.clear();
    job
}

/// Who is told to let nothing pass, from and to whom, and for how long.
fn told(effects: &[Effect]) -> Vec<(u32, Vec<u32>, Option<u64>)> {
    let cut = |effect: &Effect| match effect {
        Effect::Send { to, message: News::Cut { peers, millis, .. } } => {
            Some((to.0, peers.iter().map(|peer| peer.0).collect(), *millis))
        }
        _ => None,
    };
    effects.iter().filter_map(cut).collect()
}

fn is_killed(effects: &[Effect], peer: PeerId) -> bool {
    effects.contains(&Effect::Kill(peer))
}

#[test]
fn both_sides_are_told_once_whoever_arrives_first() {
    let mut job = job(4, &["3-launcher@step=9", "0,1-3@step=4:0.25"]);
    assert_eq!(job.arbiter.unfired(), [0, 1]);
    job.says(1, ToArbiter::Reached { spec: 1 });
    let effects = job.take();
    // Processes have the numbers of their ranks and one more.
    let ms = Some(250);
    assert_eq!(told(&effects), [(1, vec![4], ms), (2, vec![4], ms), (4, vec![1, 2], ms)]);
    assert!(effects.contains(&Effect::Record(Event::Cut { spec: 1 })));
    job.says(0, ToArbiter::Reached { spec: 1 });
    assert_eq!((told(&job.take()), job.arbiter.unfired()), (vec![], vec![0]));
    // What no cut has is no reason to fall over.
    job.says(0, ToArbiter::Reached { spec: 7 });
}

#[test]
fn ranks_know_the_points_of_their_cuts_behind_those_of_kills() {
    let kills = vec!["1@step=2".parse().unwrap()];
    let mut job = Job::with(Config { kills, cuts: cuts(&["0-1@step=4", "1-launcher@step=5"]), ..config(2) });
    job.join_all();
    let positions: Vec<Vec<usize>> = job
        .take()
        .into_iter()
        .filter_map(|effect| match effect {
            Effect::Send { message: News::Welcome(welcome), .. } => {
                Some(welcome.kills.into_iter().map(|(at, _)| at).collect())
            }
            _ => None,
        })
        .collect();
    assert_eq!(positions, [vec![1], vec![0, 1, 2]]);
}

#[test]
fn a_cut_at_a_time_reaches_who_comes_later() {
    let mut job = Job::with(Config { cuts: cuts(&["0-1@time=0.5:10"]), ..config(2) });
    job.join(0);
    job.pass(Duration::from_millis(400), &[]);
    assert_eq!(told(&job.take()), []);
    job.pass(Duration::from_millis(200), &[]);
    let told_0 = told(&job.take());
    assert!(told_0.contains(&(1, vec![2], Some(10_000))), "{told_0:?}");
    // What is left of it.
    job.join(1);
    assert_eq!(told(&job.take()), [(2, vec![1], Some(9_900))]);
}

#[test]
fn who_is_cut_off_from_the_launcher_is_replaced_without_a_kill_and_told_when_it_comes_back() {
    for (spec, killed) in
        [("1-launcher@step=1", false), ("1-launcher@step=1:0.5", true), ("0-1@step=1", true)]
    {
        let mut job = job(4, &[spec]);
        let old = job.peer(1);
        job.says(1, ToArbiter::Reached { spec: 0 });
        job.pass(TIMEOUT * 3 / 2, &[1]);
        let effects = job.take();
        assert_ne!(job.peer(1), old, "{spec}: it is silent, so it is replaced");
        assert_eq!(is_killed(&effects, old), killed, "{spec}");
        // The cut is over, and it speaks.
        job.arbiter.handle(job.now, old, ToArbiter::Beat { step: 0 });
        job.collect();
        let end = |effect: &Effect| matches!(effect, Effect::Send { to, message: News::Ended { code: 1, .. } } if *to == old);
        assert!(job.take().iter().any(end), "{spec}");
    }
}

#[test]
fn a_replacement_is_not_cut_off() {
    let mut job = job(3, &["0-1@step=1"]);
    job.says(0, ToArbiter::Reached { spec: 0 });
    assert_eq!(told(&job.take()).len(), 2);
    job.dies(1);
    job.join(1);
    assert_eq!(told(&job.take()), []);
}
