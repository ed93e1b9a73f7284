//! The frame header of data links: 56 bytes, little endian, the payload follows.
//!
//! It has no check of its own. Links between hosts are authenticated, and within a host bytes stay in memory; that a stream is out of step is seen by
//! the version, the flags, and what is due: a generation, a source and a number that both sides count.
//!
//! | bytes | field | |
//! |---|---|---|
//! | 0 | version | [`VERSION`] |
//! | 1 | kind | [`Kind`] |
//! | 2..4 | flags | of a message its [`Stamp`], 4 bits; else 0 |
//! | 4..8 | generation | a frame of another generation is never delivered |
//! | 8..12 | communicator | context id; collectives have a context of their own |
//! | 12..16 | source | world rank of the sender |
//! | 16..20 | tag | |
//! | 20..24 | reserved | 0 |
//! | 24..32 | sequence | number of the frame on its link and direction, from 0 |
//! | 32..40 | length | bytes of payload behind the header; of the message for an envelope |
//! | 40..48 | subject | sequence of the envelope that an ask, a payload or a receipt answers; bytes a credit returns; the seal of a greeting or an offer |
//! | 48..56 | place | where in the sender's memory the seal of a greeting is, or the payload of an offer; else 0 |

use crate::rank::Generation;
use crate::stamp::Stamp;

/// Version of the frame format.
pub const VERSION: u8 = 5;

/// Bytes of a header.
pub const HEADER_BYTES: usize = 56;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A whole message: its payload follows.
    Eager = 1,
    /// Announces a message; its payload is sent when it is asked for, or offered to be read at `place`.
    Envelope = 2,
    /// The receiver has matched the envelope `subject` and has room for its payload.
    Ask = 3,
    /// The payload of the envelope `subject`.
    Payload = 4,
    /// Gives back `subject` bytes of eager credit and `tag` envelopes.
    Credit = 5,
    /// The seal of the sender's memory is at `place`, and is `subject`: who finds it there can read what is offered.
    Greeting = 6,
    /// The payload of the envelope `subject` was read, or nobody wants it: it need not be sent.
    Receipt = 7,
}

/// A frame header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What follows.
    pub kind: Kind,
    /// What recovery lines have to know of a message.
    pub stamp: Stamp,
    /// Generation of the sender.
    pub generation: Generation,
    /// Context of the communicator.
    pub context: u32,
    /// World rank of the sender.
    pub source: u32,
    /// Tag of the message.
    pub tag: u32,
    /// Number of the frame on its link.
    pub sequence: u64,
    /// Bytes of payload.
    pub length: u64,
    /// What an ask, a payload, a receipt or a credit is about; a seal.
    pub subject: u64,
    /// An address in the memory of the sender.
    pub place: u64,
}

/// Why bytes are no header.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Another version of the format, or not our format at all.
    #[error("frame version {0}, expected {VERSION}")]
    Version(u8),
    /// A kind that this version does not have.
    #[error("frame of unknown kind {0}")]
    Kind(u8),
    /// A flag, or something in the reserved field, that this version does not have.
    #[error("frame with unknown flags {0:#06x}, {1:#010x}")]
    Flags(u16, u32),
}

impl Header {
    /// The header as bytes.
    #[inline]
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        out[0] = VERSION;
        out[1] = self.kind as u8;
        out[2] = self.stamp.bits();
        out[4..8].copy_from_slice(&self.generation.to_le_bytes());
        out[8..12].copy_from_slice(&self.context.to_le_bytes());
        out[12..16].copy_from_slice(&self.source.to_le_bytes());
        out[16..20].copy_from_slice(&self.tag.to_le_bytes());
        out[24..32].copy_from_slice(&self.sequence.to_le_bytes());
        out[32..40].copy_from_slice(&self.length.to_le_bytes());
        out[40..48].copy_from_slice(&self.subject.to_le_bytes());
        out[48..56].copy_from_slice(&self.place.to_le_bytes());
        out
    }

    /// The header that `bytes` hold.
    ///
    /// # Errors
    /// Every array of bytes that [`Header::encode`] does not produce is refused.
    #[inline]
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, HeaderError> {
        let u32_at = |at: usize| {
            u32::from_le_bytes(bytes[at..at + 4].try_into().expect("a range of 4 bytes has 4 bytes"))
        };
        let u64_at = |at: usize| {
            u64::from_le_bytes(bytes[at..at + 8].try_into().expect("a range of 8 bytes has 8 bytes"))
        };
        if bytes[0] != VERSION {
            return Err(HeaderError::Version(bytes[0]));
        }
        let kind = match bytes[1] {
            1 => Kind::Eager,
            2 => Kind::Envelope,
            3 => Kind::Ask,
            4 => Kind::Payload,
            5 => Kind::Credit,
            6 => Kind::Greeting,
            7 => Kind::Receipt,
            other => return Err(HeaderError::Kind(other)),
        };
        let (flags, reserved) = (u16::from_le_bytes([bytes[2], bytes[3]]), u32_at(20));
        let stamp = if (flags, reserved) == (0, 0) { Stamp::NONE } else { stamp(kind, flags, reserved)? };
        Ok(Self {
            kind,
            stamp,
            generation: u32_at(4),
            context: u32_at(8),
            source: u32_at(12),
            tag: u32_at(16),
            sequence: u64_at(24),
            length: u64_at(32),
            subject: u64_at(40),
            place: u64_at(48),
        })
    }

    /// Bytes of payload that follow this header on the link.
    #[inline]
    pub fn body_bytes(&self) -> u64 {
        match self.kind {
            Kind::Eager | Kind::Payload => self.length,
            Kind::Envelope | Kind::Ask | Kind::Credit | Kind::Greeting | Kind::Receipt => 0,
        }
    }
}

/// What flags say that are not all 0.
#[cold]
fn stamp(kind: Kind, flags: u16, reserved: u32) -> Result<Stamp, HeaderError> {
    let is_message = matches!(kind, Kind::Eager | Kind::Envelope | Kind::Payload);
    let bits = u8::try_from(flags).ok().filter(|_| is_message && reserved == 0);
    bits.and_then(Stamp::from_bits).ok_or(HeaderError::Flags(flags, reserved))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KINDS: [Kind; 7] =
        [Kind::Eager, Kind::Envelope, Kind::Ask, Kind::Payload, Kind::Credit, Kind::Greeting, Kind::Receipt];

    fn sample() -> Header {
        Header {
            kind: Kind::Eager,
            stamp: Stamp::new(1, true),
            generation: 3,
            context: 4,
            source: 5,
            tag: 6,
            sequence: 7,
            length: 8,
            subject: 9,
            place: 10,
        }
    }

    #[test]
    fn golden_bytes() {
        let mut golden = [0u8; HEADER_BYTES];
        golden[0] = 5;
        golden[1] = 1;
        golden[2] = 13;
        for (at, value) in [(4, 3), (8, 4), (12, 5), (16, 6), (24, 7), (32, 8), (40, 9), (48, 10)] {
            golden[at] = value;
        }
        assert_eq!(sample().encode(), golden, "the frame format is a contract: raise VERSION to change it");
    }

    prop_compose! {
        fn headers()(kind in 0..KINDS.len(), line in 0..5_u64, logs: bool, generation: u32, context: u32, source: u32, tag: u32,
                     sequence: u64, length: u64, subject: u64, place: u64) -> Header {
            let kind = KINDS[kind];
            let is_message = matches!(kind, Kind::Eager | Kind::Envelope | Kind::Payload);
            let stamp = if is_message && line > 0 { Stamp::new(line, logs) } else { Stamp::NONE };
            Header { kind, stamp, generation, context, source, tag, sequence, length, subject, place }
        }
    }

    proptest! {
        #[test]
        fn decodes_what_it_encodes(header in headers()) {
            prop_assert_eq!(Header::decode(&header.encode()), Ok(header));
        }

        /// What decodes is what these bytes say, all of them.
        #[test]
        fn a_changed_bit_is_refused_or_another_header(header in headers(), bit in 0..HEADER_BYTES * 8) {
            let mut bytes = header.encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            match Header::decode(&bytes) {
                Ok(other) => prop_assert_eq!(other.encode(), bytes),
                Err(_) => prop_assert!(bit / 8 < 4 || (20..24).contains(&(bit / 8))),
            }
        }

        #[test]
        fn random_bytes_are_refused(bytes in proptest::array::uniform32(any::<u8>())) {
            prop_assume!(bytes[2] > 15 || bytes[3] != 0 || bytes[20..24] != [0; 4]);
            let mut all = [0u8; HEADER_BYTES];
            all[..32].copy_from_slice(&bytes);
            prop_assert!(Header::decode(&all).is_err());
        }
    }
}
