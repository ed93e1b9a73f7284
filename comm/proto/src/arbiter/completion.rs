//! Ranks whose program is done while others take further steps and wait: `Flow::Done` came on some
//! ranks only, and the job would hang for ever.
//!
//! A rank reports the step after which it was done. A rank that waits reports the step in which it
//! does. A waiting rank that is past the last step of a done one is proof, as all ranks of such a
//! program take the same steps. The verdict waits a little, so that it can name all ranks that
//! wait, and is dropped if they move again.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use crate::error::list;
use crate::rank::Rank;
use crate::time::Time;
use crate::watch::Watch;
use crate::wire::wait::{Place, Wait};

/// From the first proof to the verdict.
const GATHERING: Duration = Duration::from_millis(500);

/// Which ranks are done, and when that is held against the others.
#[derive(Debug, Default)]
pub(super) struct Completion {
    done: BTreeMap<Rank, Place>,
    due: Option<Time>,
}

impl Completion {
    /// The program of a rank is done, and this was its last step.
    pub(super) fn done(&mut self, rank: Rank, last: Place) {
        self.done.insert(rank, last);
    }

    /// A rank is lost, or a generation begins: ranks may go back.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// A rank is done, or waits, or moves again.
    pub(super) fn look(&mut self, now: Time, watch: &Watch) {
        let is_proven = !self.done.is_empty() && self.beyond(watch).next().is_some();
        self.due = if is_proven { self.due.or(Some(now.after(GATHERING))) } else { None };
    }

    /// When [`Completion::tick`] has something to say, unless something changes before.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.due
    }

    /// Why the job cannot go on, if that is due.
    pub(super) fn tick(&mut self, now: Time, watch: &Watch) -> Option<String> {
        self.due.take_if(|due| *due <= now)?;
        Some(self.account(watch))
    }

    /// Ranks that wait past the last step of one that is done.
    fn beyond<'a>(&'a self, watch: &'a Watch) -> impl Iterator<Item = (Rank, Place, &'a Wait)> {
        let waits = watch.waits().filter_map(|(rank, wait, _)| Some((rank, wait.place?, wait)));
        waits.filter(|(rank, place, _)| {
            let is_past = |last: &Place| last.run == place.run && last.step < place.step;
            let is_done = self.done.get(rank).is_some_and(|last| last.run == place.run);
            !is_done && self.done.values().any(is_past)
        })
    }

    fn account(&self, watch: &Watch) -> String {
        let mut done: BTreeMap<u64, Vec<Rank>> = BTreeMap::new();
        self.done.iter().for_each(|(rank, last)| done.entry(last.step).or_default().push(*rank));
        let mut beyond: BTreeMap<u64, (Vec<Rank>, String)> = BTreeMap::new();
        for (rank, place, wait) in self.beyond(watch) {
            let says = || format!("rank {rank} waits in {wait}");
            beyond.entry(place.step).or_insert_with(|| (vec![], says())).0.push(rank);
        }
        // Writing to a string never fails.
        let mut text = String::new();
        for (step, ranks) in done {
            let _ = write!(text, "{} returned Flow::Done after step {step}, ", list("rank", &ranks));
        }
        text += "but ";
        for (step, (ranks, waits)) in beyond {
            let _ = write!(text, "{} went on to step {step} ({waits}), ", list("rank", &ranks));
        }
        text + "so they would wait for ever. Return Flow::Done after the same step on all ranks; a program whose ranks take steps of their own \
                needs `--lines log`"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::wait::Awaited;

    const LAST: Place = Place { run: 0, step: 7 };

    fn at(ms: u64) -> Time {
        Time(1_000_000_000 + ms * 1_000_000)
    }

    fn wait(place: Place) -> Wait {
        let awaited = Awaited::Ranks(vec![1]);
        Wait { call: "allreduce".into(), context: 2, tag: None, awaited, millis: 500, place: Some(place) }
    }

    #[test]
    fn ranks_that_wait_past_the_last_step_of_another_are_named_with_their_steps() {
        let (mut watch, mut completion) = (Watch::new(None, 4), Completion::default());
        completion.done(1, LAST);
        completion.look(at(0), &watch);
        assert_eq!(completion.poll_timeout(), None);
        watch.waiting(at(10), 0, wait(Place { step: 8, ..LAST }));
        completion.look(at(10), &watch);
        watch.waiting(at(20), 2, wait(Place { step: 8, ..LAST }));
        completion.look(at(20), &watch);
        assert_eq!((completion.poll_timeout(), completion.tick(at(509), &watch)), (Some(at(510)), None));
        let text = completion.tick(at(510), &watch).expect("it is due");
        let due = "rank 1 returned Flow::Done after step 7, but ranks 0 and 2 went on to step 8 (rank 0 waits in allreduce for rank 1), so";
        assert!(text.starts_with(due), "{text}");
    }

    #[test]
    fn ranks_that_are_late_or_in_another_run_or_move_again_are_no_proof() {
        let (mut watch, mut completion) = (Watch::new(None, 4), Completion::default());
        completion.done(1, LAST);
        watch.waiting(at(0), 0, wait(LAST));
        watch.waiting(at(0), 2, wait(Place { run: 1, step: 8 }));
        watch.waiting(at(0), 3, Wait { place: None, ..wait(LAST) });
        completion.look(at(0), &watch);
        assert_eq!(completion.poll_timeout(), None);
        watch.waiting(at(0), 0, wait(Place { step: 9, ..LAST }));
        completion.look(at(0), &watch);
        assert!(completion.poll_timeout().is_some());
        // It was done itself in the run before.
        completion.done(0, Place { run: 3, step: 2 });
        completion.look(at(0), &watch);
        assert!(completion.poll_timeout().is_some());
        watch.moving(0);
        completion.look(at(1), &watch);
        assert_eq!((completion.poll_timeout(), completion.tick(at(9000), &watch)), (None, None));
        completion.clear();
        watch.waiting(at(0), 0, wait(Place { step: 9, ..LAST }));
        completion.look(at(2), &watch);
        assert_eq!(completion.poll_timeout(), None);
    }
}
