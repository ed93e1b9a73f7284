//! The sets of files of one job: a directory each, with a file a rank and the manifest that makes it a set.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::DiskError;
use super::file::{self, Label};
use crate::store::ShardMeta;

/// One set of files, by the epoch that wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Set {
    /// The constant part of this epoch and those after it, up to the next that begins anew.
    Constant(u32),
    /// The variable part.
    Epoch(u32),
}

impl Set {
    /// The epoch that wrote it.
    pub(super) fn epoch(self) -> u32 {
        match self {
            Self::Constant(epoch) | Self::Epoch(epoch) => epoch,
        }
    }

    /// What its files say of themselves; an epoch has 24 bits.
    fn number(self) -> u32 {
        match self {
            Self::Constant(epoch) => 1 << 31 | epoch,
            Self::Epoch(epoch) => epoch,
        }
    }

    fn name(self) -> String {
        match self {
            Self::Constant(epoch) => format!("constant-{epoch}"),
            Self::Epoch(epoch) => format!("epoch-{epoch}"),
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        let (kind, epoch) = name.split_once('-')?;
        let epoch = epoch.parse().ok()?;
        match kind {
            "constant" => Some(Self::Constant(epoch)),
            "epoch" => Some(Self::Epoch(epoch)),
            _ => None,
        }
    }
}

/// Who a manifest is by.
const MANIFEST: u64 = u64::MAX;

/// See the module.
#[derive(Debug)]
pub(super) struct Sets {
    root: PathBuf,
    job: [u8; 16],
}

impl Sets {
    /// The sets of `job` under `dir`. Both directories are made if they are missing, those above `dir` are not.
    pub(super) fn open(dir: &Path, job: &str) -> Result<Self, DiskError> {
        let dir = std::path::absolute(dir).map_err(DiskError::folder(dir))?;
        let root = dir.join(job);
        make(&dir)?;
        make(&root)?;
        sync(&dir)?;
        let mut identity = [0; 16];
        identity.copy_from_slice(&blake3::hash(job.as_bytes()).as_bytes()[..16]);
        Ok(Self { root, job: identity })
    }

    /// The directory of the job.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    fn folder(&self, set: Set) -> PathBuf {
        self.root.join(set.name())
    }

    pub(super) fn shard_path(&self, set: Set, rank: usize) -> PathBuf {
        self.folder(set).join(format!("rank-{rank}"))
    }

    pub(super) fn manifest_path(&self, set: Set) -> PathBuf {
        self.folder(set).join("manifest")
    }

    fn label(&self, set: Set, who: u64) -> Label {
        Label { job: self.job, set: set.number(), who }
    }

    /// Writes the shard of `rank`, in the place of that of `over`, which is lost. Its bytes are on the disk then; its
    /// name is when the manifest is.
    pub(super) fn write_shard(
        &self,
        set: Set,
        over: Option<Set>,
        rank: usize,
        meta: ShardMeta,
        shard: &[u8],
    ) -> Result<(), DiskError> {
        make(&self.folder(set))?;
        let (path, over) = (self.shard_path(set, rank), over.map(|over| self.shard_path(over, rank)));
        file::write(&path, over.as_deref(), self.label(set, rank as u64), meta, shard)
    }

    /// Writes the manifest, after the shards of all ranks, and forces all names to the disk: from now on the set is
    /// complete.
    pub(super) fn write_manifest(&self, set: Set, ranks: &[ShardMeta]) -> Result<(), DiskError> {
        let bytes: Vec<u8> = ranks.iter().flat_map(|meta| meta.to_bytes()).collect();
        let label = self.label(set, MANIFEST);
        file::write(&self.manifest_path(set), None, label, ShardMeta::of(&bytes), &bytes)?;
        sync(&self.folder(set))?;
        sync(&self.root)
    }

    /// What the shards of all ranks are.
    pub(super) fn manifest(&self, set: Set) -> Result<Vec<ShardMeta>, DiskError> {
        let (path, mut bytes) = (self.manifest_path(set), Vec::new());
        if file::read(&path, self.label(set, MANIFEST), &mut bytes)?.kind != 0 {
            return Err(DiskError::damaged(&path, "its header says that it is the shard of a state"));
        }
        if !bytes.len().is_multiple_of(ShardMeta::BYTES) {
            return Err(DiskError::damaged(&path, "its last entry is too short"));
        }
        Ok(ShardMeta::read_all(&bytes).collect())
    }

    /// Reads the shard of `rank`, which must be the `expected` one of the manifest.
    pub(super) fn read_shard(
        &self,
        set: Set,
        rank: usize,
        expected: ShardMeta,
        shard: &mut Vec<u8>,
    ) -> Result<(), DiskError> {
        let path = self.shard_path(set, rank);
        match file::read(&path, self.label(set, rank as u64), shard)? == expected {
            true => Ok(()),
            false => Err(DiskError::damaged(&path, "the manifest names another length or checksum")),
        }
    }

    /// All of which there is a directory.
    pub(super) fn all(&self) -> Result<Vec<Set>, DiskError> {
        let list = || -> io::Result<Vec<Set>> {
            let mut sets = Vec::new();
            for entry in fs::read_dir(&self.root)? {
                sets.extend(entry?.file_name().to_str().and_then(Set::from_name));
            }
            Ok(sets)
        };
        list().map_err(DiskError::folder(&self.root))
    }

    /// Removes a set, if it is there: the manifest first, so that what is left when this is cut short is no set.
    pub(super) fn remove(&self, set: Set) -> Result<(), DiskError> {
        let (path, folder) = (self.manifest_path(set), self.folder(set));
        gone(fs::remove_file(&path)).map_err(DiskError::remove(&path))?;
        gone(fs::remove_dir_all(&folder)).map_err(DiskError::remove(&folder))
    }

    /// Removes everything of this job.
    pub(super) fn remove_all(&self) -> Result<(), DiskError> {
        gone(fs::remove_dir_all(&self.root)).map_err(DiskError::remove(&self.root))
    }
}

/// Makes a directory, unless another rank was faster.
fn make(path: &Path) -> Result<(), DiskError> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made.map_err(DiskError::folder(path)),
    }
}

/// Forces the names in a directory to the disk.
fn sync(path: &Path) -> Result<(), DiskError> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(DiskError::folder(path))
}

/// What is not there need not be removed.
fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
