//! AVX-512 with GFNI: 64 bytes at once, a product is one affine map of the bits.

use std::arch::x86_64::{
    __m512i, _MM_HINT_T0, _mm_prefetch, _mm_sfence, _mm512_gf2p8affine_epi64_epi8, _mm512_loadu_si512,
    _mm512_mask_storeu_epi8, _mm512_maskz_loadu_epi8, _mm512_set1_epi64, _mm512_setzero_si512,
    _mm512_storeu_si512, _mm512_stream_si512, _mm512_ternarylogic_epi64, _mm512_xor_si512,
};

use super::{Call, Lanes};
use crate::field::AFFINE;

#[derive(Clone, Copy)]
struct Vector(__m512i);

/// The truth table of the XOR of three bits.
const XOR3: i32 = 0x96;

/// The lowest `n` of 64 lanes.
const fn lowest(n: usize) -> u64 {
    if n >= 64 { u64::MAX } else { (1 << n) - 1 }
}

// SAFETY: loads and stores of one vector; those under a mask touch its lanes only.
unsafe impl Lanes for Vector {
    const BYTES: usize = 64;
    type Factor = i64;

    #[inline(always)]
    unsafe fn factor(weight: u8) -> i64 {
        AFFINE[usize::from(weight)].cast_signed()
    }

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller has the instructions, as in all that follow.
        Self(unsafe { _mm512_setzero_si512() })
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller has 64 bytes there.
        Self(unsafe { _mm512_loadu_si512(from.cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller has 64 bytes there.
        unsafe { _mm512_storeu_si512(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn product(self, factor: i64) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm512_gf2p8affine_epi64_epi8::<0>(self.0, _mm512_set1_epi64(factor)) })
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm512_xor_si512(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn sum(self, one: Self, two: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm512_ternarylogic_epi64::<XOR3>(self.0, one.0, two.0) })
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: the caller has 64 aligned bytes there.
        unsafe { _mm512_stream_si512(to.cast(), self.0) }
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

    #[inline(always)]
    unsafe fn load_part(from: *const u8, n: usize) -> Self {
        // SAFETY: the caller has `n` bytes there.
        Self(unsafe { _mm512_maskz_loadu_epi8(lowest(n), from.cast()) })
    }

    #[inline(always)]
    unsafe fn store_part(self, to: *mut u8, n: usize) {
        // SAFETY: the caller has `n` bytes there.
        unsafe { _mm512_mask_storeu_epi8(to.cast(), lowest(n), self.0) }
    }
}

pub(super) fn is_there() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("gfni")
}

/// # Safety
/// [`is_there`].
#[target_feature(enable = "avx512f,avx512bw,gfni")]
pub(super) unsafe fn combine(call: Call<'_>) {
    // SAFETY: as demanded of the caller.
    unsafe { call.run::<Vector, 4, 4>() }
}
