//! Seismic modelling in two dimensions: the acoustic wave equation in a velocity model, shot by shot.
//!
//! Pure numerics and formats: nothing here knows of ranks, messages or failures.

pub mod gather;
pub mod geometry;
pub mod load;
pub mod model;
mod npy;
mod raw;
pub mod segy;
pub mod su;
pub mod synthetic;
pub mod trace_header;

pub use model::{Model, Node};
pub use npy::NpyError;
