//! The machine and its filesystems, as `/proc` describes them.

use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use serde::Serialize;

use super::error::BenchError;
use super::experiment::FRESH_DISK;

/// Where the measurements were made.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Machine {
    /// Model of the processor.
    pub processor: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Release of the kernel.
    pub kernel: String,
    /// Load averages over 1, 5 and 15 minutes at the start.
    pub load_averages: [f64; 3],
}

impl Machine {
    /// The one that this process runs on; what cannot be read is said to be unknown, or is 0.
    pub fn here() -> Self {
        let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
        let known = |text: Option<&str>| text.map_or("unknown", str::trim).to_owned();
        let cpus = read("/proc/cpuinfo");
        let memory = read("/proc/meminfo");
        let memory_kib =
            memory.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"));
        Self {
            processor: known(
                cpus.lines()
                    .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
                    .map(|(_, name)| name),
            ),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: memory_kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) << 10,
            kernel: known(Some(read("/proc/sys/kernel/osrelease").as_str()).filter(|text| !text.is_empty())),
            load_averages: load_averages(),
        }
    }
}

/// Load averages over 1, 5 and 15 minutes.
pub(super) fn load_averages() -> [f64; 3] {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let mut numbers = text.split_whitespace().filter_map(|number| number.parse().ok());
    [(); 3].map(|()| numbers.next().unwrap_or(0.0))
}

/// Type of the filesystem that a path lies on, such as `ext4`.
pub fn filesystem(path: &Path) -> String {
    // Of a folder that is not there yet, the one above counts.
    let there = path.ancestors().find_map(|path| path.canonicalize().ok()).unwrap_or_else(|| "/".into());
    filesystem_in(&fs::read_to_string("/proc/mounts").unwrap_or_default(), &there)
}

fn filesystem_in(mounts: &str, path: &Path) -> String {
    let mounts = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        // Blanks in it are written as octal numbers.
        Some((words.next()?.replace("\\040", " "), words.next()?))
    });
    let around = mounts.filter(|(point, _)| path.starts_with(point));
    // Of mounts at the same place the last one is on top.
    let closest = around.max_by_key(|(point, _)| point.len());
    closest.map_or_else(|| "unknown".to_owned(), |(_, kind)| kind.to_owned())
}

/// Where a disk scheme keeps its files.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Disk {
    /// Name of the scheme.
    pub scheme: String,
    /// Its folder.
    pub folder: PathBuf,
    /// Type of the filesystem.
    pub filesystem: String,
}

impl Disk {
    /// Whether its files lie in memory.
    pub fn is_memory(&self) -> bool {
        matches!(&*self.filesystem, "tmpfs" | "ramfs")
    }
}

impl fmt::Display for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheme, folder, filesystem } = self;
        let no_disk = if self.is_memory() { ", which is memory and no disk" } else { "" };
        match scheme == FRESH_DISK {
            true => write!(f, "{scheme}: {filesystem}{no_disk}, in a fresh folder in {}", folder.display()),
            false => write!(f, "{scheme}: {filesystem}{no_disk}"),
        }
    }
}

/// A folder that is removed with all that is in it when it is dropped.
#[derive(Debug)]
pub struct FreshFolder(PathBuf);

impl FreshFolder {
    /// Among the temporary files of this machine.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new() -> Result<Self, BenchError> {
        Self::within(&std::env::temp_dir())
    }

    /// In a folder that is there.
    pub fn within(parent: &Path) -> Result<Self, BenchError> {
        let made = (0..100).find_map(|number| {
            let folder = parent.join(format!("ftrun-bench-{}-{number}", std::process::id()));
            match fs::create_dir(&folder) {
                Ok(()) => Some(Ok(Self(folder))),
                Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => None,
                Err(cause) => Some(Err(BenchError::Folder { folder, cause })),
            }
        });
        let taken = || io::Error::from(io::ErrorKind::AlreadyExists);
        made.unwrap_or_else(|| Err(BenchError::Folder { folder: parent.to_owned(), cause: taken() }))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for FreshFolder {
    fn drop(&mut self) {
        // Nobody is there to be told.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_mount_counts() {
        let mounts = "/dev/vda / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/b /tmp/my\\040disk xfs rw 0 0\n";
        let at = |path: &str| filesystem_in(mounts, Path::new(path));
        assert_eq!(
            [at("/home/a"), at("/tmp/b"), at("/tmp/my disk/c"), at("/tmpfs")],
            ["ext4", "tmpfs", "xfs", "ext4"]
        );
        assert_eq!(filesystem_in("", Path::new("/")), "unknown");
    }

    #[test]
    fn this_machine_is_known() {
        let here = Machine::here();
        assert!(here.cores > 0 && here.memory_bytes > 1 << 26, "{here:?}");
        assert_ne!(here.kernel, "unknown");
        assert_ne!(filesystem(Path::new("/no/such/folder")), "unknown");
    }

    #[test]
    fn a_fresh_folder_goes_with_what_is_in_it() {
        let (one, other) = (FreshFolder::new().unwrap(), FreshFolder::new().unwrap());
        assert_ne!(one.path(), other.path());
        let path = one.path().to_owned();
        fs::write(path.join("file"), "text").unwrap();
        drop(one);
        assert!(!path.exists() && other.path().exists());
    }
}
