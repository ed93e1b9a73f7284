//! Why the commit ledger refuses an event.

use super::{Event, State};

/// An event that the commit ledger cannot take in its state; the ledger is unchanged.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// The event has no meaning in this state.
    #[error("{event:?} in state {state:?}")]
    OutOfOrder {
        /// The state, which stays.
        state: State,
        /// The event that was refused.
        event: Event,
    },
    /// The event is about another epoch than the ledger is.
    #[error("{event:?} where epoch {expected} is due")]
    WrongEpoch {
        /// The event that was refused.
        event: Event,
        /// The epoch that would be right.
        expected: u32,
    },
    /// A restore to a checkpoint older than the committed one would lose it.
    #[error("restore to epoch {epoch}, older than the committed epoch {committed}")]
    Older {
        /// The epoch of the restore.
        epoch: u32,
        /// The epoch that is committed here.
        committed: u32,
    },
    /// Epochs are numbers of 24 bits, and they are used up.
    #[error("epoch {epoch} does not fit into 24 bits")]
    TooLarge {
        /// The epoch.
        epoch: u32,
    },
}
