//! The visitor that reads a state where it is: it takes the checksum of the shard that would be saved, or copies pieces of that out.

use std::ops::Range;

use serde::{Serialize, de::DeserializeOwned};

use crate::crc::Digest;

use super::walk::serde_error;
use super::{Protect, ProtectError, ProtectErrorKind, StatePart, Walk};

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

impl<S: Protect> Live for LivePart<'_, S> {
    fn digest(&mut self) -> Result<(usize, u64), ProtectError> {
        let mut walk = Extract::new(Wanted::Digest(Box::new(Digest::new())));
        self.0.walk(self.1, &mut walk)?;
        match walk.wanted {
            Wanted::Digest(digest) => Ok((walk.offset, digest.finalize())),
            Wanted::Pieces { .. } => unreachable!("it was asked for a digest"),
        }
    }

    fn pieces(&mut self, ranges: &[Range<usize>]) -> Result<Vec<u8>, ProtectError> {
        let into = Vec::with_capacity(ranges.iter().map(ExactSizeIterator::len).sum());
        let mut walk = Extract::new(Wanted::Pieces { ranges, into });
        self.0.walk(self.1, &mut walk)?;
        let Wanted::Pieces { ranges, into } = walk.wanted else { unreachable!("it was asked for pieces") };
        // Of one that ends before them.
        if let Some(missing) = ranges.iter().find(|range| walk.offset < range.end) {
            let kind = ProtectErrorKind::Short { wanted: (missing.end - walk.offset) as u64, left: 0 };
            return Err(ProtectError::new(walk.offset, kind));
        }
        Ok(into)
    }

    fn save_into(&mut self, shard: &mut [u8]) -> Result<u64, ProtectError> {
        super::save_into_with_crc(self.0, self.1, shard, None)
    }
}

/// Bytes whose checksum is taken at once.
const PIECE: usize = 256 << 10;

/// See the module.
struct Extract<'a> {
    offset: usize,
    depth: usize,
    wanted: Wanted<'a>,
}

enum Wanted<'a> {
    Digest(Box<Digest>),
    Pieces {
        /// Those of which the end has not come yet.
        ranges: &'a [Range<usize>],
        into: Vec<u8>,
    },
}

impl<'a> Extract<'a> {
    fn new(wanted: Wanted<'a>) -> Self {
        Self { offset: 0, depth: 0, wanted }
    }

    fn take(&mut self, bytes: &[u8]) {
        let (start, end) = (self.offset, self.offset + bytes.len());
        match &mut self.wanted {
            Wanted::Digest(digest) => bytes.chunks(PIECE).for_each(|piece| digest.update(piece)),
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
        self.offset
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
    use crate::region::save;
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
