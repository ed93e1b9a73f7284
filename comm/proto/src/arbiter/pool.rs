//! Processes that were started ahead of a loss and have no rank yet: the spares.
//!
//! A spare opens its control link and waits there. A loss gives it the rank of the lost process, without the start of
//! a process in between; the pool is filled up again behind the computation, when the repair is over.
//!
//! Parity groups are laid over hosts so that the loss of one is survived. So a rank goes to another host only when its own is lost: a spare
//! that is elsewhere is for that.

use std::time::Duration;

use super::Event;
use crate::rank::PeerId;
use crate::time::Time;

/// A repair whose end nobody tells (a program that never says that it has resumed work) counts as over after this.
const SETTLED: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Spare {
    peer: PeerId,
    connected: bool,
    /// Where it is, if that is known.
    host: Option<usize>,
}

#[derive(Debug)]
pub(super) struct Pool {
    wanted: usize,
    spares: Vec<Spare>,
    /// When it is to be filled up.
    due: Option<Time>,
    /// Spares in a row that ended before they were of use.
    wasted: u32,
    taken: u32,
    /// Memory that any of the ranks keeps, in bytes of each piece, the longest first.
    needs: Vec<u64>,
}

impl Pool {
    pub(super) fn new(wanted: usize) -> Self {
        Self { wanted, spares: vec![], due: None, wasted: 0, taken: 0, needs: vec![] }
    }

    /// A generation has started.
    pub(super) fn decided(&mut self, now: Time) {
        self.due = Some(now.after(SETTLED));
    }

    /// All ranks work.
    pub(super) fn settled(&mut self, now: Time) {
        self.due = Some(now);
    }

    /// A repair is under way: nothing is to disturb it.
    pub(super) fn interrupted(&mut self) {
        self.due = None;
    }

    pub(super) fn due(&self) -> Option<Time> {
        self.due.filter(|_| self.spares.len() < self.wanted)
    }

    /// How many are to be started now; a pool whose spares end again and again, more often than `most` times in a row,
    /// is given up.
    pub(super) fn missing(&mut self, now: Time, most: u32) -> usize {
        match self.due() {
            Some(due) if due <= now && self.wasted <= most => self.wanted - self.spares.len(),
            _ => 0,
        }
    }

    pub(super) fn started(&mut self, peer: PeerId) {
        self.spares.push(Spare { peer, connected: false, host: None });
    }

    /// A spare is on this host.
    pub(super) fn stands(&mut self, peer: PeerId, host: usize) {
        let spare = self.spares.iter_mut().find(|spare| spare.peer == peer);
        spare.into_iter().for_each(|spare| spare.host = Some(host));
    }

    /// A rank keeps these pieces of memory, the longest first. True if spares have to have more ready than before.
    pub(super) fn needs(&mut self, pieces: Vec<u64>) -> bool {
        let before = self.needs.clone();
        self.needs.resize(before.len().max(pieces.len()), 0);
        self.needs.iter_mut().zip(pieces).for_each(|(most, piece)| *most = piece.max(*most));
        self.wanted > 0 && self.needs != before
    }

    /// What spares are to have ready, if anything is known.
    pub(super) fn provision(&self) -> Option<Vec<u64>> {
        (!self.needs.is_empty()).then(|| self.needs.clone())
    }

    /// A process has connected; false if it is no spare, or has been connected.
    pub(super) fn connected(&mut self, peer: PeerId) -> bool {
        let spare = self.spares.iter_mut().find(|spare| spare.peer == peer && !spare.connected);
        spare.map(|spare| spare.connected = true).is_some()
    }

    /// A process is gone; false if it is no spare.
    pub(super) fn gone(&mut self, peer: PeerId, now: Time) -> bool {
        let before = self.spares.len();
        self.spares.retain(|spare| spare.peer != peer);
        let was_spare = self.spares.len() < before;
        if was_spare {
            self.wasted += 1;
            self.due = Some(now);
        }
        was_spare
    }

    /// One that can take a rank at once, which is to be on host `home` if there is one.
    pub(super) fn take(&mut self, home: Option<usize>) -> Option<PeerId> {
        let is_near = |spare: &Spare| home.is_none() || spare.host.is_none() || spare.host == home;
        let at = self.spares.iter().position(|spare| spare.connected && is_near(spare))?;
        (self.wasted, self.taken) = (0, self.taken + 1);
        Some(self.spares.remove(at).peer)
    }

    /// What people may want to know; with the cause if one is lost.
    pub(super) fn account(&self, lost: Option<String>) -> Event {
        Event::Spares { ready: self.listening().count(), wanted: self.wanted, lost }
    }

    pub(super) fn taken(&self) -> u32 {
        self.taken
    }

    /// Those that listen.
    pub(super) fn listening(&self) -> impl Iterator<Item = PeerId> {
        self.spares.iter().filter(|spare| spare.connected).map(|spare| spare.peer)
    }

    /// Those that have not connected.
    pub(super) fn starting(&self) -> impl Iterator<Item = PeerId> {
        self.spares.iter().filter(|spare| !spare.connected).map(|spare| spare.peer)
    }
}
