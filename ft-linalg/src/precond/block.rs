//! The block of a domain, once it is ready for solves, and why it may be unfit for that.

use std::fmt;

/// A block, ready for solves.
pub(super) trait Solve: Send + Sync + fmt::Debug {
    /// `z = M^-1 r`.
    fn solve(&self, r: &[f64], z: &mut [f64]);

    /// `z = M^-T r`.
    fn solve_transpose(&self, r: &[f64], z: &mut [f64]);
}

/// Why a block is unfit for a solver, at which row of the block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bad {
    pub(super) row: usize,
    pub(super) what: Fault,
}

/// What is wrong with a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fault {
    /// The diagonal entry, which has to be positive and finite.
    Diagonal(f64),
    /// The pivot, which cannot be divided by, or has to be positive.
    Pivot { value: f64, shifts: u32 },
    /// The entry in this column and its mirror, which have to be equal.
    Mirror { col: usize, value: f64, mirrored: f64 },
}

/// A pivot below this part of what stood in its place has been cancelled: what is left is rounding.
pub(super) const CANCELLED: f64 = 1e-14;
