//! The sets of files of one job: a directory each, with a file a rank and the manifest that makes it a set.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use ft_comm::limits;

use super::DiskError;
use super::file::{self, Contents, Label};
use crate::protocol::EPOCH_MAX;
use crate::store::{Legend, ShardMeta};

/// One set of files, by the epoch that wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
        let epoch = epoch.parse().ok().filter(|epoch| *epoch <= EPOCH_MAX)?;
        let set = match kind {
            "constant" => Self::Constant(epoch),
            "epoch" => Self::Epoch(epoch),
            _ => return None,
        };
        // A number can be written in several ways, and one of them is a name of ours.
        (set.name() == name).then_some(set)
    }
}

/// The file that says of which job the sets are.
const COMMAND: &str = "command";
/// Most bytes of that file; the kernel accepts no longer command.
const COMMAND_BYTES_MAX: u64 = 16 << 20;
/// Most ranks of a manifest.
const RANKS_MAX: u64 = 1 << 20;

/// Who a manifest is by.
const MANIFEST: u64 = u64::MAX;

const OTHER_SHARD: &str = "the manifest names another length or checksum";

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Sets {
    root: PathBuf,
    /// The job that writes here. None for sets that are only read: the manifest of each says which
    /// job wrote it, since a folder may have been renamed, moved or copied.
    job: Option<Identity>,
}

/// What the files of a job say of whose they are.
pub(super) type Identity = [u8; 16];

impl Sets {
    /// The sets that `job` writes into a folder of this name under `dir`. Both directories are made
    /// if they are missing, those above `dir` are not.
    pub(super) fn open(dir: &Path, folder: &str, job: &str) -> Result<Self, DiskError> {
        let dir = std::path::absolute(dir).map_err(DiskError::folder(dir))?;
        let root = dir.join(folder);
        make(&dir)?;
        make(&root)?;
        sync(&dir)?;
        Ok(Self { root, job: Some(identity(job)) })
    }

    /// The sets in the folder of a job, which is there.
    pub(super) fn of(folder: &Path) -> Result<Self, DiskError> {
        let root = fs::canonicalize(folder).map_err(DiskError::read(folder))?;
        Ok(Self { root, job: None })
    }

    /// The directory of the job.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn folder(&self, set: Set) -> PathBuf {
        self.root.join(set.name())
    }

    pub(super) fn shard_path(&self, set: Set, rank: usize) -> PathBuf {
        self.folder(set).join(format!("rank-{rank}"))
    }

    pub(super) fn manifest_path(&self, set: Set) -> PathBuf {
        self.folder(set).join("manifest")
    }

    /// The job that wrote a set.
    pub(super) fn job_of(&self, set: Set) -> Result<Identity, DiskError> {
        match self.job {
            Some(job) => Ok(job),
            None => file::job(&self.manifest_path(set), set.number(), MANIFEST),
        }
    }

    /// Whether the folder still has the name of the job that wrote a set, as no copy has.
    pub(super) fn is_named_after(&self, job: Identity) -> bool {
        self.root.file_name().is_some_and(|name| identity(&name.to_string_lossy()) == job)
    }

    fn label(&self, set: Set, who: u64) -> Result<Label, DiskError> {
        Ok(Label { job: self.job_of(set)?, set: set.number(), who })
    }

    /// Writes the shard of `rank`, in the place of that of `over`, which is lost. Its bytes are on the disk then; its
    /// name is when the manifest is.
    pub(super) fn write_shard(
        &self,
        set: Set,
        over: Option<Set>,
        rank: usize,
        shard: Contents<'_>,
    ) -> Result<(), DiskError> {
        make(&self.folder(set))?;
        let (path, over) = (self.shard_path(set, rank), over.map(|over| self.shard_path(over, rank)));
        file::write(&path, over.as_deref(), self.label(set, rank as u64)?, shard)
    }

    /// Writes the manifest, after the shards of all ranks, and forces all names to the disk: from now on the set is
    /// complete.
    pub(super) fn write_manifest(&self, set: Set, ranks: &[ShardMeta]) -> Result<(), DiskError> {
        let bytes: Vec<u8> = ranks.iter().flat_map(|meta| meta.to_bytes()).collect();
        let contents = Contents { meta: ShardMeta::of(&bytes), bytes: &bytes, legend: &Legend::default() };
        file::write(&self.manifest_path(set), None, self.label(set, MANIFEST)?, contents)?;
        sync(&self.folder(set))?;
        sync(&self.root)
    }

    /// What the shards of all ranks are.
    pub(super) fn manifest(&self, set: Set) -> Result<Vec<ShardMeta>, DiskError> {
        let (path, mut bytes) = (self.manifest_path(set), Vec::new());
        let entry = ShardMeta::BYTES as u64;
        let is_manifest = |meta: ShardMeta| match meta {
            ShardMeta { kind: 1.., .. } => Err("its header says that it is the shard of a state".into()),
            ShardMeta { len: 0, .. } => Err("it names no rank".into()),
            ShardMeta { len, .. } if !len.is_multiple_of(entry) => Err("its last entry is too short".into()),
            ShardMeta { len, .. } if len / entry > RANKS_MAX => {
                Err(format!("it has {} ranks, and no job has more than {RANKS_MAX}", len / entry))
            }
            _ => Ok(()),
        };
        file::read(&path, self.label(set, MANIFEST)?, is_manifest, &mut bytes)?;
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
        let is_expected = |meta| if meta == expected { Ok(()) } else { Err(OTHER_SHARD.to_owned()) };
        file::read(&self.shard_path(set, rank), self.label(set, rank as u64)?, is_expected, shard).map(|_| ())
    }

    /// Reads the outline of the shard of `rank`, if it has one. Whether that is a shard of this set is not asked.
    pub(super) fn read_outline(&self, set: Set, rank: usize) -> Result<Option<Vec<u8>>, DiskError> {
        file::outline(&self.shard_path(set, rank), self.label(set, rank as u64)?)
    }

    /// Whether the file of `rank` is there, with that header and as long as that says. Its bytes are not read.
    pub(super) fn is_there(&self, set: Set, rank: usize, meta: ShardMeta) -> bool {
        self.check_header(set, rank, meta).is_ok()
    }

    /// As [`Sets::is_there`], with what is wrong.
    pub(super) fn check_header(&self, set: Set, rank: usize, meta: ShardMeta) -> Result<(), DiskError> {
        let path = self.shard_path(set, rank);
        match file::meta(&path, self.label(set, rank as u64)?)? == meta {
            true => Ok(()),
            false => Err(DiskError::damaged(&path, OTHER_SHARD)),
        }
    }

    /// Epochs with a manifest, newest first.
    pub(super) fn with_manifest(&self) -> Result<Vec<u32>, DiskError> {
        let epoch = |set: Set| match set {
            Set::Epoch(epoch) => self.manifest_path(set).exists().then_some(epoch),
            Set::Constant(_) => None,
        };
        let mut epochs: Vec<u32> = self.all()?.into_iter().filter_map(epoch).collect();
        epochs.sort_unstable_by(|a, b| b.cmp(a));
        Ok(epochs)
    }

    /// The epoch whose constant part goes with `epoch`.
    pub(super) fn constant_of(&self, epoch: u32) -> Result<Option<u32>, DiskError> {
        Ok(constant_of(&self.all()?, epoch))
    }

    /// Removes all sets before the `count` newest that have a manifest, and constant parts that go with none of those.
    pub(super) fn keep(&self, count: usize) -> Result<(), DiskError> {
        self.remove_those(too_old(&self.all()?, &self.with_manifest()?, count))
    }

    /// Removes the sets after `epoch`.
    pub(super) fn remove_after(&self, epoch: u32) -> Result<(), DiskError> {
        self.remove_those(newer_than(&self.all()?, epoch))
    }

    /// Removes constant parts after that of epoch `first` which would be taken for that of `epoch`: they were given up.
    pub(super) fn remove_constants(&self, first: u32, epoch: u32) -> Result<(), DiskError> {
        self.remove_those(given_up(&self.all()?, first, epoch))
    }

    fn remove_those(&self, sets: Vec<Set>) -> Result<(), DiskError> {
        sets.into_iter().try_for_each(|set| self.remove(set))
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
        // Behind a link the manifest would be that of another set.
        if folder.symlink_metadata().is_ok_and(|about| about.is_dir()) {
            match fs::remove_file(&path) {
                // A directory is no manifest.
                Err(error) if error.kind() == ErrorKind::IsADirectory => {}
                removed => gone(removed).map_err(DiskError::remove(&path))?,
            }
        }
        remove_all_of(&folder)
    }

    /// Says of which job the sets are, for one that is to go on from them, in one line.
    pub(super) fn write_command(&self, command: &str) -> Result<(), DiskError> {
        let (path, temporary) = (self.root.join(COMMAND), self.root.join(format!("{COMMAND}.tmp")));
        let written = ft_files::create(&temporary)
            .and_then(|mut file| file.write_all(command.as_bytes()))
            .and_then(|()| fs::rename(&temporary, &path));
        written.map_err(|cause| DiskError::Write {
            path,
            bytes: command.len() as u64,
            cause: limits::explain(&cause),
        })
    }

    /// What [`Sets::write_command`] has written, if it has.
    pub(super) fn command(&self) -> Result<Option<String>, DiskError> {
        let path = self.root.join(COMMAND);
        match ft_files::read(&path, COMMAND_BYTES_MAX).map_err(io::Error::from) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(DiskError::read(&path)(error)),
            Ok(bytes) => match String::from_utf8(bytes) {
                Ok(command) => Ok(Some(command)),
                Err(_) => Err(DiskError::damaged(&path, "it is not text")),
            },
        }
    }

    /// Returns `true` if a job has begun to write here, whether or not one of its sets is complete.
    pub(super) fn is_begun(&self) -> bool {
        self.root.join(COMMAND).exists() || self.all().is_ok_and(|sets| !sets.is_empty())
    }

    /// Removes everything of this job.
    pub(super) fn remove_all(&self) -> Result<(), DiskError> {
        Self::remove_folder(&self.root)
    }

    /// Removes the folder of a job, if it is there. It gets another name first: what is left when this is cut short is no checkpoint.
    pub(super) fn remove_folder(folder: &Path) -> Result<(), DiskError> {
        let mut name = OsString::from(".");
        name.push(folder.file_name().unwrap_or_default());
        let removed = folder.with_file_name(name);
        gone(fs::rename(folder, &removed)).map_err(DiskError::remove(folder))?;
        remove_all_of(&removed)
    }

    /// Whether the folder is one that was to be removed.
    pub(super) fn is_removed(folder: &Path) -> bool {
        folder.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
    }
}

/// The epoch whose constant part goes with `epoch`, of `all` sets.
pub(super) fn constant_of(all: &[Set], epoch: u32) -> Option<u32> {
    let first = |set: &Set| match *set {
        Set::Constant(first) => (first <= epoch).then_some(first),
        Set::Epoch(_) => None,
    };
    all.iter().filter_map(first).max()
}

/// The sets before the `count` newest that have a manifest, of `all`, and constant parts that go with none of those; in the order in
/// which they are to go. `with_manifest` are the newest first.
pub(super) fn too_old(all: &[Set], with_manifest: &[u32], count: usize) -> Vec<Set> {
    let Some(oldest) = with_manifest.get(count.saturating_sub(1)).copied() else { return vec![] };
    let base = constant_of(all, oldest);
    constants_last(all, |set| match set {
        Set::Constant(first) => base.is_some_and(|base| first < base),
        Set::Epoch(epoch) => epoch < oldest,
    })
}

/// The sets after `epoch`, in the order in which they are to go.
pub(super) fn newer_than(all: &[Set], epoch: u32) -> Vec<Set> {
    constants_last(all, |set| set.epoch() > epoch)
}

/// The constant parts after that of epoch `first`, up to `epoch`.
pub(super) fn given_up(all: &[Set], first: u32, epoch: u32) -> Vec<Set> {
    constants_last(all, |set| matches!(set, Set::Constant(other) if first < other && other <= epoch))
}

/// Some of the sets, each constant part after the epochs that go with it.
fn constants_last(all: &[Set], which: impl Fn(Set) -> bool) -> Vec<Set> {
    let mut sets: Vec<Set> = all.iter().copied().filter(|set| which(*set)).collect();
    sets.sort_by_key(|set| matches!(set, Set::Constant(_)));
    sets
}

fn identity(job: &str) -> Identity {
    let mut identity = [0; 16];
    identity.copy_from_slice(&blake3::hash(job.as_bytes()).as_bytes()[..16]);
    identity
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

/// Removes a directory with all that is in it, or what has its name.
fn remove_all_of(path: &Path) -> Result<(), DiskError> {
    let removed = match fs::remove_dir_all(path) {
        Err(error) if error.kind() == ErrorKind::NotADirectory => fs::remove_file(path),
        removed => removed,
    };
    gone(removed).map_err(DiskError::remove(path))
}

/// What is not there need not be removed.
fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
