//! Times as an option takes them, few digits each.

/// Units, longest first.
const UNITS: [(f64, &str); 3] = [(3600.0, "h"), (60.0, "min"), (1.0, "s")];
/// Digits where nothing asks for more.
const DIGITS: usize = 3;
/// More are not told apart.
const DIGITS_MAX: usize = 15;

/// A number with so many significant digits, without zeros at its end, and no exponent.
fn significant(number: f64, digits: usize) -> String {
    if number == 0.0 || !number.is_finite() {
        return "0".to_owned();
    }
    let before_point = number.abs().log10().floor() as i64 + 1;
    let text = format!("{number:.*}", usize::try_from(digits as i64 - before_point).unwrap_or(0).min(18));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Seconds without a unit.
pub(super) fn seconds(seconds: f64) -> String {
    significant(seconds, DIGITS)
}

/// A time with its unit, and the seconds that it stands for.
fn with_unit(seconds: f64, digits: usize) -> (String, f64) {
    let (unit, name) = UNITS.into_iter().find(|(unit, _)| seconds >= *unit).unwrap_or((1.0, "s"));
    let number = significant(seconds / unit, digits);
    let read: f64 = number.parse().unwrap_or(0.0);
    (number + name, read * unit)
}

/// The intervals of all levels, of which the first is `first_s`, such as `12.3s` and `2min`: each divided by the first and rounded is its
/// number in `every`.
pub(super) fn intervals(first_s: f64, every: &[u64]) -> Vec<String> {
    let (_, first_s) = with_unit(first_s, DIGITS);
    let text = |k: &u64| {
        let exact =
            |digits: &usize| (with_unit(first_s * *k as f64, *digits).1 / first_s).round() == *k as f64;
        let digits = (DIGITS..DIGITS_MAX).find(exact).unwrap_or(DIGITS_MAX);
        with_unit(first_s * *k as f64, digits).0
    };
    every.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_by_hand() {
        assert_eq!(intervals(12.34, &[1, 10, 300]), ["12.3s", "2.05min", "1.025h"]);
        assert_eq!(intervals(1.0, &[1, 120, 3600, 10_000]), ["1s", "2min", "1h", "2.7778h"]);
        assert_eq!(intervals(0.001_234, &[1, 2]), ["0.00123s", "0.00246s"]);
        assert_eq!(intervals(59.99, &[1]), ["1min"]);
        assert_eq!([0.0, 12.345, 1234.5, 0.05].map(seconds), ["0", "12.3", "1234", "0.05"]);
    }

    proptest! {
        /// Whoever reads them gets the numbers that were meant.
        #[test]
        fn what_is_read_is_what_was_meant(power in -6.0..6.0f64, every in prop::collection::vec(1..=10_000u64, 1..4)) {
            let read = |text: &String| {
                let (unit, name) = UNITS.into_iter().find(|(_, name)| text.ends_with(name)).unwrap();
                // Of "s" and "min" only one fits.
                text.strip_suffix(name).unwrap().parse::<f64>().unwrap() * unit
            };
            let first_s = 10f64.powf(power);
            let all = intervals(first_s, &[&[1], &every[..]].concat());
            prop_assert!((read(&all[0]) / first_s - 1.0).abs() < 0.006, "{:?}", all);
            for (text, k) in all[1..].iter().zip(every) {
                prop_assert_eq!((read(text) / read(&all[0])).round() as u64, k, "{:?}", all);
            }
        }
    }
}
