//! Any processor: 8 bytes in a word, multiplied bit by bit.
//!
//! A product is the sum of those multiples `2^b w` of the weight whose bit `b` is set in the byte. In a word the bits `b`
//! of all bytes are masked out at once, and multiplied by that multiple, which is less than 256 and so stays in its byte.

use super::{Call, Lanes};
use crate::field;

const WORDS: usize = 4;
/// Each byte 1.
const ONES: u64 = u64::MAX / 255;

#[derive(Clone, Copy)]
struct Words([u64; WORDS]);

// SAFETY: reads and writes of the array, unaligned.
unsafe impl Lanes for Words {
    const BYTES: usize = 8 * WORDS;
    type Factor = u8;

    #[inline(always)]
    unsafe fn factor(weight: u8) -> u8 {
        weight
    }

    #[inline(always)]
    unsafe fn zero() -> Self {
        Self([0; WORDS])
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller has 32 bytes there.
        Self(unsafe { from.cast::<[u64; WORDS]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller has 32 bytes there.
        unsafe { to.cast::<[u64; WORDS]>().write_unaligned(self.0) }
    }

    #[inline(always)]
    unsafe fn product(self, weight: u8) -> Self {
        let mut sums = [0; WORDS];
        let mut multiple = weight;
        for bit in 0..8 {
            for (sum, word) in sums.iter_mut().zip(self.0) {
                *sum ^= (word >> bit & ONES) * u64::from(multiple);
            }
            multiple = field::double(multiple);
        }
        Self(sums)
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] ^ other.0[i]))
    }
}

/// # Safety
/// None is needed.
pub(super) unsafe fn combine(call: Call<'_>) {
    // SAFETY: these are no instructions that a processor may lack.
    unsafe { call.run::<Words, 2, 1>() }
}
