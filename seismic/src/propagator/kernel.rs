//! The loops of a time step, once for every radius `R` of the stencil.
//!
//! Everything is inlined into one function per instruction set ([`pulp::Arch`]). Vectors run along the columns, whose
//! length is a multiple of any vector's. Slices are cut to one length before a loop, so that no bounds are checked
//! inside.

use std::array::from_fn;

use pulp::{Simd, WithSimd};

use super::Propagator;
use super::columns::Columns;
use super::grid::Grid;
use super::layers::layer_slopes_x;
use super::vectors::{beside, each, vectors, vectors_mut};
use crate::boundary::{Damping, REACH, STRIP, Strip};

/// Vectors of a column that are computed together. There are more neighbors than registers for their addresses; this
/// loads those half as often.
const BLOCK: usize = 2;

/// Fields are rounded to multiples of its last bit, 2^-95. Ahead of a wave front they would otherwise fall through all
/// of the smallest numbers, with which processors compute slowly.
const QUANTUM: f32 = 1.0 / (1_u128 << 72) as f32;

/// Finite difference weights of both derivatives at distances of 1, 2, .. points.
#[derive(Clone, Debug)]
pub(super) struct Weights {
    /// Of the second derivative at the point itself.
    pub(super) center: f32,
    second: [f32; REACH],
    first: [f32; REACH],
}

impl Weights {
    pub(super) fn new(second: &[f64], first: &[f64]) -> Self {
        let at = |weights: &[f64], k: usize| weights.get(k).map_or(0.0, |&weight| weight as f32);
        Self {
            center: second[0] as f32,
            second: from_fn(|k| at(&second[1..], k)),
            first: from_fn(|k| at(first, k)),
        }
    }
}

/// The first part of a time step: `psi` of some columns of the layers at the ends of x, which what follows reads.
pub(super) struct Slopes<'a, const R: usize> {
    pub(super) propagator: &'a Propagator,
    pub(super) current: &'a [f32],
    /// The first of the columns, counted in both layers together.
    pub(super) first: usize,
    pub(super) psi_x: &'a mut [f32],
}

impl<const R: usize> WithSimd for Slopes<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let weights: [S::f32s; R] = each(|k| simd.splat_f32s(self.propagator.weights.first[k]));
        for (column, psi) in (self.first..).zip(self.psi_x.chunks_exact_mut(self.propagator.grid.nz)) {
            layer_slopes_x(simd, self.propagator, self.current, &weights, (column, psi));
        }
    }
}

/// The second part, all but the source: makes the next field of some columns out of `current`, in place of the one before.
pub(super) struct Advance<'a, const R: usize> {
    pub(super) propagator: &'a Propagator,
    pub(super) current: &'a [f32],
    pub(super) psi_x: &'a [f32],
    pub(super) columns: Columns<'a>,
}

impl<const R: usize> WithSimd for Advance<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Propagator { grid, factor, weights, damping, zeros, .. } = self.propagator;
        let range = self.columns.range.clone();
        let mut pass = Pass::<S, R> {
            simd,
            grid,
            factor,
            center: weights.center,
            second: each(|k| simd.splat_f32s(weights.second[k])),
            first: each(|k| simd.splat_f32s(weights.first[k])),
            damping,
            zeros,
            current: self.current,
            psi_x: self.psi_x,
            columns: self.columns,
            curvature_z: [Strip::ZERO; 2],
        };
        for ix in range {
            pass.derivatives_z(ix);
            pass.interior(ix);
            pass.strips(ix);
            pass.absorb_x(ix);
        }
    }
}

/// A time step with vectors of one kind.
pub(super) struct Pass<'a, S: Simd, const R: usize> {
    pub(super) simd: S,
    pub(super) grid: &'a Grid,
    pub(super) factor: &'a [f32],
    pub(super) center: f32,
    pub(super) second: [S::f32s; R],
    pub(super) first: [S::f32s; R],
    pub(super) damping: &'a Damping,
    pub(super) zeros: &'a [f32],
    pub(super) current: &'a [f32],
    pub(super) psi_x: &'a [f32],
    pub(super) columns: Columns<'a>,
    /// The second derivative along the column in its two strips, times `h^2`.
    pub(super) curvature_z: [Strip; 2],
}

impl<S: Simd, const R: usize> Pass<'_, S, R> {
    /// The plain scheme in a column, between its strips.
    #[inline(always)]
    fn interior(&mut self, ix: usize) {
        let (simd, second) = (self.simd, self.second);
        let (start, stride) = (self.grid.column(ix) + STRIP, self.grid.stride);
        let n = (self.grid.nz - 2 * STRIP) / S::F32_LANES;
        let current = self.current;
        let u = blocks(vectors::<S>(current, start, n));
        let [up, down] = beside::<S, R>(current, start, 1, n);
        let [up, down]: [[_; R]; 2] = [each(|k| blocks(up[k])), each(|k| blocks(down[k]))];
        let [west, east] = beside::<S, R>(current, start, stride, n);
        let [west, east]: [[_; R]; 2] = [each(|k| blocks(west[k])), each(|k| blocks(east[k]))];
        let factor = blocks(vectors::<S>(self.factor, start, n));
        let to = self.columns.start(ix, self.grid) + STRIP;
        let next = vectors_mut::<S>(self.columns.next, to, n).as_chunks_mut::<BLOCK>().0;
        let center = simd.splat_f32s(2.0 * self.center);
        for i in 0..n / BLOCK {
            let mut laplacian: [S::f32s; BLOCK] = each(|j| simd.mul_f32s(center, u[i][j]));
            for k in 0..R {
                for j in 0..BLOCK {
                    let x = simd.add_f32s(west[k][i][j], east[k][i][j]);
                    let z = simd.add_f32s(up[k][i][j], down[k][i][j]);
                    laplacian[j] = simd.add_f32s(laplacian[j], simd.mul_f32s(second[k], simd.add_f32s(x, z)));
                }
            }
            for j in 0..BLOCK {
                next[i][j] = advance(simd, u[i][j], next[i][j], factor[i][j], laplacian[j]);
            }
        }
    }
}

/// `2 u - before + factor laplacian`: a point's next value.
#[inline(always)]
pub(super) fn advance<S: Simd>(
    simd: S,
    u: S::f32s,
    before: S::f32s,
    factor: S::f32s,
    laplacian: S::f32s,
) -> S::f32s {
    let quantum = simd.splat_f32s(QUANTUM);
    let drift = simd.sub_f32s(simd.add_f32s(u, u), before);
    let value = simd.add_f32s(drift, simd.mul_f32s(factor, laplacian));
    simd.sub_f32s(simd.add_f32s(value, quantum), quantum)
}

/// Vectors in blocks; [`Grid`] sees to it that none are left over.
#[inline(always)]
fn blocks<V>(vectors: &[V]) -> &[[V; BLOCK]] {
    vectors.as_chunks().0
}
