//! Memory of the driver's own for payloads that are combined, and what is kept of it from one operation to the next.

/// Scratch that is kept for the next operation: bytes, and pieces.
const SPARE_BYTES: usize = 32 << 20;
const SPARE_PIECES: usize = 32;

/// Alignment of scratch memory; elements that ask for more cannot be reduced.
pub(crate) const SCRATCH_ALIGN: usize = 64;

#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Line([u8; SCRATCH_ALIGN]);

/// Memory of the driver, aligned for any element.
#[derive(Default)]
pub(crate) struct Scratch(Vec<Line>);

impl Scratch {
    pub(super) fn reserve(&mut self, bytes: usize) {
        let lines = bytes.div_ceil(SCRATCH_ALIGN);
        if self.0.len() < lines {
            self.0.resize(lines, Line([0; SCRATCH_ALIGN]));
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.0)
    }
}

/// Scratch that no operation uses, within limits.
#[derive(Default)]
pub(super) struct Spare(Vec<Scratch>);

impl Spare {
    /// Scratch of at least so many bytes.
    pub(super) fn take(&mut self, bytes: usize) -> Scratch {
        // The smallest that is large enough, else the largest.
        let fits = |scratch: &Scratch| scratch.bytes().len() >= bytes;
        let order = |scratch: &Scratch| (fits(scratch), scratch.bytes().len());
        let best = self.0.iter().enumerate().reduce(|best, other| {
            let ((fits, size), (other_fits, other_size)) = (order(best.1), order(other.1));
            let better = if fits { other_fits && other_size < size } else { other_fits || other_size > size };
            if better { other } else { best }
        });
        let at = best.map(|(at, _)| at);
        let mut scratch = at.map(|at| self.0.swap_remove(at)).unwrap_or_default();
        scratch.reserve(bytes);
        scratch
    }

    /// Scratch that is not needed now is kept for the next operation, within limits.
    pub(super) fn put_back(&mut self, scratch: Scratch) {
        let bytes = scratch.bytes().len();
        if bytes == 0 || self.0.len() == SPARE_PIECES {
            return;
        }
        let kept: usize = self.0.iter().map(|scratch| scratch.bytes().len()).sum();
        if kept + bytes <= SPARE_BYTES {
            self.0.push(scratch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_is_kept_within_limits_and_the_smallest_that_fits_is_used() {
        let mut spare = Spare::default();
        let pieces = [1000, 64, 5000].map(|bytes| spare.take(bytes));
        pieces.into_iter().for_each(|scratch| spare.put_back(scratch));
        assert_eq!(spare.take(500).bytes().len(), 1024, "in whole lines of 64 bytes");
        assert_eq!(spare.take(500).bytes().len(), 5056);
        assert_eq!(spare.take(500).bytes().len(), 512, "the largest that is left grows");
        for _ in 0..2 * SPARE_PIECES {
            spare.put_back(Scratch(vec![Line([0; SCRATCH_ALIGN])]));
        }
        assert_eq!(spare.0.len(), SPARE_PIECES);
        spare.0.clear();
        let most = spare.take(SPARE_BYTES);
        spare.put_back(most);
        spare.put_back(Scratch(vec![Line([0; SCRATCH_ALIGN])]));
        assert_eq!(spare.0.len(), 1, "no more bytes are kept than that");
    }
}
