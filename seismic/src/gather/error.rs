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
    /// A count of extended textual headers in a file whose revision has none, and no traces with or
    /// without them.
    #[error(
        "bytes 3505-3506 announce {count} extended textual headers, which revision {revision} (byte 3501) does not \
         have: set the revision to 1 if they follow byte 3600, else set the count to 0"
    )]
    Revision {
        /// Number in bytes 3505-3506.
        count: i16,
        /// Number in byte 3501.
        revision: u8,
    },
    /// Numbers in another byte order.
    #[error(
        "SEG-Y of revision 2 with the byte order {constant:#010x} in bytes 3297-3300 is not read, convert to big \
         endian (0x01020304)"
    )]
    ByteOrder {
        /// Bytes 3297-3300 as a number that is big endian.
        constant: u32,
    },
    /// Too many additional headers for each trace.
    #[error("SEG-Y with {count} additional headers a trace (bytes 3507-3510) is not read, at most 1000 are")]
    Extensions {
        /// Number in bytes 3507-3510.
        count: u32,
    },
    /// Traces that differ in their number of additional headers.
    #[error(
        "trace {trace} has {found} additional headers, expected {expected} as in the whole file (bytes 3507-3510)"
    )]
    UnevenExtensions {
        /// Which trace.
        trace: u64,
        /// Headers by its first additional one.
        found: u32,
        /// Headers by the file header.
        expected: u32,
    },
    /// Nothing says where the traces end and the trailer begins.
    #[error(
        "SEG-Y with {count} trailer records (bytes 3531-3534) and without the number of traces (bytes 3515-3522) is \
         not read: write either"
    )]
    Trailer {
        /// Number in bytes 3531-3534.
        count: i32,
    },
    /// The first trace would begin within the headers, or too far after them.
    #[error(
        "SEG-Y whose first trace begins at byte {first} (bytes 3523-3530) is not read: its headers end at byte {at}, \
         and at most 1 GiB of other records may follow"
    )]
    FirstTrace {
        /// Bytes before the first trace.
        first: u64,
        /// Bytes of the headers.
        at: u64,
    },
    /// There is more in the file than its traces.
    #[error("file goes on after its {announced} traces (bytes 3515-3522), and names no trailer records")]
    MoreTraces {
        /// Number in bytes 3515-3522.
        announced: u64,
    },
    /// The file ends before all traces were there.
    #[error("file ends after {found} of {announced} traces (bytes 3515-3522); copy or write it again")]
    FewerTraces {
        /// Number in bytes 3515-3522.
        announced: u64,
        /// Traces found.
        found: u64,
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
        found: u32,
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
