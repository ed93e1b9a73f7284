//! AVX2 with GFNI: 32 bytes at once, a product is one affine map of the bits.

use std::arch::x86_64::{
    __m256i, _MM_HINT_T0, _mm_prefetch, _mm_sfence, _mm256_gf2p8affine_epi64_epi8, _mm256_loadu_si256,
    _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_storeu_si256, _mm256_stream_si256, _mm256_xor_si256,
};

use super::{Call, Lanes};
use crate::field::AFFINE;

#[derive(Clone, Copy)]
struct Vector(__m256i);

// SAFETY: loads and stores of one vector.
unsafe impl Lanes for Vector {
    const BYTES: usize = 32;
    type Factor = i64;

    #[inline(always)]
    unsafe fn factor(weight: u8) -> i64 {
        AFFINE[usize::from(weight)].cast_signed()
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
    unsafe fn product(self, factor: i64) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm256_gf2p8affine_epi64_epi8::<0>(self.0, _mm256_set1_epi64x(factor)) })
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
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("gfni")
}

/// # Safety
/// [`is_there`].
#[target_feature(enable = "avx2,gfni")]
pub(super) unsafe fn combine(call: Call<'_>) {
    // SAFETY: as demanded of the caller.
    unsafe { call.run::<Vector, 4, 2>() }
}
