//! Checksums: weighted sums of the members' doubles (Plank, Kim and Dongarra 1995), from which lost members are solved for.
//!
//! Block `j` is `sum_i w(j, i) x(i)` in doubles, element by element. `e` lost members are the unknowns of `e` equations, one for each checksum block
//! that stands in for them. All of it is rounded: [`Recovery`] says by how much at most.
//!
//! *Weights.* Any `e` members may be lost with any `m - e` blocks, so every square part of the table of weights may be the matrix of the
//! equations, and errors grow with its condition number. Vandermonde matrices, the first choice, have parts that are all but
//! singular; random ones are better (Chen and Dongarra 2005), and those here were searched for (`weights.rs`). The first row is all ones, so
//! block 0 is the plain sum.

mod bound;
mod error;
mod recovery;
mod sums;
mod system;
mod weights;

pub use bound::{Bound, Drift};
pub use error::ChecksumError;
pub use recovery::Recovery;

use self::bound::{drifted, gamma};
use self::sums::{CHUNK, part};
use self::weights::Weights;
use crate::CodeError;
use crate::shape::Shape;

/// Up to [`Checksum::DATA_MAX`] data members and [`Checksum::REDUNDANT_MAX`] checksum blocks, slices of doubles; survives the loss of as many blocks as there are
/// checksums, with rounding.
///
/// **Never for integers**, nor for anything else that is not a number with a magnitude: bits are not kept. A rebuilt slice is near to what was lost, within
/// the [`Bound`] that comes with it, and not equal to it: not for indices, counters, seeds, masks and pointers, nor for doubles that are compared bit by
/// bit. `-0.0` comes back as `0.0`, a NaN not at all. Members of very different magnitudes are as near as the largest of them allows. Where
/// that will not do there is [`ReedSolomon`](crate::ReedSolomon).
///
/// What it is for: sums can be made by any reduction of doubles, also by the network, and a linear operation on all members keeps them
/// sums. What that rounds besides is [`Drift`], for the caller to bound.
///
/// ```
/// use ft_encoders::{Bound, Checksum};
///
/// let code = Checksum::new(3, 2)?;
/// let data = [&[1.0, -2.5][..], &[0.1, 40.0], &[3.0, 7.0]];
/// let (mut p, mut q) = ([0.0; 2], [0.0; 2]);
/// code.encode(&data, &mut [&mut p, &mut q])?;
/// assert_eq!(p, [4.1, 44.5]);
///
/// // Blocks 0, 1, 2 are data, 3 and 4 checksums; two members are lost.
/// let recovery = code.recovery(&[true, false, false, true, true], &[1, 2])?;
/// assert_eq!(recovery.sources(), [0, 3, 4]);
/// let (mut second, mut third) = ([0.0; 2], [0.0; 2]);
/// let bounds = recovery.rebuild(&[data[0], &p, &q], &mut [&mut second, &mut third], Bound::absolute(1e-12))?;
/// assert!((second[0] - 0.1).abs() <= bounds[0].absolute && bounds[0].absolute < 1e-12);
///
/// // What cannot be as near as that is refused.
/// let limit = Bound::absolute(1e-16);
/// assert!(recovery.rebuild(&[data[0], &p, &q], &mut [&mut second, &mut third], limit).is_err());
/// # Ok::<(), ft_encoders::ChecksumError>(())
/// ```
///
/// # Weights
///
/// Any square part of the table of weights may be the matrix to be solved. The worst of all of them, over all patterns of `m` losses:
///
/// | `k` | `m` = 1 | 2 | 3 | 4 |
/// |---|---|---|---|---|
/// | 4 | 1 (4) | 4.6 (9.1) | 5.8 (11) | 9.3 (13) |
/// | 8 | 1 (8) | 9.7 (33) | 21 (54) | 59 (115) |
/// | 16 | 1 (16) | 19 (123) | 77 (360) | 516 (1890) |
/// | 32 | 1 (32) | 39 (499) | 381 (3010) | 4890 (38 700) |
/// | 60 | 1 (60) | 80 (1840) | 1410 (23 600) | 45 400 (606 000) |
///
/// First the condition number ([`Recovery::condition`]), then how errors grow ([`Recovery::growth`]), `k` for a plain sum; a `k` between two is no worse than
/// the next larger. The powers `(i + 1)^j` of a Vandermonde matrix grow errors by 1090 for 8+3 and 111 000 for 16+4. More members or blocks are refused: exact codes do
/// better there. Bounds of real data of one magnitude are some 10 to 100 times the largest error of a slice, since roundings seldom all have one sign.
///
/// # After a loss
///
/// After members were rebuilt, encode again, all blocks: those that survived are sums of what was lost, and no longer of what there is. The next bounds
/// count from the rebuilt members.
#[derive(Clone)]
pub struct Checksum {
    shape: Shape,
    weights: Weights,
}

impl Checksum {
    /// Most data members that there are weights for.
    pub const DATA_MAX: usize = weights::DATA_MAX;
    /// Most checksum blocks that there are weights for.
    pub const REDUNDANT_MAX: usize = weights::REDUNDANT_MAX;

    /// A code of `data` data members and `redundant` checksum blocks.
    ///
    /// # Errors
    ///
    /// When one of the numbers is 0, or larger than [`Self::DATA_MAX`] or [`Self::REDUNDANT_MAX`]: with more the conditions
    /// are not known to be good.
    pub fn new(data: usize, redundant: usize) -> Result<Self, ChecksumError> {
        if data == 0 || redundant == 0 {
            return Err(CodeError::Empty { data, redundant }.into());
        }
        let (data_max, redundant_max) = (Self::DATA_MAX, Self::REDUNDANT_MAX);
        let none = ChecksumError::NoWeights { data, redundant, data_max, redundant_max };
        let weights = Weights::new(data, redundant).ok_or(none)?;
        Ok(Self { shape: Shape { data, redundant }, weights })
    }

    /// `k`, the data members of a stripe.
    pub fn data(&self) -> usize {
        self.shape.data
    }

    /// `m`, the checksum blocks of a stripe, which is also the number of losses survived.
    pub fn redundant(&self) -> usize {
        self.shape.redundant
    }

    /// What data member `member` (`0..k`) is multiplied by in checksum block `block` (`0..m`): an integer from -127 to 127, but not 0.
    ///
    /// # Panics
    /// One of them is out of range.
    pub fn weight(&self, block: usize, member: usize) -> f64 {
        self.weights.get(block, member) as f64
    }

    /// What a rebuilt member is off at most, whichever up to `m` blocks are lost, over the largest magnitude of all members of the stripe, but for
    /// what underflows. It is computed from the table [above](Self#weights), and so known before anything is: bounds of what is lost are
    /// smaller.
    pub fn error_max(&self) -> f64 {
        let Shape { data, redundant } = self.shape;
        // Sources, helpers, and the roundings of these: each at most what the errors grow by (`recovery.rs`).
        3.0 * gamma(data + 2) * weights::growth_max(data, redundant)
    }

    /// Computes all checksum blocks: `data[i]` is the shard of member `i`, `blocks[j]` becomes block `j`.
    ///
    /// Shards may have different lengths, up to that of the blocks: they count as padded with zeros. What the blocks held is
    /// replaced. Members are added in their order, so the bits are the same everywhere, and any range of the shards gives that range of
    /// the blocks.
    ///
    /// # Errors
    ///
    /// When there are not `k` shards and `m` blocks, the blocks differ in length, a shard is longer than they are, an element is not finite, or
    /// sums of the largest elements, wherever they are, would overflow. Nothing is changed on error.
    pub fn encode(&self, data: &[&[f64]], blocks: &mut [&mut [f64]]) -> Result<(), ChecksumError> {
        self.shape.check_data(data.len())?;
        self.shape.check_blocks(blocks, data)?;
        let magnitudes = data
            .iter()
            .enumerate()
            .map(|(member, shard)| finite(member, shard))
            .collect::<Result<Vec<f64>, ChecksumError>>()?;
        for block in 0..blocks.len() {
            let product = |(member, largest)| self.weight(block, member).abs() * largest;
            self.check_sum(block, magnitudes.iter().enumerate().map(product).sum())?;
        }
        let length = blocks.first().map_or(0, |block| block.len());
        for from in (0..length).step_by(CHUNK) {
            for (block, sums) in blocks.iter_mut().enumerate() {
                let sums = &mut sums[from..length.min(from + CHUNK)];
                sums.fill(0.0);
                for (member, shard) in data.iter().enumerate() {
                    sums::add_product(self.weight(block, member), part(shard, from, CHUNK), sums);
                }
            }
        }
        Ok(())
    }

    /// Adds `shard` of data member `member` (`0..k`) to checksum block `block` (`0..m`).
    ///
    /// A fresh block is all zeros. Each member is to be added once; added in their order, they give the bits of [`Checksum::encode`], in another order, or
    /// sums of a part of the members each, those of another rounding, for which the bounds of [`Recovery`] hold as well. The shard may be shorter
    /// than `into`: it counts as padded with zeros.
    ///
    /// # Errors
    ///
    /// When `member` or `block` is out of range, the shard is longer than `into`, an element is not finite, or sums of the largest elements would
    /// overflow. Nothing is changed on error.
    pub fn accumulate(
        &self,
        block: usize,
        member: usize,
        shard: &[f64],
        into: &mut [f64],
    ) -> Result<(), ChecksumError> {
        self.shape.check_block(block)?;
        self.shape.check_member(member)?;
        check_fits(shard, into)?;
        let weight = self.weight(block, member);
        let sum = weight.abs() * finite(member, shard)? + finite(self.data() + block, into)?;
        self.check_sum(block, sum)?;
        sums::add_product(weight, shard, into);
        Ok(())
    }

    /// Replaces the shard `old` of data member `member` by `new` in all checksum blocks, and adds what that rounds to their `drift`.
    ///
    /// The two may have different lengths, up to that of the blocks, and be any range of the shard, `blocks` being the
    /// same range of the blocks. The drift is that of whole blocks; it grows by errors of the size of what has changed, so encode again where
    /// numbers came down by orders of magnitude.
    ///
    /// # Errors
    ///
    /// When `member` is out of range, there are not `m` blocks with a drift each, they differ in length, a shard is longer than they are, an element is not
    /// finite, or sums of the largest elements would overflow. Nothing is changed on error.
    pub fn update(
        &self,
        member: usize,
        old: &[f64],
        new: &[f64],
        blocks: &mut [&mut [f64]],
        drift: &mut Drift,
    ) -> Result<(), ChecksumError> {
        let Shape { data, redundant } = self.shape;
        self.shape.check_member(member)?;
        self.shape.check_blocks(blocks, &[old, new])?;
        let given = drift.as_slice().len();
        if given != redundant {
            return Err(CodeError::WrongBlockCount { given, data, redundant }.into());
        }
        let change = finite(member, old)? + finite(member, new)?;
        for (block, sums) in blocks.iter().enumerate() {
            let sum = self.weight(block, member).abs() * change + finite(data + block, sums)?;
            self.check_sum(block, sum)?;
        }
        for (block, sums) in blocks.iter_mut().enumerate() {
            let weight = self.weight(block, member);
            let more = replace(data, weight, old, new, sums);
            drift.add(block, more);
        }
        Ok(())
    }

    /// How the blocks `wanted` are computed from those with `present[i]`; indices are `0..k` for data, `k..k + m` for checksum blocks.
    ///
    /// A block that is present is its own source. Data and checksum blocks may be wanted together; a checksum block of no lost member is the bits
    /// that [`Checksum::encode`] makes.
    ///
    /// # Errors
    ///
    /// When `present` has not `k + m` entries, one of `wanted` is none of them, or more than `m` blocks are missing.
    pub fn recovery(&self, present: &[bool], wanted: &[usize]) -> Result<Recovery, ChecksumError> {
        Recovery::new(self.shape, &self.weights, present, wanted)
    }

    /// The sum of the largest magnitudes for a block, in which no sum can overflow if this does not: rounding keeps the order of numbers.
    fn check_sum(&self, block: usize, sum: f64) -> Result<(), ChecksumError> {
        let overflow = ChecksumError::Overflow { block: self.data() + block };
        if sum.is_finite() { Ok(()) } else { Err(overflow) }
    }
}

impl std::fmt::Debug for Checksum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Checksum").field("shape", &self.shape).finish_non_exhaustive()
    }
}

/// `into += weight * shard`, rounded after the product and after the sum: one hop of a reduction of doubles. `shard` may be shorter than `into`.
///
/// # Errors
///
/// When `shard` is longer than `into`. Nothing is changed then.
pub fn add_product(weight: f64, shard: &[f64], into: &mut [f64]) -> Result<(), CodeError> {
    check_fits(shard, into)?;
    sums::add_product(weight, shard, into);
    Ok(())
}

/// The largest magnitude of `values`: infinite if there is an infinity, NaN if there is a NaN, 0 if there are none.
pub fn largest(values: &[f64]) -> f64 {
    sums::largest(values)
}

fn check_fits(shard: &[f64], block: &[f64]) -> Result<(), CodeError> {
    let (shard_bytes, block_bytes) = (size_of_val(shard), size_of_val(block));
    if shard_bytes > block_bytes { Err(CodeError::ShardTooLong { shard_bytes, block_bytes }) } else { Ok(()) }
}

/// The largest magnitude of a block, which is finite.
fn finite(block: usize, values: &[f64]) -> Result<f64, ChecksumError> {
    let largest = sums::largest(values);
    match values.iter().position(|value| !largest.is_finite() && !value.is_finite()) {
        Some(at) => Err(ChecksumError::NotFinite { block, at }),
        None => Ok(largest),
    }
}

/// `sums += weight * (new - old)`, in a code of `data` members; gives the largest drift of an element.
fn replace(data: usize, weight: f64, old: &[f64], new: &[f64], sums: &mut [f64]) -> f64 {
    let value = |shard: &[f64], at: usize| shard.get(at).copied().unwrap_or(0.0);
    let mut drift = 0.0_f64;
    for (at, sum) in sums.iter_mut().enumerate().take(old.len().max(new.len())) {
        let change = value(new, at) - value(old, at);
        *sum += weight * change;
        drift = drift.max(drifted(data, weight, change, *sum));
    }
    drift
}
