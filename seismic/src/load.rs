//! Velocity models from files.
//!
//! | name ends in | read as |
//! |---|---|
//! | `.npy` | NumPy array of two dimensions, x first, `f4` or `f8` of either byte order, C or Fortran order |
//! | `.sgy`, `.segy` | SEG-Y, one trace per x, samples in depth, IEEE or IBM 32-bit floats |
//! | `.su` | Seismic Unix, one trace per x, samples in depth, either byte order |
//! | `.bin`, `.raw`, `.f32`, `.vp` and all others | 32-bit little endian floats, depth fastest, no header |
//!
//! Each of them may be compressed with gzip; that is told by the first two bytes, a further `.gz` in the name is
//! passed over. Velocities below 20 are taken for km/s, others for m/s, unless the options say which; the model
//! is always in m/s.
//!
//! A reader never panics, whatever the bytes, and allocates for what it has read, not for what a header announces.

use std::{fmt, path::Path, str::FromStr};

use crate::{Model, gather::TraceReader, npy, raw};

mod error;
mod grid;
mod limits;
mod sample;
mod source;
mod velocity;

pub use error::{ModelError, ModelErrorKind};
pub(crate) use grid::{Grid, check_shape, check_spacing, fitting_shapes, read_grid};
pub(crate) use limits::{POINTS_MAX, VELOCITY_MAX, VELOCITY_MIN};
pub use sample::ByteOrder;
pub(crate) use sample::SampleFormat;
pub use source::SourceError;
pub(crate) use source::{Source, extension, place};

/// What a file does not say about its model.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ModelOptions {
    /// Points along the surface and in depth. Needed for raw files; others have to agree with it.
    pub shape: Option<(usize, usize)>,
    /// Distance of neighboring points in meters. Needed except where the positions in SEG-Y or SU trace headers
    /// (CDP x in byte 181, else source x in byte 73) are evenly spaced; overrides these.
    pub spacing: Option<f64>,
    /// Unit of the velocities in the file.
    pub unit: Unit,
}

/// Unit of the velocities in a file; as text `auto`, `m/s` or `km/s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// km/s where all values are below 20, else m/s.
    #[default]
    Auto,
    /// m/s.
    MetresPerSecond,
    /// km/s.
    KilometresPerSecond,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Auto => "auto",
            Self::MetresPerSecond => "m/s",
            Self::KilometresPerSecond => "km/s",
        })
    }
}

impl FromStr for Unit {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let all = [Self::Auto, Self::MetresPerSecond, Self::KilometresPerSecond];
        let found = all.into_iter().find(|unit| unit.to_string() == text);
        found.ok_or_else(|| UnknownName { found: text.to_owned(), expected: "auto, m/s or km/s" })
    }
}

/// A word that is none of a short list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not one of {expected}")]
pub struct UnknownName {
    /// The word.
    pub found: String,
    /// The list.
    pub expected: &'static str,
}

/// Reads a velocity model. See the module for the formats and how they are told apart.
///
/// Costs O(points) time and 4 bytes per point, twice that for arrays in Fortran order.
///
/// # Errors
/// [`ModelError`] with the path; nothing is guessed but the unit.
pub fn read_model(path: &Path, options: &ModelOptions) -> Result<Model, ModelError> {
    read(path, options).map_err(|kind| ModelError { path: Some(path.to_owned()), kind })
}

fn read(path: &Path, options: &ModelOptions) -> Result<Model, ModelErrorKind> {
    if let Some((nx, nz)) = options.shape {
        check_shape(nx, nz)?;
    }
    if let Some(spacing) = options.spacing {
        check_spacing(spacing)?;
    }
    let source = Source::open(path)?;
    let Grid { nx, nz, spacing, mut values } = match extension(path).as_str() {
        "npy" => npy::read(source)?,
        "sgy" | "segy" => Grid::from_traces(TraceReader::segy(source)?)?,
        "su" => Grid::from_traces(TraceReader::su(source)?)?,
        _ => raw::read(source, options.shape)?,
    };
    if let Some(given) = options.shape.filter(|given| *given != (nx, nz)) {
        return Err(ModelErrorKind::ShapeDiffers { found: (nx, nz), given });
    }
    let spacing = options.spacing.or(spacing).ok_or(ModelErrorKind::SpacingMissing)?;
    velocity::to_metres_per_second(&mut values, nz, options.unit)?;
    Ok(Model { nx, nz, spacing, velocity: values })
}

#[cfg(test)]
mod tests;
