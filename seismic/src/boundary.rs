//! Absorbing layers around the model: convolutional perfectly matched layers for the second-order wave equation.
//!
//! In a layer every derivative across it is stretched, `d/dx -> (1/s) d/dx` with `s = 1 + d / (alpha + i w)`. Pasalic
//! and McGarry, "Convolutional perfectly matched layer for isotropic and anisotropic acoustic wave equations", SEG
//! Annual Meeting 2010, write this with two memory variables per layer:
//!
//! ```text
//! psi  <- b psi  + a du/dx                      b = exp(-(d + alpha) dt)
//! zeta <- b zeta + a (d2u/dx2 + dpsi/dx)        a = (b - 1) d / (d + alpha)
//! d2u/dt2 = v^2 (d2u/dx2 + dpsi/dx + zeta + ..)
//! ```
//!
//! `psi` and `zeta` are kept in grid units (times `h` and `h^2`).

use std::f64::consts::PI;

use crate::stencil::ORDER_MAX;

/// Points of a layer, at each of the four sides, outside the model.
pub(crate) const LAYER: usize = 20;
/// Points of a strip at the top or bottom of a column: the layer and those inside that see it through a stencil,
/// rounded up to whole vectors. Damping is 0 on those, so the rounding changes nothing.
pub(crate) const STRIP: usize = 32;
/// The longest reach of a stencil.
pub(crate) const REACH: usize = ORDER_MAX / 2;
/// Zeros before the first strip of `psi`, between any two and after the last: no stencil reaches over them, and every strip
/// begins where a vector of 64 bytes does.
pub(crate) const GAP: usize = 16;

/// Amplitude, at normal incidence, of what comes back from the outer edge of a layer without finite differences.
const REFLECTION: f64 = 1e-5;

const _: () = assert!(LAYER + REACH <= STRIP && REACH <= GAP);

/// Values at the points of a strip.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Strip(pub(crate) [f32; STRIP]);

impl Strip {
    pub(crate) const ZERO: Self = Self([0.0; STRIP]);
}

/// Damping at the points of a layer, from its outer edge inwards and then on to the end of a strip.
#[derive(Clone, Debug)]
pub(crate) struct Damping {
    /// `a` at the near end of the grid and, mirrored, at the far end.
    pub(crate) gain: [Strip; 2],
    /// `b` likewise.
    pub(crate) decay: [Strip; 2],
}

impl Damping {
    /// The damping for waves of `v_min` to `v_max` m/s on a grid of `spacing` meters with time steps of `dt` seconds.
    ///
    /// Profiles after Collino and Tsogka, "Application of the perfectly matched absorbing layer model to the linear
    /// elastodynamic problem in anisotropic heterogeneous media", Geophysics 66 (2001): `d` rises with the square of
    /// the depth in the layer, to a height that lets [`REFLECTION`] through at normal incidence. `alpha` falls from
    /// `pi f` to 0, where `f` is half the peak frequency whose shortest wave has 5 points on this grid.
    pub(crate) fn new(spacing: f64, v_min: f64, v_max: f64, dt: f64) -> Self {
        let thickness = LAYER as f64 * spacing;
        let d_max = -3.0 * v_max * REFLECTION.ln() / (2.0 * thickness);
        let alpha_max = PI * v_min / (25.0 * spacing);
        let mut damping = Self { gain: [Strip::ZERO; 2], decay: [Strip::ZERO; 2] };
        for point in 0..LAYER {
            let depth = (LAYER - point) as f64 / LAYER as f64;
            let d = d_max * depth * depth;
            let alpha = alpha_max * (1.0 - depth);
            let b = (-(d + alpha) * dt).exp();
            let a = (b - 1.0) * d / (d + alpha);
            damping.gain[0].0[point] = a as f32;
            damping.gain[1].0[STRIP - 1 - point] = a as f32;
            damping.decay[0].0[point] = b as f32;
            damping.decay[1].0[STRIP - 1 - point] = b as f32;
        }
        damping
    }

    /// `(a, b)` of a column of the near (0) or far (1) layer, counted in the direction of the grid.
    pub(crate) fn of_column(&self, side: usize, column: usize) -> (f32, f32) {
        let point = if side == 0 { column } else { STRIP - LAYER + column };
        (self.gain[side].0[point], self.decay[side].0[point])
    }
}
