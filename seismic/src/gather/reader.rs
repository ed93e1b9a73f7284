//! Traces of SEG-Y and Seismic Unix files, one after the other.

use super::TraceError;
use crate::{
    load::{ByteOrder, POINTS_MAX, SampleFormat, Source},
    segy::{FileHeader, first_header},
    su,
    trace_header::{TRACE_HEADER_BYTES, TraceExtension, TraceHeader},
};

/// Reads trace by trace.
pub(crate) struct TraceReader {
    source: Source,
    order: ByteOrder,
    format: SampleFormat,
    samples: usize,
    interval_us: f64,
    /// Additional headers of each trace.
    extensions: u32,
    /// Traces of the file, where it says how many.
    announced: Option<u64>,
    /// Whether other records follow the traces.
    has_trailer: bool,
    /// A header that was read ahead.
    ahead: Option<[u8; TRACE_HEADER_BYTES]>,
    traces: u64,
}

impl TraceReader {
    /// Reads the headers of a SEG-Y file up to and with that of the first trace.
    pub(crate) fn segy(mut source: Source) -> Result<Self, TraceError> {
        let header = FileHeader::read(&mut source)?;
        Self::new(source, ByteOrder::Big, header)
    }

    /// Reads the header of the first trace of a Seismic Unix file and recognizes its byte order.
    pub(crate) fn su(mut source: Source) -> Result<Self, TraceError> {
        let first = first_header(&mut source)?;
        let order = su::byte_order(&first, source.length());
        let TraceHeader { samples, .. } = TraceHeader::from_bytes(&first, order);
        Self::new(source, order, FileHeader::of_traces(samples, SampleFormat::Ieee32(order), first))
    }

    fn new(source: Source, order: ByteOrder, header: FileHeader) -> Result<Self, TraceError> {
        let FileHeader { samples, format, extensions, traces: announced, has_trailer, first, .. } = header;
        if samples == 0 {
            return Err(TraceError::NoSamples);
        }
        let trace_bytes = TRACE_HEADER_BYTES as u64 * (1 + u64::from(extensions))
            + u64::from(samples) * format.bytes() as u64;
        // A file that is too large need not be read to its limit: a sparse one could have any
        // length.
        let present = source.length().map_or(0, |length| length / trace_bytes);
        let traces = announced.map_or(present, |announced| announced.min(present));
        if traces.saturating_mul(samples.into()) > POINTS_MAX {
            return Err(TraceError::TooLarge);
        }
        let interval_us = match header.interval_us {
            0.0 => TraceHeader::from_bytes(&first, order).interval_us.into(),
            interval => interval,
        };
        Ok(Self {
            source,
            order,
            format,
            samples: samples as usize,
            interval_us,
            extensions,
            announced,
            has_trailer,
            ahead: Some(first),
            traces: 0,
        })
    }

    pub(crate) fn samples(&self) -> usize {
        self.samples
    }

    /// Sampling interval of the file header, else of the first trace.
    pub(crate) fn interval_us(&self) -> f64 {
        self.interval_us
    }

    /// Appends the samples of the next trace to `into` and returns its header, or `None` at the end of the file.
    pub(crate) fn next(&mut self, into: &mut Vec<f32>) -> Result<Option<TraceHeader>, TraceError> {
        let trace = self.traces + 1;
        let sample_bytes = (self.samples * self.format.bytes()) as u64;
        let header_bytes = TRACE_HEADER_BYTES as u64 * (1 + u64::from(self.extensions));
        let cut = |found| TraceError::TraceCut { trace, found, expected: header_bytes + sample_bytes };
        if self.announced == Some(self.traces) {
            return match self.has_trailer || self.source.skip(1)? == 0 {
                true => Ok(None),
                false => Err(TraceError::MoreTraces { announced: self.traces }),
            };
        }
        let bytes = match self.ahead.take() {
            Some(bytes) => bytes,
            None => {
                let mut bytes = [0; TRACE_HEADER_BYTES];
                match (self.source.fill(&mut bytes)?, self.announced) {
                    (0, None) => return Ok(None),
                    (0, Some(announced)) => {
                        return Err(TraceError::FewerTraces { announced, found: self.traces });
                    }
                    (TRACE_HEADER_BYTES, _) => bytes,
                    (found, _) => return Err(cut(found as u64)),
                }
            }
        };
        let header = TraceHeader::from_bytes(&bytes, self.order);
        let mut found = match u16::try_from(self.samples) {
            Ok(_) => u32::from(header.samples),
            // More than this field holds.
            Err(_) => 0,
        };
        if self.extensions > 0 {
            let mut bytes = [0; TRACE_HEADER_BYTES];
            let read = self.source.fill(&mut bytes)? as u64;
            let rest = header_bytes - 2 * TRACE_HEADER_BYTES as u64;
            let read = if read == TRACE_HEADER_BYTES as u64 { read + self.source.skip(rest)? } else { read };
            if read < TRACE_HEADER_BYTES as u64 + rest {
                return Err(cut(TRACE_HEADER_BYTES as u64 + read));
            }
            if let Some(extension) = TraceExtension::from_bytes(&bytes) {
                let (count, expected) = (extension.count.into(), self.extensions);
                if count != 0 && count != expected {
                    return Err(TraceError::UnevenExtensions { trace, found: count, expected });
                }
                found = if extension.samples == 0 { found } else { extension.samples };
            }
        }
        // A trace that leaves its number of samples open has that of the file.
        if found != 0 && found as usize != self.samples {
            return Err(TraceError::Uneven { trace, found, expected: self.samples });
        }
        if (into.len() + self.samples) as u64 > POINTS_MAX {
            return Err(TraceError::TooLarge);
        }
        let found = self.source.read_samples(self.format, self.samples, into)?;
        if found < sample_bytes {
            return Err(cut(header_bytes + found));
        }
        self.traces = trace;
        Ok(Some(header))
    }
}
