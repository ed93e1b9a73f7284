//! From values to places along an axis, and the round values that are labeled.
//!
//! Ticks are multiples of 1, 2 or 5 times a power of ten (P. S. Heckbert, Nice numbers for graph labels, Graphics
//! Gems, 1990). A logarithmic axis has ticks at 1, 2, 5, 10, ..., or at powers of ten, or, when all values are
//! powers of two (ranks, bytes), at powers of two.

use crate::font::{LABEL, room};
use ticks::Ticks;

mod ticks;

/// How values are spread along an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spacing {
    /// Equal differences take equal room.
    #[default]
    Linear,
    /// Equal ratios take equal room; values that are not positive are left out.
    Log,
}

/// Title and spacing of an axis of a chart. Its range follows from the data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChartAxis {
    /// Title, with the unit: `time per step [ms]`.
    pub title: String,
    /// Spacing of the values.
    pub spacing: Spacing,
}

impl ChartAxis {
    /// A linear axis.
    pub fn linear(title: impl Into<String>) -> Self {
        Self { title: title.into(), spacing: Spacing::Linear }
    }

    /// A logarithmic axis.
    pub fn log(title: impl Into<String>) -> Self {
        Self { title: title.into(), spacing: Spacing::Log }
    }
}

/// Range and title of an axis of a field. `from` may be above `to`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AxisRange {
    /// Where the array begins.
    pub from: f64,
    /// Where the array ends.
    pub to: f64,
    /// Title, with the unit: `distance [m]`.
    pub title: String,
}

/// A labeled place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    pub(crate) value: f64,
    pub(crate) label: String,
}

/// Which way an axis runs, and for how many px: what decides how many labels have room.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Along {
    Width(f64),
    Height(f64),
}

impl Along {
    fn px(self) -> f64 {
        match self {
            Self::Width(px) | Self::Height(px) => px,
        }
    }

    /// Room that a label takes along the axis, with the gap to the next one.
    fn room(self, label: &str) -> f64 {
        match self {
            Self::Width(_) => room(label, LABEL) + 16.0,
            Self::Height(_) => 2.8 * LABEL,
        }
    }
}

/// An axis with its range, ticks and the lines between ticks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    spacing: Spacing,
    from: f64,
    to: f64,
    pub(crate) ticks: Vec<Tick>,
    pub(crate) faint: Vec<f64>,
}

impl Axis {
    /// An axis over all usable `values`, widened to round numbers; none when there are no usable ones.
    pub(crate) fn around(values: impl Iterator<Item = f64>, spacing: Spacing, along: Along) -> Option<Self> {
        let values: Vec<f64> = values.filter(|&value| usable(value, spacing)).collect();
        let low = values.iter().copied().reduce(f64::min)?;
        let high = values.iter().copied().reduce(f64::max)?;
        Some(Self::with_room(along, |most| match spacing {
            Spacing::Linear => Ticks::widened(low, high, most),
            Spacing::Log if values.iter().all(|&value| is_power_of_two(value)) => {
                Ticks::binary(low, high, most)
            }
            Spacing::Log => Ticks::decimal(low, high, most),
        }))
    }

    /// A linear axis over exactly `from..to`; over 0..1 when that is no range.
    pub(crate) fn exactly(from: f64, to: f64, along: Along) -> Self {
        let sound = usable(from, Spacing::Linear)
            && usable(to, Spacing::Linear)
            && (to - from).abs() > 1e-9 * from.abs().max(to.abs());
        let (from, to) = if sound { (from, to) } else { (0.0, 1.0) };
        let axis = Self::with_room(along, |most| Ticks::within(from.min(to), from.max(to), most));
        Self { from, to, ..axis }
    }

    /// The axis with the most ticks whose labels do not run into each other.
    fn with_room(along: Along, ticks: impl Fn(usize) -> Ticks) -> Self {
        let make = |most| Self::from(ticks(most));
        (2..=10).rev().map(make).find(|axis| axis.has_room(along)).unwrap_or_else(|| make(2))
    }

    fn has_room(&self, along: Along) -> bool {
        let taken: Vec<f64> = self.ticks.iter().map(|tick| along.room(&tick.label)).collect();
        let at: Vec<f64> =
            self.ticks.iter().filter_map(|tick| self.at(tick.value)).map(|at| at * along.px()).collect();
        at.windows(2)
            .zip(taken.windows(2))
            .all(|(at, taken)| (at[1] - at[0]).abs() >= (taken[0] + taken[1]) / 2.0)
    }

    /// Where `value` is, 0 at the beginning and 1 at the end of the axis; none when it is not on it.
    pub(crate) fn at(&self, value: f64) -> Option<f64> {
        if !usable(value, self.spacing) {
            return None;
        }
        let at = match self.spacing {
            Spacing::Linear => (value - self.from) / (self.to - self.from),
            Spacing::Log => (value / self.from).ln() / (self.to / self.from).ln(),
        };
        (-1e-6..=1.0 + 1e-6).contains(&at).then(|| at.clamp(0.0, 1.0))
    }
}

impl From<Ticks> for Axis {
    fn from(ticks: Ticks) -> Self {
        let Ticks { spacing, from, to, ticks, faint } = ticks;
        Self { spacing, from, to, ticks, faint }
    }
}

/// Whether a value can be drawn. Beyond 1e300, differences and ratios of values need not be finite.
pub(crate) fn usable(value: f64, spacing: Spacing) -> bool {
    match spacing {
        Spacing::Linear => value.abs() <= 1e300,
        Spacing::Log => (1e-150..=1e150).contains(&value),
    }
}

fn is_power_of_two(value: f64) -> bool {
    (1.0..=2f64.powi(62)).contains(&value) && value.fract() == 0.0 && (value as u64).is_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(values: &[f64], spacing: Spacing, along: Along) -> Axis {
        Axis::around(values.iter().copied(), spacing, along).unwrap()
    }

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn round_numbers_around_the_data() {
        let axis = around(&[0.3, 4.1], Spacing::Linear, Along::Height(200.0));
        assert_eq!(labels(&axis), ["0", "1", "2", "3", "4", "5"]);
        assert_eq!((axis.at(0.0), axis.at(2.5), axis.at(5.0)), (Some(0.0), Some(0.5), Some(1.0)));
        assert_eq!((axis.at(-1.0), axis.at(f64::NAN)), (None, None));
    }

    #[test]
    fn axis_far_from_zero_does_not_start_there() {
        let axis = around(&[-0.02, 0.031], Spacing::Linear, Along::Height(240.0));
        assert_eq!(labels(&axis), ["−0.02", "−0.01", "0.00", "0.01", "0.02", "0.03", "0.04"]);
        let axis = around(&[1502.0, 1510.0], Spacing::Linear, Along::Height(150.0));
        assert_eq!(labels(&axis), ["1502", "1504", "1506", "1508", "1510"]);
    }

    #[test]
    fn decades_and_powers_of_two() {
        let axis = around(&[3e-9, 0.4], Spacing::Log, Along::Height(300.0));
        assert_eq!(labels(&axis)[..2], ["1e−8", "1e−7"]);
        let axis = around(&[4.0, 8.0, 16.0, 64.0], Spacing::Log, Along::Width(400.0));
        assert_eq!(labels(&axis), ["4", "8", "16", "32", "64"]);
        assert_eq!(axis.at(16.0), Some(0.5));
        assert_eq!(axis.at(0.0), None);
    }

    #[test]
    fn nothing_usable_is_no_axis() {
        let none = [f64::NAN, f64::INFINITY, -1.0, 0.0];
        assert_eq!(Axis::around(none.into_iter(), Spacing::Log, Along::Width(400.0)), None);
        assert_eq!(Axis::around([].into_iter(), Spacing::Linear, Along::Width(400.0)), None);
    }

    #[test]
    fn an_exact_range_keeps_its_ends_and_direction() {
        let axis = Axis::exactly(3.0, 0.0, Along::Height(300.0));
        assert_eq!((axis.at(3.0), axis.at(0.0)), (Some(0.0), Some(1.0)));
        assert!(axis.ticks.len() > 3);
        let fallback = Axis::exactly(f64::NAN, 1.0, Along::Height(300.0));
        assert_eq!((fallback.at(0.0), fallback.at(1.0)), (Some(0.0), Some(1.0)));
    }
}
