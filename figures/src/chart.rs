//! Charts of numbers: lines, grouped bars, stacked bars.

mod grouped;
mod lines;
mod stacked;

pub use grouped::{BarSeries, GroupedBars};
pub use lines::{LineChart, Point, Series};
pub use stacked::{Hue, StackedBars, StackedRow};

/// A value of about three digits, as it stands at a bar.
fn short(value: f64) -> String {
    let size = value.abs();
    let text = match size {
        0.0 => "0".to_owned(),
        _ if !(0.005..1e6).contains(&size) => format!("{value:.1e}"),
        _ if size >= 99.95 => format!("{value:.0}"),
        _ if size >= 9.995 => format!("{value:.1}"),
        _ if size >= 0.9995 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    };
    text.replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_values() {
        let written = [0.0, 0.1234, 1.0, 9.996, 12.34, 99.97, 123.4, -4.5, 0.001, 2.5e7].map(short);
        assert_eq!(written, ["0", "0.123", "1.00", "10.0", "12.3", "100", "123", "−4.50", "1.0e−3", "2.5e7"]);
    }
}
