//! What the launcher hears of a rank at its end, and before in case that it does not come to that.

use serde::{Deserialize, Serialize};

use super::job::Job;
use crate::checkpointer::Checkpointer;
use crate::pace::IntervalReport;
use crate::stats::Stats;

/// What a rank hands to the launcher when it is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankReport {
    /// What protection has cost.
    pub stats: Stats,
    /// What [`Program::output`](crate::Program::output) gave; empty for parity ranks, and after a trial.
    pub output: Vec<u8>,
    /// The interval of the loop; none without one, and for parity ranks.
    pub interval: Option<IntervalReport>,
}

impl RankReport {
    /// Reads the bytes that a rank gave to the launcher; `None` if they are no report.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }

    /// The bytes to give to [`World::finalize`](ft_comm::World::finalize).
    pub fn to_bytes(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("a report can be written")
    }
}

impl Job {
    /// Tells the launcher what protection has cost this rank since the last repair.
    pub(super) fn tell(&mut self) {
        self.told = self.checkpointer.taken();
        let account = self.levels.add_to(self.checkpointer.account(), Checkpointer::account);
        self.world.account(account.to_bytes());
    }

    /// Does so if there was a checkpoint since it last did.
    pub(super) fn tell_of_checkpoint(&mut self) {
        if self.told != self.checkpointer.taken() {
            self.tell();
        }
    }
}
