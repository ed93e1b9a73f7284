//! Wiggle traces: each trace is a line that swings about its place, its positive side filled.

use crate::axis::AxisRange;
use crate::field::{Field, RIGHT, has_data, size_at};
use crate::frame::{WIDTH, no_data};
use crate::picture::Picture;
use crate::svg::{Paint, Path, Svg};
use crate::thin::extremes;

/// Traces closer than this many px cannot be told apart.
const CLOSEST: f64 = 7.0;
/// Percent of the values that swing no farther than to the next trace.
const PERCENTILE: f64 = 98.5;
/// The most px that such a value swings, where traces are few and far apart.
const WIDEST_SWING: f64 = 40.0;
const TRACE: &str = "#111111";

/// A seismic section.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wiggle<'a> {
    /// Title of the picture. When traces are left out, it says so.
    pub title: String,
    /// `nx` traces of `nz` samples one after the other. Samples that are not finite count as zero.
    pub values: &'a [f32],
    /// Traces.
    pub nx: usize,
    /// Samples per trace.
    pub nz: usize,
    /// What the traces span across.
    pub x: AxisRange,
    /// What the samples span down.
    pub z: AxisRange,
}

impl Wiggle<'_> {
    /// The picture, or one that says "no data" when no value is finite or their number is not `nx * nz`.
    ///
    /// As many traces are drawn as can be told apart (about 95), evenly chosen. O(values).
    pub fn draw(&self) -> Picture {
        if !has_data(self.values, self.nx, self.nz) {
            return no_data(&self.title);
        }
        let every = (self.nx as f64 * CLOSEST / (WIDTH - 90.0)).ceil().max(1.0) as usize;
        let title = match every {
            1 => self.title.clone(),
            _ => format!("{} (every {} trace)", self.title, ordinal(every)),
        };
        let mut svg = Svg::default();
        let axes = (&self.x, &self.z);
        let field = Field::begin(&mut svg, (&title, &[]), axes, (self.nx, 2 * self.nz), RIGHT);
        let size = size_at(self.values, PERCENTILE);
        let size = if size > 0.0 { size } else { size_at(self.values, 100.0) };
        let spacing = field.area.width / self.nx as f64;
        let swing = (spacing * every as f64).min(WIDEST_SWING);
        let gain = if size > 0.0 { swing / size } else { 0.0 };
        for (i, trace) in self.values.chunks(self.nz).enumerate().skip(every / 2).step_by(every) {
            let middle = field.area.x + spacing * (i as f64 + 0.5);
            let trace = Trace::new(trace, &field, middle, gain, 1.1 * swing);
            trace.draw(&mut svg);
        }
        let height = field.finish(&mut svg);
        svg.finish(&title, WIDTH, height)
    }
}

fn ordinal(n: usize) -> String {
    let ending = match (n % 10, n % 100) {
        (1, last) if last != 11 => "st",
        (2, last) if last != 12 => "nd",
        (3, last) if last != 13 => "rd",
        _ => "th",
    };
    format!("{n}{ending}")
}

/// A trace in px: its place, and points (down, swing).
struct Trace {
    middle: f64,
    points: Vec<(f64, f64)>,
}

impl Trace {
    /// Swings of more than `most` px, and beyond the plot, are cut off.
    fn new(samples: &[f32], field: &Field<'_>, middle: f64, gain: f64, most: f64) -> Self {
        let area = field.area;
        let (left, right) = ((area.x - middle).max(-most), (area.right() - middle).min(most));
        let point = |(i, &sample): (usize, &f32)| {
            let down = area.y + area.height * (i as f64 + 0.5) / samples.len() as f64;
            let swing = if sample.is_finite() { gain * f64::from(sample) } else { 0.0 };
            (down, swing.clamp(left, right))
        };
        let points: Vec<(f64, f64)> = samples.iter().enumerate().map(point).collect();
        Self { middle, points: extremes(&points) }
    }

    fn draw(&self, svg: &mut Svg) {
        let mut fill = Path::default();
        for lobe in self.lobes() {
            fill.polygon(&self.places(&lobe), true);
        }
        svg.path(&fill, Paint::Fill(TRACE));
        let mut line = Path::default();
        line.polygon(&self.places(&self.points), false);
        svg.path(&line, Paint::Stroke(TRACE, 0.6));
    }

    fn places(&self, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
        points.iter().map(|&(down, swing)| (self.middle + swing, down)).collect()
    }

    /// Parts above zero, each from where the line through the points leaves zero to where it returns.
    fn lobes(&self) -> Vec<Vec<(f64, f64)>> {
        let mut lobes = Vec::new();
        let mut lobe: Vec<(f64, f64)> = Vec::new();
        for (i, &point) in self.points.iter().enumerate() {
            let before = if i == 0 { (point.0, 0.0) } else { self.points[i - 1] };
            if (before.1 > 0.0) != (point.1 > 0.0) {
                let share = before.1 / (before.1 - point.1);
                lobe.push((before.0 + share * (point.0 - before.0), 0.0));
            }
            if point.1 > 0.0 {
                lobe.push(point);
            } else if !lobe.is_empty() {
                lobes.push(std::mem::take(&mut lobe));
            }
        }
        if let Some(&(down, _)) = lobe.last() {
            lobe.push((down, 0.0));
            lobes.push(lobe);
        }
        lobes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lobes(swings: &[f64]) -> Vec<Vec<(f64, f64)>> {
        let points = swings.iter().enumerate().map(|(i, &swing)| (i as f64, swing)).collect();
        Trace { middle: 0.0, points }.lobes()
    }

    #[test]
    fn only_what_is_positive_is_filled() {
        assert!(lobes(&[0.0, -1.0, -2.0, 0.0]).is_empty());
        assert_eq!(lobes(&[-1.0, 1.0, -3.0]), [[(0.5, 0.0), (1.0, 1.0), (1.25, 0.0)]]);
        assert_eq!(
            lobes(&[2.0, 0.0, 0.0, 2.0]),
            [[(0.0, 0.0), (0.0, 2.0), (1.0, 0.0)], [(2.0, 0.0), (3.0, 2.0), (3.0, 0.0)]]
        );
    }

    #[test]
    fn ordinals() {
        assert_eq!(
            [2, 3, 4, 11, 13, 21, 112].map(ordinal),
            ["2nd", "3rd", "4th", "11th", "13th", "21st", "112th"]
        );
    }
}
