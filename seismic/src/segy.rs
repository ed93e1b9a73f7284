//! SEG-Y revision 1: a textual header of 3200 bytes, a binary one of 400, then each trace with its header; all
//! numbers big endian.
//!
//! Source: SEG-Y rev 1 Data Exchange format, SEG Technical Standards Committee, 2002.

use std::io::Write;

use crate::{
    gather::{Gather, Records, TraceError, WriteError},
    load::{ByteOrder, Source},
};

mod text;

const TEXT_BYTES: usize = 3200;
const BINARY_BYTES: usize = 400;

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

/// The fields of the binary header that reading needs.
pub(crate) struct BinaryHeader {
    pub(crate) interval_us: u16,
    pub(crate) samples: u16,
    pub(crate) format: u16,
}

impl BinaryHeader {
    /// Reads up to the first trace.
    pub(crate) fn read(source: &mut Source) -> Result<Self, TraceError> {
        let mut bytes = [0; TEXT_BYTES + BINARY_BYTES];
        require(source.fill(&mut bytes)? as u64, bytes.len() as u64, "file headers")?;
        let at = |byte: usize| u16::from_be_bytes([bytes[byte - 1], bytes[byte]]);
        // Before revision 1 the count of extended textual headers had no place.
        let extended = if at(3501) >= 0x0100 { at(3505).cast_signed() } else { 0 };
        let Ok(count) = u64::try_from(extended) else {
            return Err(TraceError::ExtendedHeaders { count: extended });
        };
        let text_bytes = count * TEXT_BYTES as u64;
        require(source.skip(text_bytes)?, text_bytes, "extended textual headers")?;
        Ok(Self { interval_us: at(3217), samples: at(3221), format: at(3225) })
    }
}

fn require(found: u64, expected: u64, what: &'static str) -> Result<(), TraceError> {
    if found == expected { Ok(()) } else { Err(TraceError::HeaderCut { what, found, expected }) }
}
