//! Traces of SEG-Y and Seismic Unix files, one after the other.

use crate::{
    load::{ByteOrder, POINTS_MAX, SampleFormat, Source, SourceError},
    segy::BinaryHeader,
    su,
    trace_header::{TRACE_HEADER_BYTES, TraceHeader},
};

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
