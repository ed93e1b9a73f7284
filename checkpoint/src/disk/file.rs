//! One file of a disk checkpoint: a header that says whose bytes these are, and the bytes.
//!
//! ```text
//! 0       8         12      16    24    40       48         56     64
//! | magic | version |  set  | who | job | length | checksum | kind | bytes ...      little endian
//! ```
//!
//! Every byte of the header is compared when the file is read: what it is with what is wanted, the length with that
//! of the file, the checksum (CRC-64/NVME) with that of the bytes.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use super::DiskError;
use crate::store::ShardMeta;

const MAGIC: [u8; 8] = *b"DISKLESS";
const VERSION: u32 = 2;
/// Bytes of the header that the label gives; length, checksum and kind of the bytes follow.
const LABEL_BYTES: usize = 40;
const HEADER_BYTES: usize = LABEL_BYTES + ShardMeta::BYTES;

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
    fn to_bytes(self) -> [u8; LABEL_BYTES] {
        let mut bytes = [0; LABEL_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.set.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.who.to_le_bytes());
        bytes[24..].copy_from_slice(&self.job);
        bytes
    }
}

/// Writes a file under a name of this process, forces it to the disk, and gives it its name. `meta` is that of
/// `bytes`. The name itself is on the disk when the directory is synchronized.
///
/// The file `over`, if it is there, is overwritten for it: its blocks and pages need not be freed and found anew,
/// which takes about as long as to fill them.
pub(super) fn write(
    path: &Path,
    over: Option<&Path>,
    label: Label,
    meta: ShardMeta,
    bytes: &[u8],
) -> Result<(), DiskError> {
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let written = || -> io::Result<()> {
        if let Some(over) = over.filter(|over| over.exists()) {
            fs::rename(over, &temporary)?;
        }
        let mut file = File::options().write(true).create(true).truncate(false).open(&temporary)?;
        file.write_all(&label.to_bytes())?;
        file.write_all(&meta.to_bytes())?;
        file.write_all(bytes)?;
        file.set_len((HEADER_BYTES + bytes.len()) as u64)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    written().map_err(|cause| {
        // Half a file is no use, and takes room where there may be none.
        let _ = fs::remove_file(&temporary);
        DiskError::Write { path: path.to_owned(), bytes: bytes.len() as u64, cause: cause.to_string() }
    })
}

/// What the header of a file says of its bytes, of which there are as many; they are not read.
pub(super) fn meta(path: &Path, label: Label) -> Result<ShardMeta, DiskError> {
    open(path, label).map(|(_, meta)| meta)
}

/// Reads the bytes of a file into `bytes` and checks them; costs one pass over them beside the reading. On an error
/// `bytes` holds anything.
pub(super) fn read(path: &Path, label: Label, bytes: &mut Vec<u8>) -> Result<ShardMeta, DiskError> {
    let (file, meta) = open(path, label)?;
    bytes.clear();
    // The file is that long, so a wrong length in the header cannot ask for more memory.
    bytes.reserve_exact(usize::try_from(meta.len).unwrap_or(usize::MAX));
    file.take(meta.len).read_to_end(bytes).map_err(DiskError::read(path))?;
    if !meta.fits(bytes) {
        return Err(DiskError::damaged(path, "its bytes do not match their checksum"));
    }
    Ok(meta)
}

/// Opens a file behind its header, which is checked.
fn open(path: &Path, label: Label) -> Result<(File, ShardMeta), DiskError> {
    let mut file = File::open(path).map_err(DiskError::read(path))?;
    let there = file.metadata().map_err(DiskError::read(path))?.len();
    let mut header = [0; HEADER_BYTES];
    if there < HEADER_BYTES as u64 {
        return Err(DiskError::damaged(path, format!("{there} bytes, the header alone has {HEADER_BYTES}")));
    }
    file.read_exact(&mut header).map_err(DiskError::read(path))?;
    let (label_bytes, meta_bytes) = header.split_at(LABEL_BYTES);
    if label_bytes != label.to_bytes() {
        return Err(DiskError::damaged(path, "its header belongs to another file, job or format"));
    }
    let meta =
        ShardMeta::from_bytes(meta_bytes.try_into().expect("a header ends with the metadata of the shard"));
    let length = there - HEADER_BYTES as u64;
    if meta.len != length {
        return Err(DiskError::damaged(path, format!("{length} bytes, {} were written", meta.len)));
    }
    Ok((file, meta))
}
