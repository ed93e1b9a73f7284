//! What who asks is shown of the ranks.

use super::*;
use crate::wire::wait::{Awaited, Wait};

#[test]
fn ranks_are_shown_as_they_are() {
    let messages = MessageSettings { watchdog: Some(Duration::from_secs(9)), ..MessageSettings::default() };
    let mut job = Job::with(Config { messages, ..config(3) });
    let stages = |job: &Job| job.arbiter.view().iter().map(|view| view.stage).collect::<Vec<_>>();
    job.join(0);
    assert_eq!(stages(&job), [Stage::Joined, Stage::Starting, Stage::Starting]);
    assert_eq!(job.arbiter.generation(), None);
    (1..3).for_each(|rank| job.join(rank));
    job.says(1, ToArbiter::Beat { step: 7 });
    job.now = job.now.after(Duration::from_secs(5));
    let awaited = Awaited::Ranks(vec![1]);
    let wait = Wait { call: "recv".into(), context: 2, tag: None, awaited, millis: 1000, place: None };
    job.says(2, ToArbiter::Waiting(wait.clone()));
    let view = job.arbiter.view();
    assert_eq!(stages(&job), [Stage::Working; 3]);
    assert_eq!([view[0].step, view[1].step], [None, Some(7)]);
    let since = Time(Duration::from_secs(4).as_nanos() as u64);
    assert_eq!((&view[0].waits, &view[2].waits), (&None, &Some((wait, since))));

    job.dies(1);
    job.ready(0, 0, 0);
    let view = job.arbiter.view();
    assert_eq!(stages(&job), [Stage::Ready, Stage::Starting, Stage::Working]);
    assert_eq!((view[1].incarnation, view[1].step), (1, None), "a replacement has done nothing yet");
    assert_eq!(job.arbiter.holder(1), Some(view[1].peer));
    assert_eq!(job.arbiter.holder(3), None);
}

/// Ranks that have closed up are known by the numbers of the start.
#[test]
fn who_is_lost_for_good_is_not_shown() {
    let mut job = Job::with(Config { on_failure: OnFailure::Shrink, ..config(3) });
    job.join_all();
    job.dies(1);
    [0, 2].into_iter().for_each(|rank| job.ready(rank, 0, 0));
    let ranks: Vec<Rank> = job.arbiter.view().iter().map(|view| view.rank).collect();
    assert_eq!((ranks, job.arbiter.holder(1)), (vec![0, 2], None));
}
