//! How a block is computed from others: the linear system of a stripe, solved once.

use crate::error::CodeError;
use crate::field;
use crate::kernel::Kernel;
use crate::shape::{Shape, check_lengths};
use crate::{Code, accumulate};

/// Which blocks a wanted one is computed from, and what each of them is multiplied by.
///
/// Blocks of a stripe are numbered `0..k` (data), then `k..k + m` (redundant). Everybody who asks the same code for the same
/// block with the same ones present gets the same combination: data blocks first, lowest first, then redundant ones, lowest
/// first, and none that is not needed. A combination knows no lengths and can be used for any number of stripes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Combination {
    /// Indices with weights that are not 0, in ascending order.
    sources: Vec<(usize, u8)>,
}

impl Combination {
    /// Solves for `wanted`: the redundant blocks that stand in for the `e` lost data blocks are `e` equations for them,
    /// of which only one combination is needed. Costs `e^3 / 3 + e k` products.
    pub(crate) fn new<C: Code + ?Sized>(
        code: &C,
        present: &[bool],
        wanted: usize,
    ) -> Result<Self, CodeError> {
        let (data, redundant) = (code.data(), code.redundant());
        Shape::of(code).check_solvable(present, &[wanted])?;
        if present[wanted] {
            return Ok(Self { sources: vec![(wanted, 1)] });
        }

        let lost: Vec<usize> = (0..data).filter(|i| !present[*i]).collect();
        let helpers: Vec<usize> = (0..redundant).filter(|j| present[data + j]).take(lost.len()).collect();
        // What the wanted block has of data member `i`.
        let part = |i: usize| match wanted.checked_sub(data) {
            None => u8::from(i == wanted),
            Some(block) => code.weight(block, i),
        };
        // For each lost member: the helpers, so weighted, have as much of it as the wanted block.
        let equations = lost
            .iter()
            .map(|i| helpers.iter().map(|j| code.weight(*j, *i)).chain([part(*i)]).collect())
            .collect();
        let weights = solve(equations).ok_or(CodeError::Undetermined { index: wanted, data, redundant })?;

        // The helpers bring the members that are there along: each is taken out again, but for what is wanted of it.
        let brought = |i: usize| {
            helpers
                .iter()
                .zip(&weights)
                .fold(part(i), |sum, (j, weight)| sum ^ field::product(*weight, code.weight(*j, i)))
        };
        let members = (0..data).filter(|i| present[*i]).map(|i| (i, brought(i)));
        let blocks = helpers.iter().map(|j| data + j).zip(weights.iter().copied());
        Ok(Self { sources: members.chain(blocks).filter(|(_, weight)| *weight != 0).collect() })
    }

    /// The blocks to be read, in ascending order, each with what it is multiplied by, which is not 0.
    pub fn sources(&self) -> impl Iterator<Item = (usize, u8)> {
        self.sources.iter().copied()
    }

    /// Computes the wanted block: `sources` in the order of [`Combination::sources`], each read once.
    ///
    /// What `into` held is replaced. Sources count as padded with zeros; an `into` that is shorter than they are gets the
    /// beginning of the block.
    ///
    /// # Errors
    /// The number of sources is not that of the combination. Nothing is changed then.
    pub fn rebuild(&self, sources: &[&[u8]], into: &mut [u8]) -> Result<(), CodeError> {
        check_count(sources.len(), self.sources.len())?;
        Kernel::current().combine(|_, i| self.sources[i].1, sources, &mut [into], false);
        Ok(())
    }

    /// Adds what comes of the `at`-th source of [`Combination::sources`], `bytes`, to `into`. Starting from zeros, when every
    /// source was added, in any order, `into` is the wanted block.
    ///
    /// So the sources need never be in one place, nor whole: any range of them gives that range of the block.
    ///
    /// # Errors
    /// There is no such source, or `bytes` is longer than `into`. Nothing is changed then.
    pub fn add(&self, at: usize, bytes: &[u8], into: &mut [u8]) -> Result<(), CodeError> {
        match self.sources.get(at) {
            Some((_, weight)) => accumulate(*weight, bytes, into),
            None => Err(CodeError::NoSuchSource { at, sources: self.sources.len() }),
        }
    }
}

/// Several combinations of one stripe as one: every source is read once for all of them.
///
/// ```
/// # use ft_encoders::{Code, Combination, Combinations, ReedSolomon};
/// let code = ReedSolomon::new(4, 2)?;
/// let present = [false, true, false, true, true, true];
/// let combinations = [0, 2].into_iter().map(|lost| code.combination(&present, lost)).collect::<Result<Combinations, _>>()?;
/// assert_eq!(combinations.sources(), [1, 3, 4, 5]);
/// # Ok::<(), ft_encoders::CodeError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Combinations {
    sources: Vec<usize>,
    /// One row a combination, one column a source.
    weights: Vec<Vec<u8>>,
}

impl Combinations {
    /// The blocks to be read, in ascending order.
    pub fn sources(&self) -> &[usize] {
        &self.sources
    }

    /// Computes all wanted blocks, `into[i]` that of combination `i`: `sources` in the order of [`Combinations::sources`].
    ///
    /// What the blocks held is replaced. Sources count as padded with zeros; blocks that are shorter than they are get the
    /// beginning.
    ///
    /// # Errors
    /// The number of sources or of blocks is another, or the blocks differ in length. Nothing is changed then.
    pub fn rebuild(&self, sources: &[&[u8]], into: &mut [&mut [u8]]) -> Result<(), CodeError> {
        check_count(sources.len(), self.sources.len())?;
        check_count(into.len(), self.weights.len())?;
        check_lengths(into)?;
        Kernel::current().combine(|j, i| self.weights[j][i], sources, into, false);
        Ok(())
    }
}

impl FromIterator<Combination> for Combinations {
    fn from_iter<I: IntoIterator<Item = Combination>>(combinations: I) -> Self {
        let combinations: Vec<Combination> = combinations.into_iter().collect();
        let mut sources: Vec<usize> =
            combinations.iter().flat_map(Combination::sources).map(|(index, _)| index).collect();
        sources.sort_unstable();
        sources.dedup();
        let row = |combination: &Combination| {
            let weight = |index: &usize| {
                combination.sources().find(|(other, _)| other == index).map_or(0, |found| found.1)
            };
            sources.iter().map(weight).collect()
        };
        Self { weights: combinations.iter().map(row).collect(), sources }
    }
}

/// As many blocks are given as a combination takes.
pub(crate) fn check_count(given: usize, taken: usize) -> Result<(), CodeError> {
    if given == taken { Ok(()) } else { Err(CodeError::WrongSourceCount { given, taken }) }
}

/// Solves `n` equations for `n` unknowns, each the `n` coefficients and the right-hand side, by Gauss and Jordan; none if
/// they do not determine them. `n^3 / 3` products.
fn solve(mut equations: Vec<Vec<u8>>) -> Option<Vec<u8>> {
    let n = equations.len();
    for column in 0..n {
        let pivot = (column..n).find(|row| equations[*row][column] != 0)?;
        equations.swap(column, pivot);
        let scale = field::inverse(equations[column][column]);
        for coefficient in &mut equations[column][column..] {
            *coefficient = field::product(*coefficient, scale);
        }
        let pivot = std::mem::take(&mut equations[column]);
        for (row, equation) in equations.iter_mut().enumerate() {
            if row != column && equation[column] != 0 {
                let factor = equation[column];
                for (coefficient, other) in equation[column..].iter_mut().zip(&pivot[column..]) {
                    *coefficient ^= field::product(factor, *other);
                }
            }
        }
        equations[column] = pivot;
    }
    Some(equations.iter().map(|equation| equation[n]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mirror, ReedSolomon, Xor};

    fn sources(code: &dyn Code, present: &[bool], wanted: usize) -> Vec<(usize, u8)> {
        code.combination(present, wanted).unwrap().sources().collect()
    }

    #[test]
    fn equations_by_hand() {
        // x + y = 3, 2 x + y = 1: x = 2 / 3, y = 3 + x.
        let x = field::product(2, field::inverse(3));
        assert_eq!(solve(vec![vec![1, 1, 3], vec![2, 1, 1]]), Some(vec![x, 3 ^ x]));
        // The first pivot is in the second row.
        assert_eq!(solve(vec![vec![0, 1, 7], vec![1, 0, 9]]), Some(vec![9, 7]));
        assert_eq!(solve(vec![vec![1, 2, 3], vec![1, 2, 4]]), None);
        assert_eq!(solve(vec![]), Some(vec![]));
    }

    #[test]
    fn copies_and_parity() {
        let mirror = Mirror::new(3).unwrap();
        assert_eq!(sources(&mirror, &[false, false, true, true], 0), [(2, 1)]);
        assert_eq!(sources(&mirror, &[true, true, true, false], 3), [(0, 1)]);
        let xor = Xor::new(3).unwrap();
        assert_eq!(sources(&xor, &[true, false, true, true], 1), [(0, 1), (2, 1), (3, 1)]);
        assert_eq!(sources(&xor, &[true, true, true, false], 3), [(0, 1), (1, 1), (2, 1)]);
    }

    #[test]
    fn data_is_preferred_and_a_present_block_is_its_own_source() {
        let code = ReedSolomon::new(3, 3).unwrap();
        let indices = |present: &[bool], wanted| -> Vec<usize> {
            sources(&code, present, wanted).into_iter().map(|(index, _)| index).collect()
        };
        assert_eq!(indices(&[true, true, true, true, true, false], 5), [0, 1, 2]);
        assert_eq!(indices(&[true, false, true, true, true, true], 1), [0, 2, 3]);
        assert_eq!(indices(&[false, true, false, false, true, true], 3), [1, 4, 5]);
        assert_eq!(sources(&code, &[true, false, true, true, true, true], 4), [(4, 1)]);
    }

    #[test]
    fn a_plan_for_several_reads_the_sources_of_all() {
        let code = ReedSolomon::new(3, 2).unwrap();
        let present = [true, false, true, true, false];
        let combinations: Combinations =
            [1, 4].map(|wanted| code.combination(&present, wanted).unwrap()).into_iter().collect();
        assert_eq!(combinations.sources(), [0, 2, 3]);
        let copy: Combinations =
            [0, 1].map(|wanted| code.combination(&present, wanted).unwrap()).into_iter().collect();
        assert_eq!(copy.sources(), [0, 2, 3]);
        assert_eq!(copy.weights[0], [1, 0, 0]);
    }
}
