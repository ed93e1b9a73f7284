//! Seismic modelling in two dimensions: the acoustic wave equation in a velocity model, shot by shot.
//!
//! Pure numerics and formats: nothing here knows of ranks, messages or failures.

pub mod model;

pub use model::{Model, Node};
