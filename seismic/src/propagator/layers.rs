//! What the absorbing layers add to a time step: see [`crate::boundary`] for the equations.

use std::array::from_fn;
use std::ops::Range;

use pulp::Simd;

use super::Wavefield;
use super::grid::Grid;
use super::kernel::Pass;
use super::vectors::{beside, beside_strip, curvature, difference, strip, strip_mut, vectors, vectors_mut};
use crate::boundary::{LAYER, PADDED_STRIP, REACH, STRIP};

impl<S: Simd, const R: usize> Pass<'_, S, R> {
    /// `psi` of the layers at the ends of x.
    #[inline(always)]
    pub(super) fn layer_slopes_x(&mut self) {
        let simd = self.simd;
        let Grid { nx, run, stride, .. } = *self.grid;
        let n = run / S::F32_LANES;
        for column in 0..2 * LAYER {
            let (side, in_layer) = (column / LAYER, column % LAYER);
            let (a, b) = self.damping.of_column(side, in_layer);
            let (a, b) = (simd.splat_f32s(a), simd.splat_f32s(b));
            let start = self.grid.column(in_layer + side * (nx - LAYER));
            let [west, east] = beside::<S, R>(&self.field.current, start, stride, n);
            let psi = vectors_mut::<S>(&mut self.field.psi_x, column * run, n);
            for i in 0..n {
                let slope = difference(simd, &self.first, |k| (west[k][i], east[k][i]));
                psi[i] = simd.add_f32s(simd.mul_f32s(b, psi[i]), simd.mul_f32s(a, slope));
            }
        }
    }

    /// `psi` of the layers at the top and the bottom of a column.
    #[inline(always)]
    pub(super) fn layer_slopes_z(&mut self, ix: usize) {
        let simd = self.simd;
        for side in 0..2 {
            let a = strip::<S>(&self.damping.gain[side]);
            let b = strip::<S>(&self.damping.decay[side]);
            let start = self.grid.column(ix) + side * (self.grid.nz - STRIP);
            let [up, down] = beside_strip::<S, R>(&self.field.current[start - REACH..]);
            let psi = &mut self.field.psi_z[(2 * ix + side) * PADDED_STRIP + REACH..];
            let psi = strip_mut::<S>(psi);
            for i in outermost::<S>(side, LAYER) {
                let slope = difference(simd, &self.first, |k| (up[k][i], down[k][i]));
                psi[i] = simd.add_f32s(simd.mul_f32s(b[i], psi[i]), simd.mul_f32s(a[i], slope));
            }
        }
    }

    /// What a layer at an end of x adds to a column in it or so near that its stencil reaches into it.
    #[inline(always)]
    pub(super) fn absorb_x(&mut self, ix: usize) {
        let nx = self.grid.nx;
        for (side, first) in [(0, 0), (1, nx - LAYER)] {
            if (first..first + LAYER).contains(&ix) {
                self.absorb_x_in_layer(ix, side, first);
            } else if (first..first + LAYER + R).contains(&ix) || (first..first + LAYER).contains(&(ix + R)) {
                self.absorb_x_beside_layer(ix, side, first);
            }
        }
    }

    /// As [`Self::absorb_x`] for a column of the layer of one side, whose first column is `first`.
    #[inline(always)]
    fn absorb_x_in_layer(&mut self, ix: usize, side: usize, first: usize) {
        let (simd, second) = (self.simd, self.second);
        let (start, run, stride) = (self.grid.column(ix), self.grid.run, self.grid.stride);
        let n = run / S::F32_LANES;
        let (a, b) = self.damping.of_column(side, ix - first);
        let (a, b) = (simd.splat_f32s(a), simd.splat_f32s(b));
        let Wavefield { current, previous, psi_x, zeta_x, .. } = &mut *self.field;
        let psi = &psi_x[side * LAYER * run..][..LAYER * run];
        let [psi_west, psi_east] = layer_columns::<S, R>(psi, self.zeros, run, ix as isize - first as isize);
        let u = vectors::<S>(current, start, n);
        let [west, east] = beside::<S, R>(current, start, stride, n);
        let factor = vectors::<S>(self.factor, start, n);
        let zeta = vectors_mut::<S>(zeta_x, (side * LAYER + ix - first) * run, n);
        let next = vectors_mut::<S>(previous, start, n);
        let centre = simd.splat_f32s(self.centre);
        for i in 0..n {
            let slope = difference(simd, &self.first, |k| (psi_west[k][i], psi_east[k][i]));
            let curvature = curvature(simd, centre, u[i], &second, |k| (west[k][i], east[k][i]));
            let stretched = simd.add_f32s(curvature, slope);
            zeta[i] = simd.add_f32s(simd.mul_f32s(b, zeta[i]), simd.mul_f32s(a, stretched));
            next[i] = simd.add_f32s(next[i], simd.mul_f32s(factor[i], simd.add_f32s(slope, zeta[i])));
        }
    }

    /// As [`Self::absorb_x_in_layer`] for a column next to the layer.
    #[inline(always)]
    fn absorb_x_beside_layer(&mut self, ix: usize, side: usize, first: usize) {
        let simd = self.simd;
        let (start, run) = (self.grid.column(ix), self.grid.run);
        let n = run / S::F32_LANES;
        let Wavefield { previous, psi_x, .. } = &mut *self.field;
        let psi = &psi_x[side * LAYER * run..][..LAYER * run];
        let [psi_west, psi_east] = layer_columns::<S, R>(psi, self.zeros, run, ix as isize - first as isize);
        let factor = vectors::<S>(self.factor, start, n);
        let next = vectors_mut::<S>(previous, start, n);
        for i in 0..n {
            let slope = difference(simd, &self.first, |k| (psi_west[k][i], psi_east[k][i]));
            next[i] = simd.add_f32s(next[i], simd.mul_f32s(factor[i], slope));
        }
    }

    /// What the layers at the top and the bottom add to a column.
    #[inline(always)]
    pub(super) fn absorb_z(&mut self, ix: usize) {
        let (simd, second) = (self.simd, self.second);
        let centre = simd.splat_f32s(self.centre);
        let Wavefield { current, previous, psi_z, zeta_z, .. } = &mut *self.field;
        for side in 0..2 {
            let a = strip::<S>(&self.damping.gain[side]);
            let b = strip::<S>(&self.damping.decay[side]);
            let start = self.grid.column(ix) + side * (self.grid.nz - STRIP);
            let [psi_up, psi_down] = beside_strip::<S, R>(&psi_z[(2 * ix + side) * PADDED_STRIP..]);
            let [up, down] = beside_strip::<S, R>(&current[start - REACH..]);
            let u = strip::<S>(&current[start..]);
            let factor = strip::<S>(&self.factor[start..]);
            let zeta = strip_mut::<S>(&mut zeta_z[(2 * ix + side) * STRIP..]);
            let next = strip_mut::<S>(&mut previous[start..]);
            for i in outermost::<S>(side, LAYER + R) {
                let slope = difference(simd, &self.first, |k| (psi_up[k][i], psi_down[k][i]));
                let curvature = curvature(simd, centre, u[i], &second, |k| (up[k][i], down[k][i]));
                let stretched = simd.add_f32s(curvature, slope);
                zeta[i] = simd.add_f32s(simd.mul_f32s(b[i], zeta[i]), simd.mul_f32s(a[i], stretched));
                next[i] = simd.add_f32s(next[i], simd.mul_f32s(factor[i], simd.add_f32s(slope, zeta[i])));
            }
        }
    }
}

/// The vectors of a strip with its `points` outermost points: at its front (side 0) or at its end. On the others there is nothing
/// to add.
#[inline(always)]
fn outermost<S: Simd>(side: usize, points: usize) -> Range<usize> {
    let (all, count) = (STRIP / S::F32_LANES, points.div_ceil(S::F32_LANES));
    if side == 0 { 0..count } else { all - count..all }
}

/// The columns of a layer at distances of 1 to `R` before and after the one at `column`; zeros where it has none.
#[inline(always)]
fn layer_columns<'a, S: Simd, const R: usize>(
    layer: &'a [f32],
    zeros: &'a [f32],
    run: usize,
    column: isize,
) -> [[&'a [S::f32s]; R]; 2] {
    let at = |column: isize| match usize::try_from(column) {
        Ok(column) if column < LAYER => vectors::<S>(layer, column * run, run / S::F32_LANES),
        _ => vectors::<S>(zeros, 0, run / S::F32_LANES),
    };
    [from_fn(|k| at(column - k as isize - 1)), from_fn(|k| at(column + k as isize + 1))]
}
