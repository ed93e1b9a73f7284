//! How lost blocks are computed from others, and how far the result can be from what was lost.
//!
//! For a wanted block with the part `v(i)` of each member, `c` are the weights of the helpers, with `sum_j c(j) w(j, l) = v(l)` for all lost `l`, and
//! `b(i) = v(i) - sum_j c(j) w(j, i)` those of the members that are there. Both are quotients of integers, rounded once. The
//! wanted block is `sum_i b(i) x(i) + sum_j c(j) s(j)`; what is computed is off by
//!
//! - `gamma(n + 1) (sum_i |b(i) x(i)| + sum_j |c(j) s(j)|) + n 2^-1075`, for weights, products and sums of `n` sources,
//! - `sum_j |c(j)| (gamma(k) sum_i |w(j, i) x(i)| + drift(j))`, for what the sums were off that the helpers hold.
//!
//! The last sum has the lost members in it, of which only rebuilt values are known: `|x(l)| <= |rebuilt(l)| + error(l)`. With `K(v, l) = gamma(k) sum_j |c(j) w(j, l)|`
//! the errors are solutions of `error <= z + K error`, where `z` is all that is known, so `max error <= max z / (1 - |K|)`.

use super::bound::{Bound, Drift, SMALLEST, gamma, rounded_up};
use super::error::ChecksumError;
use super::sums::{CHUNK, add_magnitude, add_product, largest, part};
use super::system::{Growth, System};
use super::weights::Weights;
use crate::CodeError;
use crate::combination::check_count;
use crate::shape::{Shape, check_lengths};

/// Which blocks wanted ones are computed from, what each of them is multiplied by, and how errors grow on the way.
///
/// Everybody who asks the same code for the same blocks with the same ones present gets the same recovery: all data members that are
/// there, then as many checksum blocks as members are lost, of all that are there those with which errors grow least. It knows no
/// lengths and can be used for any number of stripes, and for any range of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Recovery {
    shape: Shape,
    weights: Weights,
    /// Indices in ascending order.
    sources: Vec<usize>,
    wanted: Vec<usize>,
    growth: Growth,
    /// Lost data members, whose magnitudes are part of all bounds. None if nothing that is wanted is lost.
    system: System,
    /// First those of the lost members, then those of the wanted blocks.
    rows: Vec<Row>,
    /// `1 / (1 - |K|)`.
    spread: f64,
}

/// One block as a sum, and the coefficients of its bound.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    /// One a source.
    weights: Vec<f64>,
    /// How much of the magnitude of each source is error.
    errors: Vec<f64>,
    /// The same of each lost member: `K`.
    of_lost: Vec<f64>,
    /// What is error without any source: drift and underflow. 0 for a copy, which has none.
    always: f64,
}

/// What a run over the sources finds out about one wanted block.
#[derive(Debug, Clone, Copy)]
struct Found {
    largest: f64,
    error: f64,
}

impl Recovery {
    pub(super) fn new(
        shape: Shape,
        weights: &Weights,
        present: &[bool],
        wanted: &[usize],
    ) -> Result<Self, ChecksumError> {
        shape.check_solvable(present, wanted)?;
        let Shape { data, redundant } = shape;
        let solved = wanted.iter().any(|index| !present[*index]);
        let lost: Vec<usize> = (0..data).filter(|i| solved && !present[*i]).collect();
        let there: Vec<usize> = (0..redundant).filter(|j| present[data + j]).collect();
        let undetermined =
            || CodeError::Undetermined { index: wanted.first().copied().unwrap_or(0), data, redundant };
        let (system, growth) = System::best(weights, &lost, &there).ok_or_else(undetermined)?;

        let is_read = |index: &usize| {
            let helps = index.checked_sub(data).is_none_or(|block| system.helpers.contains(&block));
            present[*index] && (wanted.contains(index) || solved && helps)
        };
        let sources: Vec<usize> = (0..data + redundant).filter(is_read).collect();
        let row = |index: &usize| match present[*index] {
            true => Some(Row::copy(&sources, *index, lost.len())),
            false => Solved::new(weights, &system, *index).map(|solved| solved.row(&sources)),
        };
        let rows: Option<Vec<Row>> = lost.iter().chain(wanted).map(row).collect();
        let rows = rows.ok_or_else(undetermined)?;
        let contraction = rows[..lost.len()].iter().map(Row::of_all_lost).fold(0.0, f64::max);
        let spread = rounded_up(1.0 / (1.0 - contraction));
        let wanted = wanted.to_vec();
        Ok(Self { shape, weights: *weights, sources, wanted, growth, system, rows, spread })
    }

    /// The blocks to be read, in ascending order.
    pub fn sources(&self) -> &[usize] {
        &self.sources
    }

    /// The blocks to be computed, in the order in which they were asked for.
    pub fn wanted(&self) -> &[usize] {
        &self.wanted
    }

    /// What each source is multiplied by in the `at`-th wanted block; none if there is no such block.
    ///
    /// Sources need not be in one place: products that are added one after the other ([`add_product`](crate::add_product)), lowest source first and
    /// onto zeros, give the bits of [`Recovery::rebuild`], in another order those of another rounding, within the same bound. That bound is
    /// [`Recovery::bounds`].
    pub fn weights(&self, at: usize) -> Option<&[f64]> {
        self.rows.get(self.system.lost.len() + at).map(|row| row.weights.as_slice())
    }

    /// Skeel's condition number `| |A^-1| |A| |` of the system that is solved, with the norm of the largest row sum: the least that the condition number
    /// of that norm can be made by scaling equations. 1 for a single lost member, 0 for none.
    pub fn condition(&self) -> f64 {
        self.growth.condition
    }

    /// How errors grow: members of magnitude 1 are rebuilt with that many times the relative error of the sums. `k` for a
    /// single lost member and the plain sum, 0 for no lost member.
    ///
    /// It is `| |A^-1| |W| |`, where the rows of `W` are all weights of the blocks that are used, and `A` is the part of it with the lost members.
    pub fn growth(&self) -> f64 {
        self.growth.stripe
    }

    /// With blocks that were updated since they were encoded.
    ///
    /// # Errors
    /// The drift is not that of `m` blocks.
    pub fn with_drift(mut self, drift: &Drift) -> Result<Self, ChecksumError> {
        let Shape { data, redundant } = self.shape;
        let given = drift.as_slice().len();
        if given != redundant {
            return Err(CodeError::WrongBlockCount { given, data, redundant }.into());
        }
        for row in self.rows.iter_mut().filter(|row| row.always > 0.0) {
            for (index, weight) in self.sources.iter().zip(&row.weights) {
                if let Some(block) = index.checked_sub(data) {
                    row.always += rounded_up((weight * drift.as_slice()[block]).abs());
                }
            }
        }
        Ok(self)
    }

    /// Computes all wanted blocks, `into[i]` the `i`-th: `sources` in the order of [`Recovery::sources`]. The bounds of their errors, in the same order,
    /// say how far any element can be from the data that was encoded, or from the sum of it without rounding.
    ///
    /// What the blocks held is replaced. Sources count as padded with zeros; blocks that are shorter than they are get the beginning. Any range
    /// of the sources gives that range of the blocks, with the same bits, and bounds of that range.
    ///
    /// The bounds hold if checksum blocks are sums over the members, each added once, in any order, and have changed since by no more than
    /// [`Recovery::with_drift`] was told. They cost a second run over the sources.
    ///
    /// # Errors
    /// The number of sources or of blocks is another, the blocks differ in length, a source has an element that is not finite, sums overflow, or
    /// a bound is beyond `limit`. Nothing is changed then.
    pub fn rebuild(
        &self,
        sources: &[&[f64]],
        into: &mut [&mut [f64]],
        limit: Bound,
    ) -> Result<Vec<Bound>, ChecksumError> {
        check_count(sources.len(), self.sources.len())?;
        check_count(into.len(), self.wanted.len())?;
        check_lengths(into)?;
        let length = into.first().map_or(0, |block| block.len());
        let bounds = self.concluded(&self.found(sources, length)).map_err(|overflow| {
            let mut not_finite = self.sources.iter().zip(sources).filter_map(|(&block, source)| {
                let at = part(source, 0, length).iter().position(|value| !value.is_finite())?;
                Some(ChecksumError::NotFinite { block, at })
            });
            not_finite.next().unwrap_or(overflow)
        })?;
        for (&block, &bound) in self.wanted.iter().zip(&bounds) {
            if !bound.is_within(&limit) {
                return Err(ChecksumError::BeyondLimit { block, bound, limit });
            }
        }
        for (row, block) in self.rows[self.system.lost.len()..].iter().zip(into) {
            row.compute(sources, block);
        }
        Ok(bounds)
    }

    /// The bounds of [`Recovery::rebuild`] from magnitudes alone, where blocks are computed in several places: `largest[i]` is the largest magnitude of
    /// block `i` of the stripe ([`largest`](crate::largest)), of those that were lost as they were rebuilt.
    ///
    /// All sources, all lost data members and all wanted blocks are looked at, nothing else is. The bounds are somewhat larger than those of `rebuild`, as the largest elements of the
    /// sources need not be in one place.
    ///
    /// # Errors
    /// There are not `k + m` magnitudes, or sums overflowed: one of those that count is not finite.
    pub fn bounds(&self, largest: &[f64]) -> Result<Vec<Bound>, ChecksumError> {
        let Shape { data, redundant } = self.shape;
        let taken = data + redundant;
        if largest.len() != taken {
            return Err(CodeError::WrongShardCount { given: largest.len(), taken, data, redundant }.into());
        }
        let sources: Vec<[f64; 1]> = self.sources.iter().map(|index| [largest[*index]]).collect();
        let computed = self.system.lost.iter().chain(&self.wanted);
        let values: Vec<Vec<f64>> = computed.map(|index| vec![largest[*index]]).collect();
        let mut errors = vec![vec![0.0]; self.rows.len()];
        for (row, errors) in self.rows.iter().zip(&mut errors) {
            let each = row.errors.iter().zip(&sources);
            each.for_each(|(share, source)| add_magnitude(*share, source, errors));
        }
        self.close(&values, &mut errors);
        let found =
            values.iter().zip(&errors).map(|(value, error)| Found { largest: value[0], error: error[0] });
        self.concluded(&found.skip(self.system.lost.len()).collect::<Vec<Found>>())
    }

    /// The bounds of [`Recovery::rebuild`] from what is known before anything is lost: `largest[i]` is the largest magnitude of data member `i` as it
    /// was encoded, also of those that are lost. They are known before anything is computed. Relative to the largest they are so by what was
    /// lost, not by what is rebuilt; a checksum block that is wanted counts with the largest that it can have.
    ///
    /// The blocks have to be as they were encoded, but for what [`Recovery::with_drift`] was told.
    ///
    /// # Errors
    /// There are not `k` magnitudes, or one of them is not finite, or sums of them overflow.
    pub fn bounds_of_members(&self, largest: &[f64]) -> Result<Vec<Bound>, ChecksumError> {
        let Shape { data, redundant } = self.shape;
        if largest.len() != data {
            let (given, taken) = (largest.len(), data);
            return Err(CodeError::WrongShardCount { given, taken, data, redundant }.into());
        }
        let magnitude = |index: usize| match index.checked_sub(data) {
            None => largest[index].abs(),
            Some(block) => {
                let products = (0..data).map(|i| self.weights.get(block, i).abs() as f64 * largest[i].abs());
                rounded_up((1.0 + gamma(data)) * products.sum::<f64>()) + data as f64 * SMALLEST
            }
        };
        let of_wanted = |(row, index): (&Row, &usize)| {
            let of_sources = row.errors.iter().zip(&self.sources).map(|(share, at)| share * magnitude(*at));
            let of_lost = row.of_lost.iter().zip(&self.system.lost).map(|(share, at)| share * magnitude(*at));
            let error = rounded_up(of_sources.chain(of_lost).sum::<f64>() + row.always);
            Found { largest: magnitude(*index), error }
        };
        let rows = self.rows[self.system.lost.len()..].iter().zip(&self.wanted);
        self.concluded(&rows.map(of_wanted).collect::<Vec<Found>>())
    }

    /// Computes everything but keeps nothing except the largest values and errors of the wanted blocks.
    fn found(&self, sources: &[&[f64]], length: usize) -> Vec<Found> {
        let (lost, rows) = (self.system.lost.len(), self.rows.len());
        let mut found = vec![Found { largest: 0.0, error: 0.0 }; rows - lost];
        let mut values = vec![vec![0.0; CHUNK]; rows];
        let mut errors = vec![vec![0.0; CHUNK]; rows];
        for from in (0..length).step_by(CHUNK) {
            let now = CHUNK.min(length - from);
            for buffer in values.iter_mut().chain(&mut errors) {
                buffer.truncate(now);
                buffer.fill(0.0);
            }
            for (at, source) in sources.iter().enumerate() {
                let source = part(source, from, now);
                for ((row, value), error) in self.rows.iter().zip(&mut values).zip(&mut errors) {
                    add_product(row.weights[at], source, value);
                    add_magnitude(row.errors[at], source, error);
                }
            }
            self.close(&values, &mut errors);
            for (found, (value, error)) in found.iter_mut().zip(values.iter().zip(&errors).skip(lost)) {
                found.largest = largest(&[found.largest, largest(value)]);
                found.error = largest(&[found.error, largest(error)]);
            }
        }
        found
    }

    /// Turns what the sources have of each error into the bound of it: with the lost members and with what is always there.
    fn close(&self, values: &[Vec<f64>], errors: &mut [Vec<f64>]) {
        let lost = self.system.lost.len();
        for (row, error) in self.rows.iter().zip(errors.iter_mut()) {
            for (share, value) in row.of_lost.iter().zip(values) {
                add_magnitude(*share, value, error);
            }
            error.iter_mut().for_each(|error| *error += row.always);
        }
        // The largest error of a lost member at each element. Infinities and NaN stay.
        let mut worst = vec![0.0; errors.first().map_or(0, Vec::len)];
        for error in &errors[..lost] {
            worst.iter_mut().zip(error).for_each(|(worst, error)| *worst = largest(&[*worst, *error]));
        }
        for (row, error) in self.rows.iter().zip(errors) {
            add_magnitude(rounded_up(row.of_all_lost() * self.spread), &worst, error);
        }
    }

    /// The bounds, if all is finite.
    fn concluded(&self, found: &[Found]) -> Result<Vec<Bound>, ChecksumError> {
        let bound =
            |(block, found): (&usize, &Found)| match found.largest.is_finite() && found.error.is_finite() {
                true => Ok(Bound::of(found.error, found.largest)),
                false => Err(ChecksumError::Overflow { block: *block }),
            };
        self.wanted.iter().zip(found).map(bound).collect()
    }
}

impl Row {
    /// A block that is there: its own source.
    fn copy(sources: &[usize], wanted: usize, lost: usize) -> Self {
        let weights = sources.iter().map(|index| f64::from(u8::from(*index == wanted))).collect();
        Self { weights, errors: vec![0.0; sources.len()], of_lost: vec![0.0; lost], always: 0.0 }
    }

    /// The row sum of `K`.
    fn of_all_lost(&self) -> f64 {
        self.of_lost.iter().sum()
    }

    /// The block, source after source.
    fn compute(&self, sources: &[&[f64]], block: &mut [f64]) {
        for (piece, into) in block.chunks_mut(CHUNK).enumerate() {
            into.fill(0.0);
            for (weight, source) in self.weights.iter().zip(sources) {
                add_product(*weight, part(source, piece * CHUNK, into.len()), into);
            }
        }
    }
}

/// A block that is lost, as a sum of the helpers, with all that they have of other members taken out again.
struct Solved<'a> {
    weights: &'a Weights,
    system: &'a System,
    wanted: usize,
    /// The weights of the helpers: numerators over a denominator.
    numerators: Vec<i64>,
    denominator: i64,
}

impl<'a> Solved<'a> {
    fn new(weights: &'a Weights, system: &'a System, wanted: usize) -> Option<Self> {
        let mut solution = system.solve(weights, &[&|member| part_of(weights, wanted, member)])?;
        let numerators = solution.numerators.pop()?;
        Some(Self { weights, system, wanted, numerators, denominator: solution.denominator })
    }

    fn row(&self, sources: &[usize]) -> Row {
        let computing = gamma(sources.len() + 1);
        let weights: Vec<f64> = sources.iter().map(|index| self.weight(*index)).collect();
        let error = |(index, weight): (&usize, &f64)| {
            let encoding = if *index < self.weights.data() { self.encoded(*index) } else { 0.0 };
            rounded_up(computing * weight.abs() + encoding)
        };
        let errors = sources.iter().zip(&weights).map(error).collect();
        let of_lost = self.system.lost.iter().map(|lost| rounded_up(self.encoded(*lost))).collect();
        // Each product loses at most half of the smallest double by underflow, and so do those that make the bound.
        let always = (4 * (sources.len() + self.system.lost.len()) + 16) as f64 * SMALLEST;
        Row { weights, errors, of_lost, always }
    }

    /// What a source is multiplied by: integers below 2^53, rounded once as a quotient.
    fn weight(&self, index: usize) -> f64 {
        let numerator = match index.checked_sub(self.weights.data()) {
            None => {
                let brought: i64 = self.helpers().map(|(j, p)| p * self.weights.get(j, index)).sum();
                part_of(self.weights, self.wanted, index) * self.denominator - brought
            }
            Some(block) => self.helpers().filter(|(helper, _)| *helper == block).map(|(_, p)| p).sum(),
        };
        numerator as f64 / self.denominator as f64
    }

    /// How much of the magnitude of a member is error because the helpers were encoded with it.
    fn encoded(&self, member: usize) -> f64 {
        let magnitude: i64 = self.helpers().map(|(j, p)| (p * self.weights.get(j, member)).abs()).sum();
        gamma(self.weights.data()) * (magnitude as f64 / self.denominator.abs() as f64)
    }

    /// Each helper with its numerator.
    fn helpers(&self) -> impl Iterator<Item = (usize, i64)> {
        self.system.helpers.iter().copied().zip(self.numerators.iter().copied())
    }
}

/// What block `index` of a stripe has of a data member.
fn part_of(weights: &Weights, index: usize, member: usize) -> i64 {
    match index.checked_sub(weights.data()) {
        None => i64::from(index == member),
        Some(block) => weights.get(block, member),
    }
}
