//! The font of all text: how wide a text is, and how it is broken to fit.
//!
//! Ubuntu Light is part of the program, so that a picture has the same pixels on every machine.

use std::sync::{Arc, OnceLock};

use resvg::usvg::{Node, Options, Tree, fontdb};

use crate::svg::escape;

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

/// How an SVG is read: with the embedded font, and no other.
pub(crate) fn options() -> Options<'static> {
    static FONTS: OnceLock<Arc<fontdb::Database>> = OnceLock::new();
    let fonts = FONTS.get_or_init(|| {
        let mut fonts = fontdb::Database::new();
        fonts.load_font_source(fontdb::Source::Binary(Arc::new(epaint_default_fonts::UBUNTU_LIGHT)));
        Arc::new(fonts)
    });
    Options { fontdb: Arc::clone(fonts), ..Options::default() }
}

/// Room in px that `text` of `size` px takes in a line. About 50 µs.
pub(crate) fn room(text: &str, size: f64) -> f64 {
    // Measured by the rasteriser itself, so that no second reading of the font can disagree with it.
    let drawing = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><text font-family="{FAMILY}" font-size="{size}">{}</text></svg>"#,
        escape(text)
    );
    let Ok(tree) = Tree::from_str(&drawing, &options()) else { return 0.0 };
    let texts = tree.root().children().iter();
    SLACK * texts.map(|node: &Node| f64::from(node.bounding_box().width())).sum::<f64>()
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
