//! Seismic modelling in two dimensions: the acoustic wave equation in a velocity model, shot by shot.
//!
//! Pure numerics and formats: nothing here knows of ranks, messages or failures.

mod boundary;
pub mod check;
pub mod model;
pub mod propagator;
pub mod stencil;
pub mod wavelet;

pub use check::CheckError;
pub use model::{Model, Node};
pub use propagator::{Propagator, Wavefield, shoot};
pub use wavelet::ricker;
