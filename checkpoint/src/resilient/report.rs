//! What the launcher hears of a rank at its end.

use serde::{Deserialize, Serialize};

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
