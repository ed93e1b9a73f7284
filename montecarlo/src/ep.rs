//! EP, the embarrassingly parallel kernel of the NAS Parallel Benchmarks: pairs of uniform numbers, turned into
//! Gaussian ones by the polar method, summed, and counted by size.
//!
//! The uniform numbers are `x_k / 2^46` with `x_k = 5^13 x_(k-1) mod 2^46` and `x_0 = 271828183`. They are cut into
//! blocks of `2^16` pairs, and each block skips to its own start by a power of the multiplier. A block is a function
//! of its index: pair `k` of it is added to lane `k mod 8`, and the lanes to each other in their order. So block sums added
//! in the order of the blocks have the same bits for any division of blocks over ranks. The instruction set, chosen at run
//! time, changes the speed only: the logarithm is our own, and nothing is fused.
//!
//! D. H. Bailey et al., The NAS Parallel Benchmarks, Int. J. Supercomputer Applications 5(3), 1991; the polar method
//! is from D. E. Knuth, The Art of Computer Programming, volume 2, section 3.4.1.

use pulp::{Arch, Simd, WithSimd};

mod class;
mod error;
mod ln;

pub use class::Class;
pub use error::EpError;
use ln::ln;

/// Pairs in a block.
pub const BLOCK_PAIRS: u64 = 1 << 16;

const MULTIPLIER: u64 = 5_u64.pow(13);
const SEED: u64 = 271_828_183;

/// Pairs worked on between passes: they stay in the first-level cache.
const CHUNK: usize = 256;

/// Sums side by side, as many as the longest vectors have numbers.
const LANES: usize = 8;

/// What a block, or any number of blocks, adds up to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BlockSum {
    /// Sum of the first Gaussian numbers of the pairs.
    pub sx: f64,
    /// Sum of the second Gaussian numbers.
    pub sy: f64,
    /// Gaussian pairs `(x, y)` with `max(|x|, |y|)` in `[l, l + 1)`, for `l` from 0 to 9.
    pub counts: [u64; 10],
}

impl BlockSum {
    /// Adds the next block. Sums round: only blocks added in the order of their indices give the same bits each
    /// time.
    pub fn add(&mut self, next: &Self) {
        self.sx += next.sx;
        self.sy += next.sy;
        for (count, next) in self.counts.iter_mut().zip(next.counts) {
            *count += next;
        }
    }

    /// Gaussian pairs: the share `pi / 4` of the uniform pairs that the polar method accepts.
    pub fn accepted(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// The sums of one block of `class`, under a millisecond. Blocks of the same index are the same in every class.
///
/// # Panics
/// If `index` is not below [`Class::blocks`].
pub fn block(class: Class, index: u64) -> BlockSum {
    assert!(index < class.blocks(), "block {index} of {}, class {class}", class.blocks());
    Arch::new().dispatch(Block(index))
}

/// The block of this index. All that it does is inlined, and becomes vector code for the instruction set.
#[derive(Clone, Copy)]
struct Block(u64);

impl WithSimd for Block {
    type Output = BlockSum;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> BlockSum {
        let mut first = SEED.wrapping_mul(power(2 * self.0 * BLOCK_PAIRS));
        let mut lanes = Lanes::default();
        for _ in 0..BLOCK_PAIRS / CHUNK as u64 {
            lanes.add(&Pairs::after(first));
            first = first.wrapping_mul(const { power(2 * CHUNK as u64) });
        }
        lanes.total()
    }
}

/// `MULTIPLIER^exponent` modulo `2^64`.
const fn power(exponent: u64) -> u64 {
    let (mut power, mut square, mut rest) = (1_u64, MULTIPLIER, exponent);
    while rest > 0 {
        if rest % 2 == 1 {
            power = power.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        rest /= 2;
    }
    power
}

/// Every second power of the multiplier from `first` on.
const fn powers(first: u64) -> [u64; CHUNK] {
    let mut powers = [0; CHUNK];
    let mut at = 0;
    while at < CHUNK {
        powers[at] = power(first + 2 * at as u64);
        at += 1;
    }
    powers
}

/// Uniform pairs in order, as numbers in `(-1, 1)`.
struct Pairs {
    xs: [f64; CHUNK],
    ys: [f64; CHUNK],
}

impl Pairs {
    /// The next ones after `number`, which is not reduced: arithmetic modulo `2^64` keeps the lower 46 bits right. None waits
    /// for another.
    #[inline(always)]
    fn after(number: u64) -> Self {
        static POWERS: [[u64; CHUNK]; 2] = [powers(1), powers(2)];
        let mut pairs = Self { xs: [0.0; CHUNK], ys: [0.0; CHUNK] };
        for (out, powers) in [&mut pairs.xs, &mut pairs.ys].into_iter().zip(&POWERS) {
            for (out, power) in out.iter_mut().zip(powers) {
                *out = symmetric(number.wrapping_mul(*power));
            }
        }
        pairs
    }
}

/// `2 r - 1` for `r` = `number` modulo `2^46`, over `2^46`. Exact, and never 0, because all numbers are odd.
#[inline(always)]
fn symmetric(number: u64) -> f64 {
    // The 46 bits are those of a number in [2, 4) after the point.
    f64::from_bits(2_f64.to_bits() | (number << 18 >> 12)) - 3.0
}

/// The sums of a block under way.
#[derive(Default)]
struct Lanes {
    sx: [f64; LANES],
    sy: [f64; LANES],
    /// How many pairs are accepted, and of how many `max(|x|, |y|)` is at least 1, 2 and so on.
    at_least: [u64; 10],
}

impl Lanes {
    #[inline(always)]
    fn add(&mut self, pairs: &Pairs) {
        let (mut sizes, mut accepted, mut largest) = ([0.0; CHUNK], [0; LANES], [0.0; LANES]);
        let (xs, _) = pairs.xs.as_chunks::<LANES>();
        let (ys, _) = pairs.ys.as_chunks::<LANES>();
        let (sizes_of, _) = sizes.as_chunks_mut::<LANES>();
        for ((xs, ys), sizes) in xs.iter().zip(ys).zip(sizes_of) {
            for lane in 0..LANES {
                let (x, y) = (xs[lane], ys[lane]);
                let square = x * x + y * y;
                let is_accepted = square <= 1.0;
                // What is not accepted becomes (0, 0).
                let square = if is_accepted { square } else { 1.0 };
                let scale = (-2.0 * ln(square) / square).sqrt();
                let (x, y) = (x * scale, y * scale);
                let size = if x.abs() > y.abs() { x.abs() } else { y.abs() };
                self.sx[lane] += x;
                self.sy[lane] += y;
                accepted[lane] += u64::from(is_accepted);
                largest[lane] = if size > largest[lane] { size } else { largest[lane] };
                sizes[lane] = size;
            }
        }
        self.count(&sizes, accepted.iter().sum(), largest.into_iter().fold(0.0, f64::max));
    }

    #[inline(always)]
    fn count(&mut self, sizes: &[f64; CHUNK], accepted: u64, largest: f64) {
        self.at_least[0] += accepted;
        for least in 1..=largest as usize {
            self.at_least[least] += sizes.iter().map(|size| u64::from(*size >= least as f64)).sum::<u64>();
        }
    }

    fn total(&self) -> BlockSum {
        let mut counts = self.at_least;
        for least in 1..counts.len() {
            counts[least - 1] -= counts[least];
        }
        BlockSum { sx: self.sx.iter().sum(), sy: self.sy.iter().sum(), counts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is compiled for any processor of this kind, and for those with longer vectors where they are there.
    #[test]
    fn instruction_sets_change_no_bit() {
        for index in [0, 77, 255] {
            let due = Block(index).with_simd(pulp::Scalar);
            assert_eq!(block(Class::S, index), due);
            #[cfg(target_arch = "x86_64")]
            if let Some(v3) = pulp::x86::V3::try_new() {
                assert_eq!(Simd::vectorize(v3, Block(index)), due);
            }
        }
    }
}
