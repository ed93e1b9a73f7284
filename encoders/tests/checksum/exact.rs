//! Sums of doubles without rounding (Shewchuk 1997), to hold rounded ones against.

/// `|sum_i weight(i) * value(i) - rounded|`, to almost the last bit, for integer weights below 2^26.
pub(crate) fn distance(terms: impl IntoIterator<Item = (f64, f64)>, rounded: f64) -> f64 {
    let mut partials = vec![-rounded];
    for (weight, value) in terms {
        // Half of the bits each, so that both products are exact.
        let high = f64::from_bits(value.to_bits() & !((1 << 27) - 1));
        add(&mut partials, weight * high);
        add(&mut partials, weight * (value - high));
    }
    partials.iter().rev().sum::<f64>().abs()
}

/// Adds to numbers that do not overlap, smallest first.
fn add(partials: &mut Vec<f64>, mut value: f64) {
    let mut kept = 0;
    for at in 0..partials.len() {
        let (large, small) =
            if value.abs() < partials[at].abs() { (partials[at], value) } else { (value, partials[at]) };
        let sum = large + small;
        let rest = small - (sum - large);
        if rest != 0.0 {
            partials[kept] = rest;
            kept += 1;
        }
        value = sum;
    }
    partials.truncate(kept);
    partials.push(value);
}

#[test]
fn nothing_is_rounded() {
    assert_eq!(distance([(1.0, 1e300), (3.0, 1.0), (1.0, -1e300)], 3.0), 0.0);
    assert_eq!(
        distance([(127.0, 1e-300), (1.0, 1e300), (-1.0, 1e300)], 127.0 * 1e-300),
        distance([(127.0, 1e-300)], 127e-300)
    );
    assert_eq!(distance([(1.0, 1.0), (1.0, f64::EPSILON / 4.0)], 1.0), f64::EPSILON / 4.0);
    assert_eq!(distance([(5.0, f64::from_bits(3))], f64::from_bits(14)), f64::from_bits(1));
}
