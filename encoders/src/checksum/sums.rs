//! Loops over slices of doubles. Every element is computed on its own, with one product and one sum for each source, in the order of the
//! sources: the bits do not depend on lanes, on pieces, or on the processor.

/// Elements that are gone through at a time, so that what is summed up stays in the fastest cache.
pub(super) const CHUNK: usize = 256;

/// `into += weight * source`, of which only the beginning that both have; no fused product and sum.
pub(super) fn add_product(weight: f64, source: &[f64], into: &mut [f64]) {
    for (sum, value) in into.iter_mut().zip(source) {
        *sum += weight * value;
    }
}

/// `into += weight * |source|`, of which only the beginning that both have.
pub(super) fn add_magnitude(weight: f64, source: &[f64], into: &mut [f64]) {
    for (sum, value) in into.iter_mut().zip(source) {
        *sum += weight * value.abs();
    }
}

/// The largest magnitude: infinite if there is an infinity and NaN if there is a NaN, 0 for no elements.
pub(super) fn largest(values: &[f64]) -> f64 {
    // Bits of magnitudes are in the order of magnitudes, with infinity above all numbers and NaN above that.
    f64::from_bits(values.iter().fold(0, |largest, value| largest.max(value.abs().to_bits())))
}

/// The part of a slice, which counts as padded with zeros, from `from` on for at most `length` elements.
pub(super) fn part(slice: &[f64], from: usize, length: usize) -> &[f64] {
    let from = from.min(slice.len());
    &slice[from..slice.len().min(from + length)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_number_is_the_largest() {
        assert_eq!(largest(&[]), 0.0);
        assert_eq!(largest(&[1.0, -3.0, 2.0, -0.0]), 3.0);
        assert_eq!(largest(&[f64::NEG_INFINITY, 1e308]), f64::INFINITY);
        assert!(largest(&[f64::INFINITY, -f64::NAN, 0.0]).is_nan());
    }

    #[test]
    fn parts_end_where_the_slice_does() {
        let slice = [1.0, 2.0, 3.0];
        assert_eq!(part(&slice, 1, 1), [2.0]);
        assert_eq!(part(&slice, 2, 5), [3.0]);
        assert!(part(&slice, 7, 5).is_empty());
    }

    #[test]
    fn products_and_sums_are_rounded_apart() {
        // The product of 1 + u and 1 - u rounds to 1: fused with the sum, it would leave -2^-106.
        let (above, below) = (1.0 + f64::EPSILON, 1.0 - f64::EPSILON);
        let mut sum = [-1.0; 5];
        add_product(above, &[below; 5], &mut sum);
        assert_eq!(sum, [0.0; 5]);
    }
}
