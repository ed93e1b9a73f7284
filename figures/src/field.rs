//! What pictures of a two-dimensional array have in common: its axes, x to the right and z downwards.

use crate::axis::{Along, Axis, AxisRange};
use crate::color::FRAME;
use crate::frame::{self, MARGIN, Upright, WIDTH, axis_below, axis_left, head, left_room};
use crate::legend::Entry;
use crate::svg::{Area, Svg};

const LOWEST: f64 = 180.0;
const HIGHEST: f64 = 560.0;

/// A plot of an array.
#[derive(Clone, Debug)]
pub(crate) struct Field<'a> {
    pub(crate) area: Area,
    x: Axis,
    z: Axis,
    titles: (&'a str, &'a str),
}

impl<'a> Field<'a> {
    /// Draws title and legend and takes the room below them, as high as square cells of `nx` by `nz` make it,
    /// within bounds, leaving `right` px to the right.
    pub(crate) fn begin(
        svg: &mut Svg,
        (title, entries): (&str, &[Entry]),
        (x, z): (&'a AxisRange, &'a AxisRange),
        (nx, nz): (usize, usize),
        right: f64,
    ) -> Self {
        // The room to the left depends on the labels, their number on the height, and that on the width.
        let guess = WIDTH - 70.0 - right;
        let height = (guess * nz as f64 / nx as f64).clamp(LOWEST, HIGHEST).round();
        let z_axis = Axis::exactly(z.from, z.to, Along::Height(height));
        let left = left_room(&z.title, z_axis.ticks.iter().map(|tick| tick.label.as_str())).ceil();
        let width = (WIDTH - left - right).floor();
        let x_axis = Axis::exactly(x.from, x.to, Along::Width(width));
        let top = head(svg, title, entries, WIDTH).ceil();
        Self { area: Area::new(left, top, width, height), x: x_axis, z: z_axis, titles: (&x.title, &z.title) }
    }

    /// Where a point of the field is on the picture; none outside the axes.
    pub(crate) fn place(&self, x: f64, z: f64) -> Option<(f64, f64)> {
        let (across, down) = (self.x.at(x)?, self.z.at(z)?);
        Some((self.area.x + across * self.area.width, self.area.y + down * self.area.height))
    }

    /// Draws border and axes over what is there. Returns the height of the picture.
    pub(crate) fn finish(&self, svg: &mut Svg) -> f64 {
        svg.border(self.area, FRAME);
        axis_below(svg, self.area, &self.x, self.titles.0);
        axis_left(svg, self.area, &self.z, Upright::Falling, self.titles.1);
        self.area.bottom() + frame::bottom_room(self.titles.0)
    }
}

/// Whether `values` are `nx` by `nz`, at least one, and one of them finite.
pub(crate) fn has_data(values: &[f32], nx: usize, nz: usize) -> bool {
    nx.checked_mul(nz) == Some(values.len()) && values.iter().any(|value| value.is_finite())
}

/// The smallest size that `percentile` (0 to 100) percent of the finite values do not exceed. O(values).
pub(crate) fn size_at(values: &[f32], percentile: f64) -> f64 {
    let mut sizes: Vec<f32> =
        values.iter().map(|value| value.abs()).filter(|size| size.is_finite()).collect();
    if sizes.is_empty() {
        return 0.0;
    }
    let share = if percentile.is_finite() { percentile.clamp(0.0, 100.0) / 100.0 } else { 1.0 };
    let at = (share * (sizes.len() - 1) as f64).ceil() as usize;
    f64::from(*sizes.select_nth_unstable_by(at, f32::total_cmp).1)
}

/// Room to the right of a plot without a color bar.
pub(crate) const RIGHT: f64 = 2.0 * MARGIN;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_sizes() {
        let values: Vec<f32> = (0..=100i16).map(|i| f32::from(if i % 2 == 0 { i } else { -i })).collect();
        assert_eq!(
            [0.0, 50.0, 99.0, 100.0, 400.0].map(|p| size_at(&values, p)),
            [0.0, 50.0, 99.0, 100.0, 100.0]
        );
        assert_eq!(size_at(&[f32::NAN, -3.0], 50.0), 3.0);
        assert_eq!(size_at(&[f32::NAN], 50.0), 0.0);
    }
}
