//! Why a SEG-Y or Seismic Unix file was refused.

use crate::load::{POINTS_MAX, SourceError};

/// Why a SEG-Y or Seismic Unix file was refused. Traces count from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The bytes could not be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The name does not say which format it is.
    #[error("format unknown, gathers are read from files ending in .sgy, .segy or .su")]
    UnknownName,
    /// The file ends within its headers.
    #[error("file ends after {found} bytes, within the {expected} bytes of the {what}")]
    HeaderCut {
        /// Which header.
        what: &'static str,
        /// Bytes found.
        found: u64,
        /// Bytes that it has.
        expected: u64,
    },
    /// Numbers of another format.
    #[error(
        "SEG-Y sample format {code} is not read, convert to 5 (IEEE float) or 1 (IBM float){}",
        if matches!(code.swap_bytes(), 1 | 5) { "; the file looks little endian, SEG-Y is big endian" } else { "" }
    )]
    Format {
        /// Code in bytes 3225-3226.
        code: u16,
    },
    /// The number of textual headers is left open.
    #[error("SEG-Y file with {count} extended textual headers is not read, only counts from 0 are")]
    ExtendedHeaders {
        /// Number in bytes 3505-3506.
        count: i16,
    },
    /// Traces without samples.
    #[error("header says 0 samples per trace: not a SEG-Y or SU file, or a damaged one")]
    NoSamples,
    /// No traces.
    #[error("file has no traces")]
    NoTraces,
    /// Traces of different lengths.
    #[error("trace {trace} has {found} samples, expected {expected} as in the whole file")]
    Uneven {
        /// Which trace.
        trace: u64,
        /// Samples by its header.
        found: u16,
        /// Samples of the others.
        expected: usize,
    },
    /// The file ends within a trace.
    #[error("file ends within trace {trace}, after {found} of its {expected} bytes; copy or write it again")]
    TraceCut {
        /// Which trace.
        trace: u64,
        /// Bytes found, header included.
        found: u64,
        /// Bytes of a trace, header included.
        expected: u64,
    },
    /// More than 2^31 samples.
    #[error("file has more than {POINTS_MAX} samples, too large")]
    TooLarge,
}
