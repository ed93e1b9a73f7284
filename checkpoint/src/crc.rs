//! Checksums of shards, blocks and files: CRC-64/NVME, of which [`crate::store`] says more.
//!
//! Everything here is compiled once. The loops of the library are inlined wherever they are called, and were a third of this crate.

use std::sync::OnceLock;

use crc_fast::CrcAlgorithm::Crc64Nvme;

/// Bytes that two digests can take together.
pub(crate) const STRIDE: usize = 16 << 10;
/// Bytes that a digest is quick to skip.
pub(crate) const BLOCK: usize = 64 << 10;

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

    /// Takes `len` bytes of this checksum, without a look at them.
    #[inline(never)]
    pub(crate) fn skip(&mut self, crc: u64, len: usize) {
        let state = !(after(self.finalize(), len) ^ crc);
        self.0 = crc_fast::Digest::new_with_init_state(Crc64Nvme, state);
    }

    /// As `update` of both, by the work of one.
    ///
    /// # Panics
    /// If `bytes` are not [`STRIDE`].
    #[inline(never)]
    pub(crate) fn update_both(&mut self, other: &mut Self, bytes: &[u8]) {
        assert_eq!(bytes.len(), STRIDE);
        let apart = self.finalize() ^ other.finalize();
        self.update(bytes);
        // A checksum is linear but for a constant: the same bytes change by which constant two of them differ, and how does not
        // depend on the bytes.
        let state = !(self.finalize() ^ after(apart, STRIDE));
        other.0 = crc_fast::Digest::new_with_init_state(Crc64Nvme, state);
    }

    /// The checksum of all bytes so far.
    #[inline(never)]
    pub(crate) fn finalize(&self) -> u64 {
        self.0.finalize()
    }
}

/// The polynomial of CRC-64/NVME, as its catalogue has it, from the lowest power on.
const POLYNOMIAL: u64 = 0xad93_d235_94c9_3659_u64.reverse_bits();

/// What becomes of a difference of checksums when `len` bytes follow.
fn after(apart: u64, len: usize) -> u64 {
    static STRIDES: OnceLock<[u64; 64]> = OnceLock::new();
    static BLOCKS: OnceLock<[u64; 64]> = OnceLock::new();
    let of_bits = match len {
        _ if apart == 0 => return 0,
        STRIDE => STRIDES.get_or_init(|| of_bits(STRIDE)),
        BLOCK => BLOCKS.get_or_init(|| of_bits(BLOCK)),
        _ => return combine(apart, 0, len as u64),
    };
    of_bits.iter().enumerate().fold(0, |sum, (bit, of_bit)| sum ^ of_bit & (apart >> bit & 1).wrapping_neg())
}

/// What becomes of each bit: the whole is their sum.
fn of_bits(len: usize) -> [u64; 64] {
    // The highest bit is 1, and each below it x times the one above, modulo the polynomial.
    let mut of_bits = [combine(1 << 63, 0, len as u64); 64];
    for bit in (0..63).rev() {
        let above = of_bits[bit + 1];
        of_bits[bit] = above >> 1 ^ if above & 1 == 1 { POLYNOMIAL } else { 0 };
    }
    of_bits
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

    #[test]
    fn what_is_skipped_counts_as_if_it_had_been_read() {
        let bytes: Vec<u8> = (0..3 * BLOCK + 77).map(|at| (at * at / 5) as u8).collect();
        let (mut whole, mut skipping) = (Digest::new(), Digest::new());
        for (number, piece) in bytes.chunks(BLOCK).enumerate() {
            whole.update(piece);
            match number {
                0 => skipping.update(piece),
                _ => skipping.skip(crc64_nvme(piece), piece.len()),
            }
            assert_eq!(skipping.finalize(), whole.finalize(), "{number}");
        }
        skipping.update(b"more");
        whole.update(b"more");
        assert_eq!(skipping.finalize(), whole.finalize());
    }

    #[test]
    fn two_digests_take_the_same_bytes_together() {
        let bytes: Vec<u8> = (0..3 * STRIDE).map(|at| (at * at / 7) as u8).collect();
        for (one, other) in [("", ""), ("an", "other"), ("x", "")] {
            let (mut both, mut alone) = ([Digest::new(), Digest::new()], [Digest::new(), Digest::new()]);
            for ((both, alone), text) in both.iter_mut().zip(&mut alone).zip([one, other]) {
                both.update(text.as_bytes());
                alone.update(text.as_bytes());
            }
            for piece in bytes.chunks(STRIDE) {
                let [first, second] = &mut both;
                first.update_both(second, piece);
                alone.iter_mut().for_each(|digest| digest.update(piece));
            }
            both.iter_mut().zip(&mut alone).for_each(|(both, alone)| {
                both.update(b"and more");
                alone.update(b"and more");
                assert_eq!(both.finalize(), alone.finalize(), "{one}, {other}");
            });
        }
    }
}
