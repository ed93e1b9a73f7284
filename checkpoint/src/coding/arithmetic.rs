//! What blocks are computed in: a field of bytes, exactly, or doubles, with rounding.

use std::rc::Rc;

use ft_encoders::{Checksum, Code, Combination};

use crate::error::CheckpointError;

/// The code of a group.
#[derive(Clone, Copy)]
pub(crate) enum Arithmetic<'a> {
    /// Over GF(2^8).
    Field(&'a dyn Code),
    /// Weighted sums of doubles.
    Doubles(&'a Checksum),
}

/// What sources are multiplied by.
#[derive(Clone, Debug)]
pub(super) enum Weights {
    Field(Rc<[u8]>),
    Doubles(Rc<[f64]>),
}

impl Weights {
    pub(super) fn none() -> Self {
        Self::Field(Rc::default())
    }

    /// Whether any of them is another than 0.
    pub(super) fn is_used(&self) -> bool {
        match self {
            Self::Field(weights) => weights.iter().any(|weight| *weight != 0),
            Self::Doubles(weights) => weights.iter().any(|weight| *weight != 0.0),
        }
    }

    /// Whether all of them are 1.
    pub(super) fn are_ones(&self) -> bool {
        match self {
            Self::Field(weights) => weights.iter().all(|weight| *weight == 1),
            Self::Doubles(weights) => weights.iter().all(|weight| *weight == 1.0),
        }
    }
}

impl Arithmetic<'_> {
    /// Bytes of what is computed with at a time: chunks consist of such.
    pub(super) fn unit(self) -> usize {
        match self {
            Self::Field(_) => 1,
            Self::Doubles(_) => size_of::<f64>(),
        }
    }

    /// The weights of these redundant blocks and members.
    pub(super) fn weights(self, of: impl Iterator<Item = (usize, usize)>) -> Weights {
        match self {
            Self::Field(code) => {
                Weights::Field(of.map(|(block, member)| code.weight(block, member)).collect())
            }
            Self::Doubles(code) => {
                Weights::Doubles(of.map(|(block, member)| code.weight(block, member)).collect())
            }
        }
    }

    /// One weight over GF(2^8).
    ///
    /// # Panics
    /// The code is one of doubles.
    pub(super) fn field_weight(self, block: usize, member: usize) -> u8 {
        match self {
            Self::Field(code) => code.weight(block, member),
            Self::Doubles(_) => unreachable!("doubles are not renewed by what has changed of their bits"),
        }
    }

    /// By block of a stripe, data first, what it is multiplied by for each of those that are `missing`.
    ///
    /// # Errors
    /// The others, those that are `present`, do not determine these.
    pub(super) fn combined(
        self,
        present: &[bool],
        missing: &[usize],
    ) -> Result<Vec<Weights>, CheckpointError> {
        match self {
            Self::Field(code) => {
                let combinations = missing.iter().map(|position| code.combination(present, *position));
                let combinations = combinations.collect::<Result<Vec<Combination>, _>>()?;
                let weight = |combination: &Combination, position: usize| {
                    let found = combination.sources().find(|(source, _)| *source == position);
                    found.map_or(0, |(_, weight)| weight)
                };
                let of = |position: usize| {
                    Weights::Field(combinations.iter().map(|all| weight(all, position)).collect())
                };
                Ok((0..present.len()).map(of).collect())
            }
            Self::Doubles(code) => {
                let recovery = code.recovery(present, missing)?;
                let weight = |at: usize, position: usize| {
                    let found = recovery.sources().iter().position(|source| *source == position);
                    found.zip(recovery.weights(at)).map_or(0.0, |(source, weights)| weights[source])
                };
                let of = |position: usize| {
                    Weights::Doubles((0..missing.len()).map(|at| weight(at, position)).collect())
                };
                Ok((0..present.len()).map(of).collect())
            }
        }
    }
}

/// Bytes of a target that are summed up while they are in the fastest cache.
const WINDOW: usize = 2 << 10;

/// `targets[j] (+)= sum_i weight(j, i) * sources[i]` in doubles, source after source. Of a source that is longer than the targets, which have one length,
/// the beginning counts; one that is shorter counts as padded with zeros. Every element is computed on its own, so the bits do not depend
/// on pieces.
pub(super) fn add_products(
    weight: impl Fn(usize, usize) -> f64,
    sources: &[&[u8]],
    targets: &mut [&mut [u8]],
    adds: bool,
) {
    let len = targets.first().map_or(0, |target| target.len());
    for from in (0..len).step_by(WINDOW) {
        let end = len.min(from + WINDOW);
        for (j, target) in targets.iter_mut().enumerate() {
            let sums = &mut target[from..end];
            if !adds {
                sums.fill(0);
            }
            for (i, source) in sources.iter().enumerate() {
                let piece = &source[from.min(source.len())..end.min(source.len())];
                add_product(weight(j, i), piece, sums);
            }
        }
    }
}

/// `sums += weight * source`, rounded after the product and after the sum.
fn add_product(weight: f64, source: &[u8], sums: &mut [u8]) {
    for (sum, value) in sums.as_chunks_mut().0.iter_mut().zip(source.as_chunks().0) {
        *sum = (f64::from_ne_bytes(*sum) + weight * f64::from_ne_bytes(*value)).to_ne_bytes();
    }
}
