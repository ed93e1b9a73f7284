//! NEON: 16 bytes at once, a product is the sum of two table look-ups (Plank, Greenan and Miller, FAST 2013).

use std::arch::aarch64::{
    uint8x16_t, vandq_u8, vdupq_n_u8, veorq_u8, vld1q_u8, vqtbl1q_u8, vshrq_n_u8, vst1q_u8,
};

use super::{Call, Lanes};
use crate::field::NIBBLES;

#[derive(Clone, Copy)]
struct Vector(uint8x16_t);

// SAFETY: loads and stores of one vector, loads of the two halves of a table.
unsafe impl Lanes for Vector {
    const BYTES: usize = 16;
    type Factor = &'static [u8; 32];

    #[inline(always)]
    unsafe fn factor(weight: u8) -> Self::Factor {
        &NIBBLES[usize::from(weight)]
    }

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller has the instructions, as in all that follow.
        Self(unsafe { vdupq_n_u8(0) })
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller has 16 bytes there.
        Self(unsafe { vld1q_u8(from) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller has 16 bytes there.
        unsafe { vst1q_u8(to, self.0) }
    }

    #[inline(always)]
    unsafe fn product(self, table: Self::Factor) -> Self {
        // SAFETY: a table has 32 bytes.
        unsafe {
            let low = vandq_u8(self.0, vdupq_n_u8(15));
            let high = vshrq_n_u8::<4>(self.0);
            let (of_low, of_high) = (vld1q_u8(table.as_ptr()), vld1q_u8(table.as_ptr().add(16)));
            Self(veorq_u8(vqtbl1q_u8(of_low, low), vqtbl1q_u8(of_high, high)))
        }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe { veorq_u8(self.0, other.0) })
    }
}

pub(super) fn is_there() -> bool {
    std::arch::is_aarch64_feature_detected!("neon")
}

/// # Safety
/// [`is_there`].
#[target_feature(enable = "neon")]
pub(super) unsafe fn combine(call: Call<'_>) {
    // SAFETY: as demanded of the caller.
    unsafe { call.run::<Vector, 4, 2>() }
}
