//! What a time step writes of some columns, cut so that threads can share a step.

use std::ops::Range;

use super::grid::Grid;
use crate::boundary::{GAP, LAYER, STRIP};

/// Floats of a strip of `psi` in z, with what its stencil reads beside it.
pub(super) const PSI_STRIP: usize = GAP + STRIP + GAP;

/// Columns of the absorbing layers at the ends of x that come before column `ix` of `nx`.
pub(super) fn layer_columns_before(ix: usize, nx: usize) -> usize {
    ix.min(LAYER) + ix.saturating_sub(nx - LAYER)
}

/// The fields of neighboring columns that a step changes.
pub(super) struct Columns<'a> {
    /// Which columns.
    pub(super) range: Range<usize>,
    /// The next field, from the topmost point of the first column on.
    pub(super) next: &'a mut [f32],
    /// `zeta` of those that lie in layers at the ends of x.
    pub(super) zeta_x: &'a mut [f32],
    /// Two strips of each column, with gaps around them.
    pub(super) psi_z: &'a mut [f32],
    /// Two strips of each column.
    pub(super) zeta_z: &'a mut [f32],
}

impl Columns<'_> {
    /// Those before column `at`, and the others.
    pub(super) fn cut(self, at: usize, grid: &Grid) -> (Self, Self) {
        let Self { range, next, zeta_x, psi_z, zeta_z } = self;
        let count = at - range.start;
        let in_layers = layer_columns_before(at, grid.nx) - layer_columns_before(range.start, grid.nx);
        let (next, next_rest) = next.split_at_mut(count * grid.stride);
        let (zeta_x, zeta_x_rest) = zeta_x.split_at_mut(in_layers * grid.nz);
        let (psi_z, psi_z_rest) = psi_z.split_at_mut(count * 2 * PSI_STRIP);
        let (zeta_z, zeta_z_rest) = zeta_z.split_at_mut(count * 2 * STRIP);
        (
            Self { range: range.start..at, next, zeta_x, psi_z, zeta_z },
            Self {
                range: at..range.end,
                next: next_rest,
                zeta_x: zeta_x_rest,
                psi_z: psi_z_rest,
                zeta_z: zeta_z_rest,
            },
        )
    }

    /// In at most `pieces` of about equally many columns.
    pub(super) fn pieces(self, pieces: usize, grid: &Grid) -> Vec<Self> {
        let (mut rest, columns) = (self, grid.nx);
        let mut parts = Vec::with_capacity(pieces);
        for piece in 1..pieces {
            let part;
            (part, rest) = rest.cut(columns * piece / pieces, grid);
            parts.push(part);
        }
        parts.push(rest);
        parts
    }

    /// Where column `ix` begins in [`Columns::next`].
    #[inline(always)]
    pub(super) fn start(&self, ix: usize, grid: &Grid) -> usize {
        (ix - self.range.start) * grid.stride
    }

    /// Where column `ix`, which lies in a layer, begins in [`Columns::zeta_x`].
    #[inline(always)]
    pub(super) fn zeta_x_start(&self, ix: usize, grid: &Grid) -> usize {
        let before = |ix| layer_columns_before(ix, grid.nx);
        (before(ix) - before(self.range.start)) * grid.nz
    }

    /// The number of a strip of column `ix` among those of all columns.
    #[inline(always)]
    pub(super) fn strip(&self, ix: usize, side: usize) -> usize {
        2 * (ix - self.range.start) + side
    }
}
