//! What can be wrong with what a rank keeps.

/// What a rank keeps is not what was written, or is not there.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The slot was begun and never sealed, or never begun.
    #[error("the slot is not sealed")]
    NotSealed,
    /// The shard of this rank has changed since the slot was sealed; treat it as lost.
    #[error("the shard of member {member} does not match its checksum ({bytes} bytes, {recorded} recorded)")]
    Shard {
        /// This rank's index in its group.
        member: usize,
        /// Bytes in memory.
        bytes: u64,
        /// Bytes recorded.
        recorded: u64,
    },
    /// A held redundant block has changed since the slot was sealed; treat it as lost.
    #[error("the redundant block of stripe {stripe} does not match its checksum ({bytes} bytes)")]
    Block {
        /// The stripe.
        stripe: usize,
        /// Bytes in memory.
        bytes: usize,
    },
    /// The metadata names fewer members than the group has.
    #[error("metadata of {given} members, member {member} is not among them")]
    Members {
        /// Entries given.
        given: usize,
        /// This rank's index in its group.
        member: usize,
    },
}
