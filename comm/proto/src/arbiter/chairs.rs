//! The chairs of a job, one for each rank: who holds it, and how far that process is.

use std::ops::{Deref, DerefMut};

use super::words::{LastPanic, Words};
use crate::rank::{Membership, PeerId, Rank, Seat};
use crate::time::Time;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Starting,
    /// With what its predecessor has left it to report.
    Joined(u64),
    Member,
    Ready(u64),
    /// The process has exited in peace.
    Gone,
    /// It is lost, and nobody replaces it.
    Vacant,
}

#[derive(Debug)]
pub(super) struct Chair {
    /// The rank at the start of the job, by which people know it.
    pub(super) origin: Rank,
    pub(super) peer: PeerId,
    pub(super) incarnation: u32,
    pub(super) connected: bool,
    pub(super) address: String,
    pub(super) phase: Phase,
    pub(super) failures: u32,
    /// The step that the process is in, as it has said; 0: none.
    pub(super) step: u64,
    pub(super) resumed: Option<u64>,
    pub(super) output: Option<Vec<u8>>,
    /// What the process has printed to standard error before it has joined.
    pub(super) words: Words,
    /// The last panic that the process has printed.
    pub(super) panic: LastPanic,
    /// It is done whatever becomes of the others.
    pub(super) goes_on: bool,
    /// The process has said goodbye and is about to exit.
    pub(super) leaving: bool,
    /// Since when it has been suspected for its silence, while it is waited for.
    pub(super) silent: Option<Time>,
    /// The launcher cannot reach the process before (an injected cut).
    pub(super) out_of_reach_until: Time,
}

impl Chair {
    /// A process that is to be started for a rank.
    fn new(origin: Rank, peer: PeerId, incarnation: u32) -> Self {
        Self {
            origin,
            peer,
            incarnation,
            connected: false,
            address: String::new(),
            phase: Phase::Starting,
            failures: 0,
            step: 0,
            resumed: None,
            output: None,
            words: Words::default(),
            panic: LastPanic::default(),
            goes_on: false,
            leaving: false,
            silent: None,
            out_of_reach_until: Time(0),
        }
    }

    /// Somebody holds it, or is to hold it.
    pub(super) fn is_held(&self) -> bool {
        self.phase != Phase::Vacant
    }

    /// Its process belongs to the current generation.
    pub(super) fn is_member(&self) -> bool {
        matches!(self.phase, Phase::Member | Phase::Ready(_))
    }

    /// Another process takes the rank.
    pub(super) fn refill(&mut self, peer: PeerId) {
        *self = Self { failures: self.failures, ..Self::new(self.origin, peer, self.incarnation + 1) };
    }

    /// Nobody takes the rank.
    pub(super) fn vacate(&mut self) {
        (self.phase, self.connected) = (Phase::Vacant, false);
        (self.output, self.leaving) = (None, false);
    }

    /// A repair: what was done in the generation before does not count, but for who is done whatever becomes of the others.
    fn interrupt(&mut self) {
        self.resumed = None;
        self.output = self.output.take().filter(|_| self.goes_on);
    }

    /// A generation starts.
    fn begin(&mut self) {
        self.phase = Phase::Member;
        (self.output, self.resumed, self.goes_on) = (None, None, false);
    }

    /// The process has printed this to standard error: before it has joined that says why it
    /// cannot, and later only a panic counts.
    pub(super) fn said(&mut self, lines: &[u8]) {
        self.panic.look(lines);
        if self.phase == Phase::Starting {
            self.words.add(lines);
        }
    }

    /// The end of a sentence about a process that is gone: its panic if it `has_panicked`, else why
    /// it could not join, in its own words.
    pub(super) fn last_words(&mut self, has_panicked: bool) -> String {
        let panic = std::mem::take(&mut self.panic).end_of_sentence();
        if has_panicked && !panic.is_empty() {
            return panic;
        }
        match self.phase {
            Phase::Starting => std::mem::take(&mut self.words).end_of_sentence(),
            _ => String::new(),
        }
    }

    fn seat(&self) -> Seat {
        Seat { peer: self.peer, incarnation: self.incarnation, address: self.address.clone() }
    }
}

/// See the module; by rank. No two processes of a job have the same number.
#[derive(Debug)]
pub(super) struct Chairs {
    chairs: Vec<Chair>,
    next_peer: u32,
}

impl Deref for Chairs {
    type Target = [Chair];

    fn deref(&self) -> &[Chair] {
        &self.chairs
    }
}

impl DerefMut for Chairs {
    fn deref_mut(&mut self) -> &mut [Chair] {
        &mut self.chairs
    }
}

impl Chairs {
    /// The processes of the start have the numbers of their ranks and one more.
    pub(super) fn new(total: usize) -> Self {
        let mut chairs = Self { chairs: vec![], next_peer: 1 };
        for rank in 0..total {
            let peer = chairs.number();
            chairs.chairs.push(Chair::new(rank, peer, 0));
        }
        chairs
    }

    /// The number of a new process.
    pub(super) fn number(&mut self) -> PeerId {
        let peer = PeerId(self.next_peer);
        self.next_peer = self.next_peer.checked_add(1).expect("a job starts fewer than 2^32 processes");
        peer
    }

    /// The rank that a process holds, or is to hold.
    pub(super) fn rank_of(&self, peer: PeerId) -> Option<Rank> {
        self.chairs.iter().position(|chair| chair.peer == peer && chair.is_held())
    }

    /// The chair that people know by this number.
    pub(super) fn known_as(&self, origin: Rank) -> Option<Rank> {
        self.chairs.iter().position(|chair| chair.origin == origin)
    }

    /// Those that somebody holds, or is to hold.
    pub(super) fn held(&self) -> impl Iterator<Item = &Chair> {
        self.chairs.iter().filter(|chair| chair.is_held())
    }

    /// Who holds the rank that people know by this number.
    pub(super) fn holder(&self, origin: Rank) -> Option<PeerId> {
        self.held().find(|chair| chair.origin == origin).map(|chair| chair.peer)
    }

    /// Processes that hear what the launcher says.
    pub(super) fn listening(&self) -> impl Iterator<Item = PeerId> {
        self.chairs.iter().filter(|chair| chair.connected).map(|chair| chair.peer)
    }

    /// Members of the current generation.
    pub(super) fn members(&self) -> impl Iterator<Item = &Chair> {
        self.chairs.iter().filter(|chair| chair.is_member())
    }

    /// Whether some process is as far as this.
    pub(super) fn any(&self, phase: Phase) -> bool {
        self.chairs.iter().any(|chair| chair.phase == phase)
    }

    /// Whether nobody uses the current generation any more, and all that are to come have come; with `early` whoever uses it may
    /// (a planted defect).
    pub(super) fn are_ready(&self, early: bool) -> bool {
        self.chairs.iter().all(|chair| match chair.phase {
            Phase::Joined(_) | Phase::Ready(_) | Phase::Vacant => true,
            Phase::Member => early,
            Phase::Starting | Phase::Gone => false,
        })
    }

    /// How many members wait for the next generation.
    pub(super) fn survivors(&self) -> usize {
        self.chairs.iter().filter(|chair| matches!(chair.phase, Phase::Ready(_))).count()
    }

    /// What all have to report, if all are done. A hole has nothing to say.
    pub(super) fn outputs(&self) -> Option<Vec<Vec<u8>>> {
        let output = |chair: &Chair| if chair.is_held() { chair.output.clone() } else { Some(vec![]) };
        self.chairs.iter().map(output).collect()
    }

    /// If all have resumed work: the most steps that one of them has lost. It is said once.
    pub(super) fn all_resumed(&mut self) -> Option<u64> {
        let all: Vec<u64> = self.held().map(|chair| chair.resumed).collect::<Option<_>>()?;
        self.chairs.iter_mut().for_each(|chair| chair.resumed = None);
        Some(all.into_iter().max().unwrap_or(0))
    }

    /// The launcher cannot reach these processes; without `until` for ever.
    pub(super) fn cut_off(&mut self, peers: &[PeerId], until: Option<Time>) {
        let until = until.unwrap_or(Time(u64::MAX));
        for chair in self.chairs.iter_mut().filter(|chair| peers.contains(&chair.peer)) {
            chair.out_of_reach_until = chair.out_of_reach_until.max(until);
        }
    }

    /// A repair is under way.
    pub(super) fn interrupt(&mut self) {
        self.chairs.iter_mut().for_each(Chair::interrupt);
    }

    /// The seats of the next generation, whose members the holders are from now on; with `closes` the others close up where
    /// chairs are vacant. What is not known here is left out. The first `compute` ranks of the start compute.
    pub(super) fn begin(&mut self, closes: bool, compute: usize) -> Membership {
        let kept = |chair: &Chair| !closes || chair.is_held();
        let known = |(rank, chair): (Rank, &Chair)| matches!(chair.phase, Phase::Ready(_)).then_some(rank);
        let before = self.chairs.iter().enumerate().filter(|(_, chair)| kept(chair)).map(known).collect();
        self.chairs.retain(kept);
        let report = |chair: &Chair| match chair.phase {
            Phase::Ready(report) | Phase::Joined(report) => report,
            Phase::Starting | Phase::Member | Phase::Gone | Phase::Vacant => 0,
        };
        let membership = Membership {
            seats: self.chairs.iter().map(Chair::seat).collect(),
            compute: self.chairs.iter().filter(|chair| chair.origin < compute).count(),
            reports: self.chairs.iter().map(report).collect(),
            holes: (0..self.chairs.len()).filter(|rank| !self.chairs[*rank].is_held()).collect(),
            before,
            ..Membership::default()
        };
        self.chairs.iter_mut().filter(|chair| chair.is_held()).for_each(Chair::begin);
        membership
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(total: usize) -> Chairs {
        let mut chairs = Chairs::new(total);
        chairs.iter_mut().enumerate().for_each(|(rank, chair)| chair.phase = Phase::Ready(rank as u64));
        chairs
    }

    #[test]
    fn no_number_is_given_twice() {
        let mut chairs = Chairs::new(2);
        assert_eq!([0, 1].map(|rank| chairs[rank].peer), [PeerId(1), PeerId(2)]);
        let (third, fourth) = (chairs.number(), chairs.number());
        assert_eq!((third, fourth), (PeerId(3), PeerId(4)));
        chairs[0].refill(third);
        assert_eq!((chairs.rank_of(PeerId(1)), chairs.rank_of(third)), (None, Some(0)));
    }

    #[test]
    fn a_replacement_has_nothing_of_the_lost_but_its_failures() {
        let mut chairs = ready(1);
        let chair = &mut chairs[0];
        (chair.failures, chair.connected, chair.leaving) = (2, true, true);
        (chair.output, chair.resumed, chair.out_of_reach_until) = (Some(vec![1]), Some(4), Time(5));
        chair.refill(PeerId(9));
        assert_eq!((chair.failures, chair.incarnation, chair.phase), (2, 1, Phase::Starting));
        assert!(!chair.connected && !chair.leaving && chair.output.is_none() && chair.resumed.is_none());
        assert_eq!(chair.out_of_reach_until, Time(0), "it may be elsewhere");
    }

    #[test]
    fn people_know_ranks_by_their_numbers_at_the_start() {
        let mut chairs = ready(4);
        chairs[1].vacate();
        assert_eq!((chairs.holder(1), chairs.known_as(1)), (None, Some(1)));
        let membership = chairs.begin(true, 3);
        assert_eq!((membership.seats.len(), membership.compute, membership.holes), (3, 2, vec![]));
        assert_eq!(membership.before, [Some(0), Some(2), Some(3)]);
        assert_eq!((chairs.known_as(1), chairs.known_as(2)), (None, Some(1)));
        assert!(chairs.iter().all(Chair::is_member));
        // In holes nobody is, and they stay.
        chairs[1].vacate();
        let membership = chairs.begin(false, 3);
        assert_eq!((membership.seats.len(), membership.holes), (3, vec![1]));
        assert!(!chairs[1].is_member());
    }

    #[test]
    fn a_repair_takes_back_who_is_done_but_for_those_who_go_on() {
        let mut chairs = ready(2);
        for chair in chairs.iter_mut() {
            chair.output = Some(vec![7]);
        }
        chairs[1].goes_on = true;
        assert_eq!(chairs.outputs(), Some(vec![vec![7], vec![7]]));
        chairs.interrupt();
        assert_eq!((chairs[0].output.is_some(), chairs[1].output.is_some()), (false, true));
        assert_eq!(chairs.outputs(), None);
        chairs[0].vacate();
        assert_eq!(chairs.outputs(), Some(vec![vec![], vec![7]]), "a hole has nothing to say");
    }

    #[test]
    fn that_all_work_again_is_said_once() {
        let mut chairs = ready(2);
        chairs[0].resumed = Some(3);
        assert_eq!(chairs.all_resumed(), None);
        chairs[1].resumed = Some(1);
        assert_eq!((chairs.all_resumed(), chairs.all_resumed()), (Some(3), None));
    }
}
