//! Variable density: the values of a two-dimensional array as colors.

use crate::axis::{Along, Axis, AxisRange};
use crate::color::{FRAME, Rgb, diverging, hex, sequential};
use crate::field::{Field, has_data, size_at};
use crate::font::{AXIS_TITLE, LABEL, fit, room};
use crate::frame::{MARGIN, WIDTH, no_data};
use crate::legend::{Entry, Sample};
use crate::picture::Picture;
use crate::svg::{Anchor, Area, Svg};
use crate::symbol::Symbol;

mod raster;

/// Width of the color bar in px, and its distance from the plot.
const BAR: f64 = 14.0;
const BAR_GAP: f64 = 14.0;
const BAR_STEPS: usize = 128;
/// Receivers closer than this many px are drawn as one.
const CLOSEST_RECEIVERS: f64 = 12.0;

/// A seismic gather, a snapshot of a wave field or a velocity model.
#[derive(Clone, Debug, PartialEq)]
pub struct Density<'a> {
    /// Title of the picture.
    pub title: String,
    /// `nx * nz` values; that of `ix` across and `iz` down is at `ix * nz + iz`. Those that are not finite are
    /// gray.
    pub values: &'a [f32],
    /// Values across.
    pub nx: usize,
    /// Values down.
    pub nz: usize,
    /// What the array spans across, from the left border of the picture to the right one.
    pub x: AxisRange,
    /// What the array spans down, from the upper border of the picture to the lower one.
    pub z: AxisRange,
    /// How values become colors.
    pub scale: Scale,
    /// What the values are, with the unit, for the color bar: `velocity [m/s]`.
    pub bar_title: String,
    /// Sources and receivers.
    pub markers: Vec<Marker>,
}

/// How values become colors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// Blue below zero, white, red above. Colors are full at the size that `percentile` (0 to 100) percent of
    /// the values do not exceed.
    Symmetric {
        /// 99 shows weak events next to strong ones; 100 cuts nothing off.
        percentile: f64,
    },
    /// Dark to bright (viridis) from the least to the greatest value.
    Sequential,
}

/// A place on the field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Marker {
    /// On the axis across.
    pub x: f64,
    /// On the axis down.
    pub z: f64,
    /// What is there.
    pub kind: MarkerKind,
}

/// What is at a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkerKind {
    /// A star.
    Source,
    /// A small triangle.
    Receiver,
}

impl MarkerKind {
    /// The shape with its fill and outline.
    fn look(self) -> (Symbol, &'static str, &'static str) {
        match self {
            Self::Source => (Symbol::Star, "#f0e442", "#000000"),
            Self::Receiver => (Symbol::Down, "#ffffff", "#000000"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Receiver => "receiver",
        }
    }
}

impl Density<'_> {
    /// The picture, or one that says "no data" when no value is finite or their number is not `nx * nz`.
    ///
    /// An array of more than 1200 values across or down is drawn as the means of blocks, one of less than 300 is
    /// interpolated. O(values).
    pub fn draw(&self) -> Picture {
        if !has_data(self.values, self.nx, self.nz) {
            return no_data(&self.title);
        }
        let colors = Colors::of(self.values, self.scale);
        let grid = raster::Grid { values: self.values, nx: self.nx, nz: self.nz };
        let Ok(image) = raster::png(&raster::fitted(grid), &colors) else { return no_data(&self.title) };

        let mut svg = Svg::default();
        // The labels of the bar do not depend on where it is, but for its height: those of the lowest fit all.
        let labels = colors.axis(180.0);
        let widest = labels.ticks.iter().map(|tick| room(&tick.label, LABEL)).fold(0.0, f64::max) + 6.0;
        let right = BAR_GAP + BAR + 8.0 + widest + AXIS_TITLE + 8.0 + MARGIN;
        let entries = self.legend();
        let field =
            Field::begin(&mut svg, (&self.title, &entries), (&self.x, &self.z), (self.nx, self.nz), right);
        svg.image(field.area, &image);
        self.draw_markers(&mut svg, &field);
        let height = field.finish(&mut svg);
        self.draw_bar(&mut svg, field.area, &colors);
        svg.finish(&self.title, WIDTH, height)
    }

    fn legend(&self) -> Vec<Entry> {
        let kinds = [MarkerKind::Source, MarkerKind::Receiver].into_iter();
        let present = kinds.filter(|&kind| self.markers.iter().any(|marker| marker.kind == kind));
        let entry = |kind: MarkerKind| {
            let (symbol, fill, stroke) = kind.look();
            Entry { sample: Sample::Symbol { symbol, fill, stroke }, name: kind.name().to_owned() }
        };
        present.map(entry).collect()
    }

    /// Receivers first, so that none hides a source.
    fn draw_markers(&self, svg: &mut Svg, field: &Field<'_>) {
        let places = |kind| {
            let markers = self.markers.iter().filter(move |marker| marker.kind == kind);
            markers.filter_map(|marker| field.place(marker.x, marker.z))
        };
        let (symbol, fill, stroke) = MarkerKind::Receiver.look();
        let mut last: Option<(f64, f64)> = None;
        for place in places(MarkerKind::Receiver) {
            if last.is_none_or(|last| (place.0 - last.0).hypot(place.1 - last.1) >= CLOSEST_RECEIVERS) {
                symbol.draw(svg, place, 4.0, fill, stroke);
                last = Some(place);
            }
        }
        let (symbol, fill, stroke) = MarkerKind::Source.look();
        places(MarkerKind::Source).for_each(|place| symbol.draw(svg, place, 6.5, fill, stroke));
    }

    fn draw_bar(&self, svg: &mut Svg, plot: Area, colors: &Colors) {
        let bar = Area::new(plot.right() + BAR_GAP, plot.y, BAR, plot.height);
        for step in 0..BAR_STEPS {
            // Each reaches to the bottom under the next ones, so that no seams show.
            let down = bar.height * step as f64 / BAR_STEPS as f64;
            let color = colors.map(1.0 - (step as f64 + 0.5) / BAR_STEPS as f64);
            svg.rect(Area { y: bar.y + down, height: bar.height - down, ..bar }, &hex(color));
        }
        svg.border(bar, FRAME);
        let axis = colors.axis(bar.height);
        for tick in &axis.ticks {
            if let Some(at) = axis.at(tick.value) {
                let y = bar.bottom() - at * bar.height;
                svg.line((bar.right(), y), (bar.right() + 4.0, y), FRAME, 1.0);
                svg.label((bar.right() + 8.0, y), Anchor::Start, &tick.label);
            }
        }
        let title = fit(&self.bar_title, AXIS_TITLE, plot.height + 20.0);
        let at = (WIDTH - MARGIN - AXIS_TITLE / 2.0, bar.y + bar.height / 2.0);
        svg.upright(at, AXIS_TITLE, &title);
    }
}

/// The colors of values between two bounds.
#[derive(Clone, Copy, Debug)]
struct Colors {
    low: f64,
    high: f64,
    scale: Scale,
}

impl Colors {
    fn of(values: &[f32], scale: Scale) -> Self {
        let (low, high) = match scale {
            Scale::Symmetric { percentile } => {
                let size = size_at(values, percentile);
                // An array that is zero but for a few values is not cut off at zero.
                let size = if size > 0.0 { size } else { size_at(values, 100.0) };
                (-size, size)
            }
            Scale::Sequential => {
                let finite = values.iter().filter(|value| value.is_finite()).map(|&value| f64::from(value));
                finite.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)))
            }
        };
        if high - low > 1e-6 * low.abs().max(high.abs()) {
            return Self { low, high, scale };
        }
        let pad = if high == 0.0 { 1.0 } else { high.abs() / 2.0 };
        Self { low: low - pad, high: high + pad, scale }
    }

    /// Where a value is between the bounds, 0 to 1.
    fn at(&self, value: f32) -> f64 {
        ((f64::from(value) - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    fn map(&self, at: f64) -> Rgb {
        match self.scale {
            Scale::Symmetric { .. } => diverging(at),
            Scale::Sequential => sequential(at),
        }
    }

    fn axis(&self, height: f64) -> Axis {
        Axis::exactly(self.low, self.high, Along::Height(height))
    }
}
