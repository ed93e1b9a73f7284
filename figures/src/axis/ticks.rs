//! The range of an axis and its ticks, for a wanted number of ticks.

use super::{Spacing, Tick};

/// Most decades whose inner lines (2, 3, ... 9) still tell something.
const DECADES_WITH_LINES: usize = 6;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ticks {
    pub(super) spacing: Spacing,
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) ticks: Vec<Tick>,
    pub(super) faint: Vec<f64>,
}

impl Ticks {
    /// At most about `most` ticks of a linear axis whose ends are ticks, around `low..=high`. Zero is on it when
    /// it is no farther from the data than they are wide.
    pub(super) fn widened(low: f64, high: f64, most: usize) -> Self {
        let largest = low.abs().max(high.abs());
        let flat = high - low <= 1e-9 * largest || largest < 1e-250;
        let pad = if largest < 1e-250 { 0.5 } else { largest / 2.0 };
        let (low, high) = match () {
            () if flat => (low - pad, high + pad),
            () if low > 0.0 && low <= high / 2.0 => (0.0, high),
            () if high < 0.0 && high >= low / 2.0 => (low, 0.0),
            () => (low, high),
        };
        let step = Step::for_span(high - low, most);
        let (first, last) = (step.below(low), step.above(high));
        let (from, to) = (step.value(first), step.value(last));
        let ticks = step.ticks(first, last, from.abs().max(to.abs()));
        Self { spacing: Spacing::Linear, from, to, ticks, faint: Vec::new() }
    }

    /// At most about `most` ticks of a linear axis within `from < to`.
    pub(super) fn within(from: f64, to: f64, most: usize) -> Self {
        let step = Step::for_span(to - from, most);
        let ticks = step.ticks(step.above(from), step.below(to), from.abs().max(to.abs()));
        Self { spacing: Spacing::Linear, from, to, ticks, faint: Vec::new() }
    }

    /// Ticks at powers of two, every so many that there are at most `most`, from `low` to `high`, which are such.
    pub(super) fn binary(low: f64, high: f64, most: usize) -> Self {
        let (low, high) = (low.log2().round() as i32, high.log2().round() as i32);
        let high = high.max(low + 1);
        let stride = stride(high - low, most);
        let tick = |power| Tick { value: 2f64.powi(power), label: binary_label(power, high) };
        let ticks = (low..=high).step_by(stride).map(tick).collect();
        let (from, to) = (2f64.powi(low), 2f64.powi(high));
        Self { spacing: Spacing::Log, from, to, ticks, faint: Vec::new() }
    }

    /// Ticks at 1, 2, 5, 10, ..., or at powers of ten, around the positive `low..=high`.
    pub(super) fn decimal(low: f64, high: f64, most: usize) -> Self {
        // Members of the sequence are numbered: 0 is 1, 1 is 2, 2 is 5, 3 is 10, and so on.
        let near = |value: f64| 3 * value.log10().floor() as i32;
        let mut first = near(low) + 3;
        while round(first) > low * (1.0 + 1e-9) {
            first -= 1;
        }
        let mut last = near(high);
        while round(last) < high * (1.0 - 1e-9) || last <= first {
            last += 1;
        }
        let (from, to) = (round(first), round(last));
        let decades = first.div_euclid(3) + i32::from(first.rem_euclid(3) > 0)..=last.div_euclid(3);
        let many = (last - first) as usize + 1 > most && decades.clone().count() >= 2;
        let stride = stride(decades.end() - decades.start(), most);
        let numbers: Vec<i32> = if many {
            // 1, 1e2, 1e4 rather than 10, 1e3, 1e5.
            decades.clone().filter(|decade| decade % stride as i32 == 0).map(|decade| 3 * decade).collect()
        } else {
            (first..=last).collect()
        };
        let ticks =
            numbers.iter().map(|&n| Tick { value: round(n), label: decimal_label(n, first, last) }).collect();
        let lines = decades.clone().count() <= DECADES_WITH_LINES;
        let faint = if lines { inner_lines(from, to, &decades) } else { Vec::new() };
        Self { spacing: Spacing::Log, from, to, ticks, faint }
    }
}

/// Member `n` of 1, 2, 5, 10, 20, ...
fn round(n: i32) -> f64 {
    scaled([1.0, 2.0, 5.0][n.rem_euclid(3) as usize], n.div_euclid(3))
}

/// `digits * 10^power`, rounded once.
fn scaled(digits: f64, power: i32) -> f64 {
    if power < 0 { digits / 10f64.powi(-power) } else { digits * 10f64.powi(power) }
}

/// Every how many of `intervals + 1` places a tick is set, so that there are at most `most`.
fn stride(intervals: i32, most: usize) -> usize {
    (intervals as usize).div_ceil(most.saturating_sub(1).max(1)).max(1)
}

fn inner_lines(from: f64, to: f64, decades: &std::ops::RangeInclusive<i32>) -> Vec<f64> {
    (decades.start() - 1..=*decades.end())
        .flat_map(|decade| (2..=9).map(move |digit| scaled(f64::from(digit), decade)))
        .filter(|value| (from..=to).contains(value))
        .collect()
}

fn binary_label(power: i32, highest: i32) -> String {
    const UNITS: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if highest <= 16 {
        return (1u64 << power).to_string();
    }
    format!("{}{}", 1u64 << (power % 10), UNITS[(power / 10) as usize])
}

/// Label of member `n`: plain where all of the axis is between 0.001 and 100 000.
fn decimal_label(n: i32, first: i32, last: i32) -> String {
    let (digit, power) = ([1, 2, 5][n.rem_euclid(3) as usize], n.div_euclid(3));
    if first >= -9 && last <= 15 {
        return format!("{:.*}", (-power).max(0) as usize, round(n));
    }
    format!("{digit}e{power}").replace('-', "−")
}

/// The distance of ticks: 1, 2 or 5 times a power of ten.
#[derive(Clone, Copy, Debug)]
struct Step {
    digit: f64,
    power: i32,
}

impl Step {
    /// The smallest step of which `span` is at most `most`.
    fn for_span(span: f64, most: usize) -> Self {
        let least = (span / most.max(1) as f64).max(1e-300);
        let power = least.log10().floor() as i32;
        let digits = [(1.0, 0), (2.0, 0), (5.0, 0), (1.0, 1), (2.0, 1)];
        let steps = digits.map(|(digit, more)| Self { digit, power: power + more });
        steps.into_iter().find(|step| step.value(1.0) >= least * (1.0 - 1e-9)).unwrap_or(steps[4])
    }

    fn value(self, n: f64) -> f64 {
        scaled(n * self.digit, self.power)
    }

    /// Number of the last tick that is not above `value`, but for rounding.
    fn below(self, value: f64) -> f64 {
        (value / self.value(1.0) + 1e-6).floor()
    }

    /// Number of the first tick that is not below `value`, but for rounding.
    fn above(self, value: f64) -> f64 {
        (value / self.value(1.0) - 1e-6).ceil()
    }

    fn ticks(self, first: f64, last: f64, largest: f64) -> Vec<Tick> {
        let count = (last - first + 1.0).clamp(0.0, 100.0) as usize;
        // Adding zero turns -0 into 0.
        let values = (0..count).map(|i| self.value(first + i as f64) + 0.0);
        values.map(|value| Tick { value, label: self.label(value, largest) }).collect()
    }

    /// As many decimals as the step has; with an exponent where plain numbers would be long.
    fn label(self, value: f64, largest: f64) -> String {
        let label = if largest < 1e6 && self.power >= -5 {
            format!("{value:.*}", (-self.power).max(0) as usize)
        } else if value == 0.0 {
            "0".to_owned()
        } else {
            let digits = (value.abs().log10().floor() as i32 - self.power).max(0);
            format!("{value:.*e}", digits as usize)
        };
        label.replace('-', "−")
    }
}

#[cfg(test)]
mod tests;
