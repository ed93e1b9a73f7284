//! Paints the shapes of a drawing, for its PNG.

use tiny_skia::{
    FillRule, FilterQuality, LineJoin, Paint, Path, PathBuilder, Pixmap, PixmapPaint, PixmapRef, Stroke,
    Transform,
};

use crate::font::Outline;
use crate::svg::{Anchor, Area, MIDDLE};

/// What is painted, in px of the drawing; colors are `#rrggbb`.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// The inside of closed lines.
    Fill { lines: Vec<(Vec<(f64, f64)>, bool)>, color: String },
    /// Lines, each with whether it is closed.
    Stroke { lines: Vec<(Vec<(f64, f64)>, bool)>, color: String, width: f64 },
    /// A text whose middle line is at a point, from left to right or upwards.
    Text { at: (f64, f64), anchor: Anchor, size: f64, color: String, text: String, upright: bool },
    /// A PNG stretched over an area.
    Image { area: Area, png: Vec<u8> },
}

impl Shape {
    pub(crate) fn rect(area: Area, color: &str) -> Self {
        let (x, y, right, bottom) = (area.x, area.y, area.right(), area.bottom());
        let corners = vec![(x, y), (right, y), (right, bottom), (x, bottom)];
        Self::Fill { lines: vec![(corners, true)], color: color.to_owned() }
    }

    /// Paints it with so many pixels per px.
    fn paint(&self, pixels: &mut Pixmap, density: f32) {
        let scale = Transform::from_scale(density, density);
        match self {
            Self::Fill { lines, color } => {
                let Some(path) = path(lines) else { return };
                pixels.fill_path(&path, &ink(color), FillRule::Winding, scale, None);
            }
            Self::Stroke { lines, color, width } => {
                let Some(path) = path(lines) else { return };
                let stroke = Stroke { width: *width as f32, line_join: LineJoin::Round, ..Stroke::default() };
                pixels.stroke_path(&path, &ink(color), &stroke, scale, None);
            }
            Self::Text { at, anchor, size, color, text, upright } => {
                let outline = Outline::of(text, *size);
                let start = match anchor {
                    Anchor::Start => 0.0,
                    Anchor::Middle => -outline.width / 2.0,
                    Anchor::End => -outline.width,
                };
                let Some(path) = outline.path else { return };
                let turned = if *upright {
                    scale.pre_translate(at.0 as f32, at.1 as f32).pre_rotate(-90.0)
                } else {
                    scale
                };
                let (x, y) = if *upright { (0.0, 0.0) } else { *at };
                let placed = turned.pre_translate((x + start) as f32, (y + MIDDLE * size) as f32);
                pixels.fill_path(&path, &ink(color), FillRule::Winding, placed, None);
            }
            Self::Image { area, png } => {
                let Ok(image) = Pixmap::decode_png(png) else { return };
                draw(pixels, image.as_ref(), *area, scale);
            }
        }
    }
}

/// All shapes, one above the other, on nothing; none when there is no memory for so many pixels.
pub(crate) fn paint(shapes: &[Shape], ground: Area, color: &str, density: u32) -> Option<Pixmap> {
    let pixels = |length: f64| (length as u32).checked_mul(density);
    let mut pixmap = Pixmap::new(pixels(ground.width)?, pixels(ground.height)?)?;
    Shape::rect(ground, color).paint(&mut pixmap, density as f32);
    shapes.iter().for_each(|shape| shape.paint(&mut pixmap, density as f32));
    Some(pixmap)
}

/// Stretches an image over `area` and no further.
fn draw(pixels: &mut Pixmap, image: PixmapRef<'_>, area: Area, scale: Transform) {
    let [x, y, width, height] = [area.x, area.y, area.width, area.height].map(|value| value as f32);
    let stretch = (width / image.width() as f32, height / image.height() as f32);
    let place = Transform::from_translate(x, y).pre_scale(stretch.0, stretch.1);
    let paint = PixmapPaint { quality: FilterQuality::Bicubic, ..PixmapPaint::default() };
    pixels.draw_pixmap(0, 0, image, &paint, scale.pre_concat(place), None);
}

fn path(lines: &[(Vec<(f64, f64)>, bool)]) -> Option<Path> {
    let mut path = PathBuilder::new();
    for (points, closed) in lines {
        for (number, &(x, y)) in points.iter().enumerate() {
            match number {
                0 => path.move_to(x as f32, y as f32),
                _ => path.line_to(x as f32, y as f32),
            }
        }
        if *closed {
            path.close();
        }
    }
    path.finish()
}

fn ink(color: &str) -> Paint<'static> {
    let channel =
        |at: usize| color.get(at..at + 2).and_then(|text| u8::from_str_radix(text, 16).ok()).unwrap_or(0);
    let mut paint = Paint::default();
    paint.set_color_rgba8(channel(1), channel(3), channel(5), 255);
    paint
}
