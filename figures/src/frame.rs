//! What surrounds a plot: title and legend above it, ticks and titles of the axes, lines of the grid.

use crate::axis::Axis;
use crate::color::{FAINT, FRAME, GRID, INK};
use crate::font::{AXIS_TITLE, LABEL, TITLE, fit, room, wrap};
use crate::legend::{self, Entry};
use crate::picture::Picture;
use crate::svg::{Anchor, Area, Svg};

/// Free room around a picture in px.
pub(crate) const MARGIN: f64 = 14.0;
/// Width of a picture in px.
pub(crate) const WIDTH: f64 = 760.0;

const TITLE_LINE: f64 = 21.0;
const TICK: f64 = 4.0;
const AXIS_TITLE_LINE: f64 = 22.0;

/// Draws title and legend at the top of a picture. Returns where the plot may begin.
pub(crate) fn head(svg: &mut Svg, title: &str, entries: &[Entry], width: f64) -> f64 {
    let inner = width - 2.0 * MARGIN;
    let mut y = MARGIN;
    for line in wrap(title, TITLE, inner, 3) {
        svg.text((MARGIN, y + TITLE_LINE / 2.0), Anchor::Start, TITLE, INK, &line);
        y += TITLE_LINE;
    }
    y += 4.0;
    y += legend::draw(svg, entries, MARGIN, y, inner);
    y + 10.0
}

/// Room to the left of a plot for the title of an upright axis and its widest label.
pub(crate) fn left_room<'a>(title: &str, labels: impl Iterator<Item = &'a str>) -> f64 {
    let widest = labels.map(|label| room(label, LABEL)).fold(0.0, f64::max);
    let title = if title.is_empty() { 0.0 } else { AXIS_TITLE_LINE };
    MARGIN + title + widest + TICK + 4.0
}

/// Room below a plot for the labels of an axis and its title.
pub(crate) fn bottom_room(title: &str) -> f64 {
    let title = if title.is_empty() { 0.0 } else { AXIS_TITLE_LINE };
    TICK + 4.0 + LABEL + title + MARGIN
}

/// Lines across `area` at the ticks of a horizontal axis, faint ones first.
pub(crate) fn grid_across(svg: &mut Svg, area: Area, axis: &Axis) {
    let mut line = |value, color| {
        if let Some(at) = axis.at(value) {
            let x = area.x + at * area.width;
            svg.line((x, area.y), (x, area.bottom()), color, 1.0);
        }
    };
    axis.faint.iter().for_each(|&value| line(value, FAINT));
    axis.ticks.iter().for_each(|tick| line(tick.value, GRID));
}

/// Lines along `area` at the ticks of an upright axis that rises.
pub(crate) fn grid_along(svg: &mut Svg, area: Area, axis: &Axis) {
    let mut line = |value, color| {
        if let Some(at) = axis.at(value) {
            let y = area.bottom() - at * area.height;
            svg.line((area.x, y), (area.right(), y), color, 1.0);
        }
    };
    axis.faint.iter().for_each(|&value| line(value, FAINT));
    axis.ticks.iter().for_each(|tick| line(tick.value, GRID));
}

/// Ticks, labels and title of a horizontal axis below `area`.
pub(crate) fn axis_below(svg: &mut Svg, area: Area, axis: &Axis, title: &str) {
    let y = area.bottom();
    for tick in &axis.ticks {
        if let Some(at) = axis.at(tick.value) {
            let x = area.x + at * area.width;
            svg.line((x, y), (x, y + TICK), FRAME, 1.0);
            svg.label((x, y + TICK + 4.0 + LABEL / 2.0), Anchor::Middle, &tick.label);
        }
    }
    title_below(svg, area, title);
}

/// Title of a horizontal axis below `area` and its labels.
pub(crate) fn title_below(svg: &mut Svg, area: Area, title: &str) {
    let y = area.bottom() + TICK + 4.0 + LABEL + AXIS_TITLE_LINE / 2.0 + 2.0;
    let title = fit(title, AXIS_TITLE, area.width);
    svg.text((area.x + area.width / 2.0, y), Anchor::Middle, AXIS_TITLE, INK, &title);
}

/// Which end of an upright axis its values begin at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upright {
    Rising,
    Falling,
}

/// Ticks, labels and title of an upright axis to the left of `area`.
pub(crate) fn axis_left(svg: &mut Svg, area: Area, axis: &Axis, upright: Upright, title: &str) {
    for tick in &axis.ticks {
        let Some(at) = axis.at(tick.value) else { continue };
        let at = if upright == Upright::Rising { 1.0 - at } else { at };
        let y = area.y + at * area.height;
        svg.line((area.x - TICK, y), (area.x, y), FRAME, 1.0);
        svg.label((area.x - TICK - 4.0, y), Anchor::End, &tick.label);
    }
    title_left(svg, area, title);
}

/// Title of an upright axis at the left border of the picture.
pub(crate) fn title_left(svg: &mut Svg, area: Area, title: &str) {
    if !title.is_empty() {
        let title = fit(title, AXIS_TITLE, area.height + 20.0);
        svg.upright((MARGIN + AXIS_TITLE / 2.0, area.y + area.height / 2.0), AXIS_TITLE, &title);
    }
}

/// A picture for a title without data.
pub(crate) fn no_data(title: &str) -> Picture {
    let mut svg = Svg::default();
    let top = head(&mut svg, title, &[], WIDTH);
    let area = Area::new(MARGIN, top, WIDTH - 2.0 * MARGIN, 120.0);
    svg.border(area, GRID);
    svg.text((WIDTH / 2.0, top + 60.0), Anchor::Middle, AXIS_TITLE, FRAME, "no data");
    svg.finish(title, WIDTH, area.bottom() + MARGIN)
}
