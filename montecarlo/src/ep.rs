//! EP, the embarrassingly parallel kernel of the NAS Parallel Benchmarks: pairs of uniform numbers, turned into
//! Gaussian ones by the polar method, summed, and counted by size.
//!
//! The uniform numbers are `x_k / 2^46` with `x_k = 5^13 x_(k-1) mod 2^46` and `x_0 = 271828183`. They are cut into
//! blocks of `2^16` pairs, and each block skips to its own start by a power of the multiplier. A block is a function
//! of its index, and sums its pairs in their order, so block sums added in the order of the blocks have the same bits
//! for any division of blocks over ranks. The one thing not spelled out here is `ln`: where the mathematical library
//! rounds it differently from one processor to another, last bits differ, by far less than [`Class::verify`] allows.
//!
//! D. H. Bailey et al., The NAS Parallel Benchmarks, Int. J. Supercomputer Applications 5(3), 1991; the polar method
//! is from D. E. Knuth, The Art of Computer Programming, volume 2, section 3.4.1.

mod class;
mod error;

pub use class::Class;
pub use error::EpError;

/// Pairs in a block.
pub const BLOCK_PAIRS: u64 = 1 << 16;

const MULTIPLIER: u64 = 5_u64.pow(13);
const SEED: u64 = 271_828_183;
const MODULUS: u64 = 1 << 46;

/// Pairs worked on between passes: what is accepted stays in the first-level cache.
const CHUNK: usize = 512;

/// Streams of the generator. Each takes every 8th pair, which hides the latency of the multiplication and leaves the
/// pairs in order.
const STREAMS: usize = 8;

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
    let mut pairs = Pairs::skip(index * BLOCK_PAIRS);
    let mut sum = BlockSum::default();
    for _ in 0..BLOCK_PAIRS / CHUNK as u64 {
        accept(&mut pairs).add_to(&mut sum);
    }
    sum
}

/// Uniform pairs in order, [`STREAMS`] at a time.
struct Pairs {
    /// The first number of the next pair of each stream. Not reduced: arithmetic modulo `2^64` keeps the lower 46
    /// bits right.
    firsts: [u64; STREAMS],
}

impl Pairs {
    /// All pairs from `pair` on, counted from 0.
    fn skip(pair: u64) -> Self {
        let first = SEED.wrapping_mul(power(2 * pair + 1));
        Self { firsts: std::array::from_fn(|stream| first.wrapping_mul(power(2 * stream as u64))) }
    }

    /// The next pairs, as numbers in `(-1, 1)`.
    fn next(&mut self) -> [(f64, f64); STREAMS] {
        const STRIDE: u64 = power(2 * STREAMS as u64);
        let pairs = self.firsts.map(|first| (symmetric(first), symmetric(first.wrapping_mul(MULTIPLIER))));
        self.firsts = self.firsts.map(|first| first.wrapping_mul(STRIDE));
        pairs
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

/// `2 r - 1` for `r` = `number` modulo `2^46`, over `2^46`. Exact, and never 0, because all numbers are odd.
fn symmetric(number: u64) -> f64 {
    const STEP: f64 = 2.0 / MODULUS as f64;
    (number % MODULUS) as f64 * STEP - 1.0
}

/// Pairs within the unit circle, in order.
struct Accepted {
    /// `x`, `y` and `x^2 + y^2`.
    pairs: [(f64, f64, f64); CHUNK],
    len: usize,
}

/// What the polar method accepts of the next [`CHUNK`] pairs, found without a branch that would be mispredicted for
/// one pair in five.
fn accept(pairs: &mut Pairs) -> Accepted {
    let mut accepted = Accepted { pairs: [(0.0, 0.0, 0.0); CHUNK], len: 0 };
    for _ in 0..CHUNK / STREAMS {
        for (x, y) in pairs.next() {
            let square = x * x + y * y;
            accepted.pairs[accepted.len] = (x, y, square);
            accepted.len += usize::from(square <= 1.0);
        }
    }
    accepted
}

impl Accepted {
    fn add_to(&self, sum: &mut BlockSum) {
        for &(x, y, square) in &self.pairs[..self.len] {
            let scale = (-2.0 * square.ln() / square).sqrt();
            let (x, y) = (x * scale, y * scale);
            sum.counts[x.abs().max(y.abs()) as usize] += 1;
            sum.sx += x;
            sum.sy += y;
        }
    }
}
