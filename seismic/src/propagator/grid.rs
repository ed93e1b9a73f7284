//! Where the points of a field lie in memory.

/// Floats of two of the widest vectors: columns are computed in multiples of it, and start at multiples of it.
const LANES: usize = 32;
/// A distance of columns that is a multiple of this (4 KiB) would put all columns of a stencil into one cache set.
const PAGE: usize = 1024;

/// Columns of depth, one after the other, each followed by zeros; columns of zeros at both ends. So every stencil has
/// something to read, and what it reads outside is 0.
///
/// A column is lengthened to a multiple of [`LANES`], so that both of its ends fall between vectors.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    /// Columns, absorbing layers included.
    pub(super) nx: usize,
    /// Points of a column, absorbing layers and what lengthens it included: a multiple of [`LANES`].
    pub(super) nz: usize,
    /// Reach of the stencil.
    pub(super) radius: usize,
    /// Distance of columns.
    pub(super) stride: usize,
    /// Floats of a field.
    pub(super) len: usize,
}

impl Grid {
    /// For columns of at least `nz` points.
    pub(super) fn new(nx: usize, nz: usize, radius: usize) -> Self {
        let nz = nz.next_multiple_of(LANES);
        let mut stride = (nz + radius).next_multiple_of(LANES);
        if stride.is_multiple_of(PAGE) {
            stride += LANES;
        }
        Self { nx, nz, radius, stride, len: (nx + 2 * radius) * stride }
    }

    /// Index of the topmost point of a column.
    #[inline(always)]
    pub(super) fn column(&self, ix: usize) -> usize {
        (ix + self.radius) * self.stride
    }
}
