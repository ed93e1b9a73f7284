//! Seismic modeling in two dimensions: the acoustic wave equation in a velocity model, shot by shot.
//!
//! Pure numerics and formats: nothing here knows of ranks, messages or failures.

#![forbid(unsafe_code)]

mod boundary;
pub mod check;
pub mod gather;
pub mod geometry;
pub mod load;
pub mod model;
mod npy;
pub mod propagator;
mod raw;
pub mod segy;
pub mod stencil;
pub mod su;
pub mod synthetic;
pub mod trace_header;
pub mod wavelet;

pub use check::CheckError;
pub use model::{Model, Node};
pub use npy::NpyError;
pub use propagator::{Propagator, Wavefield, shoot};
pub use wavelet::ricker;
