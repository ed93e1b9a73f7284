//! Numbers as people read them.

use super::stats::Spread;

/// A blank at which no line is broken.
pub const NO_BREAK: &str = "\u{a0}";

/// Bytes with the largest unit that divides them.
pub fn bytes(number: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let fits = units.into_iter().find(|(unit, _)| number > 0 && number.is_multiple_of(*unit));
    let (unit, name) = fits.unwrap_or((1, "B"));
    format!("{}{NO_BREAK}{name}", number / unit)
}

/// Three significant digits, all of those before the point.
pub fn short(number: f64) -> String {
    if number == 0.0 || !number.is_finite() {
        return "0".to_owned();
    }
    let before_point = number.abs().log10().floor() as i32 + 1;
    format!("{number:.*}", usize::try_from(3 - before_point).unwrap_or(0).min(9))
}

/// Seconds as milliseconds.
pub fn ms(seconds: f64) -> String {
    short(seconds * 1e3)
}

/// Bytes as MiB.
pub fn mib(bytes: f64) -> String {
    short(bytes / f64::from(1 << 20))
}

/// Quartiles, as `show` writes numbers.
pub(super) fn quartiles(spread: &Spread, show: fn(f64) -> String) -> String {
    format!("{}{NO_BREAK}..{NO_BREAK}{}", show(spread.low), show(spread.high))
}

/// A span of time with its unit.
pub fn span(seconds: f64) -> String {
    let units = [(86_400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s")];
    let (unit, name) = units.into_iter().find(|(unit, _)| seconds >= *unit).unwrap_or((1e-3, "ms"));
    let number = short(seconds / unit);
    let number =
        if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { &number };
    format!("{number}{NO_BREAK}{name}")
}

/// A share as per cent.
pub fn percent(share: f64) -> String {
    format!("{:.1}{NO_BREAK}%", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_numbers() {
        assert_eq!(
            [0.001_234_5, 0.5, 12.345, 999.6, 12_345.6].map(short),
            ["0.00123", "0.500", "12.3", "1000", "12346"]
        );
        assert_eq!([0.0, f64::NAN, f64::INFINITY].map(short), ["0", "0", "0"]);
        let plain = |text: String| text.replace(NO_BREAK, " ");
        assert_eq!(plain(bytes(64 << 20)), "64 MiB");
        assert_eq!([bytes(0), bytes(1000), bytes(3 << 9)].map(plain), ["0 B", "1000 B", "1536 B"]);
        let spans = [0.25, 60.0, 90.0, 7200.0, 86_400.0, 2.5].map(span).map(plain);
        assert_eq!(spans, ["250 ms", "1 min", "1.5 min", "2 h", "1 d", "2.5 s"]);
        assert_eq!(plain(percent(0.9876)), "98.8 %");
        let spread = Spread { low: 0.001, median: 0.0, high: 0.0025 };
        assert_eq!(plain(quartiles(&spread, ms)), "1.00 .. 2.50");
    }
}
