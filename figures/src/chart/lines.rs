//! Lines through points, one line per series.

use crate::axis::{Along, Axis, ChartAxis, usable};
use crate::color::{FRAME, series};
use crate::frame::{
    MARGIN, Upright, WIDTH, axis_below, axis_left, bottom_room, grid_across, grid_along, head, left_room,
    no_data,
};
use crate::legend::{Entry, Sample};
use crate::picture::Picture;
use crate::svg::{Area, Paint, Path, Svg};
use crate::symbol::Symbol;
use crate::thin::extremes;

const HEIGHT: f64 = 340.0;
/// A series of more points is drawn without symbols at them.
const MOST_SYMBOLS: usize = 50;
/// Half the width of the ends of an error bar.
const CAP: f64 = 3.5;

/// Lines over common axes. Points with a coordinate that is not finite, or not positive on a logarithmic axis,
/// interrupt their line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LineChart {
    /// Title of the picture.
    pub title: String,
    /// Horizontal axis.
    pub x: ChartAxis,
    /// Upright axis.
    pub y: ChartAxis,
    /// The lines.
    pub series: Vec<Series>,
}

/// One line of a chart, with its name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Its points in the order in which they are joined.
    pub points: Vec<Point>,
    /// Points beside the line, in its color: what was measured where the line is a model. If there are any in a chart, only
    /// these have symbols.
    pub dots: Vec<Point>,
}

impl Series {
    /// A line through `(x, y)` points without error bars.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let points = points.into_iter().map(|(x, y)| Point { x, y, spread: None }).collect();
        Self { name: name.into(), points, dots: vec![] }
    }
}

/// One point of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// Place on the horizontal axis.
    pub x: f64,
    /// Place on the upright axis.
    pub y: f64,
    /// Lowest and highest of what `y` summarises, drawn as an error bar.
    pub spread: Option<(f64, f64)>,
}

impl LineChart {
    /// The chart, or one that says "no data".
    pub fn draw(&self) -> Picture {
        let along = Along::Height(HEIGHT);
        let Some(y) = Axis::around(self.heights(), self.y.spacing, along) else {
            return no_data(&self.title);
        };
        let left = left_room(&self.y.title, y.ticks.iter().map(|tick| tick.label.as_str()));
        let width = WIDTH - left - 2.0 * MARGIN;
        let places = self.points().map(|point| point.x);
        let Some(x) = Axis::around(places, self.x.spacing, Along::Width(width)) else {
            return no_data(&self.title);
        };

        let mut svg = Svg::default();
        let top = head(&mut svg, &self.title, &self.legend(), WIDTH);
        let area = Area::new(left, top, width, HEIGHT);
        grid_across(&mut svg, area, &x);
        grid_along(&mut svg, area, &y);
        svg.border(area, FRAME);
        axis_below(&mut svg, area, &x, &self.x.title);
        axis_left(&mut svg, area, &y, Upright::Rising, &self.y.title);
        let dotted = self.series.iter().any(|line| !line.dots.is_empty());
        let plane = Plane { area, x, y, dotted };
        for (i, line) in self.series.iter().enumerate() {
            plane.draw(&mut svg, line, i);
        }
        svg.finish(&self.title, WIDTH, area.bottom() + bottom_room(&self.x.title))
    }

    /// Points that have a place on both axes.
    fn points(&self) -> impl Iterator<Item = &Point> {
        let points = self.series.iter().flat_map(|series| series.points.iter().chain(&series.dots));
        points.filter(|point| usable(point.x, self.x.spacing) && usable(point.y, self.y.spacing))
    }

    fn heights(&self) -> impl Iterator<Item = f64> {
        self.points().flat_map(|point| {
            let (low, high) = point.spread.unwrap_or((point.y, point.y));
            [point.y, low, high]
        })
    }

    fn legend(&self) -> Vec<Entry> {
        let entry = |(i, line): (usize, &Series)| Entry {
            sample: Sample::Line { color: series(i), symbol: Symbol::numbered(i) },
            name: line.name.clone(),
        };
        self.series.iter().enumerate().map(entry).collect()
    }
}

struct Plane {
    area: Area,
    x: Axis,
    y: Axis,
    /// Symbols are at the dots.
    dotted: bool,
}

impl Plane {
    fn place(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        let (across, up) = (self.x.at(x)?, self.y.at(y)?);
        Some((self.area.x + across * self.area.width, self.area.bottom() - up * self.area.height))
    }

    fn draw(&self, svg: &mut Svg, line: &Series, i: usize) {
        let places: Vec<Option<(f64, f64)>> =
            line.points.iter().map(|point| self.place(point.x, point.y)).collect();
        let mut path = Path::default();
        for run in places.split(Option::is_none) {
            let run: Vec<(f64, f64)> = run.iter().flatten().copied().collect();
            path.polygon(&extremes(&run), false);
        }
        svg.path(&path, Paint::Stroke(series(i), 1.8));
        svg.path(&self.error_bars(line), Paint::Stroke(series(i), 1.0));
        let dots: Vec<Option<(f64, f64)>> =
            line.dots.iter().map(|point| self.place(point.x, point.y)).collect();
        let marked = if self.dotted { dots } else { places };
        if marked.len() <= MOST_SYMBOLS {
            for &place in marked.iter().flatten() {
                Symbol::numbered(i).draw(svg, place, 3.6, series(i), series(i));
            }
        }
    }

    fn error_bars(&self, line: &Series) -> Path {
        let mut path = Path::default();
        for point in line.points.iter().chain(&line.dots) {
            let ends = point.spread.and_then(|(low, high)| {
                self.place(point.x, point.y)?;
                Some((self.place(point.x, low)?, self.place(point.x, high)?))
            });
            if let Some((low, high)) = ends {
                path.polygon(&[low, high], false);
                for (x, y) in [low, high] {
                    path.polygon(&[(x - CAP, y), (x + CAP, y)], false);
                }
            }
        }
        path
    }
}
