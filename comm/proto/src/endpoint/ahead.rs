//! Short messages that were announced, as their sender had no credit: as many as there is room for are asked for before their receives. Without that each would cost a round trip when it is received,
//! and its send would last until then.

use std::collections::VecDeque;

use super::credit::{CREDIT_BYTES, Cost, MESSAGE_COST};
use super::{BounceId, Endpoint, Landing, Task};
use crate::rank::Rank;

/// Bytes of such messages of one sender, [`super::MESSAGE_COST`] added to each, that may wait for their receives, beside those that there was credit for.
pub const AHEAD_BYTES: u64 = CREDIT_BYTES / 4;

/// Such messages of one sender.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// Those that were not asked for, in order; some may have been received all the same.
    announced: VecDeque<BounceId>,
    /// Those that were, and may have been received since.
    asked: Vec<BounceId>,
    /// Their cost when it was last counted, and how often something was received since.
    bytes: u64,
    received: usize,
    /// There is a task for the driver.
    is_told: bool,
}

impl Ahead {
    /// Half of what was asked for may have been received since it was counted.
    fn is_to_be_counted(&self) -> bool {
        2 * self.received >= self.asked.len()
    }
}

impl<P> Endpoint<P> {
    /// A message waits in the queue that was announced for want of credit.
    pub(super) fn is_announced_ahead(&mut self, from: Rank, bounce: BounceId) {
        self.peers[from].ahead.announced.push_back(bounce);
        self.look_ahead(from, 0);
    }

    /// So many messages of a rank were taken out of the queue: there may be room for others.
    #[inline]
    pub(super) fn look_ahead(&mut self, from: Rank, received: usize) {
        let ahead = &mut self.peers[from].ahead;
        ahead.received += received;
        if ahead.announced.is_empty() || ahead.is_told {
            return;
        }
        if ahead.bytes + MESSAGE_COST <= AHEAD_BYTES || ahead.is_to_be_counted() {
            ahead.is_told = true;
            self.tasks.push_back(Task::Ahead(from));
        }
    }

    /// Asks for announced messages of a rank in the order in which they came, as many as there is room for; `make` makes places for so many bytes.
    pub fn fetch_ahead(&mut self, from: Rank, make: impl Fn(usize) -> P) {
        let Self { peers, bounced, .. } = self;
        let is_to_be_counted = peers[from].ahead.is_to_be_counted();
        let Ahead { announced, asked, bytes, received, is_told } = &mut peers[from].ahead;
        let cost = |bounce: &BounceId| Some(Cost::eager(bounced.envelope(*bounce)?.length).bytes);
        *is_told = false;
        if is_to_be_counted {
            asked.retain(|bounce| cost(bounce).is_some());
            (*bytes, *received) = (asked.iter().filter_map(cost).sum(), 0);
        }
        let mut wanted = vec![];
        while let Some(bounce) = announced.front() {
            if bounced.wants_credit(*bounce) {
                let all = *bytes + cost(bounce).unwrap_or_default();
                if all > AHEAD_BYTES {
                    break;
                }
                *bytes = all;
                wanted.push(*bounce);
            }
            announced.pop_front();
        }
        asked.extend(&wanted);
        for bounce in wanted {
            if let Some((envelope, sequence)) = self.bounced.fetch(bounce, &make) {
                self.ask_for(envelope, sequence, Landing::Bounce(bounce));
            }
        }
    }
}
