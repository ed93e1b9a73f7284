//! Values in memory from the start of a cache line on.

use std::ops::{Deref, DerefMut};

/// Values of a cache line.
const VALUES: usize = 16;

#[derive(Clone, Copy, Debug, Default, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Line([f32; VALUES]);

/// A slice of values that begins at a cache line, wherever the allocator has memory: vectors that cross lines cost a
/// fifth of the time of a step. The number of values is a multiple of 16.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Aligned(Vec<Line>);

impl Aligned {
    /// At least `len` zeros.
    pub(super) fn zeros(len: usize) -> Self {
        Self(vec![Line::default(); len.div_ceil(VALUES)])
    }

    /// Makes the number of values `len`, rounded up to a multiple of 16; new ones are zero.
    pub fn resize(&mut self, len: usize) {
        self.0.resize(len.div_ceil(VALUES), Line::default());
    }
}

impl Deref for Aligned {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        bytemuck::cast_slice(&self.0)
    }
}

impl DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [f32] {
        bytemuck::cast_slice_mut(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Aligned;

    #[test]
    fn starts_at_a_cache_line_and_rounds_up() {
        for len in [0, 1, 16, 17, 1000, 3_000_000] {
            let mut values = Aligned::zeros(len);
            assert_eq!(values.len(), len.next_multiple_of(16));
            assert!(values.as_ptr().addr().is_multiple_of(64));
            values.resize(len + 20);
            assert_eq!(values.len(), (len + 20).next_multiple_of(16));
            assert!(values.as_ptr().addr().is_multiple_of(64) && values.iter().all(|value| *value == 0.0));
        }
    }
}
