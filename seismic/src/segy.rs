//! SEG-Y: a textual header of 3200 bytes, a binary one of 400, then each trace with its header; all
//! numbers big endian. Revision 1 is written. Revisions 0, 1 and 2 are read.
//!
//! Sources: SEG-Y rev 1 Data Exchange format, SEG Technical Standards Committee, 2002; SEG-Y_r2.0:
//! SEG-Y revision 2.0 Data Exchange format, 2017.

use std::io::Write;

use crate::{
    gather::{Gather, Records, TraceError, WriteError},
    load::{ByteOrder, SampleFormat, Source},
    trace_header::{TRACE_HEADER_BYTES, TraceHeader},
};

mod text;

const TEXT_BYTES: usize = 3200;
const BINARY_BYTES: usize = 400;
/// What bytes 3297-3300 of revision 2 are in a file that is big endian.
const BYTE_ORDER: u32 = 0x0102_0304;
/// Most additional headers of a trace that are read.
const EXTENSIONS_MAX: u32 = 1000;
/// Most bytes of other records before the first trace. They are passed over, and a sparse file
/// could have any number.
const FIRST_TRACE_MAX: u64 = 1 << 30;

/// Writes one shot gather with 32-bit IEEE floats. Coordinates are stored in millimeters (scalars -1000), offsets in
/// whole meters. The same gather gives the same bytes: nothing of the day or the machine is in them.
///
/// # Errors
/// [`WriteError`] where the format cannot hold the gather (nothing is written then) or `out` fails.
pub fn write_segy(gather: &Gather<'_>, out: &mut impl Write) -> Result<(), WriteError> {
    let records = Records::new(gather)?;
    out.write_all(&text::header(gather, records.interval_us()))?;
    out.write_all(&binary_header(gather, records.interval_us()))?;
    records.write(ByteOrder::Big, out)
}

fn binary_header(gather: &Gather<'_>, interval_us: u16) -> [u8; BINARY_BYTES] {
    let mut bytes = [0; BINARY_BYTES];
    for (byte, value) in [
        // Line and reel.
        (3207, 1),
        (3211, 1),
    ] {
        put(&mut bytes, byte, i32::to_be_bytes(value));
    }
    // Traces per shot, left open where they are too many for the field.
    let traces = i16::try_from(gather.shot.receivers.len()).unwrap_or(0).cast_unsigned();
    for (byte, value) in [
        (3213, traces),
        (3217, interval_us),
        (3221, gather.samples as u16),
        // IEEE floats, traces as recorded, meters.
        (3225, 5),
        (3229, 1),
        (3255, 1),
        // Revision 1.0, traces of one length.
        (3501, 0x0100),
        (3503, 1),
    ] {
        put(&mut bytes, byte, u16::to_be_bytes(value));
    }
    bytes
}

/// Writes at a byte counted from 1 at the start of the file, as the standard does.
fn put<const N: usize>(header: &mut [u8; BINARY_BYTES], byte: usize, value: [u8; N]) {
    header[byte - TEXT_BYTES - 1..][..N].copy_from_slice(&value);
}

/// What reading needs of the headers before the first samples.
pub(crate) struct FileHeader {
    /// Microseconds.
    pub(crate) interval_us: f64,
    /// Samples per trace.
    pub(crate) samples: u32,
    pub(crate) format: SampleFormat,
    /// Headers of 240 bytes between the header of a trace and its samples.
    pub(crate) extensions: u32,
    /// Traces of the file, where it says how many.
    pub(crate) traces: Option<u64>,
    /// Whether other records follow the traces.
    pub(crate) has_trailer: bool,
    /// The header of the first trace.
    pub(crate) first: [u8; TRACE_HEADER_BYTES],
}

impl FileHeader {
    /// That of a file which is only traces.
    pub(crate) fn of_traces(samples: u16, format: SampleFormat, first: [u8; TRACE_HEADER_BYTES]) -> Self {
        let (samples, interval_us, extensions) = (samples.into(), 0.0, 0);
        Self { interval_us, samples, format, extensions, traces: None, has_trailer: false, first }
    }

    /// Reads up to and with the header of the first trace.
    pub(crate) fn read(source: &mut Source) -> Result<Self, TraceError> {
        let mut bytes = [0; TEXT_BYTES + BINARY_BYTES];
        require(source.fill(&mut bytes)? as u64, bytes.len() as u64, "file headers")?;
        let binary = Binary(bytes);
        let (revision, count) = (binary.byte(3501), binary.short(3505).cast_signed());
        let constant = binary.long(3297);
        if revision == 2 && ![0, BYTE_ORDER].contains(&constant) {
            return Err(TraceError::ByteOrder { constant });
        }
        let format = match binary.short(3225) {
            1 => SampleFormat::Ibm32,
            5 => SampleFormat::Ieee32(ByteOrder::Big),
            code => return Err(TraceError::Format { code }),
        };
        let mut header = Self::of_traces(binary.short(3221), format, [0; TRACE_HEADER_BYTES]);
        header.interval_us = binary.short(3217).into();
        if ![1, 2].contains(&revision) && count != 0 {
            header.first = first_without_revision(source, count, revision, header.samples)?;
            return Ok(header);
        }
        let Ok(extended) = u64::try_from(count) else {
            return Err(TraceError::ExtendedHeaders { count });
        };
        let text_bytes = extended * TEXT_BYTES as u64;
        require(source.skip(text_bytes)?, text_bytes, "extended textual headers")?;
        if revision == 2 {
            header.read_revision_2(&binary, source, (TEXT_BYTES + BINARY_BYTES) as u64 + text_bytes)?;
        }
        header.first = first_header(source)?;
        Ok(header)
    }

    /// Reads what revision 2 has added, and goes to the first trace. `at` bytes of the file have
    /// been read.
    fn read_revision_2(&mut self, binary: &Binary, source: &mut Source, at: u64) -> Result<(), TraceError> {
        if binary.long(3269) != 0 {
            self.samples = binary.long(3269);
        }
        let interval = f64::from_bits(binary.longer(3273));
        if interval.is_finite() && interval > 0.0 {
            self.interval_us = interval;
        }
        self.extensions = binary.long(3507);
        if self.extensions > EXTENSIONS_MAX {
            return Err(TraceError::Extensions { count: self.extensions });
        }
        self.traces = Some(binary.longer(3515)).filter(|traces| *traces > 0);
        self.has_trailer = binary.long(3531) != 0;
        if self.has_trailer && self.traces.is_none() {
            return Err(TraceError::Trailer { count: binary.long(3531).cast_signed() });
        }
        match binary.longer(3523) {
            0 => Ok(()),
            first if (at..=at + FIRST_TRACE_MAX).contains(&first) => {
                require(source.skip(first - at)?, first - at, "records before the first trace")
            }
            first => Err(TraceError::FirstTrace { first, at }),
        }
    }
}

/// Finds the first trace of a file whose binary header has a `count` of extended textual headers,
/// but a revision that does not know them. Some programs write the count without the revision,
/// others leave anything in these bytes. So the first trace is where a trace header has the number
/// of `samples` of the file.
fn first_without_revision(
    source: &mut Source,
    count: i16,
    revision: u8,
    samples: u32,
) -> Result<[u8; TRACE_HEADER_BYTES], TraceError> {
    let is_of_file = |header: &[u8; TRACE_HEADER_BYTES]| {
        samples != 0 && u32::from(TraceHeader::from_bytes(header, ByteOrder::Big).samples) == samples
    };
    let first = first_header(source)?;
    if is_of_file(&first) {
        return Ok(first);
    }
    let unknown = TraceError::Revision { count, revision };
    let Ok(extended) = u64::try_from(count) else { return Err(unknown) };
    let rest = extended * TEXT_BYTES as u64 - TRACE_HEADER_BYTES as u64;
    if source.skip(rest)? < rest {
        return Err(unknown);
    }
    match first_header(source) {
        Ok(first) if is_of_file(&first) => Ok(first),
        Ok(_) | Err(TraceError::NoTraces | TraceError::HeaderCut { .. }) => Err(unknown),
        Err(error) => Err(error),
    }
}

/// The textual and the binary header. Bytes count from 1 at the start of the file, as in the
/// standard.
struct Binary([u8; TEXT_BYTES + BINARY_BYTES]);

impl Binary {
    fn at<const N: usize>(&self, byte: usize) -> [u8; N] {
        std::array::from_fn(|i| self.0[byte - 1 + i])
    }

    fn byte(&self, byte: usize) -> u8 {
        self.0[byte - 1]
    }

    fn short(&self, byte: usize) -> u16 {
        u16::from_be_bytes(self.at(byte))
    }

    fn long(&self, byte: usize) -> u32 {
        u32::from_be_bytes(self.at(byte))
    }

    fn longer(&self, byte: usize) -> u64 {
        u64::from_be_bytes(self.at(byte))
    }
}

/// Reads the header of the first trace.
pub(crate) fn first_header(source: &mut Source) -> Result<[u8; TRACE_HEADER_BYTES], TraceError> {
    let mut bytes = [0; TRACE_HEADER_BYTES];
    match source.fill(&mut bytes)? {
        0 => Err(TraceError::NoTraces),
        found => require(found as u64, TRACE_HEADER_BYTES as u64, "first trace header").map(|()| bytes),
    }
}

fn require(found: u64, expected: u64, what: &'static str) -> Result<(), TraceError> {
    if found == expected { Ok(()) } else { Err(TraceError::HeaderCut { what, found, expected }) }
}
