//! The font of all text: how wide a text is, and how it is broken to fit.
//!
//! Ubuntu Light is part of the program, so that a picture has the same pixels on every machine.

use tiny_skia::{Path, PathBuilder};
use ttf_parser::{Face, GlyphId, OutlineBuilder};

/// Families by falling preference; viewers of an SVG have at least the last.
pub(crate) const FAMILY: &str = "Ubuntu, 'DejaVu Sans', Helvetica, Arial, sans-serif";
/// Size of labels and legends in px.
pub(crate) const LABEL: f64 = 12.0;
/// Size of axis titles in px.
pub(crate) const AXIS_TITLE: f64 = 13.0;
/// Size of titles in px.
pub(crate) const TITLE: f64 = 16.0;

/// A viewer without Ubuntu takes a wider font: room is left for it.
const SLACK: f64 = 1.08;

/// The shape of a text.
pub(crate) struct Outline {
    /// Its letters, from (0, 0) on the base line to the right, y downwards; none if there is nothing to see.
    pub(crate) path: Option<Path>,
    /// From the start of the first letter to the end of the last.
    pub(crate) width: f64,
}

impl Outline {
    /// The outline of `text` of `size` px. Letters stand side by side: the font is drawn without kerning.
    pub(crate) fn of(text: &str, size: f64) -> Self {
        let (font, scale) = font(size);
        let mut letters = Letters { path: PathBuilder::new(), at: 0.0, scale };
        for letter in text.chars() {
            let glyph = glyph(&font, letter);
            // A blank has no outline.
            let _ = font.outline_glyph(glyph, &mut letters);
            letters.at += advance(&font, glyph) * scale;
        }
        Self { width: f64::from(letters.at), path: letters.path.finish() }
    }
}

/// The font, and px for a unit of it.
fn font(size: f64) -> (Face<'static>, f32) {
    let font = Face::parse(epaint_default_fonts::UBUNTU_LIGHT, 0).expect("a font that the tests read");
    let scale = size as f32 / f32::from(font.units_per_em());
    (font, scale)
}

/// From one letter to the next, in units of the font.
fn advance(font: &Face<'_>, glyph: GlyphId) -> f32 {
    font.glyph_hor_advance(glyph).map_or(0.0, f32::from)
}

/// What the font lacks is the sign for that, as in any viewer.
fn glyph(font: &Face<'_>, letter: char) -> GlyphId {
    font.glyph_index(letter).unwrap_or_default()
}

/// Letters in px, the next one at `at`.
struct Letters {
    path: PathBuilder,
    at: f32,
    /// Px for a unit of the font.
    scale: f32,
}

impl Letters {
    /// Where a point of the letter is; units of a font go upwards.
    fn place(&self, x: f32, y: f32) -> (f32, f32) {
        (self.at + self.scale * x, -self.scale * y)
    }
}

impl OutlineBuilder for Letters {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.place(x1, y1), self.place(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.place(x1, y1), self.place(x2, y2), self.place(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

/// Room in px that `text` of `size` px takes in a line.
pub(crate) fn room(text: &str, size: f64) -> f64 {
    let (font, scale) = font(size);
    let advance = |letter| f64::from(advance(&font, glyph(&font, letter)) * scale);
    SLACK * text.chars().map(advance).sum::<f64>()
}

/// `text`, its end replaced by an ellipsis where it is wider than `width` px.
pub(crate) fn fit(text: &str, size: f64, width: f64) -> String {
    if text.is_empty() || room(text, size) <= width {
        return text.to_owned();
    }
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let cut = |end: usize| format!("{}…", text[..end].trim_end());
    let fitting = ends.partition_point(|&end| room(&cut(end), size) <= width);
    cut(ends[fitting.saturating_sub(1)])
}

/// `text` in lines of at most `width` px, broken at spaces; at most `lines` of them, the last one cut to fit.
pub(crate) fn wrap(text: &str, size: f64, width: f64, lines: usize) -> Vec<String> {
    let mut wrapped: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match wrapped.last_mut() {
            Some(line) if wrapped_len(line, word, size) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => wrapped.push(word.to_owned()),
        }
    }
    if wrapped.len() > lines {
        let rest = wrapped.split_off(lines - 1).join(" ");
        wrapped.push(rest);
    }
    wrapped.iter().map(|line| fit(line, size, width)).collect()
}

fn wrapped_len(line: &str, word: &str, size: f64) -> f64 {
    room(&format!("{line} {word}"), size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_font_is_found_and_measured() {
        assert!(room("", 12.0) == 0.0);
        let (one, ten) = (room("m", 12.0), room(&"m".repeat(10), 12.0));
        assert!((8.0..14.0).contains(&one), "{one}");
        assert!((ten - 10.0 * one).abs() < 1.0, "{ten} {one}");
        assert!((room("m", 24.0) - 2.0 * one).abs() < 0.5);
        assert!(room("−×µ…10²", 12.0) > room("10", 12.0));
    }

    #[test]
    fn what_fits_stays_and_what_does_not_is_cut() {
        assert_eq!(fit("rank 3", 12.0, 100.0), "rank 3");
        let cut = fit("a checkpoint of everything there is", 12.0, 100.0);
        assert!(cut.starts_with("a check") && cut.ends_with('…'), "{cut}");
        assert!(room(&cut, 12.0) <= 100.0);
        assert_eq!(fit("wide", 12.0, 0.0), "…");
    }

    #[test]
    fn wrapped_lines_keep_every_word_while_there_are_lines_left() {
        let text = "Time to solution under failures, four ranks, three of them killed in turn";
        let lines = wrap(text, 12.0, 150.0, 9);
        assert!(lines.len() > 2);
        assert_eq!(lines.join(" "), text);
        assert!(lines.iter().all(|line| room(line, 12.0) <= 150.0));
        let two = wrap(text, 12.0, 150.0, 2);
        assert!(two.len() == 2 && two[1].ends_with('…'), "{two:?}");
    }
}
