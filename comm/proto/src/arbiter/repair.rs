//! The account of the repair under way, if there is one: who is lost, what the members were told, how far it is.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Event;
use crate::rank::{PeerId, Rank};
use crate::time::Time;

#[derive(Debug)]
struct Loss {
    peer: PeerId,
    /// Nothing was heard from it since, and it hears nothing.
    since: Time,
    /// Its end is certain.
    confirmed: bool,
}

/// See the module. A generation starts without one.
#[derive(Debug, Default)]
pub(super) struct Repair {
    /// Members of the current generation that are lost.
    lost: BTreeMap<Rank, Loss>,
    /// The members were told to stop using the generation, as these are lost.
    told: Option<Vec<Rank>>,
    /// It was recorded that the survivors have agreed.
    agreed: bool,
    /// It was recorded that the replacements have joined.
    respawned: bool,
}

impl Repair {
    /// The members are to stop; gives who is lost if they were not told that already. Each of them says that it has stopped, and each might have
    /// seen links break: what they know need not go to all again for each of these.
    pub(super) fn interrupt(&mut self) -> Option<Vec<Rank>> {
        let lost = self.lost();
        let is_news = self.told.as_ref() != Some(&lost);
        is_news.then(|| self.told.insert(lost).clone())
    }

    /// Whether the members were told to stop.
    pub(super) fn is_under_way(&self) -> bool {
        self.told.is_some()
    }

    /// A member is lost; `confirmed` if its end is certain.
    pub(super) fn lose(&mut self, rank: Rank, peer: PeerId, since: Time, confirmed: bool) {
        self.lost.insert(rank, Loss { peer, since, confirmed });
    }

    /// Whether a member is lost.
    pub(super) fn has_lost(&self, rank: Rank) -> bool {
        self.lost.contains_key(&rank)
    }

    /// All that are lost, ascending.
    pub(super) fn lost(&self) -> Vec<Rank> {
        self.lost.keys().copied().collect()
    }

    /// A process has ended, and that is certain.
    pub(super) fn confirm(&mut self, peer: PeerId) {
        self.lost.values_mut().filter(|loss| loss.peer == peer).for_each(|loss| loss.confirmed = true);
    }

    /// Who has heard nothing for longer than `lease` has ended itself. Whether that is now certain of one more.
    pub(super) fn expire(&mut self, now: Time, lease: Duration) -> bool {
        let expired = |loss: &&mut Loss| !loss.confirmed && now.since(loss.since) > lease;
        self.lost.values_mut().filter(expired).map(|loss| loss.confirmed = true).count() > 0
    }

    /// Whether so many survivors may go on: they are at least half of the members that may live.
    pub(super) fn lets_go_on(&self, survivors: usize) -> bool {
        survivors >= self.lost.values().filter(|loss| !loss.confirmed).count()
    }

    /// One more is lost: agreement and replacement start again.
    pub(super) fn start_again(&mut self) {
        (self.agreed, self.respawned) = (false, false);
    }

    /// What is to be recorded, now that all survivors have stopped using the generation, or all replacements have joined.
    pub(super) fn note(&mut self, agreed: bool, respawned: bool) -> impl Iterator<Item = Event> + use<> {
        let agreed = agreed && !std::mem::replace(&mut self.agreed, true);
        let respawned = respawned && !std::mem::replace(&mut self.respawned, true);
        let events = [agreed.then_some(Event::Agreed), respawned.then_some(Event::Respawned)];
        events.into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(1);

    fn at(seconds: u64) -> Time {
        Time(seconds * 1_000_000_000)
    }

    #[test]
    fn half_of_those_who_may_live_go_on() {
        let mut repair = Repair::default();
        assert!(repair.lets_go_on(0));
        (0..3).for_each(|rank| repair.lose(rank, PeerId(rank as u32 + 1), at(0), false));
        assert!(repair.lets_go_on(3) && !repair.lets_go_on(2));
        repair.confirm(PeerId(2));
        assert!(repair.lets_go_on(2) && !repair.lets_go_on(1));
        repair.lose(4, PeerId(5), at(1), true);
        assert!(repair.lets_go_on(2), "its end is certain");
        assert_eq!(repair.lost(), [0, 1, 2, 4]);
    }

    #[test]
    fn members_are_told_once_of_each_loss() {
        let mut repair = Repair::default();
        assert!(!repair.is_under_way());
        assert_eq!((repair.interrupt(), repair.interrupt()), (Some(vec![]), None));
        assert!(repair.is_under_way());
        repair.lose(2, PeerId(3), at(0), true);
        assert_eq!((repair.interrupt(), repair.interrupt()), (Some(vec![2]), None));
        repair.lose(0, PeerId(1), at(0), true);
        assert_eq!((repair.interrupt(), repair.interrupt()), (Some(vec![0, 2]), None));
    }

    #[test]
    fn a_lease_that_has_run_out_is_an_end() {
        let mut repair = Repair::default();
        repair.lose(0, PeerId(1), at(0), false);
        repair.lose(1, PeerId(2), at(5), false);
        assert!(!repair.expire(at(1), LEASE) && !repair.lets_go_on(1));
        assert!(repair.expire(at(2), LEASE) && repair.lets_go_on(1) && !repair.lets_go_on(0));
        assert!(!repair.expire(at(6), LEASE), "that was known");
        assert!(repair.expire(at(7), LEASE) && repair.lets_go_on(0));
    }

    #[test]
    fn each_part_is_recorded_once_unless_it_starts_again() {
        let mut repair = Repair::default();
        let mut note = |again: bool, agreed, respawned| -> Vec<Event> {
            if again {
                repair.start_again();
            }
            repair.note(agreed, respawned).collect()
        };
        assert_eq!(note(false, false, false), []);
        assert_eq!(note(false, true, false), [Event::Agreed]);
        assert_eq!(note(false, false, false), []);
        assert_eq!(note(false, true, true), [Event::Respawned]);
        assert_eq!(note(false, true, true), []);
        assert_eq!(note(true, true, true), [Event::Agreed, Event::Respawned]);
    }
}
