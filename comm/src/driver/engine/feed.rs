//! Messages of the journal that come again to ranks that have gone back alone. They leave as fast as they are received. If all left at once, each would be an operation here and an announcement there.
//!
//! A replacement may want a late message first, and receive none before it. So when nothing has moved for a while, some leave for which there is no room: they are announced. Nothing new goes to a rank before what comes again.

use std::collections::{BTreeMap, VecDeque};

use ft_proto::lines::Again;
use ft_proto::planted;
use ft_proto::rank::Rank;

use super::Engine;
use crate::driver::memory::Place;

/// Messages to a rank that leave at once though there is no room for them.
const AT_ONCE: usize = 1024;

/// See the module. None of the queues is empty.
#[derive(Default)]
pub(super) struct Feed(BTreeMap<Rank, VecDeque<Again<Place>>>);

impl Feed {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

impl Engine {
    /// These are to leave for a rank, in order.
    pub(in crate::driver) fn feed(&mut self, to: Rank, again: Vec<Again<Place>>) {
        if !again.is_empty() {
            self.feed.0.insert(to, again.into());
        }
    }

    /// All go back: nothing comes again.
    pub(in crate::driver) fn feed_nobody(&mut self) {
        self.feed.clear();
    }

    /// Those leave that there is room for.
    #[inline]
    pub(super) fn feed_on(&mut self) {
        if !self.feed.0.is_empty() {
            self.feed_some(0);
        }
    }

    /// Nothing has moved for a while: some leave for which there is no room. False if nothing waited.
    #[inline]
    pub(in crate::driver) fn feed_more(&mut self) -> bool {
        let waits = !self.feed.0.is_empty();
        if waits {
            self.feed_some(if planted::has(planted::HAS_LITTLE_CREDIT) { 2 } else { AT_ONCE });
        }
        waits
    }

    /// All leave for a rank, before something else does.
    #[inline]
    pub(super) fn feed_all(&mut self, to: Rank) {
        if !self.feed.0.is_empty()
            && let Some(again) = self.feed.0.remove(&to)
        {
            again.into_iter().for_each(|message| self.send_again(to, message));
        }
    }

    /// All leave, for all ranks.
    pub(super) fn feed_everybody(&mut self) {
        for (to, again) in std::mem::take(&mut self.feed.0) {
            again.into_iter().for_each(|message| self.send_again(to, message));
        }
    }

    /// To each rank go so many, and all for which there is room.
    #[cold]
    fn feed_some(&mut self, most: usize) {
        for (to, mut again) in std::mem::take(&mut self.feed.0) {
            let mut rest = most;
            while let Some(Again { bytes, .. }) = again.front() {
                if !self.endpoint.has_room(to, bytes.len() as u64) {
                    let Some(less) = rest.checked_sub(1) else { break };
                    rest = less;
                }
                if let Some(message) = again.pop_front() {
                    self.send_again(to, message);
                }
            }
            if !again.is_empty() {
                self.feed.0.insert(to, again);
            }
        }
    }
}
