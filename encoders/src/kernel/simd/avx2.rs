//! AVX2: 32 bytes at once, a product is the sum of two shuffled tables (Plank, Greenan and Miller, FAST 2013).

use std::arch::x86_64::{
    __m256i, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch, _mm_sfence, _mm256_and_si256,
    _mm256_broadcastsi128_si256, _mm256_loadu_si256, _mm256_set1_epi8, _mm256_setzero_si256,
    _mm256_shuffle_epi8, _mm256_srli_epi64, _mm256_storeu_si256, _mm256_stream_si256, _mm256_xor_si256,
};

use super::{Call, Lanes};
use crate::field::NIBBLES;

#[derive(Clone, Copy)]
struct Vector(__m256i);

// SAFETY: loads and stores of one vector, loads of the two halves of a table.
unsafe impl Lanes for Vector {
    const BYTES: usize = 32;
    type Factor = &'static [u8; 32];

    #[inline(always)]
    unsafe fn factor(weight: u8) -> Self::Factor {
        &NIBBLES[usize::from(weight)]
    }

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller has the instructions, as in all that follow.
        Self(unsafe { _mm256_setzero_si256() })
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller has 32 bytes there.
        Self(unsafe { _mm256_loadu_si256(from.cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller has 32 bytes there.
        unsafe { _mm256_storeu_si256(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn product(self, table: Self::Factor) -> Self {
        // SAFETY: a table has 32 bytes.
        unsafe {
            let nibble = _mm256_set1_epi8(15);
            let low = _mm256_and_si256(self.0, nibble);
            let high = _mm256_and_si256(_mm256_srli_epi64::<4>(self.0), nibble);
            let of_low = _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast()));
            let of_high = _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().add(16).cast()));
            Self(_mm256_xor_si256(_mm256_shuffle_epi8(of_low, low), _mm256_shuffle_epi8(of_high, high)))
        }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm256_xor_si256(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: the caller has 32 aligned bytes there.
        unsafe { _mm256_stream_si256(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn fence() {
        // SAFETY: every x86-64 has it.
        unsafe { _mm_sfence() }
    }

    #[inline(always)]
    unsafe fn prefetch(from: *const u8) {
        // SAFETY: every x86-64 has it, and it may have any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.cast()) }
    }
}

pub(super) fn is_there() -> bool {
    is_x86_feature_detected!("avx2")
}

/// # Safety
/// [`is_there`].
#[target_feature(enable = "avx2")]
pub(super) unsafe fn combine(call: Call<'_>) {
    // SAFETY: as demanded of the caller.
    unsafe { call.run::<Vector, 4, 2>() }
}
