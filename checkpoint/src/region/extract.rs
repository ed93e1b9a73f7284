//! The visitor that reads a state where it is: it takes the checksum of the shard that would be saved, or copies pieces of that out.

use std::ops::Range;

use serde::{Serialize, de::DeserializeOwned};

use crate::crc::Digest;

use super::apart::{Apart, ApartCrcs, Strings, joined, largest, save_apart};
use super::walk::serde_error;
use super::{Protect, ProtectError, ProtectErrorKind, Spread, StatePart, Walk};

/// A state as the shard that it would be saved as, which is nowhere in memory: a program waits in a checkpoint, so it does not change.
pub(crate) trait Live {
    /// Length and checksum (CRC-64/NVME) of the shard.
    fn digest(&mut self) -> Result<(usize, u64), ProtectError>;

    /// These ranges of the shard one after the other; they are in order and have no byte in common.
    fn pieces(&mut self, ranges: &[Range<usize>]) -> Result<Vec<u8>, ProtectError>;

    /// Saves the state into memory of the length of the shard; gives its checksum.
    fn save_into(&mut self, shard: &mut [u8]) -> Result<u64, ProtectError>;
}

/// One of them, or none.
pub(crate) type LiveRef<'a, 'b> = Option<&'a mut (dyn Live + 'b)>;

/// One part of a state.
pub(crate) struct LivePart<'a, S>(pub(crate) &'a mut S, pub(crate) StatePart);

/// The variable part of a state whose doubles are kept apart, in a shard of these strings.
pub(crate) struct LiveApart<'a, S>(pub(crate) &'a mut S, pub(crate) Strings);

/// What a part of a state is as a shard of two strings.
pub(crate) struct Stock {
    pub(crate) strings: Strings,
    pub(crate) crcs: ApartCrcs,
    /// The largest magnitude of its doubles.
    pub(crate) largest: f64,
}

/// What `part` of `state`, which is not changed, is with its doubles apart.
///
/// # Errors
/// As [`size`](super::size).
pub(crate) fn take_stock<P: Protect>(state: &mut P, part: StatePart) -> Result<Stock, ProtectError> {
    let mut walk = Extract::apart(Wanted::digest(), Wanted::digest());
    state.walk(part, &mut walk)?;
    let doubles = *walk.apart.take().expect("doubles have a place of their own");
    let strings = Strings { exact: walk.offset, doubles: doubles.offset };
    let ((exact, _), (doubles, largest)) = (walk.wanted.found(), doubles.wanted.found());
    let padding = &[0; 8][..strings.start() - strings.exact];
    let crcs = ApartCrcs { exact, shard: joined(exact, padding, doubles, strings.doubles) };
    Ok(Stock { strings, crcs, largest })
}

impl<S: Protect> Live for LivePart<'_, S> {
    fn digest(&mut self) -> Result<(usize, u64), ProtectError> {
        let mut walk = Extract::new(Wanted::digest());
        self.0.walk(self.1, &mut walk)?;
        Ok((walk.offset, walk.wanted.found().0))
    }

    fn pieces(&mut self, ranges: &[Range<usize>]) -> Result<Vec<u8>, ProtectError> {
        let mut walk = Extract::new(Wanted::pieces(ranges));
        self.0.walk(self.1, &mut walk)?;
        walk.into_pieces()
    }

    fn save_into(&mut self, shard: &mut [u8]) -> Result<u64, ProtectError> {
        super::save_into_with_crc(self.0, self.1, shard, None)
    }
}

impl<S: Protect> Live for LiveApart<'_, S> {
    fn digest(&mut self) -> Result<(usize, u64), ProtectError> {
        let stock = take_stock(self.0, StatePart::Variable)?;
        Ok((stock.strings.bytes(), stock.crcs.shard))
    }

    fn pieces(&mut self, ranges: &[Range<usize>]) -> Result<Vec<u8>, ProtectError> {
        let (exact, start) = (self.1.exact, self.1.start());
        let within = |range: &Range<usize>, from: usize, end: usize| {
            let at = range.start.clamp(from, end);
            at - from..range.end.clamp(at, end) - from
        };
        let of_exact: Vec<_> = ranges.iter().map(|range| within(range, 0, exact)).collect();
        let of_doubles: Vec<_> = ranges.iter().map(|range| within(range, start, usize::MAX)).collect();
        let mut walk = Extract::apart(Wanted::pieces(&of_exact), Wanted::pieces(&of_doubles));
        self.0.walk(StatePart::Variable, &mut walk)?;
        let doubles = walk.apart.take().expect("doubles have a place of their own").into_pieces()?;
        let (exact, mut pieces) = (walk.into_pieces()?, Vec::with_capacity(doubles.len()));
        let (mut exact, mut doubles) = (&exact[..], &doubles[..]);
        for (range, (of_exact, of_doubles)) in ranges.iter().zip(of_exact.iter().zip(&of_doubles)) {
            let end = pieces.len() + range.len();
            let (own, rest) = exact.split_at(of_exact.len());
            pieces.extend_from_slice(own);
            exact = rest;
            // What lies between the strings.
            pieces.resize(end - of_doubles.len(), 0);
            let (own, rest) = doubles.split_at(of_doubles.len());
            pieces.extend_from_slice(own);
            doubles = rest;
        }
        Ok(pieces)
    }

    fn save_into(&mut self, shard: &mut [u8]) -> Result<u64, ProtectError> {
        save_apart(self.0, StatePart::Variable, shard, self.1).map(|crcs| crcs.shard)
    }
}

/// Bytes whose checksum is taken at once.
const PIECE: usize = 256 << 10;

/// See the module.
struct Extract<'a> {
    offset: usize,
    depth: usize,
    wanted: Wanted<'a>,
    apart: Apart<Box<Self>>,
}

enum Wanted<'a> {
    /// The checksum, and of doubles the largest magnitude.
    Digest(Box<Digest>, f64),
    Pieces {
        /// Those of which the end has not come yet.
        ranges: &'a [Range<usize>],
        into: Vec<u8>,
    },
}

impl<'a> Wanted<'a> {
    fn digest() -> Self {
        Self::Digest(Box::new(Digest::new()), 0.0)
    }

    fn pieces(ranges: &'a [Range<usize>]) -> Self {
        let into = Vec::with_capacity(ranges.iter().map(ExactSizeIterator::len).sum());
        Self::Pieces { ranges, into }
    }

    /// What a digest has found.
    fn found(self) -> (u64, f64) {
        match self {
            Self::Digest(digest, largest) => (digest.finalize(), largest),
            Self::Pieces { .. } => unreachable!("it was asked for a digest"),
        }
    }
}

impl<'a> Extract<'a> {
    fn new(wanted: Wanted<'a>) -> Self {
        Self { offset: 0, depth: 0, wanted, apart: Apart::default() }
    }

    /// With doubles apart.
    fn apart(exact: Wanted<'a>, doubles: Wanted<'a>) -> Self {
        Self { apart: Apart::to(Box::new(Self::new(doubles))), ..Self::new(exact) }
    }

    /// What was taken of pieces, if all were there.
    fn into_pieces(self) -> Result<Vec<u8>, ProtectError> {
        let Wanted::Pieces { ranges, into } = self.wanted else { unreachable!("it was asked for pieces") };
        // Of one that ends before them.
        if let Some(missing) = ranges.iter().find(|range| self.offset < range.end) {
            let kind = ProtectErrorKind::Short { wanted: (missing.end - self.offset) as u64, left: 0 };
            return Err(ProtectError::new(self.offset, kind));
        }
        Ok(into)
    }

    fn take(&mut self, bytes: &[u8]) {
        let (start, end) = (self.offset, self.offset + bytes.len());
        match &mut self.wanted {
            Wanted::Digest(digest, _) => bytes.chunks(PIECE).for_each(|piece| digest.update(piece)),
            Wanted::Pieces { ranges, into } => {
                while let Some(range) = ranges.first().filter(|range| range.start < end) {
                    let piece = range.start.max(start)..range.end.min(end);
                    if !piece.is_empty() {
                        into.extend_from_slice(&bytes[piece.start - start..piece.end - start]);
                    }
                    if range.end > end {
                        break;
                    }
                    *ranges = &ranges[1..];
                }
            }
        }
        self.offset = end;
    }
}

impl Walk for Extract<'_> {
    fn bytes(&mut self, bytes: &mut [u8]) -> Result<(), ProtectError> {
        self.take(bytes);
        Ok(())
    }

    fn doubles(&mut self, bytes: &mut [u8]) -> Result<(), ProtectError> {
        let Some(other) = self.apart.open() else { return self.bytes(bytes) };
        if let Wanted::Digest(_, most) = &mut other.wanted {
            // A NaN is larger than all.
            *most = f64::from_bits(most.to_bits().max(largest(bytes).to_bits()));
        }
        other.take(bytes);
        Ok(())
    }

    fn enter(&mut self, spread: Option<Spread>) -> bool {
        self.apart.enter(spread)
    }

    fn leave(&mut self, outer: bool) {
        self.apart.leave(outer);
    }

    fn length(&mut self, items: usize, _: usize) -> Result<usize, ProtectError> {
        self.take(&(items as u64).to_ne_bytes());
        Ok(items)
    }

    fn serde<T: Serialize + DeserializeOwned>(&mut self, value: &mut T) -> Result<(), ProtectError> {
        let bytes = postcard::to_extend(value, Vec::new()).map_err(|e| serde_error(self.offset, &e))?;
        self.take(&bytes);
        Ok(())
    }

    fn offset(&self) -> usize {
        self.offset + self.apart.other().map_or(0, |other| other.offset)
    }

    fn depth(&mut self) -> &mut usize {
        &mut self.depth
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::region::{save, size_apart};
    use crate::store::ShardMeta;

    #[derive(Clone, crate::Protect)]
    struct Mixed {
        step: u32,
        words: Vec<u64>,
        names: BTreeMap<String, Vec<u16>>,
        #[protect(serde)]
        pairs: Vec<(u64, Option<String>)>,
        last: [f64; 3],
    }

    #[derive(crate::Protect)]
    struct Doubles {
        name: String,
        first: Vec<f64>,
        rows: Vec<Vec<f64>>,
        #[protect(replicated)]
        same: Vec<f64>,
        last: [f64; 3],
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn what_is_read_where_it_is_is_what_would_be_saved(
            words in prop::collection::vec(any::<u64>(), 0..2000),
            names in prop::collection::btree_map("[a-z]{0,9}", prop::collection::vec(any::<u16>(), 0..9), 0..9),
            pairs in prop::collection::vec((any::<u64>(), prop::option::of("[a-z]{0,9}")), 0..20),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        ) {
            let mut state = Mixed { step: 7, words, names, pairs, last: [1.0, f64::NAN, -0.0] };
            let mut shard = vec![];
            save(&mut state, StatePart::Variable, &mut shard).unwrap();
            let meta = ShardMeta::of(&shard);
            let mut live = LivePart(&mut state, StatePart::Variable);
            prop_assert_eq!(live.digest().unwrap(), (shard.len(), meta.crc));
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(shard.len() + 1)).collect();
            cuts.sort_unstable();
            // Some are empty, some touch the next one.
            let ranges: Vec<Range<usize>> = cuts.chunks_exact(2).map(|two| two[0]..two[1]).collect();
            let due: Vec<u8> = ranges.iter().flat_map(|range| &shard[range.clone()]).copied().collect();
            prop_assert_eq!(live.pieces(&ranges).unwrap(), due);
            let mut copy = vec![1; shard.len()];
            prop_assert_eq!(live.save_into(&mut copy).unwrap(), meta.crc);
            prop_assert_eq!(copy, shard);
        }

        #[test]
        fn so_it_is_with_doubles_apart(
            first in prop::collection::vec(-1e9..1e9_f64, 0..300),
            rows in prop::collection::vec(prop::collection::vec(-1e9..1e9_f64, 0..100), 0..6),
            name in "[a-z]{0,9}",
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        ) {
            let long = rows.iter().chain([&first]).filter(|row| row.len() >= 64).flatten();
            let due = long.fold(0.0, |most: f64, x| most.max(x.abs()));
            let mut state = Doubles { name, first, rows, same: vec![1e300; 70], last: [0.5; 3] };
            let part = StatePart::Variable;
            let strings = size_apart(&mut state, part).unwrap();
            let mut shard = vec![1; strings.bytes()];
            let crcs = save_apart(&mut state, part, &mut shard, strings).unwrap();
            let stock = take_stock(&mut state, part).unwrap();
            prop_assert_eq!((stock.strings, stock.crcs, stock.largest), (strings, crcs, due));
            let mut live = LiveApart(&mut state, strings);
            prop_assert_eq!(live.digest().unwrap(), (shard.len(), ShardMeta::of(&shard).crc));
            // Ranges of the exact bytes, and then ranges of doubles; and any.
            let cut = |from: usize, len: usize| {
                let mut cuts: Vec<usize> = cuts.iter().map(|cut| from + cut.index(len + 1)).collect();
                cuts.sort_unstable();
                cuts.chunks_exact(2).map(|two| two[0]..two[1]).collect::<Vec<_>>()
            };
            let of_both = [cut(0, strings.exact), cut(strings.start(), strings.doubles)].concat();
            for ranges in [of_both, cut(0, shard.len())] {
                let due: Vec<u8> = ranges.iter().flat_map(|range| &shard[range.clone()]).copied().collect();
                prop_assert_eq!(live.pieces(&ranges).unwrap(), due);
            }
            let mut copy = vec![1; shard.len()];
            prop_assert_eq!(live.save_into(&mut copy).unwrap(), crcs.shard);
            prop_assert_eq!(copy, shard);
        }
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        let mut state = vec![1u8; 10];
        struct Bytes<'a>(&'a mut Vec<u8>);
        impl Protect for Bytes<'_> {
            fn walk<W: Walk>(&mut self, _: StatePart, walk: &mut W) -> Result<(), ProtectError> {
                walk.bytes(self.0)
            }
        }
        let mut bytes = Bytes(&mut state);
        let mut live = LivePart(&mut bytes, StatePart::Variable);
        assert_eq!(live.pieces(&[0..4, 4..10]).unwrap(), [1; 10]);
        let error = live.pieces(&[2..4, 8..13]).unwrap_err();
        assert_eq!(error.kind, ProtectErrorKind::Short { wanted: 3, left: 0 });
    }
}
