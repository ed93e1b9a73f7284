//! What the absorbing layers add to a time step: see [`crate::boundary`] for the equations.

use pulp::Simd;

use super::Propagator;
use super::columns::PSI_STRIP;
use super::grid::Grid;
use super::kernel::{Pass, advance};
use super::vectors::{
    beside, beside_strip, curvature, difference, each, strip, strip_mut, vectors, vectors_mut,
};
use crate::boundary::{GAP, LAYER, REACH, STRIP};

/// `psi` of a column of the layers at the ends of x, counted in both together.
#[inline(always)]
pub(super) fn layer_slopes_x<S: Simd, const R: usize>(
    simd: S,
    propagator: &Propagator,
    current: &[f32],
    weights: &[S::f32s; R],
    (column, psi): (usize, &mut [f32]),
) {
    let Grid { nx, nz, stride, .. } = propagator.grid;
    let n = nz / S::F32_LANES;
    let (side, in_layer) = (column / LAYER, column % LAYER);
    let (a, b) = propagator.damping.of_column(side, in_layer);
    let (a, b) = (simd.splat_f32s(a), simd.splat_f32s(b));
    let start = propagator.grid.column(in_layer + side * (nx - LAYER));
    let [west, east] = beside::<S, R>(current, start, stride, n);
    let psi = vectors_mut::<S>(psi, 0, n);
    for i in 0..n {
        let slope = difference(simd, weights, |k| (west[k][i], east[k][i]));
        psi[i] = simd.add_f32s(simd.mul_f32s(b, psi[i]), simd.mul_f32s(a, slope));
    }
}

impl<S: Simd, const R: usize> Pass<'_, S, R> {
    /// `psi` of the layers at the top and the bottom of a column, and the second derivative along it in both strips.
    #[inline(always)]
    pub(super) fn derivatives_z(&mut self, ix: usize) {
        let (simd, second) = (self.simd, self.second);
        let center = simd.splat_f32s(self.center);
        for side in 0..2 {
            let a = strip::<S>(&self.damping.gain[side].0);
            let b = strip::<S>(&self.damping.decay[side].0);
            let start = self.grid.column(ix) + side * (self.grid.nz - STRIP);
            let u = strip::<S>(&self.current[start..]);
            let [up, down] = beside_strip::<S, R>(&self.current[start - REACH..]);
            let at = self.columns.strip(ix, side) * PSI_STRIP + GAP;
            let psi = strip_mut::<S>(&mut self.columns.psi_z[at..]);
            let along = strip_mut::<S>(&mut self.curvature_z[side].0);
            for i in 0..STRIP / S::F32_LANES {
                let slope = difference(simd, &self.first, |k| (up[k][i], down[k][i]));
                psi[i] = simd.add_f32s(simd.mul_f32s(b[i], psi[i]), simd.mul_f32s(a[i], slope));
                along[i] = curvature(simd, center, u[i], &second, |k| (up[k][i], down[k][i]));
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
        let (start, nz, stride) = (self.grid.column(ix), self.grid.nz, self.grid.stride);
        let n = nz / S::F32_LANES;
        let (a, b) = self.damping.of_column(side, ix - first);
        let (a, b) = (simd.splat_f32s(a), simd.splat_f32s(b));
        let (to, zeta_to) = (self.columns.start(ix, self.grid), self.columns.zeta_x_start(ix, self.grid));
        let current = self.current;
        let psi = &self.psi_x[side * LAYER * nz..][..LAYER * nz];
        let [psi_west, psi_east] = layer_columns::<S, R>(psi, self.zeros, nz, ix as isize - first as isize);
        let u = vectors::<S>(current, start, n);
        let [west, east] = beside::<S, R>(current, start, stride, n);
        let factor = vectors::<S>(self.factor, start, n);
        let zeta = vectors_mut::<S>(self.columns.zeta_x, zeta_to, n);
        let next = vectors_mut::<S>(self.columns.next, to, n);
        let center = simd.splat_f32s(self.center);
        for i in 0..n {
            let slope = difference(simd, &self.first, |k| (psi_west[k][i], psi_east[k][i]));
            let curvature = curvature(simd, center, u[i], &second, |k| (west[k][i], east[k][i]));
            let stretched = simd.add_f32s(curvature, slope);
            zeta[i] = simd.add_f32s(simd.mul_f32s(b, zeta[i]), simd.mul_f32s(a, stretched));
            next[i] = simd.add_f32s(next[i], simd.mul_f32s(factor[i], simd.add_f32s(slope, zeta[i])));
        }
    }

    /// As [`Self::absorb_x_in_layer`] for a column next to the layer.
    #[inline(always)]
    fn absorb_x_beside_layer(&mut self, ix: usize, side: usize, first: usize) {
        let simd = self.simd;
        let (start, nz) = (self.grid.column(ix), self.grid.nz);
        let n = nz / S::F32_LANES;
        let to = self.columns.start(ix, self.grid);
        let psi = &self.psi_x[side * LAYER * nz..][..LAYER * nz];
        let [psi_west, psi_east] = layer_columns::<S, R>(psi, self.zeros, nz, ix as isize - first as isize);
        let factor = vectors::<S>(self.factor, start, n);
        let next = vectors_mut::<S>(self.columns.next, to, n);
        for i in 0..n {
            let slope = difference(simd, &self.first, |k| (psi_west[k][i], psi_east[k][i]));
            next[i] = simd.add_f32s(next[i], simd.mul_f32s(factor[i], slope));
        }
    }

    /// The next field in both strips of a column, with what [`Self::derivatives_z`] made of this one.
    #[inline(always)]
    pub(super) fn strips(&mut self, ix: usize) {
        let (simd, second) = (self.simd, self.second);
        let center = simd.splat_f32s(self.center);
        let Grid { nz, stride, .. } = *self.grid;
        let to = self.columns.start(ix, self.grid);
        for side in 0..2 {
            let a = strip::<S>(&self.damping.gain[side].0);
            let b = strip::<S>(&self.damping.decay[side].0);
            let start = self.grid.column(ix) + side * (nz - STRIP);
            let strip_at = self.columns.strip(ix, side);
            let u = strip::<S>(&self.current[start..]);
            let [west, east] = beside::<S, R>(self.current, start, stride, STRIP / S::F32_LANES);
            let psi = &self.columns.psi_z[strip_at * PSI_STRIP + GAP - REACH..];
            let [psi_up, psi_down] = beside_strip::<S, R>(psi);
            let factor = strip::<S>(&self.factor[start..]);
            let along = strip::<S>(&self.curvature_z[side].0);
            let zeta = strip_mut::<S>(&mut self.columns.zeta_z[strip_at * STRIP..]);
            let next = strip_mut::<S>(&mut self.columns.next[to + side * (nz - STRIP)..]);
            for i in 0..STRIP / S::F32_LANES {
                let slope = difference(simd, &self.first, |k| (psi_up[k][i], psi_down[k][i]));
                let stretched = simd.add_f32s(along[i], slope);
                zeta[i] = simd.add_f32s(simd.mul_f32s(b[i], zeta[i]), simd.mul_f32s(a[i], stretched));
                let across = curvature(simd, center, u[i], &second, |k| (west[k][i], east[k][i]));
                let laplacian = simd.add_f32s(across, simd.add_f32s(stretched, zeta[i]));
                next[i] = advance(simd, u[i], next[i], factor[i], laplacian);
            }
        }
    }
}

/// The columns of a layer at distances of 1 to `R` before and after the one at `column`; zeros where it has none.
#[inline(always)]
fn layer_columns<'a, S: Simd, const R: usize>(
    layer: &'a [f32],
    zeros: &'a [f32],
    nz: usize,
    column: isize,
) -> [[&'a [S::f32s]; R]; 2] {
    let at = |column: isize| match usize::try_from(column) {
        Ok(column) if column < LAYER => vectors::<S>(layer, column * nz, nz / S::F32_LANES),
        _ => vectors::<S>(zeros, 0, nz / S::F32_LANES),
    };
    [each(|k| at(column - k as isize - 1)), each(|k| at(column + k as isize + 1))]
}
