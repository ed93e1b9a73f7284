//! From an array to an image of about as many pixels as are looked at.

use super::Colors;
use crate::color::NOTHING;

/// More pixels than this, across or down, are not looked at.
const MOST: usize = 1200;
/// With less than this, values are interpolated.
const LEAST: usize = 300;
/// Colors of the palette; one more stands for no value.
const LEVELS: u8 = 255;

/// Values of a two-dimensional array, that of (ix, iz) at `ix * nz + iz`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid<'a> {
    pub(super) values: &'a [f32],
    pub(super) nx: usize,
    pub(super) nz: usize,
}

impl Grid<'_> {
    fn at(&self, ix: usize, iz: usize) -> f32 {
        self.values[ix * self.nz + iz]
    }
}

/// Values in the order of an image, line by line from the top.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Raster {
    pub(super) values: Vec<f32>,
    pub(super) width: usize,
    pub(super) height: usize,
}

/// The array with a size fit for looking at: means of blocks where there are too many values, interpolated
/// where there are few.
pub(super) fn fitted(grid: Grid<'_>) -> Raster {
    enlarged(&reduced(grid))
}

fn reduced(grid: Grid<'_>) -> Raster {
    let (across, down) = (grid.nx.div_ceil(MOST), grid.nz.div_ceil(MOST));
    let (width, height) = (grid.nx.div_ceil(across), grid.nz.div_ceil(down));
    // Blocks of nearly equal size: with blocks of `across` the last one might be narrower, yet drawn as wide.
    let block = |i: usize, blocks: usize, n: usize| i * n / blocks..(i + 1) * n / blocks;
    let mut values = Vec::with_capacity(width * height);
    for row in 0..height {
        for column in 0..width {
            values.push(mean(grid, block(column, width, grid.nx), block(row, height, grid.nz)));
        }
    }
    Raster { values, width, height }
}

/// Mean of the finite values of a block; not a number when there are none.
fn mean(grid: Grid<'_>, across: std::ops::Range<usize>, down: std::ops::Range<usize>) -> f32 {
    let (mut sum, mut count) = (0.0, 0.0);
    for ix in across {
        for value in down.clone().map(|iz| grid.at(ix, iz)).filter(|value| value.is_finite()) {
            sum += f64::from(value);
            count += 1.0;
        }
    }
    (sum / count) as f32
}

fn enlarged(raster: &Raster) -> Raster {
    let factor = |n: usize| if n < LEAST { LEAST.div_ceil(n) } else { 1 };
    let (across, down) = (factor(raster.width), factor(raster.height));
    if across == 1 && down == 1 {
        return raster.clone();
    }
    let (width, height) = (raster.width * across, raster.height * down);
    let mut values = Vec::with_capacity(width * height);
    for row in 0..height {
        let (upper, lower, below) = neighbors(row, down, raster.height);
        for column in 0..width {
            let (left, right, beside) = neighbors(column, across, raster.width);
            let line = |row: usize| {
                let of = |column: usize| raster.values[row * raster.width + column];
                blend(of(left), of(right), beside)
            };
            values.push(blend(line(upper), line(lower), below));
        }
    }
    Raster { values, width, height }
}

/// The values on both sides of pixel `i`, where each has `factor` pixels, and how near the second one is. The
/// value is at the center of its pixels.
fn neighbors(i: usize, factor: usize, n: usize) -> (usize, usize, f32) {
    let at = ((i as f64 + 0.5) / factor as f64 - 0.5).clamp(0.0, (n - 1) as f64);
    let low = (at as usize).min(n - 1);
    (low, (low + 1).min(n - 1), (at - low as f64) as f32)
}

/// Between two values; the nearer one when the other is none.
fn blend(a: f32, b: f32, share: f32) -> f32 {
    if a.is_finite() && b.is_finite() {
        return a + share * (b - a);
    }
    if share < 0.5 { a } else { b }
}

/// The image with the colors as its palette. O(pixels).
pub(super) fn png(raster: &Raster, colors: &Colors) -> Result<Vec<u8>, png::EncodingError> {
    let level = |&value: &f32| {
        if value.is_finite() { (colors.at(value) * f64::from(LEVELS - 1)).round() as u8 } else { LEVELS }
    };
    let levels: Vec<u8> = raster.values.iter().map(level).collect();
    let shades = (0..LEVELS).map(|level| colors.map(f64::from(level) / f64::from(LEVELS - 1)));
    let palette: Vec<u8> = shades.chain([NOTHING]).flatten().collect();

    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, raster.width as u32, raster.height as u32);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_palette(palette);
    encoder.write_header()?.write_image_data(&levels)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_arrays_become_means_of_blocks() {
        let (nx, nz) = (2400, 3);
        let values: Vec<f32> = (0..nx).flat_map(|ix| [ix as f32, 7.0, f32::NAN]).collect();
        let raster = reduced(Grid { values: &values, nx, nz });
        assert_eq!((raster.width, raster.height), (1200, 3));
        assert_eq!(raster.values[..3], [0.5, 2.5, 4.5]);
        assert_eq!(raster.values[1200..1203], [7.0; 3]);
        assert!(raster.values[2400..].iter().all(|value| value.is_nan()));
    }

    #[test]
    fn blocks_cover_all_values_of_awkward_sizes() {
        for nx in [1199, 1200, 1201, 1799, 2401, 5003] {
            let values: Vec<f32> = (0..nx).map(|ix| ix as f32).collect();
            let raster = reduced(Grid { values: &values, nx, nz: 1 });
            assert!(raster.width <= MOST && raster.width > MOST / 3, "{}", raster.width);
            let middle = raster.values.iter().sum::<f32>() / raster.width as f32;
            assert!((middle / ((nx - 1) as f32 / 2.0) - 1.0).abs() < 2e-3, "{nx}: {middle}");
        }
    }

    #[test]
    fn small_arrays_are_interpolated_between_centers() {
        let raster = enlarged(&Raster { values: vec![0.0, 1.0], width: 2, height: 1 });
        assert_eq!((raster.width, raster.height), (300, 300));
        assert_eq!((raster.values[0], raster.values[74], raster.values[225]), (0.0, 0.0, 1.0));
        assert!((raster.values[149] - 0.5).abs() < 0.01);
        assert!(raster.values[..300].windows(2).all(|pair| pair[0] <= pair[1]));
    }

    #[test]
    fn no_value_does_not_spread() {
        let raster = enlarged(&Raster { values: vec![f32::NAN, 1.0], width: 2, height: 1 });
        assert!(raster.values[..300].iter().filter(|value| value.is_nan()).count() == 150);
    }
}
