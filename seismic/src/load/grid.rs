//! Values on a grid before they are known to be velocities, and the shapes that fit a number of values.

use super::{ModelErrorKind, POINTS_MAX, SampleFormat, Source};
use crate::gather::{TraceError, TraceReader};

/// What a file holds: values with z fastest, in the unit of the file.
#[derive(Debug)]
pub(crate) struct Grid {
    pub(crate) nx: usize,
    pub(crate) nz: usize,
    /// Meters, where the file says it.
    pub(crate) spacing: Option<f64>,
    pub(crate) values: Vec<f32>,
}

impl Grid {
    /// One trace per x.
    pub(crate) fn from_traces(mut traces: TraceReader) -> Result<Self, TraceError> {
        let (mut values, mut cdps, mut sources) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(header) = traces.next(&mut values)? {
            cdps.push(header.to_metres(header.cdp_x, header.coordinate_scalar));
            sources.push(header.source_x());
        }
        let spacing = even_step(&cdps).or_else(|| even_step(&sources));
        Ok(Self { nx: sources.len(), nz: traces.samples(), spacing, values })
    }
}

/// The distance of neighbors, where it is positive and everywhere the same to 1 %.
fn even_step(positions: &[f64]) -> Option<f64> {
    let (first, last) = (positions.first()?, positions.last()?);
    let step = (last - first) / (positions.len() - 1) as f64;
    let even = positions.windows(2).all(|pair| (pair[1] - pair[0] - step).abs() <= 0.01 * step);
    (step.is_finite() && step > 0.0 && even).then_some(step)
}

/// The number of points, at least 1 and at most [`POINTS_MAX`].
pub(crate) fn check_shape(nx: usize, nz: usize) -> Result<usize, ModelErrorKind> {
    match nx.checked_mul(nz) {
        Some(0) => Err(ModelErrorKind::EmptyShape { nx, nz }),
        Some(points) if points as u64 <= POINTS_MAX => Ok(points),
        _ => Err(ModelErrorKind::TooLarge { nx, nz }),
    }
}

pub(crate) fn check_spacing(spacing: f64) -> Result<(), ModelErrorKind> {
    let usable = spacing.is_finite() && spacing > 0.0;
    if usable { Ok(()) } else { Err(ModelErrorKind::BadSpacing { spacing }) }
}

/// Reads exactly `nx * nz` samples, the rest of `source`, of which `header` bytes have been read.
pub(crate) fn read_grid(
    source: &mut Source,
    header: u64,
    (nx, nz): (usize, usize),
    format: SampleFormat,
) -> Result<Vec<f32>, ModelErrorKind> {
    let points = check_shape(nx, nz)?;
    let sample_bytes = format.bytes();
    let expected = points as u64 * sample_bytes as u64;
    let wrong_length = |found: u64| {
        let whole = found.is_multiple_of(sample_bytes as u64);
        let fitting = if whole { fitting_shapes(found / sample_bytes as u64, (nx, nz)) } else { Vec::new() };
        Err(ModelErrorKind::Length { nx, nz, sample_bytes, expected, found, fitting })
    };
    // Where the length is known, a wrong one need not be read.
    if let Some(found) = source.length().map(|length| length.saturating_sub(header))
        && found != expected
    {
        return wrong_length(found);
    }
    let mut values = Vec::new();
    let found = source.read_samples(format, points, &mut values)?;
    let rest = source.skip(POINTS_MAX * 8)?;
    if found + rest == expected { Ok(values) } else { wrong_length(found + rest) }
}

/// Shapes of `points` points: those that keep a number of `near`, else the two that are most square.
pub(crate) fn fitting_shapes(points: u64, near: (usize, usize)) -> Vec<(u64, u64)> {
    if points == 0 || points > POINTS_MAX {
        return Vec::new();
    }
    let divides = |side: u64| side > 1 && side < points && points.is_multiple_of(side);
    let (nx, nz) = (near.0 as u64, near.1 as u64);
    let mut shapes = Vec::new();
    if divides(nx) {
        shapes.push((nx, points / nx));
    }
    if divides(nz) {
        shapes.push((points / nz, nz));
    }
    if shapes.is_empty() {
        let sides = (2..=points.isqrt()).rev().filter(|side| divides(*side));
        shapes.extend(sides.take(2).map(|nz| (points / nz, nz)));
    }
    shapes
}
