//! A velocity model on a regular grid.

/// P-wave velocities on a grid of `nx` x `nz` points; x runs along the surface, z downwards.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    /// Points along the surface.
    pub nx: usize,
    /// Points in depth.
    pub nz: usize,
    /// Distance of neighboring points in meters, the same in both directions.
    pub spacing: f64,
    /// Velocities in m/s, the one at (ix, iz) at `ix * nz + iz`.
    pub velocity: Vec<f32>,
}

/// A point of the grid of a [`Model`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct Node {
    /// Along the surface, from 0.
    pub ix: usize,
    /// In depth, from 0.
    pub iz: usize,
}

impl Model {
    /// The velocity at a node in m/s.
    ///
    /// # Panics
    /// If the node lies outside.
    pub fn at(&self, node: Node) -> f32 {
        assert!(node.ix < self.nx && node.iz < self.nz);
        self.velocity[node.ix * self.nz + node.iz]
    }
}
