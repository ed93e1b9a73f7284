//! A drawing in the making: as SVG (escaped text, finite numbers of two decimals, and no ids, which would collide in one page), and
//! as the shapes that a PNG is painted of.

use std::fmt::Write as _;

use crate::base64;
use crate::color::{GROUND, INK};
use crate::font::{FAMILY, LABEL, room};
use crate::paint::Shape;
use crate::picture::Picture;

/// Base lines are so much of the size of a text below its middle.
pub(crate) const MIDDLE: f64 = 0.35;

/// A rectangle in px, y downwards.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Area {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Area {
    pub(crate) fn new(x: f64, y: f64, width: f64, height: f64) -> Self {
        Self { x, y, width, height }
    }

    pub(crate) fn right(&self) -> f64 {
        self.x + self.width
    }

    pub(crate) fn bottom(&self) -> f64 {
        self.y + self.height
    }
}

/// Which part of a text is at the given point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

/// How a path is painted: filled, or drawn as a line of a width in px.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Paint<'a> {
    Fill(&'a str),
    Stroke(&'a str, f64),
    Both { fill: &'a str, stroke: &'a str },
}

/// Outline of a shape.
#[derive(Debug, Default)]
pub(crate) struct Path {
    d: String,
    /// The same as points, each line with whether it is closed.
    lines: Vec<(Vec<(f64, f64)>, bool)>,
    /// Where it is, as written: steps from there are shorter to write than places, and rounding does not add up.
    at: (f64, f64),
}

impl Path {
    pub(crate) fn is_empty(&self) -> bool {
        self.d.is_empty()
    }

    /// A closed rectangle.
    pub(crate) fn rect(&mut self, area: Area) {
        let (x, y, right, bottom) = (area.x, area.y, area.right(), area.bottom());
        self.polygon(&[(x, y), (right, y), (right, bottom), (x, bottom)], true);
    }

    /// A closed polygon, or an open line through `points`.
    pub(crate) fn polygon(&mut self, points: &[(f64, f64)], closed: bool) {
        let Some((&first, rest)) = points.split_first() else { return };
        self.at = (hundredths(first.0), hundredths(first.1));
        let _ = write!(self.d, "M{} {}", num(self.at.0), num(self.at.1));
        let mut line = vec![self.at];
        for &point in rest {
            self.step_to(point);
            line.push(self.at);
        }
        self.lines.push((line, closed));
        if closed {
            self.d.push('Z');
        }
    }

    fn step_to(&mut self, (x, y): (f64, f64)) {
        let to = (hundredths(x), hundredths(y));
        let _ = write!(self.d, "l{} {}", num(to.0 - self.at.0), num(to.1 - self.at.1));
        self.at = to;
    }
}

fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// A drawing in the making.
#[derive(Debug, Default)]
pub(crate) struct Svg {
    body: String,
    shapes: Vec<Shape>,
}

impl Svg {
    pub(crate) fn rect(&mut self, area: Area, fill: &str) {
        let (x, y, width, height) = (num(area.x), num(area.y), num(area.width), num(area.height));
        self.put(format_args!(r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{fill}"/>"#));
        self.shapes.push(Shape::rect(area, fill));
    }

    /// The border of `area`, one px wide.
    pub(crate) fn border(&mut self, area: Area, stroke: &str) {
        let mut path = Path::default();
        path.rect(area);
        self.path(&path, Paint::Stroke(stroke, 1.0));
    }

    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), stroke: &str, width: f64) {
        let mut path = Path::default();
        path.polygon(&[from, to], false);
        self.path(&path, Paint::Stroke(stroke, width));
    }

    /// Nothing is written for an empty path.
    pub(crate) fn path(&mut self, path: &Path, paint: Paint<'_>) {
        if path.is_empty() {
            return;
        }
        let d = &path.d;
        let lines = || path.lines.clone();
        if let Paint::Fill(fill) | Paint::Both { fill, .. } = paint {
            self.shapes.push(Shape::Fill { lines: lines(), color: fill.to_owned() });
        }
        if let Some((stroke, width)) = match paint {
            Paint::Fill(_) => None,
            Paint::Stroke(stroke, width) => Some((stroke, width)),
            Paint::Both { stroke, .. } => Some((stroke, 1.0)),
        } {
            self.shapes.push(Shape::Stroke { lines: lines(), color: stroke.to_owned(), width });
        }
        match paint {
            Paint::Fill(fill) => self.put(format_args!(r#"<path d="{d}" fill="{fill}"/>"#)),
            Paint::Stroke(stroke, width) => self.put(format_args!(
                r#"<path d="{d}" fill="none" stroke="{stroke}" stroke-width="{}" stroke-linejoin="round"/>"#,
                num(width)
            )),
            Paint::Both { fill, stroke } => {
                self.put(format_args!(r#"<path d="{d}" fill="{fill}" stroke="{stroke}"/>"#));
            }
        }
    }

    /// A label whose middle line (not its base line) is at `y`.
    pub(crate) fn label(&mut self, at: (f64, f64), anchor: Anchor, text: &str) {
        self.text(at, anchor, LABEL, INK, text);
    }

    /// Text of `size` px whose middle line is at `y`.
    pub(crate) fn text(&mut self, at: (f64, f64), anchor: Anchor, size: f64, fill: &str, text: &str) {
        self.shapes.push(Shape::Text {
            at,
            anchor,
            size,
            color: fill.to_owned(),
            text: text.to_owned(),
            upright: false,
        });
        self.write_text(at, anchor, size, fill, text);
    }

    fn write_text(&mut self, (x, y): (f64, f64), anchor: Anchor, size: f64, fill: &str, text: &str) {
        // The middle of digits and capitals is a third of the size above the base line; viewers disagree about
        // the attribute that would say so.
        let (x, y) = (num(x), num(y + MIDDLE * size));
        let (anchor, size, text) = (anchor.name(), num(size), escape(text));
        self.put(format_args!(
            r#"<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="{size}" fill="{fill}">{text}</text>"#
        ));
    }

    /// A value at a bar, which lines of the grid do not cross.
    pub(crate) fn value(&mut self, (x, y): (f64, f64), anchor: Anchor, size: f64, text: &str) {
        let width = room(text, size);
        let left = match anchor {
            Anchor::Start => x,
            Anchor::Middle => x - width / 2.0,
            Anchor::End => x - width,
        };
        self.rect(Area::new(left, y - size / 2.0, width, size), GROUND);
        self.text((x, y), anchor, size, INK, text);
    }

    /// Text that reads upwards and is centered at the point.
    pub(crate) fn upright(&mut self, at: (f64, f64), size: f64, text: &str) {
        let (x, y) = (num(at.0), num(at.1));
        self.open(format_args!(r#"transform="translate({x} {y}) rotate(-90)""#));
        self.write_text((0.0, 0.0), Anchor::Middle, size, INK, text);
        self.close();
        let (anchor, color, text) = (Anchor::Middle, INK.to_owned(), text.to_owned());
        self.shapes.push(Shape::Text { at, anchor, size, color, text, upright: true });
    }

    /// Pieces of a band of `height` px around `middle`, each from one place to another to the right of `left`, layer above layer: the
    /// pieces of a color take few bytes.
    pub(crate) fn band(
        &mut self,
        (left, middle): (f64, f64),
        height: f64,
        layers: &[(&str, Vec<(f64, f64)>)],
    ) {
        let (x, y, thick) = (num(left), num(middle), num(height));
        self.open(format_args!(r#"transform="translate({x} {y})" fill="none" stroke-width="{thick}""#));
        for (color, pieces) in layers.iter().filter(|(_, pieces)| !pieces.is_empty()) {
            let piece = |&(from, to): &(f64, f64)| format!("M{} 0h{}", num(from), num(to - from));
            let d: String = pieces.iter().map(piece).collect();
            self.put(format_args!(r#"<path d="{d}" stroke="{color}"/>"#));
            for (from, to) in pieces {
                let area = Area::new(left + from, middle - height / 2.0, to - from, height);
                self.shapes.push(Shape::rect(area, color));
            }
        }
        self.close();
    }

    /// A PNG stretched over `area`.
    pub(crate) fn image(&mut self, area: Area, png: &[u8]) {
        let (x, y, width, height) = (num(area.x), num(area.y), num(area.width), num(area.height));
        let data = base64::encode(png);
        self.put(format_args!(
            r#"<image x="{x}" y="{y}" width="{width}" height="{height}" preserveAspectRatio="none" href="data:image/png;base64,{data}"/>"#
        ));
        self.shapes.push(Shape::Image { area, png: png.to_owned() });
    }

    /// Starts a group with the given attributes; [`Svg::close`] ends it.
    pub(crate) fn open(&mut self, attributes: std::fmt::Arguments<'_>) {
        self.put(format_args!("<g {attributes}>"));
    }

    pub(crate) fn close(&mut self) {
        self.put(format_args!("</g>"));
    }

    /// What a viewer shows when the pointer is over the group that is open.
    pub(crate) fn tip(&mut self, text: &str) {
        self.put(format_args!("<title>{}</title>", escape(text)));
    }

    fn put(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.body, "{element}");
    }

    /// The drawing on a white ground, `title` being what screen readers say.
    pub(crate) fn finish(self, title: &str, width: f64, height: f64) -> Picture {
        let (width, height) = (width.ceil() as u32, height.ceil() as u32);
        let title = escape(title);
        let svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\" font-family=\"{FAMILY}\">\n\
             <title>{title}</title>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"{GROUND}\"/>\n{}</svg>\n",
            self.body
        );
        Picture::new(svg, self.shapes, width, height)
    }
}

/// `text` as it stands in XML and HTML, in an element or a quoted attribute. Characters that XML has no room for
/// become spaces.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push(' '),
            letter if letter.is_control() => escaped.push(' '),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// A coordinate of at most two decimals. What is not a number is 0: callers leave such points out.
pub(crate) fn num(value: f64) -> String {
    let value = if value.is_finite() { value.clamp(-1e6, 1e6) } else { 0.0 };
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_finite() {
        let written = [1.0, 100.0, -0.001, 2.345_67, f64::NAN, f64::INFINITY, 1e300, -12.5].map(num);
        assert_eq!(written, ["1", "100", "0", "2.35", "0", "0", "1000000", "-12.5"]);
    }

    #[test]
    fn text_cannot_leave_its_element() {
        assert_eq!(escape("<&\">'\u{1}\u{ffff}é"), "&lt;&amp;&quot;&gt;&#39;  é");
    }
}
