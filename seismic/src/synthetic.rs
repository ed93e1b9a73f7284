//! Velocity models by formula, for trials and for tests. The same on every machine: only sums, products and
//! comparisons go into them.

use std::{fmt, str::FromStr};

use crate::{
    Model,
    load::{ModelError, UnknownName, check_shape, check_spacing},
};

/// Speed of sound in water in m/s.
const WATER: f64 = 1500.0;
/// Increase of velocity with depth in 1/s.
const GRADIENT: f64 = 0.6;
/// Where the gradient ends, in m/s.
const GRADIENT_MAX: f64 = 4000.0;
/// Rock salt, in m/s.
const SALT: f64 = 4500.0;
/// Layers of equal thickness from the surface down, in m/s.
const LAYERS: [f64; 5] = [WATER, 2000.0, 2600.0, 3200.0, 4000.0];

/// Which model; as text `homogeneous`, `layers`, `gradient` or `salt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synthetic {
    /// 2000 m/s everywhere.
    Homogeneous,
    /// Five flat layers of equal thickness, 1500 m/s (water) to 4000 m/s.
    Layers,
    /// 1500 m/s at the surface, 0.6 m/s more per meter of depth, at most 4000 m/s.
    Gradient,
    /// The gradient with a body of 4500 m/s in it: wide at the top, tapering to a root, with a dent in its top.
    Salt,
}

impl Synthetic {
    /// Every model.
    pub const ALL: [Self; 4] = [Self::Homogeneous, Self::Layers, Self::Gradient, Self::Salt];

    fn name(self) -> &'static str {
        match self {
            Self::Homogeneous => "homogeneous",
            Self::Layers => "layers",
            Self::Gradient => "gradient",
            Self::Salt => "salt",
        }
    }
}

impl fmt::Display for Synthetic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Synthetic {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let expected = "homogeneous, layers, gradient or salt";
        let found = Self::ALL.into_iter().find(|kind| kind.name() == text);
        found.ok_or_else(|| UnknownName { found: text.to_owned(), expected })
    }
}

/// A model of `nx` x `nz` points, `spacing` meters apart. O(points).
///
/// # Errors
/// [`ModelError`] when there are no points, more than 2^31, or the spacing is not positive and finite.
pub fn generate(kind: Synthetic, nx: usize, nz: usize, spacing: f64) -> Result<Model, ModelError> {
    let checked = check_shape(nx, nz).and_then(|_| check_spacing(spacing));
    checked.map_err(|kind| ModelError { path: None, kind })?;
    let at = |ix: usize, iz: usize| {
        let gradient = (WATER + GRADIENT * (iz as f64 * spacing)).min(GRADIENT_MAX);
        match kind {
            Synthetic::Homogeneous => 2000.0,
            Synthetic::Layers => LAYERS[iz * LAYERS.len() / nz],
            Synthetic::Gradient => gradient,
            Synthetic::Salt if in_salt(fraction(ix, nx), fraction(iz, nz)) => SALT,
            Synthetic::Salt => gradient,
        }
    };
    let velocity = (0..nx).flat_map(|ix| (0..nz).map(move |iz| at(ix, iz) as f32)).collect();
    Ok(Model { nx, nz, spacing, velocity })
}

/// The middle of cell `index` of `count`, as a part of the whole.
fn fraction(index: usize, count: usize) -> f64 {
    (index as f64 + 0.5) / count as f64
}

/// Whether the salt body covers a point; coordinates from 0 to 1.
fn in_salt(x: f64, z: f64) -> bool {
    // Half-widths from the middle: 1 at the flanks of the body.
    let across = (x - 0.5) / 0.25;
    let dent = 0.06 * (1.0 - (across / 0.3) * (across / 0.3)).max(0.0);
    let top = 0.30 + 0.12 * across * across + dent;
    // The base falls from the flanks to the root, more steeply on the left.
    let steepness = if across < 0.0 { 0.45 } else { 0.30 };
    let base = 0.80 - steepness * across.abs();
    across.abs() < 1.0 && top < z && z < base
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Node;

    fn column(kind: Synthetic, part: f64) -> Vec<f32> {
        let model = generate(kind, 200, 100, 10.0).unwrap();
        let ix = (part * 200.0) as usize;
        (0..100).map(|iz| model.at(Node { ix, iz })).collect()
    }

    #[test]
    fn values_by_depth() {
        assert!(column(Synthetic::Homogeneous, 0.3).iter().all(|velocity| *velocity == 2000.0));
        let layers = column(Synthetic::Layers, 0.3);
        assert_eq!(
            [layers[19], layers[20], layers[59], layers[80], layers[99]],
            [1500.0, 2000.0, 2600.0, 4000.0, 4000.0]
        );
        let gradient = column(Synthetic::Gradient, 0.3);
        assert_eq!([gradient[0], gradient[50], gradient[99]], [1500.0, 1800.0, 2094.0]);
        let deep = generate(Synthetic::Gradient, 1, 1000, 10.0).unwrap();
        assert_eq!(deep.at(Node { ix: 0, iz: 999 }), 4000.0);
    }

    #[test]
    fn the_salt_lies_within_the_gradient() {
        assert_eq!(column(Synthetic::Salt, 0.1), column(Synthetic::Gradient, 0.1));
        assert_eq!(column(Synthetic::Salt, 0.9), column(Synthetic::Gradient, 0.9));
        let salt = column(Synthetic::Salt, 0.5);
        assert_eq!([salt[20], salt[60], salt[90]], [1620.0, 4500.0, 2040.0]);
        let model = generate(Synthetic::Salt, 200, 100, 10.0).unwrap();
        let covered = model.velocity.iter().filter(|velocity| **velocity == 4500.0).count();
        assert!((1_000..4_000).contains(&covered), "{covered} of 20000 points");
    }

    #[test]
    fn names_are_read_as_written() {
        for kind in Synthetic::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        let error = "sand".parse::<Synthetic>().unwrap_err().to_string();
        assert_eq!(error, "\"sand\" is not one of homogeneous, layers, gradient or salt");
    }

    #[test]
    fn impossible_grids_are_refused() {
        let error = |nx, nz, spacing| generate(Synthetic::Salt, nx, nz, spacing).unwrap_err().to_string();
        assert_eq!(error(0, 5, 1.0), "shape 0x5 has no points, give at least 1 in each direction");
        let large = "shape 3000000000x2 is too large, at most 2147483648 points are read";
        assert_eq!(error(3_000_000_000, 2, 1.0), large);
        assert_eq!(error(5, 5, -1.0), "grid spacing -1 m has to be positive and finite");
    }
}
