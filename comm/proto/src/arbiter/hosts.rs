//! The loss of a whole host.

use super::{Arbiter, Phase};
use crate::rank::{PeerId, Rank};
use crate::time::Time;

impl Arbiter {
    /// A host is lost, and with it these processes, all at once. That they have ended is likely but not certain: the host
    /// may be cut off.
    pub fn host_lost(&mut self, now: Time, peers: &[PeerId], cause: &str) {
        let (seated, others): (Vec<PeerId>, Vec<PeerId>) =
            peers.iter().partition(|peer| self.rank_of(**peer).is_some());
        // Spares first: none of them may take the place of another process of that host.
        for peer in others {
            self.spare_gone(now, peer, cause);
        }
        let ranks: Vec<Rank> = seated.into_iter().filter_map(|peer| self.rank_of(peer)).collect();
        for rank in ranks {
            if self.over {
                return;
            }
            self.chairs[rank].connected = false;
            if self.finished {
                // All are done, and what its end would have been is not to be known.
                self.chairs[rank].phase = Phase::Gone;
                self.end_when_all_are_gone();
            } else {
                self.fail(now, rank, cause.to_owned(), false);
            }
        }
    }
}
