//! Bars side by side, in groups.

use super::short;
use crate::axis::{Along, Axis, Spacing, usable};
use crate::color::{FRAME, series};
use crate::font::{LABEL, fit, room};
use crate::frame::{
    MARGIN, Upright, WIDTH, axis_left, bottom_room, grid_along, head, left_room, no_data, title_below,
};
use crate::legend::{Entry, Sample};
use crate::picture::Picture;
use crate::svg::{Anchor, Area, Svg};

const HEIGHT: f64 = 320.0;
/// Share of the room of a group that its bars take.
const FILLED: f64 = 0.84;
/// Size of the values at the bars.
const VALUE: f64 = 10.0;

/// Bars over groups: one bar per series in each. They start at zero, so their lengths compare.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupedBars {
    /// Title of the picture.
    pub title: String,
    /// Title of the groups: `grid points`.
    pub group_title: String,
    /// Title of the values, with the unit.
    pub value_title: String,
    /// Names of the groups, from left to right.
    pub groups: Vec<String>,
    /// What is compared in each group.
    pub series: Vec<BarSeries>,
}

/// The bars of one color.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BarSeries {
    /// Name in the legend.
    pub name: String,
    /// One value per group; where one is missing or not finite there is no bar.
    pub values: Vec<f64>,
}

impl GroupedBars {
    /// The chart, or one that says "no data". Values stand at the bars where there is room for them.
    pub fn draw(&self) -> Picture {
        let values: Vec<f64> = self.bars().map(|(_, _, value)| value).collect();
        if values.is_empty() {
            return no_data(&self.title);
        }
        let with_zero = values.iter().copied().chain([0.0]);
        let Some(y) = Axis::around(with_zero, Spacing::Linear, Along::Height(HEIGHT)) else {
            return no_data(&self.title);
        };
        let left = left_room(&self.value_title, y.ticks.iter().map(|tick| tick.label.as_str()));

        let mut svg = Svg::default();
        let top = head(&mut svg, &self.title, &self.legend(), WIDTH);
        let area = Area::new(left, top, WIDTH - left - MARGIN, HEIGHT);
        grid_along(&mut svg, area, &y);
        axis_left(&mut svg, area, &y, Upright::Rising, &self.value_title);
        self.draw_bars(&mut svg, area, &y);
        self.draw_groups(&mut svg, area);
        svg.finish(&self.title, WIDTH, area.bottom() + bottom_room(&self.group_title))
    }

    /// Group, series and value of every bar.
    fn bars(&self) -> impl Iterator<Item = (usize, usize, f64)> {
        (0..self.groups.len()).flat_map(move |group| {
            let of_group = move |(i, series): (usize, &BarSeries)| {
                let value = series.values.get(group).copied()?;
                usable(value, Spacing::Linear).then_some((group, i, value))
            };
            self.series.iter().enumerate().filter_map(of_group)
        })
    }

    fn legend(&self) -> Vec<Entry> {
        let entry = |(i, bars): (usize, &BarSeries)| Entry {
            sample: Sample::Block { fill: series(i).into() },
            name: bars.name.clone(),
        };
        self.series.iter().enumerate().map(entry).collect()
    }

    fn draw_bars(&self, svg: &mut Svg, area: Area, y: &Axis) {
        let height = |value| area.bottom() - y.at(value).unwrap_or(0.0) * area.height;
        let zero = height(0.0);
        let group_width = area.width / self.groups.len() as f64;
        let bar_width = FILLED * group_width / self.series.len() as f64;
        let room_for_values = self.bars().all(|(_, _, value)| room(&short(value), VALUE) <= bar_width + 2.0);
        for (group, i, value) in self.bars() {
            let x = area.x + group_width * (group as f64 + (1.0 - FILLED) / 2.0) + bar_width * i as f64;
            let end = height(value);
            svg.rect(Area::new(x, end.min(zero), bar_width * 0.94, (end - zero).abs()), series(i));
            if room_for_values {
                let beyond = if value < 0.0 { end + 8.0 } else { end - 8.0 };
                svg.value((x + bar_width * 0.47, beyond), Anchor::Middle, VALUE, &short(value));
            }
        }
        svg.line((area.x, zero), (area.right(), zero), FRAME, 1.0);
    }

    fn draw_groups(&self, svg: &mut Svg, area: Area) {
        let width = area.width / self.groups.len() as f64;
        for (group, name) in self.groups.iter().enumerate() {
            let x = area.x + width * (group as f64 + 0.5);
            svg.label((x, area.bottom() + 14.0), Anchor::Middle, &fit(name, LABEL, width - 4.0));
        }
        title_below(svg, area, &self.group_title);
    }
}
