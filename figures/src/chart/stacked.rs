//! Bars made of parts, one below the other.

use std::borrow::Cow;

use super::short;
use crate::axis::{Along, Axis, Spacing, usable};
use crate::color::{FRAME, GRAY, series, shade};
use crate::font::{LABEL, fit, room};
use crate::frame::{MARGIN, WIDTH, axis_below, bottom_room, grid_across, head, left_room, no_data};
use crate::legend::{Entry, Sample};
use crate::picture::Picture;
use crate::svg::{Anchor, Area, Svg};

const ROW: f64 = 34.0;
const BAR: f64 = 22.0;
/// Between two parts of a bar that are wide enough to be seen all the same.
const GAP: f64 = 1.0;
/// Widest name of a row in px.
const WIDEST_NAME: f64 = 220.0;

/// Horizontal bars, each the sum of its phases, with the total at its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StackedBars {
    /// Title of the picture.
    pub title: String,
    /// Title of the values, with the unit: `time [s]`.
    pub value_title: String,
    /// Names of the parts, in the order in which they follow each other.
    pub phases: Vec<String>,
    /// The bars, from top to bottom.
    pub rows: Vec<StackedRow>,
}

/// One bar of a chart, and the parts that it is stacked from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StackedRow {
    /// Name at the left.
    pub label: String,
    /// One value per phase. What is missing, negative or not finite counts as zero.
    pub values: Vec<f64>,
    /// What its colors say.
    pub hue: Hue,
}

/// What the colors of a bar say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hue {
    /// Which phase a part is: each has a color of its own.
    #[default]
    Phases,
    /// Whose bar it is: shades of the color that the series of this number has in other charts.
    Series(usize),
    /// That it is nobody's: shades of gray.
    Gray,
}

impl Hue {
    fn color(self, phase: usize, phases: usize) -> Cow<'static, str> {
        match self {
            Self::Phases => series(phase).into(),
            Self::Series(number) => shade(series(number), phase, phases).into(),
            Self::Gray => shade(GRAY, phase, phases).into(),
        }
    }
}

impl StackedRow {
    fn value(&self, phase: usize) -> f64 {
        let value = self.values.get(phase).copied().unwrap_or(0.0);
        if usable(value, Spacing::Linear) { value.max(0.0) } else { 0.0 }
    }

    fn total(&self, phases: usize) -> f64 {
        (0..phases).map(|phase| self.value(phase)).sum()
    }
}

impl StackedBars {
    /// The chart, or one that says "no data".
    pub fn draw(&self) -> Picture {
        let totals: Vec<f64> = self.rows.iter().map(|row| row.total(self.phases.len())).collect();
        if totals.iter().all(|&total| total == 0.0) {
            return no_data(&self.title);
        }
        let names: Vec<String> = self.rows.iter().map(|row| fit(&row.label, LABEL, WIDEST_NAME)).collect();
        let left = left_room("", names.iter().map(String::as_str)) + 4.0;
        let widest_total = totals.iter().map(|&total| room(&short(total), LABEL)).fold(0.0, f64::max);
        let width = WIDTH - left - widest_total - 8.0 - MARGIN;
        let with_zero = totals.iter().copied().chain([0.0]);
        let Some(x) = Axis::around(with_zero, Spacing::Linear, Along::Width(width)) else {
            return no_data(&self.title);
        };

        let mut svg = Svg::default();
        let top = head(&mut svg, &self.title, &self.legend(), WIDTH);
        let area = Area::new(left, top, width, ROW * self.rows.len() as f64 + 8.0);
        grid_across(&mut svg, area, &x);
        axis_below(&mut svg, area, &x, &self.value_title);
        for (i, row) in self.rows.iter().enumerate() {
            let middle = top + 4.0 + ROW * (i as f64 + 0.5);
            svg.label((left - 8.0, middle), Anchor::End, &names[i]);
            self.draw_row(&mut svg, row, Area::new(left, middle - BAR / 2.0, width, BAR), &x);
        }
        svg.line((left, top), (left, area.bottom()), FRAME, 1.0);
        svg.finish(&self.title, WIDTH, area.bottom() + bottom_room(&self.value_title))
    }

    fn draw_row(&self, svg: &mut Svg, row: &StackedRow, strip: Area, x: &Axis) {
        let place = |value| strip.x + x.at(value).unwrap_or(0.0) * strip.width;
        let (mut sum, mut from) = (0.0, place(0.0));
        for phase in 0..self.phases.len() {
            sum += row.value(phase);
            let to = place(sum);
            let width = if to - from > 3.0 * GAP { to - from - GAP } else { to - from };
            if width > 0.0 {
                svg.rect(Area { x: from, width, ..strip }, &row.hue.color(phase, self.phases.len()));
            }
            from = to;
        }
        svg.value((from + 6.0, strip.y + BAR / 2.0), Anchor::Start, LABEL, &short(sum));
    }

    /// Where rows differ in their colors, the shades alone tell the phases.
    fn legend(&self) -> Vec<Entry> {
        let hue = if self.rows.iter().all(|row| row.hue == Hue::Phases) { Hue::Phases } else { Hue::Gray };
        let entry = |(i, name): (usize, &String)| Entry {
            sample: Sample::Block { fill: hue.color(i, self.phases.len()) },
            name: name.clone(),
        };
        self.phases.iter().enumerate().map(entry).collect()
    }
}
