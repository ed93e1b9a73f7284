//! Errors of this crate: facts first, with the numbers that do not fit.

use std::fmt;

use crate::region::DEPTH_MAX;
use crate::scheme::Scheme;

/// A walk over protected state failed; see [`ProtectErrorKind`] for the cause.
///
/// After a failed load the state is partly overwritten and must be loaded again; a failed save leaves it as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectError {
    /// The path of the field, such as `solver.x`; empty if the failure is not within one field.
    pub field: String,
    /// Bytes into the shard at which the field or the failing piece of it starts.
    pub offset: usize,
    /// What went wrong.
    pub kind: ProtectErrorKind,
}

/// The cause of a [`ProtectError`].
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtectErrorKind {
    /// The shard ends too early, or a length in it is too large for what follows.
    #[error("{wanted} bytes wanted, {left} left")]
    Short {
        /// Bytes that the piece needs (`u64::MAX` if that number itself does not fit).
        wanted: u64,
        /// Bytes between the offset and the end of the shard.
        left: usize,
    },
    /// The state was read whole and bytes were left over: they belong to another type of state.
    #[error("{left} bytes left over at the end")]
    Trailing {
        /// Bytes between the offset and the end of the shard.
        left: usize,
    },
    /// The bytes are no value of the field's type.
    #[error("not a valid {what}")]
    Invalid {
        /// The type that was expected.
        what: &'static str,
    },
    /// Values lie in each other too deep; a list is a `Vec`, not values in boxes.
    #[error("values in values, more than {DEPTH_MAX} deep")]
    Deep,
    /// A field that goes through serde could not be written or read.
    #[error("serde: {0}")]
    Serde(String),
}

impl ProtectError {
    /// Returns an error of `kind` at `offset`, in no field yet.
    pub fn new(offset: usize, kind: ProtectErrorKind) -> Self {
        Self { field: String::new(), offset, kind }
    }

    /// Puts `name` before the path of the field; called by derived code on the way out.
    #[must_use]
    pub fn in_field(mut self, name: &str) -> Self {
        if self.field.is_empty() {
            self.field.push_str(name);
        } else {
            self.field.insert(0, '.');
            self.field.insert_str(0, name);
        }
        self
    }
}

impl fmt::Display for ProtectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "field {}: ", self.field)?;
        }
        write!(f, "{} at byte {} of the shard", self.kind, self.offset)
    }
}

impl std::error::Error for ProtectError {}

/// The name of a scheme could not be read.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemeError {
    /// No scheme has this name.
    #[error("unknown scheme `{name}`; there are none, neighbor[:COPIES], xor[:GROUP], rs:K+M and disk:DIR")]
    Unknown {
        /// The name as it was given.
        name: String,
    },
    /// The scheme is named in the documentation and not built yet.
    #[error(
        "scheme `{name}` does not exist yet; there are none, neighbor[:COPIES], xor[:GROUP], rs:K+M and disk:DIR"
    )]
    NotYet {
        /// The name as it was given.
        name: String,
    },
    /// The scheme exists, its numbers cannot be read.
    #[error("`{given}` cannot be read as {form}")]
    Numbers {
        /// The scheme as it was given.
        given: String,
        /// The form that is understood.
        form: &'static str,
    },
}

/// A scheme does not fit the job; nothing was laid out.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// A number that must be at least one is zero.
    #[error("{scheme} with {what} = 0; at least 1 is needed")]
    Zero {
        /// The scheme.
        scheme: Scheme,
        /// The number that is zero.
        what: &'static str,
    },
    /// A group of one rank has nobody to hold its parity.
    #[error("xor:1 leaves no rank to hold the parity; at least xor:2 is needed")]
    XorOfOne,
    /// A single rank has nobody to protect it.
    #[error("{scheme} needs at least 2 ranks, there is 1; use none")]
    OneRank {
        /// The scheme.
        scheme: Scheme,
    },
    /// There are fewer ranks than one group needs.
    #[error("{scheme} needs {needs} ranks {}, there {} {ranks}", if *.dedicated { "that compute a group" } else { "a group" }, if *.ranks == 1 { "is" } else { "are" })]
    TooFew {
        /// The scheme.
        scheme: Scheme,
        /// Ranks that one group needs.
        needs: usize,
        /// Ranks that compute.
        ranks: usize,
        /// True if the parity has ranks of its own, which are not counted here.
        dedicated: bool,
    },
    /// As many copies as ranks, or more.
    #[error("neighbor:{copies} needs more than {copies} ranks, there are {ranks}")]
    TooManyCopies {
        /// Copies of each shard.
        copies: usize,
        /// Ranks that compute.
        ranks: usize,
    },
    /// The scheme and the number of parity ranks a group contradict each other.
    #[error("{scheme} goes with {} parity ranks a group, not {parity_ranks}", if *.allows == 0 { "0".to_owned() } else { format!("0 or {}", .allows) })]
    ParityRanks {
        /// The scheme.
        scheme: Scheme,
        /// Parity ranks a group that the scheme can use beside 0.
        allows: usize,
        /// Parity ranks a group that were asked for.
        parity_ranks: usize,
    },
    /// A Reed-Solomon stripe has more blocks than its field has elements.
    #[error(
        "{scheme}: a group of {data} data + {parity} parity = {} blocks a stripe is more than 256",
        .data.saturating_add(*.parity)
    )]
    TooWide {
        /// The scheme.
        scheme: Scheme,
        /// Data blocks a stripe.
        data: usize,
        /// Parity blocks a stripe.
        parity: usize,
    },
    /// Hosts are given for fewer ranks than compute.
    #[error("{hosts} hosts are given for {ranks} ranks")]
    Hosts {
        /// Entries in the list of hosts.
        hosts: usize,
        /// Ranks that compute.
        ranks: usize,
    },
}

/// More ranks of a group are lost than its code can decode; the job cannot be restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BeyondTolerance {
    /// The scheme with the size of this group, such as `xor:4`.
    pub scheme: Scheme,
    /// The index of the group.
    pub group: usize,
    /// World ranks of the group, those that compute first.
    pub members: Vec<usize>,
    /// Lost world ranks of the group, ascending.
    pub lost: Vec<usize>,
    /// Losses that the group survives wherever they strike.
    pub tolerance: usize,
    /// A scheme that would have survived the same losses, with the parity ranks a group that it takes.
    pub suggestion: Option<(Scheme, usize)>,
}

/// Writes `1`, `1 and 2`, `1, 2 and 3`.
fn enumerated(ranks: &[usize]) -> String {
    match ranks {
        [] => String::new(),
        [one] => one.to_string(),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(usize::to_string).collect();
            format!("{} and {last}", first.join(", "))
        }
    }
}

impl fmt::Display for BeyondTolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ranks, are) = if self.lost.len() == 1 { ("rank", "is") } else { ("ranks", "are") };
        write!(f, "{ranks} {} ", enumerated(&self.lost))?;
        if self.scheme == Scheme::None {
            write!(f, "{are} lost, scheme none survives no loss; ")?;
        } else {
            let losses = if self.tolerance == 1 { "loss" } else { "losses" };
            let members: Vec<String> = self.members.iter().map(usize::to_string).collect();
            write!(f, "of parity group {} (ranks {}) ", self.group, members.join(" "))?;
            write!(f, "{are} lost, {} survives {} {losses} a group; ", self.scheme, self.tolerance)?;
        }
        match &self.suggestion {
            Some((scheme, 0)) => write!(f, "{scheme} would have survived this"),
            Some((scheme, m)) => write!(f, "{scheme} with {m} parity ranks a group would have survived this"),
            None if self.lost.len() == 1 => write!(f, "no scheme would have survived 1 loss here"),
            None => write!(f, "no scheme would have survived {} losses here", self.lost.len()),
        }
    }
}

impl std::error::Error for BeyondTolerance {}

/// An event that the commit ledger cannot take in its state; the ledger is unchanged.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// The event has no meaning in this state.
    #[error("{event:?} in state {state:?}")]
    OutOfOrder {
        /// The state, which stays.
        state: crate::protocol::State,
        /// The event that was refused.
        event: crate::protocol::Event,
    },
    /// The event is about another epoch than the ledger is.
    #[error("{event:?} where epoch {expected} is due")]
    WrongEpoch {
        /// The event that was refused.
        event: crate::protocol::Event,
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

/// A checkpoint or a restore could not be finished.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CheckpointError {
    /// A failure interrupted it, or the job has ended. After a failure: repair and restore.
    #[error(transparent)]
    Comm(#[from] ft_comm::CommError),
    /// More is lost than the scheme survives. The job cannot go on.
    #[error(transparent)]
    BeyondTolerance(Box<BeyondTolerance>),
    /// The state could not be written or read. The checkpoint before is whole.
    #[error("state: {0}")]
    Protect(#[from] ProtectError),
    /// Another rank could not write its state; nobody committed. The checkpoint before is whole.
    #[error("checkpoint {epoch} was refused by another rank")]
    Refused {
        /// The epoch that was given up.
        epoch: u32,
    },
    /// Checkpoints would take more memory of a rank than they may; nothing was taken.
    #[error(
        "checkpoints of a state of this size take {bytes} bytes of rank {rank}, and may take {limit}: allow more \
         (--checkpoint-memory), or choose a scheme that keeps less"
    )]
    Memory {
        /// The rank.
        rank: usize,
        /// What two checkpoints of the variable part of the state and one of the constant part take there.
        bytes: u64,
        /// What they may take.
        limit: u64,
    },
    /// The program, its protection and the repair mode of the job do not go together.
    #[error("{0}")]
    Unfit(String),
    /// The scheme does not fit the job.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The name of a scheme cannot be read.
    #[error(transparent)]
    Scheme(#[from] SchemeError),
    /// The launcher was told what this program cannot do.
    #[error(transparent)]
    Setting(#[from] ft_comm::settings::SettingError),
    /// The number of dedicated parity ranks does not fit the scheme.
    #[error("{dedicated} dedicated parity ranks do not fit {scheme}")]
    ParityRanks {
        /// The scheme.
        scheme: Scheme,
        /// Dedicated parity ranks of the whole job.
        dedicated: usize,
    },
    /// A rebuilt shard or a slot is not what it must be. The job cannot go on with it.
    #[error("memory of a checkpoint: {0}")]
    Store(#[from] StoreError),
    /// Whatever redundant blocks the states of these ranks are computed from, none is what its owner wrote down: more of them are damaged
    /// than the scheme can make up for. The job cannot go on.
    #[error(
        "{} cannot be rebuilt: the redundancy was damaged before its checksums were taken, more of it than the scheme can make up \
         for; a scheme with more redundant blocks survives more (rs:K+M)",
        ft_comm::list("the state of rank", ranks)
    )]
    Unsound {
        /// The ranks.
        ranks: Vec<usize>,
    },
    /// The checkpoint was taken by another build of the program. The job cannot go on.
    #[error(
        "rank {rank}: the checkpoint was taken by another build of the program, which alone knows what its bytes mean: run the \
         whole job with one build, on all hosts, and do not replace its file while it runs"
    )]
    OtherBuild {
        /// The rank that was to be restored.
        rank: usize,
    },
    /// The checkpoint holds another kind of state than the program has. The job cannot go on with it.
    #[error(
        "rank {rank}: the checkpoint does not hold a {due} with the fields that it has here; it was taken of another state: take \
         and restore the checkpoints of one `Checkpointer` with one type"
    )]
    OtherState {
        /// The rank that was to be restored.
        rank: usize,
        /// The type of its state.
        due: &'static str,
    },
    /// A code refused its blocks; a defect of this crate.
    #[error("code: {0}")]
    Code(#[from] ft_encoders::CodeError),
    /// A file of a checkpoint on disk cannot be written or read.
    #[error(transparent)]
    Disk(#[from] crate::disk::DiskError),
    /// The commit protocol was left; a defect of this crate.
    #[error("commit protocol: {0}")]
    Ledger(#[from] LedgerError),
}

impl From<BeyondTolerance> for CheckpointError {
    fn from(error: BeyondTolerance) -> Self {
        Self::BeyondTolerance(Box::new(error))
    }
}
