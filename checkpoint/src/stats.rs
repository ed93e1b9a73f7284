//! What protection has cost one rank so far.

use serde::{Deserialize, Serialize};

/// Counted by each process; a replacement starts at zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// Newest committed epoch.
    pub committed: u32,
    /// Bytes of state copied and encoded.
    pub bytes_protected: u64,
    /// Bytes sent for it.
    pub bytes_sent: u64,
    /// Seconds spent in checkpoints.
    pub seconds: f64,
    /// Bytes of the protected state of this rank.
    pub state_bytes: u64,
    /// Bytes kept for it: copies of the own state and redundancy held for others.
    pub kept_bytes: u64,
}

impl Stats {
    /// The account of a job from those of its ranks: sums, but for the epoch and the time, which all share.
    pub fn merge(self, other: Self) -> Self {
        Self {
            committed: self.committed.max(other.committed),
            bytes_protected: self.bytes_protected + other.bytes_protected,
            bytes_sent: self.bytes_sent + other.bytes_sent,
            seconds: self.seconds.max(other.seconds),
            state_bytes: self.state_bytes + other.state_bytes,
            kept_bytes: self.kept_bytes + other.kept_bytes,
        }
    }

    /// Bytes in memory for each byte of state, the live state included.
    pub fn memory_overhead(&self) -> f64 {
        if self.state_bytes == 0 { 1.0 } else { 1.0 + self.kept_bytes as f64 / self.state_bytes as f64 }
    }
}
