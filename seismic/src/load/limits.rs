//! What a velocity model may be.

/// Most points of a model or samples of a gather.
pub(crate) const POINTS_MAX: u64 = 1 << 31;
/// Slowest plausible velocity in m/s: unconsolidated dry sand or gassy mud lies above it.
pub(crate) const VELOCITY_MIN: f32 = 100.0;
/// Fastest plausible velocity in m/s: the lower mantle reaches 13.7 km/s.
pub(crate) const VELOCITY_MAX: f32 = 15_000.0;
