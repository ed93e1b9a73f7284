//! Input files from anywhere. A path that a user names, or that a reader finds in a directory, may
//! be a FIFO without a writer, a device without an end, or a sparse file of terabytes. Every reader
//! of the project opens its files here:
//!
//! - [`open`] never blocks and accepts regular files only.
//! - [`read`] stops at a limit that the caller sets.
//! - [`unpack`] decompresses gzip, which it recognizes by the first two bytes.
//! - [`create`] writes to a new file, never into one that already has the name.

use std::fs::{self, File, FileType};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

mod gzip;

pub use gzip::{Unpacked, unpack};

/// Why an input file cannot be opened or read.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The path names something else than a regular file.
    #[error("it is {found}, and a regular file is expected")]
    NotAFile {
        /// Its kind, with its article.
        found: &'static str,
    },
    /// The file is longer than the caller accepts.
    #[error("it has more than {limit} bytes")]
    TooLong {
        /// The most bytes that the caller accepts.
        limit: u64,
    },
    /// The operating system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<OpenError> for io::Error {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Io(error) => error,
            error => Self::new(ErrorKind::InvalidInput, error.to_string()),
        }
    }
}

/// Opens a regular file to read it. Never blocks.
///
/// # Errors
/// [`OpenError::NotAFile`] for directories, FIFOs, sockets and devices, which are not opened: a
/// writer of a FIFO would notice that, and some devices act on it.
pub fn open(path: impl AsRef<Path>) -> Result<File, OpenError> {
    let path = path.as_ref();
    require_file(fs::metadata(path)?.file_type())?;
    // The path may name something else by now.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    require_file(file.metadata()?.file_type())?;
    Ok(file)
}

fn require_file(kind: FileType) -> Result<(), OpenError> {
    let found = match kind {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_dir() => "a directory",
        kind if kind.is_fifo() => "a pipe",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    };
    Err(OpenError::NotAFile { found })
}

/// Reads a regular file of at most `limit` bytes.
///
/// # Errors
/// As [`open`], and [`OpenError::TooLong`].
pub fn read(path: impl AsRef<Path>, limit: u64) -> Result<Vec<u8>, OpenError> {
    let mut bytes = Vec::new();
    // Files of the kernel have no length, so only one byte more shows that there is more.
    open(path)?.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit { Err(OpenError::TooLong { limit }) } else { Ok(bytes) }
}

/// Creates a file that only this process has opened. Removes a file, FIFO or link that has the
/// name, so that nothing is written through it.
///
/// # Errors
/// Those of the operating system.
pub fn create(path: impl AsRef<Path>) -> io::Result<File> {
    let path = path.as_ref();
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    File::options().write(true).create_new(true).open(path)
}

#[cfg(test)]
mod tests;
