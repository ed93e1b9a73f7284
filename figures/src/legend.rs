//! What colors and shapes mean, in as many lines as it takes.

use std::borrow::Cow;

use crate::font::{LABEL, fit, room};
use crate::svg::{Anchor, Area, Svg};
use crate::symbol::Symbol;

const LINE: f64 = 19.0;
const SAMPLE: f64 = 22.0;
const GAP: f64 = 6.0;
const BETWEEN: f64 = 14.0;

/// What is shown next to a name.
#[derive(Clone, Debug)]
pub(crate) enum Sample {
    Block { fill: Cow<'static, str> },
    Line { color: &'static str, symbol: Symbol },
    Symbol { symbol: Symbol, fill: &'static str, stroke: &'static str },
}

/// A sample and its name.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) sample: Sample,
    pub(crate) name: String,
}

/// Draws the entries from left to right in lines between `x` and `x + width`, below `y`. Returns the height taken.
pub(crate) fn draw(svg: &mut Svg, entries: &[Entry], x: f64, y: f64, width: f64) -> f64 {
    let (mut left, mut line) = (x, 0.0);
    for entry in entries {
        let name = fit(&entry.name, LABEL, width - SAMPLE - GAP);
        let taken = SAMPLE + GAP + room(&name, LABEL);
        if left > x && left + taken > x + width {
            (left, line) = (x, line + LINE);
        }
        let middle = y + line + LINE / 2.0;
        sample(svg, &entry.sample, left, middle);
        svg.label((left + SAMPLE + GAP, middle), Anchor::Start, &name);
        left += taken + BETWEEN;
    }
    if entries.is_empty() { 0.0 } else { line + LINE }
}

fn sample(svg: &mut Svg, sample: &Sample, left: f64, middle: f64) {
    let center = (left + SAMPLE / 2.0, middle);
    match sample {
        Sample::Block { fill } => svg.rect(Area::new(left + 2.0, middle - 6.0, SAMPLE - 4.0, 12.0), fill),
        Sample::Line { color, symbol } => {
            svg.line((left, middle), (left + SAMPLE, middle), color, 1.8);
            symbol.draw(svg, center, 3.6, color, color);
        }
        Sample::Symbol { symbol, fill, stroke } => symbol.draw(svg, center, 5.0, fill, stroke),
    }
}
