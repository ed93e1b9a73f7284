//! The 240-byte header of a trace, common to SEG-Y and Seismic Unix files.
//!
//! Source: SEG-Y rev 1 Data Exchange format, SEG Technical Standards Committee, 2002, table 3.

use crate::load::ByteOrder;

/// Bytes of a trace header.
pub(crate) const TRACE_HEADER_BYTES: usize = 240;

/// The fields of a trace header that are written and read here, as stored. Others are zero when written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceHeader {
    /// Bytes 1-4: number of the trace in the line, from 1.
    pub trace_in_line: i32,
    /// Bytes 5-8: number of the trace in the file, from 1.
    pub trace_in_file: i32,
    /// Bytes 9-12: number of the shot.
    pub shot: i32,
    /// Bytes 13-16: number of the trace in the shot, from 1.
    pub channel: i32,
    /// Bytes 17-20: number of the source point.
    pub source_point: i32,
    /// Bytes 21-24: number of the common depth point.
    pub cdp: i32,
    /// Bytes 29-30: kind of trace, 1 for seismic data.
    pub kind: i16,
    /// Bytes 37-40: receiver minus source along the line, in meters, rounded.
    pub offset: i32,
    /// Bytes 41-44: elevation of the receiver, negative below the surface; to be scaled.
    pub receiver_elevation: i32,
    /// Bytes 49-52: depth of the source below the surface; to be scaled.
    pub source_depth: i32,
    /// Bytes 69-70: scalar of elevations and depths, a divisor where negative.
    pub depth_scalar: i16,
    /// Bytes 71-72: scalar of coordinates, a divisor where negative.
    pub coordinate_scalar: i16,
    /// Bytes 73-76: x of the source; to be scaled.
    pub source_x: i32,
    /// Bytes 77-80: y of the source; to be scaled.
    pub source_y: i32,
    /// Bytes 81-84: x of the receiver; to be scaled.
    pub receiver_x: i32,
    /// Bytes 85-88: y of the receiver; to be scaled.
    pub receiver_y: i32,
    /// Bytes 89-90: unit of the coordinates, 1 for lengths.
    pub coordinate_unit: i16,
    /// Bytes 109-110: milliseconds from time 0 of the source to the first sample; negative if recording began earlier.
    pub delay_ms: i16,
    /// Bytes 115-116: number of samples.
    pub samples: u16,
    /// Bytes 117-118: sampling interval in microseconds.
    pub interval_us: u16,
    /// Bytes 181-184: x of the common depth point; to be scaled.
    pub cdp_x: i32,
}

impl TraceHeader {
    /// x of the source in meters.
    pub fn source_x(&self) -> f64 {
        self.to_metres(self.source_x, self.coordinate_scalar)
    }

    /// Depth of the source below the surface in meters.
    pub fn source_depth(&self) -> f64 {
        self.to_metres(self.source_depth, self.depth_scalar)
    }

    /// x of the receiver in meters.
    pub fn receiver_x(&self) -> f64 {
        self.to_metres(self.receiver_x, self.coordinate_scalar)
    }

    /// Depth of the receiver below the surface in meters.
    pub fn receiver_depth(&self) -> f64 {
        -self.to_metres(self.receiver_elevation, self.depth_scalar)
    }

    /// A stored coordinate with its scalar applied. A scalar of 0 counts as 1.
    pub(crate) fn to_metres(self, stored: i32, scalar: i16) -> f64 {
        match scalar {
            0 => f64::from(stored),
            1.. => f64::from(stored) * f64::from(scalar),
            _ => f64::from(stored) / -f64::from(scalar),
        }
    }

    pub(crate) fn to_bytes(self, order: ByteOrder) -> [u8; TRACE_HEADER_BYTES] {
        let mut bytes = [0; TRACE_HEADER_BYTES];
        for (byte, value) in [
            (1, self.trace_in_line),
            (5, self.trace_in_file),
            (9, self.shot),
            (13, self.channel),
            (17, self.source_point),
            (21, self.cdp),
            (37, self.offset),
            (41, self.receiver_elevation),
            (49, self.source_depth),
            (73, self.source_x),
            (77, self.source_y),
            (81, self.receiver_x),
            (85, self.receiver_y),
            (181, self.cdp_x),
        ] {
            bytes[byte - 1..byte + 3].copy_from_slice(&order.i32_bytes(value));
        }
        for (byte, value) in [
            (29, self.kind),
            (69, self.depth_scalar),
            (71, self.coordinate_scalar),
            (89, self.coordinate_unit),
            (109, self.delay_ms),
            (115, self.samples.cast_signed()),
            (117, self.interval_us.cast_signed()),
        ] {
            bytes[byte - 1..byte + 1].copy_from_slice(&order.i16_bytes(value));
        }
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8; TRACE_HEADER_BYTES], order: ByteOrder) -> Self {
        let long = |byte: usize| order.i32(std::array::from_fn(|i| bytes[byte - 1 + i]));
        let short = |byte: usize| order.i16(std::array::from_fn(|i| bytes[byte - 1 + i]));
        Self {
            trace_in_line: long(1),
            trace_in_file: long(5),
            shot: long(9),
            channel: long(13),
            source_point: long(17),
            cdp: long(21),
            kind: short(29),
            offset: long(37),
            receiver_elevation: long(41),
            source_depth: long(49),
            depth_scalar: short(69),
            coordinate_scalar: short(71),
            source_x: long(73),
            source_y: long(77),
            receiver_x: long(81),
            receiver_y: long(85),
            coordinate_unit: short(89),
            delay_ms: short(109),
            samples: short(115).cast_unsigned(),
            interval_us: short(117).cast_unsigned(),
            cdp_x: long(181),
        }
    }
}

/// The first additional header of a trace, of SEG-Y revision 2.
pub(crate) struct TraceExtension {
    /// Bytes 137-140: number of samples.
    pub(crate) samples: u32,
    /// Bytes 157-158: number of additional headers, with this one.
    pub(crate) count: u16,
}

impl TraceExtension {
    /// None: its name is another one.
    pub(crate) fn from_bytes(bytes: &[u8; TRACE_HEADER_BYTES]) -> Option<Self> {
        // SEG00001 in ASCII or EBCDIC.
        let names = [*b"SEG00001", [0xe2, 0xc5, 0xc7, 0xf0, 0xf0, 0xf0, 0xf0, 0xf1]];
        names.iter().any(|name| bytes.ends_with(name)).then(|| Self {
            samples: u32::from_be_bytes(std::array::from_fn(|i| bytes[136 + i])),
            count: u16::from_be_bytes([bytes[156], bytes[157]]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_stand_at_their_bytes_in_both_orders() {
        let header = TraceHeader {
            trace_in_line: 1,
            trace_in_file: 2,
            shot: 3,
            channel: 4,
            source_point: 5,
            cdp: 9,
            kind: 1,
            offset: -750,
            receiver_elevation: -7_500,
            source_depth: 12_500,
            depth_scalar: -1000,
            coordinate_scalar: -100,
            source_x: 123_456,
            source_y: 6,
            receiver_x: 48_456,
            receiver_y: 7,
            coordinate_unit: 1,
            delay_ms: -100,
            samples: 40_000,
            interval_us: 2_000,
            cdp_x: 8,
        };
        for order in [ByteOrder::Little, ByteOrder::Big] {
            assert_eq!(TraceHeader::from_bytes(&header.to_bytes(order), order), header);
        }
        let big = header.to_bytes(ByteOrder::Big);
        assert_eq!(big[36..40], (-750i32).to_be_bytes());
        assert_eq!(big[70..72], (-100i16).to_be_bytes());
        assert_eq!((&big[20..24], &big[108..110]), (&9i32.to_be_bytes()[..], &(-100i16).to_be_bytes()[..]));
        assert_eq!(big[114..118], [0x9c, 0x40, 0x07, 0xd0]);
        assert_eq!((header.source_x(), header.receiver_x()), (1234.56, 484.56));
        assert_eq!((header.source_depth(), header.receiver_depth()), (12.5, 7.5));
    }

    #[test]
    fn scalars_multiply_divide_or_do_nothing() {
        let header = TraceHeader::default();
        assert_eq!(
            [10, 1, 0, -10, i16::MIN].map(|scalar| header.to_metres(32_768, scalar)),
            [327_680.0, 32_768.0, 32_768.0, 3_276.8, 1.0]
        );
    }
}
