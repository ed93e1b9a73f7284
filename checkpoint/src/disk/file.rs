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

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::DiskError;
use crate::crc::{Digest, crc64_nvme};
use crate::store::ShardMeta;

const MAGIC: [u8; 8] = *b"DISKLESS";
/// A file that ends with the bytes.
const PLAIN: u32 = 2;
/// A file with an outline behind them.
const OUTLINED: u32 = 3;
/// Bytes of the header that the label gives; length, checksum and kind of the bytes follow.
const LABEL_BYTES: usize = 40;
const HEADER_BYTES: usize = LABEL_BYTES + ShardMeta::BYTES;
/// Bytes that are read, and of which the checksum is taken, while they are in the cache.
const PIECE: u64 = 256 << 10;
/// Length and checksum of the outline.
const TAIL_BYTES: usize = 16;

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
    /// The fields in the bytes; empty if they are not told.
    pub(crate) outline: &'a [u8],
}

impl Contents<'_> {
    fn write(&self, label: Label, file: &mut File) -> io::Result<()> {
        let version = if self.outline.is_empty() { PLAIN } else { OUTLINED };
        file.write_all(&label.to_bytes(version))?;
        file.write_all(&self.meta.to_bytes())?;
        file.write_all(self.bytes)?;
        let mut length = HEADER_BYTES + self.bytes.len();
        if !self.outline.is_empty() {
            file.write_all(&[self.outline, tail_of(self.outline).as_flattened()].concat())?;
            length += self.outline.len() + TAIL_BYTES;
        }
        file.set_len(length as u64)
    }
}

/// Writes a file under a name of this process, forces it to the disk, and gives it its name. The name itself is on the disk when the
/// directory is synchronized.
///
/// The file `over`, if it is there, is overwritten for it: its blocks and pages need not be freed and found anew,
/// which takes about as long as to fill them.
pub(super) fn write(
    path: &Path,
    over: Option<&Path>,
    label: Label,
    contents: Contents<'_>,
) -> Result<(), DiskError> {
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let written = || -> io::Result<()> {
        if let Some(over) = over.filter(|over| over.exists()) {
            fs::rename(over, &temporary)?;
        }
        let mut file = File::options().write(true).create(true).truncate(false).open(&temporary)?;
        contents.write(label, &mut file)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    written().map_err(|cause| {
        // Half a file is no use, and takes room where there may be none.
        let _ = fs::remove_file(&temporary);
        let bytes = contents.bytes.len() as u64;
        DiskError::Write { path: path.to_owned(), bytes, cause: cause.to_string() }
    })
}

/// What the header of a file says of its bytes, of which there are as many; they are not read.
pub(super) fn meta(path: &Path, label: Label) -> Result<ShardMeta, DiskError> {
    open(path, label).map(|opened| opened.meta)
}

/// Reads the bytes of a file into `bytes` and checks them while they are in the cache. On an error `bytes` holds anything.
pub(super) fn read(path: &Path, label: Label, bytes: &mut Vec<u8>) -> Result<ShardMeta, DiskError> {
    let Opened { file, meta, .. } = open(path, label)?;
    bytes.clear();
    // The file is that long, so a wrong length in the header cannot ask for more memory.
    bytes.reserve_exact(usize::try_from(meta.len).unwrap_or(usize::MAX));
    let (mut file, mut digest) = (file.take(0), Digest::new());
    loop {
        let before = bytes.len();
        file.set_limit(PIECE.min(meta.len - before as u64));
        file.read_to_end(bytes).map_err(DiskError::read(path))?;
        if bytes.len() == before {
            break;
        }
        digest.update(&bytes[before..]);
    }
    match (bytes.len() as u64, digest.finalize()) == (meta.len, meta.crc) {
        true => Ok(meta),
        false => Err(DiskError::damaged(path, "its bytes do not match their checksum")),
    }
}

/// Reads the outline of a file, and checks it. None: there is none.
pub(super) fn outline(path: &Path, label: Label) -> Result<Option<Vec<u8>>, DiskError> {
    let Opened { file, meta, behind } = open(path, label)?;
    let Some(behind) = behind else { return Ok(None) };
    let mut outline = vec![0; usize::try_from(behind).unwrap_or(usize::MAX)];
    file.read_exact_at(&mut outline, HEADER_BYTES as u64 + meta.len).map_err(DiskError::read(path))?;
    let tail = outline.split_off(outline.len().saturating_sub(TAIL_BYTES));
    match tail == tail_of(&outline).as_flattened() {
        true => Ok(Some(outline)),
        false => Err(DiskError::damaged(path, "its outline does not match its length and checksum")),
    }
}

/// What is behind an outline.
fn tail_of(outline: &[u8]) -> [[u8; 8]; 2] {
    [outline.len() as u64, crc64_nvme(outline)].map(u64::to_le_bytes)
}

/// A file behind its header.
struct Opened {
    file: File,
    meta: ShardMeta,
    /// Bytes of the outline and its tail, if there is one.
    behind: Option<u64>,
}

/// Opens a file behind its header, which is checked, and so is the length of the file.
fn open(path: &Path, label: Label) -> Result<Opened, DiskError> {
    let mut file = File::open(path).map_err(DiskError::read(path))?;
    let there = file.metadata().map_err(DiskError::read(path))?.len();
    let mut header = [0; HEADER_BYTES];
    if there < HEADER_BYTES as u64 {
        return Err(DiskError::damaged(path, format!("{there} bytes, the header alone has {HEADER_BYTES}")));
    }
    file.read_exact(&mut header).map_err(DiskError::read(path))?;
    let (label_bytes, meta_bytes) = header.split_at(LABEL_BYTES);
    let is_outlined = label_bytes == label.to_bytes(OUTLINED);
    if !is_outlined && label_bytes != label.to_bytes(PLAIN) {
        return Err(DiskError::damaged(path, "its header belongs to another file, job or format"));
    }
    let meta =
        ShardMeta::from_bytes(meta_bytes.try_into().expect("a header ends with the metadata of the shard"));
    let length = there - HEADER_BYTES as u64;
    let is_due = |behind: &u64| if is_outlined { *behind > TAIL_BYTES as u64 } else { *behind == 0 };
    let behind = length.checked_sub(meta.len).filter(is_due);
    match behind {
        Some(behind) => Ok(Opened { file, meta, behind: is_outlined.then_some(behind) }),
        None => Err(DiskError::damaged(path, format!("{length} bytes, {} were written", meta.len))),
    }
}
