//! The natural logarithm as a formula without a branch, which compilers make vectors of, with the same bits on every processor.
//!
//! ```text
//! u = 2^k m  with m from sqrt(1/2) to sqrt(2),  f = m - 1,  s = f / (2 + f),  z = s^2
//! ln u = k ln 2 + f - f^2/2 + s (f^2/2 + R(z)),  R = L1 z + L2 z^2 + ... + L7 z^7
//! ```
//!
//! The error is below one unit of the last place. Method and coefficients: `e_log.c` of fdlibm (Sun Microsystems, 1993).

/// `ln 2` as two numbers, the first with zeros at its end: its products with exponents are exact.
const LN_2: [f64; 2] = [6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10];

const L: [f64; 7] = [
    6.666_666_666_666_735e-1,
    3.999_999_999_940_942e-1,
    2.857_142_874_366_239e-1,
    2.222_219_843_214_978_4e-1,
    1.818_357_216_161_805e-1,
    1.531_383_769_920_937_3e-1,
    1.479_819_860_511_658_6e-1,
];

/// `ln u` of a positive, normal, finite number.
#[inline(always)]
pub(super) fn ln(u: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    const TWO_52: f64 = (1_u64 << 52) as f64;
    const ROOT: u64 = std::f64::consts::FRAC_1_SQRT_2.to_bits();
    // The exponent goes up where the mantissa is beyond the root of 2.
    let bits = u.to_bits() + (1_f64.to_bits() - ROOT);
    let m = f64::from_bits((bits & MANTISSA) + ROOT);
    let k = f64::from_bits(TWO_52.to_bits() | (bits >> 52)) - (TWO_52 + 1023.0);
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let (z, half) = (s * s, 0.5 * f * f);
    let w = z * z;
    let even = w * (L[1] + w * (L[3] + w * L[5]));
    let odd = z * (L[0] + w * (L[2] + w * (L[4] + w * L[6])));
    k * LN_2[0] - ((half - (s * (half + (odd + even)) + k * LN_2[1])) - f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_logarithm() {
        let mut u = 1.0_f64;
        for at in 0..200_000 {
            let due = u.ln();
            assert!((ln(u) - due).abs() <= f64::EPSILON * due.abs(), "ln {u:e} is {:e}, not {due:e}", ln(u));
            u = if at % 1000 == 999 { 1.0 - at as f64 * 1e-9 } else { u * 0.9371 };
        }
        assert_eq!((ln(1.0), ln(2.0), ln(0.5)), (0.0, 2_f64.ln(), 0.5_f64.ln()));
        assert_eq!(ln(2_f64.powi(-90)), 2_f64.powi(-90).ln());
    }
}
