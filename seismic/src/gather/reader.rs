//! Traces of SEG-Y and Seismic Unix files, one after the other.

use super::TraceError;
use crate::{
    load::{ByteOrder, POINTS_MAX, SampleFormat, Source},
    segy::BinaryHeader,
    su,
    trace_header::{TRACE_HEADER_BYTES, TraceHeader},
};

/// Reads trace by trace.
pub(crate) struct TraceReader {
    source: Source,
    order: ByteOrder,
    format: SampleFormat,
    samples: usize,
    interval_us: u16,
    /// A header that was read ahead.
    ahead: Option<[u8; TRACE_HEADER_BYTES]>,
    traces: u64,
}

impl TraceReader {
    /// Reads the headers of a SEG-Y file up to and with that of the first trace.
    pub(crate) fn segy(mut source: Source) -> Result<Self, TraceError> {
        let header = BinaryHeader::read(&mut source)?;
        let format = match header.format {
            1 => SampleFormat::Ibm32,
            5 => SampleFormat::Ieee32(ByteOrder::Big),
            code => return Err(TraceError::Format { code }),
        };
        let first = first_header(&mut source)?;
        Self::new(source, ByteOrder::Big, format, header.samples, header.interval_us, first)
    }

    /// Reads the header of the first trace of a Seismic Unix file and recognizes its byte order.
    pub(crate) fn su(mut source: Source) -> Result<Self, TraceError> {
        let first = first_header(&mut source)?;
        let order = su::byte_order(&first, source.length());
        let samples = TraceHeader::from_bytes(&first, order).samples;
        Self::new(source, order, SampleFormat::Ieee32(order), samples, 0, first)
    }

    fn new(
        source: Source,
        order: ByteOrder,
        format: SampleFormat,
        samples: u16,
        interval_us: u16,
        first: [u8; TRACE_HEADER_BYTES],
    ) -> Result<Self, TraceError> {
        if samples == 0 {
            return Err(TraceError::NoSamples);
        }
        let interval_us =
            if interval_us == 0 { TraceHeader::from_bytes(&first, order).interval_us } else { interval_us };
        Ok(Self {
            source,
            order,
            format,
            samples: samples.into(),
            interval_us,
            ahead: Some(first),
            traces: 0,
        })
    }

    pub(crate) fn samples(&self) -> usize {
        self.samples
    }

    /// Sampling interval of the file header, else of the first trace.
    pub(crate) fn interval_us(&self) -> u16 {
        self.interval_us
    }

    /// Appends the samples of the next trace to `into` and returns its header, or `None` at the end of the file.
    pub(crate) fn next(&mut self, into: &mut Vec<f32>) -> Result<Option<TraceHeader>, TraceError> {
        let trace = self.traces + 1;
        let sample_bytes = (self.samples * self.format.bytes()) as u64;
        let cut =
            |found| TraceError::TraceCut { trace, found, expected: TRACE_HEADER_BYTES as u64 + sample_bytes };
        let bytes = match self.ahead.take() {
            Some(bytes) => bytes,
            None => {
                let mut bytes = [0; TRACE_HEADER_BYTES];
                match self.source.fill(&mut bytes)? {
                    0 => return Ok(None),
                    TRACE_HEADER_BYTES => bytes,
                    found => return Err(cut(found as u64)),
                }
            }
        };
        let header = TraceHeader::from_bytes(&bytes, self.order);
        // A trace that leaves its number of samples open has that of the file.
        if header.samples != 0 && usize::from(header.samples) != self.samples {
            return Err(TraceError::Uneven { trace, found: header.samples, expected: self.samples });
        }
        if (into.len() + self.samples) as u64 > POINTS_MAX {
            return Err(TraceError::TooLarge);
        }
        let found = self.source.read_samples(self.format, self.samples, into)?;
        if found < sample_bytes {
            return Err(cut(TRACE_HEADER_BYTES as u64 + found));
        }
        self.traces = trace;
        Ok(Some(header))
    }
}

fn first_header(source: &mut Source) -> Result<[u8; TRACE_HEADER_BYTES], TraceError> {
    let mut bytes = [0; TRACE_HEADER_BYTES];
    match source.fill(&mut bytes)? {
        TRACE_HEADER_BYTES => Ok(bytes),
        0 => Err(TraceError::NoTraces),
        found => Err(TraceError::HeaderCut {
            what: "first trace header",
            found: found as u64,
            expected: TRACE_HEADER_BYTES as u64,
        }),
    }
}
