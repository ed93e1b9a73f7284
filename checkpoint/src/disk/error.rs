//! What can go wrong with files, with the path and the word of the operating system.

use std::io;
use std::path::{Path, PathBuf};

use ft_comm::limits;

use crate::store::StoreError;

/// A file of a disk checkpoint cannot be written or read, or is not what was written.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiskError {
    /// The directory cannot be made, listed or synchronized.
    #[error("cannot keep checkpoints in {}: {cause}", path.display())]
    Folder {
        /// The directory.
        path: PathBuf,
        /// The operating system's word.
        cause: String,
    },
    /// A file cannot be written; the disk may be full. The last complete checkpoint is as it was.
    #[error("cannot write {bytes} bytes to {}: {cause}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Bytes that it was to hold, without its header.
        bytes: u64,
        /// The operating system's word.
        cause: String,
    },
    /// A file cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's word.
        cause: String,
    },
    /// A file or directory that is of no more use cannot be removed.
    #[error("cannot remove {}: {cause}", path.display())]
    Remove {
        /// The file or directory.
        path: PathBuf,
        /// The operating system's word.
        cause: String,
    },
    /// A file is not what was written there.
    #[error("{} is damaged: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        what: String,
    },
    /// There are checkpoints, and each of them lacks a file or has a damaged one.
    #[error("none of the {sets} checkpoints in {} is whole", path.display())]
    NoneWhole {
        /// The directory of the job.
        path: PathBuf,
        /// Checkpoints that have a manifest.
        sets: usize,
    },
    /// There is no checkpoint where one was expected.
    #[error(
        "no checkpoint is complete in {}: name the directory that --spill or --scheme disk:DIR had, or the folder of one job in it",
        path.display()
    )]
    Nothing {
        /// The directory.
        path: PathBuf,
    },
    /// What was read is not what it must be.
    #[error("memory of a checkpoint: {0}")]
    Store(#[from] StoreError),
}

impl DiskError {
    pub(super) fn folder(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |cause| Self::Folder { path: path.to_owned(), cause: limits::explain(&cause) }
    }

    pub(super) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |cause| Self::Read { path: path.to_owned(), cause: limits::explain(&cause) }
    }

    pub(super) fn remove(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |cause| Self::Remove { path: path.to_owned(), cause: limits::explain(&cause) }
    }

    pub(super) fn damaged(path: &Path, what: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), what: what.into() }
    }
}
