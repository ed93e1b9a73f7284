//! One file of a disk checkpoint: a header that says whose bytes these are, and the bytes.
//!
//! ```text
//! 0       8         12      16    24    40       48         56     64
//! | magic | version |  set  | who | job | length | checksum | kind | bytes ...      little endian
//! ```
//!
//! Every byte of the header is compared when the file is read: what it is with what is wanted, the length with that
//! of the file, the checksum (CRC-64/NVME) with that of the bytes.
//!
//! Version 3 has an outline of the fields behind the bytes, and the length and checksum of that at the end. Whoever wants the bytes
//! alone does not look there, so damage in it is the business of those who want to know the fields. Version 2 ends with the bytes.
//!
//! Version 4 is of a shard whose doubles are kept apart. Behind the bytes are the outline and [the seams](crate::region::seams), the lengths of
//! both, and one checksum. Who reads the bytes gets them joined.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use ft_comm::limits;

use super::DiskError;
use crate::crc::{Digest, crc64_nvme};
use crate::region::join;
use crate::store::{Legend, ShardMeta};

const MAGIC: [u8; 8] = *b"DISKLESS";
/// A file that ends with the bytes.
const PLAIN: u32 = 2;
/// A file with an outline behind them.
const OUTLINED: u32 = 3;
/// A file with an outline and seams behind them.
const SEAMED: u32 = 4;
const VERSIONS: [u32; 3] = [PLAIN, OUTLINED, SEAMED];
const FOREIGN: &str = "its header belongs to another file, job or format";
/// Bytes of the header that the label gives; length, checksum and kind of the bytes follow.
const LABEL_BYTES: usize = 40;
const HEADER_BYTES: usize = LABEL_BYTES + ShardMeta::BYTES;
/// Most bytes of an outline: it has a name and a type for each of at most 1,000 fields.
const OUTLINE_BYTES_MAX: u64 = 16 << 20;
/// Bytes that are read, and of which the checksum is taken, while they are in the cache.
const PIECE: u64 = 256 << 10;

/// What a file is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Label {
    /// Identity of the job.
    pub(super) job: [u8; 16],
    /// Number of the set.
    pub(super) set: u32,
    /// The rank; `u64::MAX` for a manifest.
    pub(super) who: u64,
}

impl Label {
    fn to_bytes(self, version: u32) -> [u8; LABEL_BYTES] {
        let mut bytes = [0; LABEL_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&version.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.set.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.who.to_le_bytes());
        bytes[24..].copy_from_slice(&self.job);
        bytes
    }
}

/// What a file is to hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Contents<'a> {
    /// That of the bytes.
    pub(crate) meta: ShardMeta,
    pub(crate) bytes: &'a [u8],
    pub(crate) legend: &'a Legend,
}

impl Contents<'_> {
    fn write(&self, label: Label, file: &mut File) -> io::Result<()> {
        let version = match self.legend {
            Legend { seams, .. } if !seams.is_empty() => SEAMED,
            Legend { outline, .. } if !outline.is_empty() => OUTLINED,
            _ => PLAIN,
        };
        file.write_all(&label.to_bytes(version))?;
        file.write_all(&self.meta.to_bytes())?;
        file.write_all(self.bytes)?;
        let mut length = HEADER_BYTES + self.bytes.len();
        if version != PLAIN {
            let Legend { outline, seams } = self.legend;
            let told = [&outline[..], seams].concat();
            let behind = [&told[..], &tail(version, &told, outline.len())].concat();
            file.write_all(&behind)?;
            length += behind.len();
        }
        file.set_len(length as u64)
    }
}

/// Writes a file under a name of this process, forces it to the disk, and gives it its name. The name itself is on the disk when the
/// directory is synchronized.
///
/// The file `over`, if it is there, is overwritten for it: its blocks and pages need not be freed
/// and found anew, which takes about as long as to fill them. A file with a second name is not: a
/// copy by hard links would change.
pub(super) fn write(
    path: &Path,
    over: Option<&Path>,
    label: Label,
    contents: Contents<'_>,
) -> Result<(), DiskError> {
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let written = || -> io::Result<()> {
        let is_own =
            |over: &&Path| over.symlink_metadata().is_ok_and(|about| about.is_file() && about.nlink() == 1);
        let mut file = match over.filter(is_own) {
            Some(over) => {
                fs::rename(over, &temporary)?;
                File::options().write(true).open(&temporary)?
            }
            None => ft_files::create(&temporary)?,
        };
        contents.write(label, &mut file)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    written().map_err(|cause| {
        // Half a file is no use, and takes room where there may be none.
        let _ = fs::remove_file(&temporary);
        let bytes = contents.bytes.len() as u64;
        DiskError::Write { path: path.to_owned(), bytes, cause: limits::explain(&cause) }
    })
}

/// Reads from the header of a file which job wrote it. The rest of what the header tells of the
/// file is compared.
pub(super) fn job(path: &Path, set: u32, who: u64) -> Result<[u8; 16], DiskError> {
    let (_, _, header) = header(path)?;
    let mut job = [0; 16];
    job.copy_from_slice(&header[LABEL_BYTES - 16..LABEL_BYTES]);
    let label = Label { job, set, who };
    match VERSIONS.into_iter().any(|version| header.starts_with(&label.to_bytes(version))) {
        true => Ok(job),
        false => Err(DiskError::damaged(path, FOREIGN)),
    }
}

/// What the header of a file says of its bytes, of which there are as many; they are not read.
pub(super) fn meta(path: &Path, label: Label) -> Result<ShardMeta, DiskError> {
    open(path, label).map(|opened| opened.meta)
}

/// Reads the bytes of a file into `bytes` and checks them while they are in the cache; those of two
/// strings are joined then. On an error `bytes` holds anything. The header must be one that
/// `accept`s: a header and a sparse file can claim any length, so nothing is allocated before.
pub(super) fn read(
    path: &Path,
    label: Label,
    accept: impl FnOnce(ShardMeta) -> Result<(), String>,
    bytes: &mut Vec<u8>,
) -> Result<ShardMeta, DiskError> {
    let opened = open(path, label)?;
    let meta = opened.meta;
    accept(meta).map_err(|what| DiskError::damaged(path, what))?;
    bytes.clear();
    reserve(path, bytes, meta.len)?;
    let (mut file, mut digest) = ((&opened.file).take(0), Digest::new());
    loop {
        let before = bytes.len();
        file.set_limit(PIECE.min(meta.len - before as u64));
        file.read_to_end(bytes).map_err(DiskError::read(path))?;
        if bytes.len() == before {
            break;
        }
        digest.update(&bytes[before..]);
    }
    if (bytes.len() as u64, digest.finalize()) != (meta.len, meta.crc) {
        return Err(DiskError::damaged(path, "its bytes do not match their checksum"));
    }
    if opened.version == SEAMED {
        let Legend { seams, .. } = opened.legend(path)?;
        *bytes = join(bytes, &seams)
            .ok_or_else(|| DiskError::damaged(path, "its doubles do not belong where it says"))?;
    }
    Ok(meta)
}

/// Reads the outline of a file, and checks it. None: there is none.
pub(super) fn outline(path: &Path, label: Label) -> Result<Option<Vec<u8>>, DiskError> {
    let opened = open(path, label)?;
    if opened.version == PLAIN {
        return Ok(None);
    }
    let Legend { outline, .. } = opened.legend(path)?;
    Ok(Some(outline).filter(|outline| !outline.is_empty()))
}

/// Reserves memory for `length` bytes.
fn reserve(path: &Path, bytes: &mut Vec<u8>, length: u64) -> Result<(), DiskError> {
    let reserved = usize::try_from(length).is_ok_and(|length| bytes.try_reserve_exact(length).is_ok());
    let none = || io::Error::other(format!("there is no memory for its {length} bytes"));
    if reserved { Ok(()) } else { Err(DiskError::read(path)(none())) }
}

/// What is behind what is `told` of the bytes, of which the outline is the beginning.
fn tail(version: u32, told: &[u8], outline: usize) -> Vec<u8> {
    let (lengths, crc) = ([outline as u64, (told.len() - outline) as u64], crc64_nvme(told));
    let lengths = if version == SEAMED { &lengths[..] } else { &lengths[..1] };
    lengths.iter().copied().chain([crc]).flat_map(u64::to_le_bytes).collect()
}

/// Bytes of [`tail`].
fn tail_bytes(version: u32) -> usize {
    tail(version, &[], 0).len()
}

/// A file behind its header.
struct Opened {
    file: File,
    version: u32,
    meta: ShardMeta,
    /// Bytes behind those of the shard.
    behind: u64,
}

impl Opened {
    /// What is told of the bytes, checked.
    fn legend(&self, path: &Path) -> Result<Legend, DiskError> {
        let (at, mut found) = (HEADER_BYTES as u64 + self.meta.len, vec![0; tail_bytes(self.version)]);
        let told_bytes = self.behind - found.len() as u64;
        self.file.read_exact_at(&mut found, at + told_bytes).map_err(DiskError::read(path))?;
        let wrong = || DiskError::damaged(path, "its outline does not match its length and checksum");
        // The lengths are compared before memory is set aside for them.
        let lengths = found.as_chunks().0.iter().map(|length| u64::from_le_bytes(*length));
        let lengths: Vec<u64> = lengths.take(if self.version == SEAMED { 2 } else { 1 }).collect();
        if lengths.iter().try_fold(0, |sum: u64, length| sum.checked_add(*length)) != Some(told_bytes) {
            return Err(wrong());
        }
        let mut told = Vec::new();
        reserve(path, &mut told, told_bytes)?;
        told.resize(told_bytes as usize, 0);
        self.file.read_exact_at(&mut told, at).map_err(DiskError::read(path))?;
        let length = lengths[0] as usize;
        if found != tail(self.version, &told, length) {
            return Err(wrong());
        }
        let seams = told.split_off(length);
        Ok(Legend { outline: told, seams })
    }
}

/// Opens a file and reads its header; gives the length of the file, too.
fn header(path: &Path) -> Result<(File, u64, [u8; HEADER_BYTES]), DiskError> {
    let mut file = ft_files::open(path).map_err(|error| DiskError::read(path)(error.into()))?;
    let there = file.metadata().map_err(DiskError::read(path))?.len();
    let mut header = [0; HEADER_BYTES];
    if there < HEADER_BYTES as u64 {
        return Err(DiskError::damaged(path, format!("{there} bytes, the header alone has {HEADER_BYTES}")));
    }
    file.read_exact(&mut header).map_err(DiskError::read(path))?;
    Ok((file, there, header))
}

/// Opens a file behind its header, which is checked, and so is the length of the file.
fn open(path: &Path, label: Label) -> Result<Opened, DiskError> {
    let (file, there, header) = header(path)?;
    let (label_bytes, meta_bytes) = header.split_at(LABEL_BYTES);
    let is_of = |version: &u32| label_bytes == label.to_bytes(*version);
    let Some(version) = VERSIONS.into_iter().find(is_of) else {
        return Err(DiskError::damaged(path, FOREIGN));
    };
    let meta =
        ShardMeta::from_bytes(meta_bytes.try_into().expect("a header ends with the metadata of the shard"));
    let length = there - HEADER_BYTES as u64;
    let is_due = |behind: &u64| match version {
        PLAIN => *behind == 0,
        // Seams are two lengths for a piece of at least a byte.
        version => {
            let seams = if version == SEAMED { meta.len.saturating_add(2).saturating_mul(16) } else { 0 };
            let most = OUTLINE_BYTES_MAX.saturating_add(seams);
            (tail_bytes(version) as u64 + 1..=most).contains(behind)
        }
    };
    match length.checked_sub(meta.len).filter(is_due) {
        Some(behind) => Ok(Opened { file, version, meta, behind }),
        None => Err(DiskError::damaged(path, format!("{length} bytes, {} were written", meta.len))),
    }
}
