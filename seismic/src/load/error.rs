//! Why a velocity model was refused, with the numbers in it and what to do.

use std::path::PathBuf;

use super::source::place;
use super::{POINTS_MAX, SourceError, VELOCITY_MAX, VELOCITY_MIN};
use crate::{gather::TraceError, npy::NpyError};

/// Why a velocity model was refused.
#[derive(Debug, thiserror::Error)]
#[error("{}{kind}", place(.path))]
pub struct ModelError {
    /// The file, where there is one.
    pub path: Option<PathBuf>,
    /// What is wrong.
    #[source]
    pub kind: ModelErrorKind,
}

/// What is wrong with a velocity model. Positions count from 0.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// The bytes could not be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Not a NumPy array of the kind that is read.
    #[error(transparent)]
    Npy(#[from] NpyError),
    /// Not a SEG-Y or SU file of the kind that is read.
    #[error(transparent)]
    Traces(#[from] TraceError),
    /// A raw file says nothing of its shape.
    #[error("shape missing: give --shape NXxNZ; the file has {}{}", floats(*.bytes), example(.fitting))]
    ShapeMissing {
        /// Bytes of the file, after decompression.
        bytes: u64,
        /// Shapes that fit, the most square first.
        fitting: Vec<(u64, u64)>,
    },
    /// A direction has no points.
    #[error("shape {nx}x{nz} has no points, give at least 1 in each direction")]
    EmptyShape {
        /// Points along the surface.
        nx: usize,
        /// Points in depth.
        nz: usize,
    },
    /// More than 2^31 points.
    #[error("shape {nx}x{nz} is too large, at most {POINTS_MAX} points are read")]
    TooLarge {
        /// Points along the surface.
        nx: usize,
        /// Points in depth.
        nz: usize,
    },
    /// The values in the file are more or fewer than the shape has points.
    #[error(
        "shape {nx}x{nz} needs {expected} bytes of {sample_bytes}-byte floats, found {found}{}",
        fits(.fitting)
    )]
    Length {
        /// Points along the surface.
        nx: usize,
        /// Points in depth.
        nz: usize,
        /// Bytes of one value.
        sample_bytes: usize,
        /// Bytes that the shape needs.
        expected: u64,
        /// Bytes of values in the file, after decompression; counting stops after the largest model.
        found: u64,
        /// Shapes that fit, those that keep one of the two numbers first.
        fitting: Vec<(u64, u64)>,
    },
    /// The file knows its shape and it is not the one that was given.
    #[error("the file has shape {}x{}, not {}x{}{}", .found.0, .found.1, .given.0, .given.1,
        if (.found.1, .found.0) == *.given {
            ": its axes are exchanged, x has to come first; store the transpose"
        } else {
            "; leave out --shape or correct it"
        })]
    ShapeDiffers {
        /// Shape in the file.
        found: (usize, usize),
        /// Shape in the options.
        given: (usize, usize),
    },
    /// Neither the options nor the file say how far apart the points are.
    #[error("grid spacing missing: give --spacing METERS")]
    SpacingMissing,
    /// The spacing is zero, negative or no number.
    #[error("grid spacing {spacing} m has to be positive and finite")]
    BadSpacing {
        /// The spacing in meters.
        spacing: f64,
    },
    /// NaN, infinite, zero or negative velocities. Often a sign of a wrong byte order or of a header taken for data.
    #[error(
        "velocity at ix {ix}, iz {iz} is {value}{}: velocities have to be positive and finite",
        others(*.count, *.points)
    )]
    NotPositive {
        /// First such position along the surface.
        ix: usize,
        /// Its position in depth.
        iz: usize,
        /// Its value as stored.
        value: f32,
        /// Number of such values.
        count: usize,
        /// Number of all values.
        points: usize,
    },
    /// Velocities that no rock has.
    #[error(
        "velocity at ix {ix}, iz {iz} is {value} m/s{}: outside {VELOCITY_MIN} .. {VELOCITY_MAX} m/s with the file \
         read as {unit}, check the file or give --unit",
        others(*.count, *.points)
    )]
    Implausible {
        /// First such position along the surface.
        ix: usize,
        /// Its position in depth.
        iz: usize,
        /// Its value in m/s.
        value: f32,
        /// Number of such values.
        count: usize,
        /// Number of all values.
        points: usize,
        /// Unit of the file, as given or recognized.
        unit: &'static str,
    },
}

fn floats(bytes: u64) -> String {
    match bytes % 4 {
        0 => format!("{} floats", bytes / 4),
        _ => format!("{bytes} bytes, not a whole number of 4-byte floats"),
    }
}

fn example(fitting: &[(u64, u64)]) -> String {
    let shapes: Vec<String> = fitting.iter().map(|(nx, nz)| format!("{nx}x{nz}")).collect();
    if shapes.is_empty() { String::new() } else { format!(", e.g. {}", shapes.join(" or ")) }
}

fn fits(fitting: &[(u64, u64)]) -> String {
    let shapes: Vec<String> = fitting.iter().map(|(nx, nz)| format!("{nx}x{nz}")).collect();
    if shapes.is_empty() { String::new() } else { format!("; {} would fit", shapes.join(" or ")) }
}

fn others(count: usize, points: usize) -> String {
    if count == 1 { String::new() } else { format!(", and {} more of {points} are alike", count - 1) }
}
