//! Why a checkpoint or a restore fails: what its parts say, and what only all of them together can.

use crate::disk::DiskError;
use crate::layout::{BeyondTolerance, LayoutError};
use crate::protocol::LedgerError;
use crate::region::ProtectError;
use crate::scheme::{Scheme, SchemeError};
use crate::store::StoreError;

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
    /// Copies of the state were damaged in memory before redundancy was made of them, again and again. The checkpoint before is whole.
    #[error(
        "checkpoint {epoch} was copied {copies} times, and each time a copy was damaged in memory before it was protected: the memory \
         of a host is broken"
    )]
    Spoiled {
        /// The epoch that was given up.
        epoch: u32,
        /// How often it was copied.
        copies: u32,
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
    /// The job is to go on from a checkpoint of another build of the program.
    #[error(
        "the checkpoint in files was taken by another build of the program: resume with that build, or say --accept-build if \
         what the fields of its state mean has not changed"
    )]
    ResumedBuild,
    /// The job is to go on from a checkpoint of another kind of state.
    #[error(
        "the checkpoint in files does not hold a {due} with the fields that it has here: resume with the program that it is of, \
         with the same options"
    )]
    ResumedState {
        /// The type of the program's state.
        due: &'static str,
    },
    /// The job is to go on with another number of ranks, and cannot.
    #[error(
        "the checkpoint in files is that of {before} ranks, and this job has {now}: {why}; resume with -n {before}"
    )]
    ResumedRanks {
        /// Ranks that computed then.
        before: usize,
        /// Ranks that compute now.
        now: usize,
        /// Why not.
        why: &'static str,
    },
    /// A code refused its blocks; a defect of this crate.
    #[error("code: {0}")]
    Code(#[from] ft_encoders::CodeError),
    /// A checksum code refused its blocks; a defect of this crate.
    #[error("code: {0}")]
    Checksum(#[from] ft_encoders::ChecksumError),
    /// Doubles can be rebuilt, but not as near to what was lost as is asked for. The job cannot go on.
    #[error(
        "the doubles of rank {rank} can be rebuilt within {within:.1e}, which is {relative:.1e} of the largest of them, and the limit \
         is {limit:.1e}: allow more (--checksum-limit), or choose a scheme that is exact (rs:K+M)"
    )]
    Inexact {
        /// The rank that was lost.
        rank: usize,
        /// How far any of them can be from what it was.
        within: f64,
        /// The same over the largest magnitude among them.
        relative: f64,
        /// The most that this may be.
        limit: f64,
    },
    /// A file of a checkpoint on disk cannot be written or read.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The commit protocol was left; a defect of this crate.
    #[error("commit protocol: {0}")]
    Ledger(#[from] LedgerError),
}

impl From<BeyondTolerance> for CheckpointError {
    fn from(error: BeyondTolerance) -> Self {
        Self::BeyondTolerance(Box::new(error))
    }
}
