//! Checksums of shards, blocks and files: CRC-64/NVME, of which [`crate::store`] says more.
//!
//! Everything here is compiled once. The loops of the library are inlined wherever they are called, and were a third of this crate.

use crc_fast::CrcAlgorithm::Crc64Nvme;

/// A checksum that grows with its bytes.
#[derive(Debug)]
pub(crate) struct Digest(crc_fast::Digest);

impl Digest {
    /// The checksum of no bytes so far.
    #[inline(never)]
    pub(crate) fn new() -> Self {
        Self(crc_fast::Digest::new(Crc64Nvme))
    }

    /// Takes the bytes that follow.
    #[inline(never)]
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of all bytes so far.
    #[inline(never)]
    pub(crate) fn finalize(&self) -> u64 {
        self.0.finalize()
    }
}

/// The checksum of `bytes`.
#[inline(never)]
pub(crate) fn crc64_nvme(bytes: &[u8]) -> u64 {
    crc_fast::crc64_nvme(bytes)
}

/// The checksum of bytes with the checksum `first` that are followed by `len` bytes with the checksum `second`.
#[inline(never)]
pub(crate) fn combine(first: u64, second: u64, len: u64) -> u64 {
    crc_fast::checksum_combine(Crc64Nvme, first, second, len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_the_catalogue() {
        assert_eq!(crc64_nvme(b"123456789"), 0xae8b_1486_0a79_9888);
    }

    #[test]
    fn pieces_have_the_checksum_of_the_whole() {
        let (first, second) = (b"1234".as_slice(), b"56789".as_slice());
        let mut digest = Digest::new();
        digest.update(first);
        assert_eq!(digest.finalize(), crc64_nvme(first));
        digest.update(second);
        assert_eq!(digest.finalize(), crc64_nvme(b"123456789"));
        let combined = combine(crc64_nvme(first), crc64_nvme(second), second.len() as u64);
        assert_eq!(combined, digest.finalize());
    }
}
