//! Shards of two strings, exact bytes and doubles: both are encoded and rebuilt side by side, in the same stripes, each by its own code.
//!
//! A redundant block has the two parts as a shard has them: `| of exact bytes | zeros up to a multiple of 8 | sums of doubles |`. Where no
//! member has doubles, or some would come back too far off, it is what it is without them: Reed-Solomon of whole shards.

use std::ops::Range;

use ft_encoders::{Checksum, Code};

use super::choices::Missing;
use super::{Arithmetic, Recipe, View};
use crate::error::CheckpointError;
use crate::layout::ParityGroup;
use crate::region::{DOUBLE_BYTES, Strings};
use crate::store::Split;

/// Lengths of the strings of all members.
pub(crate) struct Lens {
    exact: Vec<usize>,
    /// None if no member has any.
    doubles: Option<Vec<usize>>,
    /// Where the doubles begin in the own shard.
    base: usize,
}

impl Lens {
    /// Of shards of these lengths; `splits` says which of them have doubles apart, or nothing if none has, and `sums` is the code of these.
    pub(crate) fn new(lens: Vec<usize>, sums: Option<&Checksum>, splits: &[Split], me: usize) -> Self {
        if !sums.is_some_and(|sums| are_summed(sums, splits)) {
            return Self { exact: lens, doubles: None, base: 0 };
        }
        let strings: Vec<Strings> = splits.iter().map(|split| split.strings()).collect();
        Self {
            exact: strings.iter().map(|strings| strings.exact).collect(),
            doubles: Some(strings.iter().map(|strings| strings.doubles).collect()),
            base: strings.get(me).map_or(0, |own| own.start()),
        }
    }
}

/// How far rebuilt doubles can be from what they were, relative to the largest of a rank: where it could be more, all is exact.
pub(crate) const ERROR_MAX: f64 = 1e-6;

/// Whether doubles are protected by sums: some members have any, and none of these are so small beside those of others that they could come
/// back further off than [`ERROR_MAX`], whoever is lost. All members come to the same.
pub(crate) fn are_summed(sums: &Checksum, splits: &[Split]) -> bool {
    let mut with_doubles = splits.iter().filter(|split| split.strings().doubles > 0).peekable();
    let most = splits.iter().map(|split| split.largest).fold(0.0, f64::max) * sums.error_max();
    with_doubles.peek().is_some() && with_doubles.all(|split| most <= ERROR_MAX * split.largest)
}

/// A member's views of both.
#[derive(Clone, Copy)]
pub(crate) struct Views<'a> {
    pub(super) exact: View<'a>,
    pub(super) doubles: Option<View<'a>>,
}

impl<'a> Views<'a> {
    /// `sums` is the code of doubles, if they are kept apart.
    pub(crate) fn new(
        group: &'a ParityGroup,
        code: &'a dyn Code,
        sums: Option<&'a Checksum>,
        me: usize,
        lens: &'a Lens,
    ) -> Self {
        let exact = View::new(group, Arithmetic::Field(code), me, &lens.exact);
        let (Some(doubles), Some(sums)) = (&lens.doubles, sums) else { return Self { exact, doubles: None } };
        let doubles = View::new(group, Arithmetic::Doubles(sums), me, doubles);
        Self { exact: exact.of_strings(0), doubles: Some(doubles.of_strings(lens.base)) }
    }

    /// The stripes of which this member holds a redundant block, with the bytes of that, and which of them are padding.
    pub(crate) fn held(&self) -> Vec<(usize, usize, Range<usize>)> {
        let block = |(stripe, exact): (usize, usize)| match self.doubles {
            None => (stripe, exact, exact..exact),
            Some(doubles) => {
                let start = exact.next_multiple_of(DOUBLE_BYTES);
                (stripe, start + doubles.block_len(stripe), exact..start)
            }
        };
        self.exact.held().map(block).collect()
    }

    /// The same, where the input has of each string of the own shard what is in the window of these segments alone; and what that is of
    /// the shard, one after the other.
    pub(crate) fn in_window(self, segments: impl Fn(View<'a>) -> Range<usize>) -> (Self, Vec<Range<usize>>) {
        let exact = self.exact.in_window(segments(self.exact));
        let mut pieces = exact.pieces();
        let before = pieces.iter().map(ExactSizeIterator::len).sum();
        let doubles = self.doubles.map(|doubles| {
            let shift = |piece: Range<usize>| doubles.base + piece.start..doubles.base + piece.end;
            let windowed = doubles.in_window(segments(doubles));
            pieces.extend(windowed.pieces().into_iter().map(shift));
            windowed.of_strings(before)
        });
        (Self { exact, doubles }, pieces)
    }

    /// What `make` makes for each of the strings, one after the other; `block` says where the blocks are that this member holds.
    pub(crate) fn recipe(
        &self,
        block: impl Fn(usize) -> Range<usize>,
        make: impl Fn(View<'_>, &dyn Fn(usize) -> Range<usize>) -> Result<Recipe, CheckpointError>,
    ) -> Result<Recipe, CheckpointError> {
        let first = |stripe: usize| {
            let start = block(stripe).start;
            start..start + self.exact.block_len(stripe)
        };
        let mut recipe = make(self.exact, &first)?;
        if let Some(doubles) = self.doubles {
            let second = |stripe: usize| {
                let end = block(stripe).end;
                end - doubles.block_len(stripe)..end
            };
            recipe.append(make(doubles, &second)?);
        }
        Ok(recipe)
    }
}

/// How far the doubles of a member can be from what they were, once they are rebuilt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Within {
    pub(crate) member: usize,
    pub(crate) absolute: f64,
    /// Over the largest magnitude among them.
    pub(crate) relative: f64,
}

/// How near the doubles of the members that are missing come back, where they are protected by sums.
///
/// # Errors
/// The group cannot be decoded.
pub(crate) fn within(
    group: &ParityGroup,
    sums: &Checksum,
    splits: &[Split],
    missing: Missing<'_>,
) -> Result<Vec<Within>, CheckpointError> {
    if !are_summed(sums, splits) {
        return Ok(vec![]);
    }
    let mut worst = vec![0.0_f64; splits.len()];
    for stripe in &group.stripes {
        let data = stripe.data.iter().map(|(member, _)| *member);
        let wanted: Vec<(usize, usize)> =
            data.clone().enumerate().filter(|(_, member)| missing.shards[*member]).collect();
        let positions: Vec<usize> = wanted.iter().map(|(position, _)| *position).collect();
        let recovery = sums.recovery(&missing.present_of(stripe), &positions)?;
        let largest: Vec<f64> = data.map(|member| splits[member].largest).collect();
        for ((_, member), bound) in wanted.into_iter().zip(recovery.bounds_of_members(&largest)?) {
            worst[member] = worst[member].max(bound.absolute);
        }
    }
    let rebuilt =
        (0..splits.len()).filter(|member| missing.shards[*member] && splits[*member].strings().doubles > 0);
    let within = |member: usize| {
        let (absolute, largest) = (worst[member], splits[member].largest);
        Within { member, absolute, relative: absolute / largest.max(f64::MIN_POSITIVE) }
    };
    Ok(rebuilt.map(within).collect())
}
