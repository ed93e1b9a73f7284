//! Bytes of a file, plain or gzip (told by the first two bytes, not by the name), and the numbers in them.
//!
//! Memory is set aside for what has been read or is known to lie in the file, not for what a header announces.

use std::{
    io::{self, BufRead, Read},
    path::{Path, PathBuf},
};

use ft_files::{OpenError, Unpacked, unpack};

use super::SampleFormat;

/// Bytes that are read and decoded at a time. A multiple of every sample size.
const CHUNK_BYTES: usize = 64 << 10;

/// Why bytes could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// No file has this path.
    #[error("file not found, check the path")]
    Missing,
    /// Not the kind of file that can be read more than once, and that ends.
    #[error("{0}")]
    NoFile(OpenError),
    /// The system failed.
    #[error("{0}")]
    Io(io::Error),
    /// The compressed data end early or are damaged.
    #[error("gzip data are cut off or damaged ({0}), fetch or compress the file again")]
    Gzip(io::Error),
    /// The system has no memory for the samples.
    #[error("no memory for more than {samples} samples, use a machine with more or a smaller file")]
    Memory {
        /// Samples that were read.
        samples: usize,
    },
}

/// "FILE: ", where there is a file.
pub(crate) fn place(path: &Option<PathBuf>) -> String {
    path.as_ref().map(|path| format!("{}: ", path.display())).unwrap_or_default()
}

/// What the name ends in, in lower case, a final `.gz` passed over.
pub(crate) fn extension(path: &Path) -> String {
    let lower = |path: &Path| path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let last = lower(path);
    if last == "gz" { lower(Path::new(path.file_stem().unwrap_or_default())) } else { last }
}

/// The bytes of a file, after decompression.
pub(crate) struct Source {
    bytes: Box<dyn BufRead>,
    gzip: bool,
    length: Option<u64>,
}

impl Source {
    pub(crate) fn open(path: &Path) -> Result<Self, SourceError> {
        let file = ft_files::open(path).map_err(|error| match error {
            OpenError::Io(error) if error.kind() == io::ErrorKind::NotFound => SourceError::Missing,
            OpenError::Io(error) => SourceError::Io(error),
            error => SourceError::NoFile(error),
        })?;
        let length = file.metadata().map_err(SourceError::Io)?.len();
        Self::new(file, Some(length))
    }

    /// A source of which `length` says how many bytes it has as stored, where that is known.
    pub(crate) fn new(stored: impl Read + 'static, length: Option<u64>) -> Result<Self, SourceError> {
        let Unpacked { bytes, gzip } = unpack(stored).map_err(SourceError::Io)?;
        Ok(Self { bytes, gzip, length: length.filter(|_| !gzip) })
    }

    /// Number of bytes from start to end, where it is known without reading them: for plain files.
    pub(crate) fn length(&self) -> Option<u64> {
        self.length
    }

    /// Reads until `into` is full or the source ends, and returns the number of bytes read.
    pub(crate) fn fill(&mut self, into: &mut [u8]) -> Result<usize, SourceError> {
        let mut filled = 0;
        while filled < into.len() {
            match self.bytes.read(&mut into[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.error(error)),
            }
        }
        Ok(filled)
    }

    /// Appends up to `count` samples to `into` and returns the number of bytes read: fewer than `count` samples
    /// have where the source ends before.
    pub(crate) fn read_samples(
        &mut self,
        format: SampleFormat,
        count: usize,
        into: &mut Vec<f32>,
    ) -> Result<u64, SourceError> {
        let bytes = (count as u64).saturating_mul(format.bytes() as u64);
        let present = self.length.map_or(CHUNK_BYTES as u64, |length| bytes.min(length));
        reserve(into, count.min(present as usize / format.bytes()))?;

        let mut chunk = vec![0; CHUNK_BYTES.min(bytes as usize)];
        let mut found = 0;
        while found < bytes {
            let wanted = (bytes - found).min(CHUNK_BYTES as u64) as usize;
            let read = self.fill(&mut chunk[..wanted])?;
            reserve(into, read / format.bytes())?;
            into.extend(chunk[..read].chunks_exact(format.bytes()).map(|sample| format.decode(sample)));
            found += read as u64;
            if read < wanted {
                break;
            }
        }
        Ok(found)
    }

    /// Reads on without keeping anything, up to `limit` bytes, and returns how many there were.
    pub(crate) fn skip(&mut self, limit: u64) -> Result<u64, SourceError> {
        io::copy(&mut self.bytes.by_ref().take(limit), &mut io::sink()).map_err(|error| self.error(error))
    }

    fn error(&self, error: io::Error) -> SourceError {
        if self.gzip { SourceError::Gzip(error) } else { SourceError::Io(error) }
    }
}

fn reserve(into: &mut Vec<f32>, more: usize) -> Result<(), SourceError> {
    into.try_reserve(more).map_err(|_| SourceError::Memory { samples: into.len() })
}
