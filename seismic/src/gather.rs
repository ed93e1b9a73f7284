//! Shot gathers: the recordings of one shot, written by [`segy`](crate::segy) and [`su`](crate::su), read back here.

use std::path::{Path, PathBuf};

use crate::{
    geometry::Shot,
    load::{Source, extension, place},
    trace_header::TraceHeader,
};

mod error;
mod reader;
mod record;

pub use error::TraceError;
pub(crate) use reader::TraceReader;
pub(crate) use record::Records;
pub use record::{SAMPLES_MAX, WriteError, check_delay, check_sampling};

/// What the receivers of one shot recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gather<'a> {
    /// Where source and receivers were.
    pub shot: &'a Shot,
    /// Distance of neighboring grid points in meters.
    pub spacing: f64,
    /// Sampling interval in seconds.
    pub interval_s: f64,
    /// Samples per receiver.
    pub samples: usize,
    /// All samples of the first receiver, then those of the second, and so on.
    pub traces: &'a [f32],
    /// Seconds from the first sample to time 0 of the source, such as the peak of its wavelet.
    pub delay_s: f64,
    /// What else the textual header of SEG-Y is to say, a line each; 76 printable characters of ASCII fit.
    pub facts: &'a [String],
}

/// A gather, or several, as read from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnedGather {
    /// One header per trace.
    pub headers: Vec<TraceHeader>,
    /// Samples per trace.
    pub samples: usize,
    /// Sampling interval in microseconds.
    pub interval_us: f64,
    /// All samples of the first trace, then those of the second, and so on. Not checked for NaN.
    pub traces: Vec<f32>,
}

impl OwnedGather {
    /// The samples of trace `index`, from 0.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn trace(&self, index: usize) -> &[f32] {
        &self.traces[index * self.samples..][..self.samples]
    }
}

/// Why a gather could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{}{kind}", place(.path))]
pub struct GatherError {
    /// The file.
    pub path: Option<PathBuf>,
    /// What is wrong.
    #[source]
    pub kind: TraceError,
}

/// Reads a gather from SEG-Y (`.sgy`, `.segy`; IEEE or IBM floats) or Seismic Unix (`.su`; either byte order), plain
/// or gzip. O(samples) time, 4 bytes per sample.
///
/// # Errors
/// [`GatherError`] with the path.
pub fn read_gather(path: &Path) -> Result<OwnedGather, GatherError> {
    let open = || Source::open(path).map_err(TraceError::from);
    let reader = match extension(path).as_str() {
        "sgy" | "segy" => open().and_then(TraceReader::segy),
        "su" => open().and_then(TraceReader::su),
        _ => Err(TraceError::UnknownName),
    };
    reader.and_then(read_all).map_err(|kind| GatherError { path: Some(path.to_owned()), kind })
}

fn read_all(mut reader: TraceReader) -> Result<OwnedGather, TraceError> {
    let (mut headers, mut traces) = (Vec::new(), Vec::new());
    while let Some(header) = reader.next(&mut traces)? {
        headers.push(header);
    }
    Ok(OwnedGather { headers, samples: reader.samples(), interval_us: reader.interval_us(), traces })
}

#[cfg(test)]
pub(crate) mod tests;
