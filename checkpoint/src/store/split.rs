//! What is known of a shard whose doubles are kept apart, beside its metadata.

use serde::{Deserialize, Serialize};

use crate::region::Strings;

/// Of one member, as its owner computed it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Split {
    /// Bytes of the exact string.
    exact: u64,
    /// Bytes of the doubles.
    doubles: u64,
    /// CRC-64/NVME of the exact string.
    pub(crate) crc: u64,
    /// The largest magnitude of the doubles, which is finite.
    pub(crate) largest: f64,
}

impl Split {
    /// Bytes of [`Split::to_bytes`].
    pub(crate) const BYTES: usize = 32;

    pub(crate) fn new(strings: Strings, crc: u64, largest: f64) -> Self {
        Self { exact: strings.exact as u64, doubles: strings.doubles as u64, crc, largest }
    }

    /// Of a shard that is exact as a whole.
    pub(crate) fn exact(bytes: u64, crc: u64) -> Self {
        Self { exact: bytes, doubles: 0, crc, largest: 0.0 }
    }

    pub(crate) fn strings(self) -> Strings {
        Strings { exact: self.exact as usize, doubles: self.doubles as usize }
    }

    /// The bytes that travel, in little-endian order.
    pub(crate) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let words = [self.exact, self.doubles, self.crc, self.largest.to_bits()];
        for (word, value) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
            *word = value.to_le_bytes();
        }
        bytes
    }

    /// Reads what several [`Split::to_bytes`] wrote one after the other; any bytes are valid.
    pub(crate) fn read_all(bytes: &[u8]) -> impl Iterator<Item = Self> {
        bytes.as_chunks::<{ Self::BYTES }>().0.iter().map(|bytes| {
            let word = |at: usize| u64::from_le_bytes(bytes.as_chunks().0[at]);
            Self { exact: word(0), doubles: word(1), crc: word(2), largest: f64::from_bits(word(3)) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_travels_comes_back() {
        let one = Split::new(Strings { exact: 13, doubles: 80 }, 7, 1e-300);
        let two = Split::exact(5, u64::MAX);
        let bytes = [one.to_bytes(), two.to_bytes()].concat();
        assert_eq!(Split::read_all(&bytes).collect::<Vec<_>>(), [one, two]);
        assert_eq!((one.strings().start(), one.strings().bytes()), (16, 96));
        assert_eq!(two.strings().bytes(), 5);
    }
}
