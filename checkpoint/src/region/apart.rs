//! A state as two strings in one shard: exact bytes, and doubles that need not come back bit by bit.
//!
//! ```text
//! | exact bytes | zeros up to a multiple of 8 | doubles |
//! ```
//!
//! Doubles are what a field has of them in slices of [`DOUBLES_MIN`] or more. Lone numbers and short slices are exact, and so is all of a
//! field that is the same on all ranks: programs take decisions by these, which must not differ between ranks.

use super::walk::{Load, Save, Size, Walk};
use super::{Protect, ProtectError, Spread, StatePart, finish};
use crate::crc::{combine, crc64_nvme};

/// Doubles of a slice from which on it is kept apart.
pub(super) const DOUBLES_MIN: usize = 64;

/// Doubles begin at a multiple of this.
pub(crate) const DOUBLE_BYTES: usize = size_of::<f64>();

/// Where doubles go, if they have a place of their own.
pub(super) struct Apart<T> {
    other: Option<T>,
    /// What is visited is the same on all ranks.
    is_replicated: bool,
}

impl<T> Default for Apart<T> {
    fn default() -> Self {
        Self { other: None, is_replicated: false }
    }
}

impl<T> Apart<T> {
    pub(super) fn to(other: T) -> Self {
        Self { other: Some(other), is_replicated: false }
    }

    /// Where doubles go now, if that is a place of their own.
    pub(super) fn open(&mut self) -> Option<&mut T> {
        self.other.as_mut().filter(|_| !self.is_replicated)
    }

    pub(super) fn other(&self) -> Option<&T> {
        self.other.as_ref()
    }

    pub(super) fn take(&mut self) -> Option<T> {
        self.other.take()
    }

    pub(super) fn enter(&mut self, spread: Option<Spread>) -> bool {
        let outer = self.is_replicated;
        self.is_replicated |= spread == Some(Spread::Replicated);
        outer
    }

    pub(super) fn leave(&mut self, outer: bool) {
        self.is_replicated = outer;
    }
}

/// Bytes of the two strings of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Strings {
    pub(crate) exact: usize,
    pub(crate) doubles: usize,
}

impl Strings {
    /// Where the doubles begin.
    pub(crate) fn start(self) -> usize {
        if self.doubles == 0 { self.exact } else { self.exact.next_multiple_of(DOUBLE_BYTES) }
    }

    /// Bytes of the shard.
    pub(crate) fn bytes(self) -> usize {
        self.start() + self.doubles
    }
}

/// Checksums (CRC-64/NVME) of a shard of two strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ApartCrcs {
    pub(crate) exact: u64,
    pub(crate) shard: u64,
}

/// Returns the bytes that [`save_apart`] will write.
///
/// # Errors
/// As [`size`](super::size).
pub(crate) fn size_apart<P: Protect>(state: &mut P, part: StatePart) -> Result<Strings, ProtectError> {
    let mut walk = Size::apart();
    state.walk(part, &mut walk)?;
    let doubles = walk.doubles();
    Ok(Strings { exact: walk.offset() - doubles, doubles })
}

/// Writes `part` of `state`, which is not changed, into a `shard` of these strings.
///
/// # Errors
/// As [`save_into`](super::save_into).
pub(crate) fn save_apart<P: Protect>(
    state: &mut P,
    part: StatePart,
    shard: &mut [u8],
    strings: Strings,
) -> Result<ApartCrcs, ProtectError> {
    let (head, doubles) = shard.split_at_mut(strings.start());
    let (exact, padding) = head.split_at_mut(strings.exact);
    padding.fill(0);
    let mut walk = Save::apart(exact, doubles);
    state.walk(part, &mut walk)?;
    let doubles = walk.take_doubles();
    let left = doubles.as_ref().map_or(0, |doubles| doubles.left());
    finish(strings.bytes() - left - walk.left(), walk.left() + left)?;
    let (exact, doubles) = (walk.crc(), doubles.map_or(0, |doubles| doubles.crc()));
    Ok(ApartCrcs { exact, shard: joined(exact, padding, doubles, strings.doubles) })
}

/// Overwrites `part` of `state` with the contents of a `shard` of these strings; gives the checksum of the shard. `spares`: much of
/// the state may be right already.
pub(crate) fn load_apart<P: Protect>(
    state: &mut P,
    part: StatePart,
    shard: &[u8],
    strings: Strings,
    spares: bool,
) -> (u64, Result<(), ProtectError>) {
    let (head, doubles) = shard.split_at(strings.start());
    let (exact, padding) = head.split_at(strings.exact);
    let mut walk = Load::apart(exact, doubles, spares);
    let walked = state.walk(part, &mut walk);
    let doubles = walk.take_doubles();
    let left = walk.left() + doubles.as_ref().map_or(0, |doubles| doubles.left());
    let loaded = walked.and_then(|()| finish(strings.bytes() - left, left));
    let crc = joined(walk.crc(), padding, doubles.map_or(0, |doubles| doubles.crc()), strings.doubles);
    (crc, loaded)
}

/// The checksum of a shard from those of its strings.
pub(super) fn joined(exact: u64, padding: &[u8], doubles: u64, bytes: usize) -> u64 {
    let join = |before, crc, bytes: usize| combine(before, crc, bytes as u64);
    let head = if padding.is_empty() { exact } else { join(exact, crc64_nvme(padding), padding.len()) };
    if bytes == 0 { head } else { join(head, doubles, bytes) }
}

/// The largest magnitude of doubles, given as their bytes: infinite if there is an infinity and NaN if there is a NaN, 0 for none.
pub(crate) fn largest(doubles: &[u8]) -> f64 {
    let magnitude = |bytes: &[u8; DOUBLE_BYTES]| f64::from_ne_bytes(*bytes).abs().to_bits();
    f64::from_bits(doubles.as_chunks().0.iter().map(magnitude).fold(0, u64::max))
}
