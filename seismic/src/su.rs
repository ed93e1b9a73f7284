//! Seismic Unix: traces with the headers of SEG-Y and 32-bit IEEE floats, no file header, in the byte order of the
//! machine that wrote them.
//!
//! Source: Cohen, Stockwell: CWP/SU: Seismic Un*x, Colorado School of Mines; `segy.h`.

use std::io::Write;

use crate::{
    gather::{Gather, Records, WriteError},
    load::ByteOrder,
    trace_header::{TRACE_HEADER_BYTES, TraceHeader},
};

/// Writes one shot gather, little endian, with the trace headers of [`write_segy`](crate::segy::write_segy). The
/// same gather gives the same bytes.
///
/// # Errors
/// [`WriteError`] where the format cannot hold the gather (nothing is written then) or `out` fails.
pub fn write_su(gather: &Gather<'_>, out: &mut impl Write) -> Result<(), WriteError> {
    Records::new(gather)?.write(ByteOrder::Little, out)
}

/// The more plausible byte order of a file that starts with this trace header and has `length` bytes, if that is
/// known: there are samples, the file is a whole number of traces, the kind of trace is one of the standard's small
/// numbers, the traces are shorter. Native order (little endian) where all of that says the same.
pub(crate) fn byte_order(first: &[u8; TRACE_HEADER_BYTES], length: Option<u64>) -> ByteOrder {
    let plausibility = |order| {
        let TraceHeader { samples, kind, .. } = TraceHeader::from_bytes(first, order);
        let trace_bytes = TRACE_HEADER_BYTES as u64 + 4 * u64::from(samples);
        let whole = length.is_some_and(|length| length.is_multiple_of(trace_bytes));
        (samples > 0, whole, (1..=255).contains(&kind), u16::MAX - samples)
    };
    let (little, big) = (plausibility(ByteOrder::Little), plausibility(ByteOrder::Big));
    if little >= big { ByteOrder::Little } else { ByteOrder::Big }
}
