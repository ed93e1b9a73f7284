//! Colors: of series, told apart by color-blind eyes too, and of values.
//!
//! Series: M. Okabe and K. Ito, Color universal design, 2008. Sequential values: nine points of viridis by
//! S. van der Walt and N. Smith (matplotlib, 2015), between which colors are interpolated.

/// Text.
pub(crate) const INK: &str = "#222222";
/// Lines around a plot.
pub(crate) const FRAME: &str = "#8a8a8a";
/// Lines at ticks.
pub(crate) const GRID: &str = "#e2e2e2";
/// Lines between ticks, of a logarithmic axis.
pub(crate) const FAINT: &str = "#f1f1f1";
/// What is behind everything.
pub(crate) const GROUND: &str = "#ffffff";
/// Where a field has no value.
pub(crate) const NOTHING: Rgb = [190, 190, 190];

/// Red, green, blue.
pub(crate) type Rgb = [u8; 3];

const SERIES: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#f0e442"];

/// Color of series number `i`; after eight they start again.
pub(crate) fn series(i: usize) -> &'static str {
    SERIES[i % SERIES.len()]
}

/// Of what belongs to no series.
pub(crate) const GRAY: &str = "#666666";
/// How much of a color is left in its palest shade.
const PALEST: f64 = 0.18;

/// Shade number `part` of `parts` of a color, `#rrggbb`: the first is the color itself, each further one is paler.
pub(crate) fn shade(color: &str, part: usize, parts: usize) -> String {
    let white = part as f64 / parts.saturating_sub(1).max(1) as f64 * (1.0 - PALEST);
    let channel = |at: usize| u8::from_str_radix(&color[at..at + 2], 16).unwrap_or(0);
    hex(between(&[[1, 3, 5].map(channel), [255; 3]], white))
}

const BLUE_WHITE_RED: [Rgb; 5] =
    [[5, 48, 125], [85, 140, 200], [255, 255, 255], [220, 105, 85], [125, 5, 30]];

const VIRIDIS: [Rgb; 9] = [
    [68, 1, 84],
    [71, 44, 122],
    [59, 81, 139],
    [44, 113, 142],
    [33, 144, 141],
    [39, 173, 129],
    [92, 200, 99],
    [170, 220, 50],
    [253, 231, 37],
];

/// Blue at 0, white at 1/2, red at 1.
pub(crate) fn diverging(at: f64) -> Rgb {
    between(&BLUE_WHITE_RED, at)
}

/// Dark at 0, bright at 1.
pub(crate) fn sequential(at: f64) -> Rgb {
    between(&VIRIDIS, at)
}

/// `#rrggbb`.
pub(crate) fn hex([red, green, blue]: Rgb) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn between(stops: &[Rgb], at: f64) -> Rgb {
    let at = at.clamp(0.0, 1.0) * (stops.len() - 1) as f64;
    let low = (at as usize).min(stops.len() - 2);
    let share = at - low as f64;
    std::array::from_fn(|i| {
        let (from, to) = (f64::from(stops[low][i]), f64::from(stops[low + 1][i]));
        (from + share * (to - from)).round() as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_pass_through_their_stops() {
        assert_eq!(diverging(0.5), [255, 255, 255]);
        assert_eq!((diverging(-1.0), diverging(2.0)), (BLUE_WHITE_RED[0], BLUE_WHITE_RED[4]));
        assert_eq!(sequential(0.25), VIRIDIS[2]);
        assert_eq!(hex(sequential(1.0)), "#fde725");
    }

    #[test]
    fn shades_begin_with_the_color_and_get_paler() {
        assert_eq!(shade("#0072b2", 0, 6), "#0072b2");
        assert_eq!(shade("#0072b2", 5, 6), "#d1e6f1");
        assert_eq!(shade("#000000", 1, 2), "#d1d1d1");
        assert_eq!(shade(GRAY, 0, 1), GRAY);
    }

    #[test]
    fn brightness_of_the_sequential_map_rises() {
        let luma = |c: Rgb| 0.21 * f64::from(c[0]) + 0.72 * f64::from(c[1]) + 0.07 * f64::from(c[2]);
        let lumas: Vec<f64> = (0..100).map(|i| luma(sequential(f64::from(i) / 99.0))).collect();
        assert!(lumas.windows(2).all(|pair| pair[0] < pair[1] + 0.5));
    }
}
