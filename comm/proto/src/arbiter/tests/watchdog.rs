//! What is said of ranks that wait for long.

use super::*;

fn stalled(effects: &[Effect]) -> Vec<&str> {
    let account = |effect| match effect {
        &Effect::Record(Event::Stalled { ref account }) => Some(account.as_str()),
        _ => None,
    };
    effects.iter().filter_map(account).collect()
}

#[test]
fn the_watchdog_hears_all_ranks_and_forgets_with_a_generation() {
    use crate::wire::wait::{Awaited, Wait};
    let wait = |rank: Rank| {
        let awaited = Awaited::Ranks(vec![rank]);
        ToArbiter::Waiting(Wait {
            call: "recv".into(),
            context: 2,
            tag: None,
            awaited,
            millis: 300,
            place: None,
        })
    };
    let watchdog = Some(Duration::from_millis(300));
    let messages = MessageSettings { watchdog, ..MessageSettings::default() };
    let mut job = Job::with(Config { messages, ..config(2) });
    job.join_all();
    job.says(0, wait(1));
    job.says(1, wait(0));
    // The launcher is not to sleep now.
    assert!(job.arbiter.poll_timeout() <= job.now);
    job.pass(Duration::from_millis(100), &[]);
    let effects = job.take();
    assert!(matches!(stalled(&effects)[..], [text] if text.contains("rank 0 waits for rank 1, which")));
    job.pass(Duration::from_secs(1), &[]);
    assert_eq!(stalled(&job.take()), [""; 0]);
    // Rank 1 is replaced; what was said before does not count, and one that waits is not all.
    job.dies(1);
    job.says(0, ToArbiter::Moving);
    job.ready(0, 0, 0);
    job.join(1);
    job.says(0, wait(1));
    job.pass(Duration::from_millis(200), &[]);
    assert_eq!(stalled(&job.take()), [""; 0]);
    job.pass(Duration::from_millis(200), &[]);
    assert!(matches!(stalled(&job.take())[..], [text] if text.contains("1 of 2 ranks wait")));
    // Without the setting nothing is said, and whoever asks is told.
    let mut job = Job::running(1);
    job.says(0, wait(0));
    job.pass(Duration::from_secs(1), &[]);
    assert_eq!(stalled(&job.take()), [""; 0]);
    assert!(job.arbiter.view()[0].waits.is_some());
}
