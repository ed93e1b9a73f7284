//! The sets of files of one job: a directory each, with a file a rank and the manifest that makes it a set.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::DiskError;
use super::file::{self, Label};
use crate::store::ShardMeta;

/// The "epoch" of the set that holds the constant part.
pub(super) const CONSTANT: u32 = 0;

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

    fn folder(&self, epoch: u32) -> PathBuf {
        self.root.join(if epoch == CONSTANT { "constant".into() } else { format!("epoch-{epoch}") })
    }

    pub(super) fn shard_path(&self, epoch: u32, rank: usize) -> PathBuf {
        self.folder(epoch).join(format!("rank-{rank}"))
    }

    pub(super) fn manifest_path(&self, epoch: u32) -> PathBuf {
        self.folder(epoch).join("manifest")
    }

    fn label(&self, epoch: u32, who: u64) -> Label {
        Label { job: self.job, epoch, who }
    }

    /// Writes the shard of `rank`, in the place of that of `over`, which is lost. Its bytes are on the disk then; its
    /// name is when the manifest is.
    pub(super) fn write_shard(
        &self,
        epoch: u32,
        over: Option<u32>,
        rank: usize,
        meta: ShardMeta,
        shard: &[u8],
    ) -> Result<(), DiskError> {
        make(&self.folder(epoch))?;
        let (path, over) = (self.shard_path(epoch, rank), over.map(|over| self.shard_path(over, rank)));
        file::write(&path, over.as_deref(), self.label(epoch, rank as u64), meta, shard)
    }

    /// Writes the manifest, after the shards of all ranks, and forces all names to the disk: from now on the set is
    /// complete.
    pub(super) fn write_manifest(&self, epoch: u32, ranks: &[ShardMeta]) -> Result<(), DiskError> {
        let bytes: Vec<u8> = ranks.iter().flat_map(|meta| meta.to_bytes()).collect();
        let label = self.label(epoch, MANIFEST);
        file::write(&self.manifest_path(epoch), None, label, ShardMeta::of(&bytes), &bytes)?;
        sync(&self.folder(epoch))?;
        sync(&self.root)
    }

    /// What the shards of all ranks are.
    pub(super) fn manifest(&self, epoch: u32) -> Result<Vec<ShardMeta>, DiskError> {
        let (path, mut bytes) = (self.manifest_path(epoch), Vec::new());
        if file::read(&path, self.label(epoch, MANIFEST), &mut bytes)?.kind != 0 {
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
        epoch: u32,
        rank: usize,
        expected: ShardMeta,
        shard: &mut Vec<u8>,
    ) -> Result<(), DiskError> {
        let path = self.shard_path(epoch, rank);
        match file::read(&path, self.label(epoch, rank as u64), shard)? == expected {
            true => Ok(()),
            false => Err(DiskError::damaged(&path, "the manifest names another length or checksum")),
        }
    }

    /// Epochs of which there is a directory, newest first; the constant part is not among them.
    pub(super) fn epochs(&self) -> Result<Vec<u32>, DiskError> {
        let list = || -> io::Result<Vec<u32>> {
            let mut epochs = Vec::new();
            for entry in fs::read_dir(&self.root)? {
                let name = entry?.file_name();
                let number = name.to_str().and_then(|name| name.strip_prefix("epoch-"));
                epochs.extend(number.and_then(|number| number.parse::<u32>().ok()));
            }
            epochs.sort_unstable_by(|a, b| b.cmp(a));
            Ok(epochs)
        };
        list().map_err(DiskError::folder(&self.root))
    }

    /// Removes a set, if it is there: the manifest first, so that what is left when this is cut short is no set.
    pub(super) fn remove(&self, epoch: u32) -> Result<(), DiskError> {
        let (path, folder) = (self.manifest_path(epoch), self.folder(epoch));
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
