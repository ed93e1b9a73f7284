//! Layouts: which elements of a slice a message consists of, and in which order (MPI 4.1, chapter 5, "Datatypes").
//!
//! MPI's derived datatypes as values. A layout counts elements and knows neither their type nor their bytes
//! ([`Layout::scaled`] makes bytes of them). What is adjacent in the slice and in the order is one *piece*, so
//! a layout is a list of pieces as long as possible; the regular ones are kept as strides, however many pieces
//! they have.

use std::ops::Range;

/// Elements of a slice in the order in which a message carries them.
///
/// Two layouts are equal if they name the same elements in the same order, however they were made. The
/// empty layout has no pieces.
#[derive(Clone, Debug)]
pub struct Layout {
    pieces: Pieces,
    len: usize,
    end: usize,
}

/// Why there is no such layout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// A number of elements or bytes, or the position of the last one, is above `usize::MAX`.
    #[error("the layout is larger than any memory")]
    TooLarge,
    /// Shape, start and extent of a subarray have different numbers of dimensions.
    #[error(
        "{shape} dimensions in the shape of the array, {start} in the start and {extent} in the extent of its part"
    )]
    Dimensions {
        /// Dimensions of the array.
        shape: usize,
        /// Dimensions of the start.
        start: usize,
        /// Dimensions of the extent.
        extent: usize,
    },
    /// A subarray does not lie within its array.
    #[error(
        "{extent} from {start} on is not within {shape}, the length of the array in dimension {dimension}"
    )]
    Outside {
        /// The dimension, the slowest is 0.
        dimension: usize,
        /// Start of the part in it.
        start: usize,
        /// Length of the part in it.
        extent: usize,
        /// Length of the array in it.
        shape: usize,
    },
}

#[derive(Clone, Debug)]
enum Pieces {
    /// Pieces of one length, at a start plus multiples of strides. Without axes it is one piece.
    Regular { start: usize, block: usize, axes: Vec<Axis> },
    /// Any pieces; `before[k]` elements come before piece `k`, and all of them before the end.
    Listed { ranges: Vec<Range<usize>>, before: Vec<usize> },
}

/// A repetition; at least two times. The slowest axis is the first.
#[derive(Clone, Copy, Debug)]
struct Axis {
    count: usize,
    stride: usize,
}

impl Layout {
    /// Adjacent elements (`MPI_Type_contiguous`). A range that ends before it starts is empty.
    pub fn contiguous(range: Range<usize>) -> Self {
        let len = range.len();
        let (start, end) = if len == 0 { (0, 0) } else { (range.start, range.end) };
        Self { pieces: Pieces::Regular { start, block: len, axes: vec![] }, len, end }
    }

    /// `count` blocks of `block` elements, the first at `start`, each `stride` behind the one before
    /// (`MPI_Type_vector`). Column `c` of a matrix of `r` rows with `n` columns is `strided(c, r, 1, n)`.
    ///
    /// # Errors
    /// [`LayoutError::TooLarge`].
    pub fn strided(start: usize, count: usize, block: usize, stride: usize) -> Result<Self, LayoutError> {
        Self::regular(start, block, &[Axis { count, stride }])
    }

    /// A part of an array of any number of dimensions, in row-major order: the last dimension is the fastest
    /// (`MPI_Type_create_subarray`). It begins at `start` and has `extent` elements in each dimension.
    ///
    /// # Errors
    /// The numbers of dimensions differ, the part does not lie within the array, or [`LayoutError::TooLarge`].
    pub fn subarray(shape: &[usize], start: &[usize], extent: &[usize]) -> Result<Self, LayoutError> {
        if shape.len() != start.len() || shape.len() != extent.len() {
            let (shape, start, extent) = (shape.len(), start.len(), extent.len());
            return Err(LayoutError::Dimensions { shape, start, extent });
        }
        for (dimension, ((&shape, &start), &extent)) in shape.iter().zip(start).zip(extent).enumerate() {
            if start.checked_add(extent).is_none_or(|end| end > shape) {
                return Err(LayoutError::Outside { dimension, start, extent, shape });
            }
        }
        if extent.contains(&0) {
            return Ok(Self::contiguous(0..0));
        }
        // No length of the shape is zero here, so its product bounds all that follows.
        shape.iter().try_fold(1usize, |all, &n| all.checked_mul(n)).ok_or(LayoutError::TooLarge)?;
        let (mut axes, mut first, mut stride) = (Vec::with_capacity(shape.len()), 0, 1);
        for ((&shape, &start), &count) in shape.iter().zip(start).zip(extent).rev() {
            axes.push(Axis { count, stride });
            first += start * stride;
            stride *= shape;
        }
        axes.reverse();
        Self::regular(first, 1, &axes)
    }

    /// Blocks at any places, in the order given (`MPI_Type_indexed`). Empty ones count for nothing.
    ///
    /// # Errors
    /// [`LayoutError::TooLarge`]: blocks that overlap can be more than any memory.
    pub fn indexed(blocks: Vec<Range<usize>>) -> Result<Self, LayoutError> {
        let mut ranges: Vec<Range<usize>> = Vec::with_capacity(blocks.len());
        let mut len = 0usize;
        for block in blocks.into_iter().filter(|block| !block.is_empty()) {
            len = len.checked_add(block.len()).ok_or(LayoutError::TooLarge)?;
            match ranges.last_mut() {
                Some(last) if last.end == block.start => last.end = block.end,
                _ => ranges.push(block),
            }
        }
        if let [] | [_] = ranges[..] {
            return Ok(Self::contiguous(ranges.pop().unwrap_or(0..0)));
        }
        Ok(Self::listed(ranges, len))
    }

    fn listed(ranges: Vec<Range<usize>>, len: usize) -> Self {
        let end = ranges.iter().map(|range| range.end).max().unwrap_or(0);
        let mut before = Vec::with_capacity(ranges.len() + 1);
        before.push(0);
        before.extend(ranges.iter().scan(0, |sum, range| {
            *sum += range.len();
            Some(*sum)
        }));
        Self { pieces: Pieces::Listed { ranges, before }, len, end }
    }

    /// Makes pieces as long and axes as few as they can be.
    fn regular(start: usize, mut block: usize, all: &[Axis]) -> Result<Self, LayoutError> {
        if block == 0 || all.iter().any(|axis| axis.count == 0) {
            return Ok(Self::contiguous(0..0));
        }
        let first = (start.checked_add(block).ok_or(LayoutError::TooLarge)?, block);
        let (end, len) = all
            .iter()
            .try_fold(first, |(end, len), axis| {
                let last = (axis.count - 1).checked_mul(axis.stride)?;
                Some((end.checked_add(last)?, len.checked_mul(axis.count)?))
            })
            .ok_or(LayoutError::TooLarge)?;
        let mut axes: Vec<Axis> = Vec::new();
        // From the fastest axis on.
        for &axis in all.iter().rev().filter(|axis| axis.count > 1) {
            match axes.last_mut() {
                None if axis.stride == block => block *= axis.count,
                // The slower axis goes on where the faster one ends.
                Some(faster) if faster.count.checked_mul(faster.stride) == Some(axis.stride) => {
                    faster.count *= axis.count;
                }
                _ => axes.push(axis),
            }
        }
        axes.reverse();
        Ok(Self { pieces: Pieces::Regular { start, block, axes }, len, end })
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// One past the highest element, 0 if there is none: the least length of a slice that it fits.
    pub fn end(&self) -> usize {
        self.end
    }

    /// Number of contiguous pieces. Piece `k + 1` never begins where piece `k` ends.
    pub fn pieces(&self) -> usize {
        match &self.pieces {
            Pieces::Regular { block, .. } => self.len.checked_div(*block).unwrap_or(0),
            Pieces::Listed { ranges, .. } => ranges.len(),
        }
    }

    /// The elements of piece `k`. O(1) for listed pieces, else O(dimensions).
    ///
    /// # Panics
    /// There is no such piece.
    pub fn piece(&self, k: usize) -> Range<usize> {
        assert!(k < self.pieces(), "piece {k} of {}", self.pieces());
        match &self.pieces {
            Pieces::Regular { start, block, axes } => {
                let (mut at, mut rest) = (*start, k);
                for axis in axes.iter().rev() {
                    at += rest % axis.count * axis.stride;
                    rest /= axis.count;
                }
                at..at + block
            }
            Pieces::Listed { ranges, .. } => ranges[k].clone(),
        }
    }

    /// The piece that element `offset` of the message is in, and how many elements of that piece are before it.
    /// At the end of the message it is `(self.pieces(), 0)`. O(1) for regular pieces, else O(log pieces).
    ///
    /// # Panics
    /// `offset > self.len()`.
    pub fn locate(&self, offset: usize) -> (usize, usize) {
        assert!(offset <= self.len, "element {offset} of {}", self.len);
        match &self.pieces {
            Pieces::Regular { block: 0, .. } => (0, 0),
            Pieces::Regular { block, .. } => (offset / block, offset % block),
            Pieces::Listed { before, .. } => {
                let k = before.partition_point(|before| *before <= offset) - 1;
                (k, offset - before[k])
            }
        }
    }

    /// The pieces in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Range<usize>> + '_ {
        (0..self.pieces()).map(|k| self.piece(k))
    }

    /// What is left from element `offset` of the message on: the rest of its piece, then the pieces behind it.
    ///
    /// # Panics
    /// `offset > self.len()`.
    pub fn iter_from(&self, offset: usize) -> impl Iterator<Item = Range<usize>> + '_ {
        let (first, skipped) = self.locate(offset);
        (first..self.pieces()).map(move |k| {
            let piece = self.piece(k);
            if k == first { piece.start + skipped..piece.end } else { piece }
        })
    }

    /// This layout in bytes, for elements of `element_bytes` bytes.
    ///
    /// # Errors
    /// [`LayoutError::TooLarge`]; never for a layout that fits a slice of such elements and names none twice.
    pub fn scaled(&self, element_bytes: usize) -> Result<Self, LayoutError> {
        let times = |elements: usize| elements.checked_mul(element_bytes).ok_or(LayoutError::TooLarge);
        let (len, end) = (times(self.len)?, times(self.end)?);
        if len == 0 {
            return Ok(Self::contiguous(0..0));
        }
        // All that is left is below one of the two.
        let pieces = match &self.pieces {
            Pieces::Regular { start, block, axes } => Pieces::Regular {
                start: start * element_bytes,
                block: block * element_bytes,
                axes: axes.iter().map(|axis| Axis { stride: axis.stride * element_bytes, ..*axis }).collect(),
            },
            Pieces::Listed { ranges, .. } => {
                let bytes = |range: &Range<usize>| range.start * element_bytes..range.end * element_bytes;
                return Ok(Self::listed(ranges.iter().map(bytes).collect(), len));
            }
        };
        Ok(Self { pieces, len, end })
    }

    /// Whether it names an element twice: such a message can be sent but not received (MPI 4.1, section 5.1.11).
    /// O(dimensions) for regular pieces, O(pieces) for ascending ones, else O(pieces log pieces).
    pub fn overlaps_itself(&self) -> bool {
        match &self.pieces {
            Pieces::Regular { block, axes, .. } => {
                // One axis, or those of a subarray, each of which steps over all that is within.
                let mut span = *block;
                axes.iter().rev().any(|axis| {
                    let overlaps = axis.stride < span;
                    span += (axis.count - 1) * axis.stride;
                    overlaps
                })
            }
            Pieces::Listed { ranges, .. } => {
                let overlap = |pair: &[Range<usize>]| pair[1].start < pair[0].end;
                if !ranges.windows(2).any(overlap) {
                    return false;
                }
                let mut sorted = ranges.clone();
                sorted.sort_unstable_by_key(|range| range.start);
                sorted.windows(2).any(overlap)
            }
        }
    }

    /// Appends the elements of `from` to `into`, in order (`MPI_Pack`).
    ///
    /// # Panics
    /// `from` is shorter than [`Layout::end`].
    pub fn gather<T: Copy>(&self, from: &[T], into: &mut Vec<T>) {
        into.reserve(self.len);
        self.iter().for_each(|piece| into.extend_from_slice(&from[piece]));
    }

    /// Puts the elements of `from` to their places in `into` (`MPI_Unpack`).
    ///
    /// # Panics
    /// `from` has not [`Layout::len`] elements, or `into` is shorter than [`Layout::end`].
    pub fn scatter<T: Copy>(&self, from: &[T], into: &mut [T]) {
        assert_eq!(from.len(), self.len, "elements for a layout of {}", self.len);
        let mut rest = from;
        for piece in self.iter() {
            let (head, tail) = rest.split_at(piece.len());
            into[piece].copy_from_slice(head);
            rest = tail;
        }
    }
}

impl PartialEq for Layout {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl Eq for Layout {}

#[cfg(test)]
mod tests;
