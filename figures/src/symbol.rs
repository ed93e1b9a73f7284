//! Small shapes that stand for a point of a series, an event, a source or a receiver.

use crate::svg::{Paint, Path, Svg};

/// A shape about a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Symbol {
    Circle,
    Square,
    Up,
    Diamond,
    Down,
    Cross,
    Star,
}

impl Symbol {
    /// Shape of series or event number `i`; after six they start again.
    pub(crate) fn numbered(i: usize) -> Self {
        [Self::Circle, Self::Square, Self::Up, Self::Diamond, Self::Down, Self::Cross][i % 6]
    }

    /// Draws the shape with a reach of `radius` px.
    pub(crate) fn draw(self, svg: &mut Svg, at: (f64, f64), radius: f64, fill: &str, stroke: &str) {
        let mut path = Path::default();
        path.polygon(&self.corners(at, radius), true);
        svg.path(&path, Paint::Both { fill, stroke });
    }

    fn corners(self, (x, y): (f64, f64), radius: f64) -> Vec<(f64, f64)> {
        // Corners at equal angles, clockwise from an angle in degrees (0 is up), at alternating distances.
        let around = |count: usize, start: f64, reach: [f64; 2]| -> Vec<(f64, f64)> {
            let corner = |i: usize| {
                let angle = (start + 360.0 * i as f64 / count as f64).to_radians();
                let reach = radius * reach[i % 2];
                (x + reach * angle.sin(), y - reach * angle.cos())
            };
            (0..count).map(corner).collect()
        };
        match self {
            Self::Circle => around(16, 0.0, [1.0, 1.0]),
            Self::Square => around(4, 45.0, [1.2, 1.2]),
            Self::Up => around(3, 0.0, [1.2, 1.2]),
            Self::Diamond => around(4, 0.0, [1.25, 1.25]),
            Self::Down => around(3, 180.0, [1.2, 1.2]),
            Self::Star => around(10, 0.0, [1.4, 0.6]),
            Self::Cross => {
                // A plus sign of four equal quarters, turned by an eighth.
                let quarter = [(-0.35, -1.2), (0.35, -1.2), (0.35, -0.35)];
                let turn = |(a, b): (f64, f64), i: i32| {
                    let (sin, cos) = (45.0 + 90.0 * f64::from(i)).to_radians().sin_cos();
                    (x + radius * (a * cos - b * sin), y + radius * (a * sin + b * cos))
                };
                (0..4).flat_map(|i| quarter.map(|corner| turn(corner, i))).collect()
            }
        }
    }
}
