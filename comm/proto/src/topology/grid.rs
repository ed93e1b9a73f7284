//! Cartesian grids of ranks.

use super::TopologyError;
use crate::rank::Rank;

/// Ranks in a grid of any number of dimensions (`MPI_Cart_create`), numbered in row-major order: the last
/// coordinate is the fastest. A dimension may be periodic, so that its ends are neighbors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    dims: Vec<Dimension>,
    size: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Dimension {
    length: usize,
    periodic: bool,
}

/// A grid cut into grids of fewer dimensions ([`Grid::sub`]), each of which is to be a communicator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sub {
    /// Each of the parts.
    pub grid: Grid,
    /// Which part each rank of the whole is in.
    pub colors: Vec<usize>,
    /// Which rank of its part each rank of the whole is.
    pub keys: Vec<Rank>,
}

impl Dimension {
    /// The coordinate that `at` stands for; none outside.
    fn coordinate(self, at: i128) -> Option<usize> {
        let length = self.length as i128;
        let at = if self.periodic { at.rem_euclid(length) } else { at };
        (0..length).contains(&at).then_some(at as usize)
    }
}

impl Grid {
    /// The grid with these lengths. Without dimensions it is one rank.
    ///
    /// # Errors
    /// The lists have different lengths, a length is zero, or there are more than `isize::MAX` ranks.
    pub fn new(lengths: &[usize], periodic: &[bool]) -> Result<Self, TopologyError> {
        if lengths.len() != periodic.len() {
            return Err(TopologyError::Dimensions { given: periodic.len(), dimensions: lengths.len() });
        }
        if let Some(dimension) = lengths.iter().position(|length| *length == 0) {
            return Err(TopologyError::Empty { dimension });
        }
        let size = lengths.iter().try_fold(1usize, |size, length| size.checked_mul(*length));
        let size = size.filter(|size| isize::try_from(*size).is_ok()).ok_or(TopologyError::TooLarge)?;
        let dimension = |(&length, &periodic)| Dimension { length, periodic };
        Ok(Self { dims: lengths.iter().zip(periodic).map(dimension).collect(), size })
    }

    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Number of dimensions.
    pub fn dimensions(&self) -> usize {
        self.dims.len()
    }

    /// Number of ranks along each dimension.
    pub fn lengths(&self) -> impl ExactSizeIterator<Item = usize> + '_ {
        self.dims.iter().map(|dimension| dimension.length)
    }

    /// Whether each dimension is periodic.
    pub fn periodic(&self) -> impl ExactSizeIterator<Item = bool> + '_ {
        self.dims.iter().map(|dimension| dimension.periodic)
    }

    /// Where `rank` is (`MPI_Cart_coords`).
    ///
    /// # Panics
    /// There is no such rank.
    pub fn coords(&self, rank: Rank) -> Vec<usize> {
        assert!(rank < self.size, "rank {rank} in a grid of {}", self.size);
        let mut rest = rank;
        let mut coords: Vec<usize> = Vec::with_capacity(self.dims.len());
        for Dimension { length, .. } in self.dims.iter().rev() {
            coords.push(rest % length);
            rest /= length;
        }
        coords.reverse();
        coords
    }

    /// Who is at `coords` (`MPI_Cart_rank`). Coordinates outside of a periodic dimension go round; outside of
    /// another there is nobody (`MPI_PROC_NULL`).
    ///
    /// # Panics
    /// Not one coordinate for each dimension.
    pub fn rank(&self, coords: &[isize]) -> Option<Rank> {
        assert_eq!(coords.len(), self.dims.len(), "coordinates in a grid");
        self.dims.iter().zip(coords).try_fold(0, |rank, (dimension, &at)| {
            Some(rank * dimension.length + dimension.coordinate(at as i128)?)
        })
    }

    /// The partners of `rank` when all ranks send `displacement` ranks along `dimension`: whom it receives from
    /// and whom it sends to (`MPI_Cart_shift`).
    ///
    /// # Panics
    /// There is no such rank or dimension.
    pub fn shift(&self, rank: Rank, dimension: usize, displacement: isize) -> (Option<Rank>, Option<Rank>) {
        let here = self.coords(rank)[dimension];
        let stride: usize = self.dims[dimension + 1..].iter().map(|dimension| dimension.length).product();
        let moved = |by: i128| {
            let there = self.dims[dimension].coordinate(here as i128 + by)?;
            Some(rank - here * stride + there * stride)
        };
        let by = displacement as i128;
        (moved(-by), moved(by))
    }

    /// The neighbors of `rank` in the order of neighborhood collectives: for each dimension the one before,
    /// then the one behind (MPI 4.1, section 8.6).
    ///
    /// # Panics
    /// There is no such rank.
    pub fn neighbors(&self, rank: Rank) -> Vec<Option<Rank>> {
        assert!(rank < self.size, "rank {rank} in a grid of {}", self.size);
        (0..self.dims.len()).flat_map(|dimension| <[_; 2]>::from(self.shift(rank, dimension, 1))).collect()
    }

    /// Cuts the grid into grids of the dimensions that `keep` names (`MPI_Cart_sub`): ranks are in one part if
    /// their other coordinates are equal.
    ///
    /// # Errors
    /// Not one value for each dimension.
    pub fn sub(&self, keep: &[bool]) -> Result<Sub, TopologyError> {
        if keep.len() != self.dims.len() {
            return Err(TopologyError::Dimensions { given: keep.len(), dimensions: self.dims.len() });
        }
        let part = |wanted: bool| {
            let dims = self.dims.iter().zip(keep).filter(|(_, keep)| **keep == wanted);
            let dims: Vec<Dimension> = dims.map(|(dimension, _)| *dimension).collect();
            Self { size: dims.iter().map(|dimension| dimension.length).product(), dims }
        };
        let (kept, others) = (part(true), part(false));
        let place = |grid: &Self, rank: Rank, wanted: bool| {
            let coords = self.coords(rank).into_iter().zip(keep).filter(|(_, keep)| **keep == wanted);
            grid.dims.iter().zip(coords).fold(0, |place, (dimension, (at, _))| place * dimension.length + at)
        };
        let colors = (0..self.size).map(|rank| place(&others, rank, false)).collect();
        let keys = (0..self.size).map(|rank| place(&kept, rank, true)).collect();
        Ok(Sub { grid: kept, colors, keys })
    }
}

#[cfg(test)]
mod tests;
