//! The traces of a gather as both file formats store them.

use std::io::{self, Write};

use super::Gather;
use crate::{Node, load::ByteOrder, trace_header::TraceHeader};

/// Most samples of a trace that a file can hold: the field is a signed number of 16 bits.
pub const SAMPLES_MAX: usize = i16::MAX as usize;
/// Coordinates are stored in millimeters, so that any usual fraction of a meter survives.
const SCALAR: i16 = -1000;

/// Longest delay that a file can hold: the field is a signed number of 16 bits.
const DELAY_MAX_MS: f64 = i16::MAX as f64;

/// Why a gather was not written. Unless it is [`WriteError::Io`], nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The system failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// More samples than the format can number, or none.
    #[error("{samples} samples per trace, SEG-Y and SU hold 1 to {SAMPLES_MAX}; record fewer or less often")]
    Samples {
        /// Samples per trace.
        samples: usize,
    },
    /// An interval that the format cannot express.
    #[error(
        "sampling interval {interval_s} s is not a whole number of microseconds from 1 to {}, the nearest is \
         {nearest_us} us",
        i16::MAX
    )]
    Interval {
        /// The interval in seconds.
        interval_s: f64,
        /// The nearest interval that can be written, in microseconds.
        nearest_us: u16,
    },
    /// A delay that the format cannot express.
    #[error("time 0 is {delay_s} s after the first sample, a trace header holds up to {} s", DELAY_MAX_MS / 1e3)]
    Delay {
        /// The delay in seconds.
        delay_s: f64,
    },
    /// The samples are more or fewer than the receivers record.
    #[error("{found} samples for {receivers} receivers of {samples} samples each, expected {expected}")]
    Length {
        /// Number of receivers.
        receivers: usize,
        /// Samples per receiver.
        samples: usize,
        /// Samples needed.
        expected: u128,
        /// Samples handed over.
        found: usize,
    },
    /// A position or number that does not fit into 32 bits.
    #[error("{what} of shot {shot} is {value}, does not fit into a trace header; at most {max} does")]
    Range {
        /// Which number.
        what: &'static str,
        /// Number of the shot.
        shot: u32,
        /// Its value, positions in meters.
        value: f64,
        /// Largest value that fits.
        max: f64,
    },
}

/// A gather that fits into the formats.
pub(crate) struct Records<'a> {
    gather: Gather<'a>,
    /// The fields that all traces share.
    header: TraceHeader,
}

impl<'a> Records<'a> {
    pub(crate) fn new(gather: &Gather<'a>) -> Result<Self, WriteError> {
        let Gather { shot, samples, interval_s, traces, delay_s, .. } = *gather;
        let interval_us = check_sampling(samples, interval_s)?;
        let delay_ms = check_delay(delay_s)?;
        let receivers = shot.receivers.len();
        let expected = receivers as u128 * samples as u128;
        if traces.len() as u128 != expected {
            return Err(WriteError::Length { receivers, samples, expected, found: traces.len() });
        }
        whole_number("number of receivers", shot.number, receivers as f64, 1.0)?;
        for receiver in &shot.receivers {
            coordinates(gather, "position of a receiver", *receiver)?;
        }
        let number = whole_number("number", shot.number, shot.number.into(), 1.0)?;
        let (source_x, source_depth) = coordinates(gather, "position of the source", shot.source)?;
        let header = TraceHeader {
            shot: number,
            source_point: number,
            kind: 1,
            depth_scalar: SCALAR,
            coordinate_scalar: SCALAR,
            source_x,
            source_depth,
            coordinate_unit: 1,
            delay_ms,
            samples: samples as u16,
            interval_us,
            ..TraceHeader::default()
        };
        Ok(Self { gather: *gather, header })
    }

    pub(crate) fn interval_us(&self) -> u16 {
        self.header.interval_us
    }

    /// Writes header and samples of each receiver in turn.
    pub(crate) fn write(&self, order: ByteOrder, out: &mut impl Write) -> Result<(), WriteError> {
        let Gather { shot, spacing, samples, traces, .. } = self.gather;
        let mut bytes = Vec::new();
        for (channel, (receiver, trace)) in (1..).zip(shot.receivers.iter().zip(traces.chunks_exact(samples)))
        {
            let (receiver_x, depth) = coordinates(&self.gather, "position of a receiver", *receiver)?;
            let offset = (receiver.ix as f64 - shot.source.ix as f64) * spacing;
            let middle = (i64::from(self.header.source_x) + i64::from(receiver_x)) / 2;
            let header = TraceHeader {
                // Two numbers to a point of the grid; they are less than millimeters.
                cdp: (shot.source.ix + receiver.ix + 1) as i32,
                cdp_x: middle as i32,
                trace_in_line: channel,
                trace_in_file: channel,
                channel,
                offset: offset.round() as i32,
                receiver_x,
                receiver_elevation: -depth,
                ..self.header
            };
            bytes.clear();
            bytes.extend(header.to_bytes(order));
            bytes.extend(trace.iter().flat_map(|sample| order.f32_bytes(*sample)));
            out.write_all(&bytes)?;
        }
        Ok(())
    }
}

/// Checks that a gather whose time 0 is `delay_s` seconds after its first sample can be written. Returns the delay as trace
/// headers have it: in whole milliseconds, from time 0 to the first sample.
///
/// # Errors
/// [`WriteError::Delay`].
pub fn check_delay(delay_s: f64) -> Result<i16, WriteError> {
    let milliseconds = (-delay_s * 1e3).round();
    // Not a number is none that fits.
    if milliseconds.abs() <= DELAY_MAX_MS {
        Ok(milliseconds as i16)
    } else {
        Err(WriteError::Delay { delay_s })
    }
}

/// x and depth of a node in millimeters.
fn coordinates(gather: &Gather<'_>, what: &'static str, node: Node) -> Result<(i32, i32), WriteError> {
    let stored = |index: usize| {
        whole_number(what, gather.shot.number, index as f64 * gather.spacing, -f64::from(SCALAR))
    };
    Ok((stored(node.ix)?, stored(node.iz)?))
}

/// `value * scale`, rounded.
fn whole_number(what: &'static str, shot: u32, value: f64, scale: f64) -> Result<i32, WriteError> {
    let scaled = (value * scale).round();
    let max = f64::from(i32::MAX);
    if scaled.abs() <= max {
        Ok(scaled as i32)
    } else {
        Err(WriteError::Range { what, shot, value, max: max / scale })
    }
}

/// Checks that traces of `samples` samples, `interval_s` seconds apart, can be written, before they are computed.
/// Returns the interval in microseconds; the rounding error of a computed interval is allowed for.
///
/// # Errors
/// [`WriteError::Samples`] or [`WriteError::Interval`].
pub fn check_sampling(samples: usize, interval_s: f64) -> Result<u16, WriteError> {
    if samples == 0 || samples > SAMPLES_MAX {
        return Err(WriteError::Samples { samples });
    }
    let exact = interval_s * 1e6;
    // `max` and `min` return the number where the other is NaN.
    let nearest = exact.round().max(1.0).min(i16::MAX.into());
    let nearest_us = nearest as u16;
    let whole = (exact - nearest).abs() <= 1e-9 * nearest;
    if whole { Ok(nearest_us) } else { Err(WriteError::Interval { interval_s, nearest_us }) }
}
