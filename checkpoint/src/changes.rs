//! What has changed of a shard since the checkpoint that its slot held before, page by page.
//!
//! Redundancy is linear: that of the new shards is that of the old ones, plus the code applied to the differences (new XOR old).
//! So who has the redundancy of the old ones needs the pages that differ, and no others. They are compared while the shard is copied
//! over the old one; nobody has to say what has changed.
//!
//! The old bytes are checked on the way: with a bit flipped in them the difference would be wrong, and so would all redundancy that it
//! goes into, behind the back of its checksums.

use std::ops::Range;

use ft_encoders::copy_past_caches;

use crate::crc::{Digest, STRIDE};

/// Bytes of a page; the last one of a shard may be shorter. Pages of memory would be four times as long, and what changes in one of them
/// lies in two of a shard, as lengths and other fields come before it.
pub(crate) const PAGE: usize = 1024;

/// The changes of a shard, as they are found while it is overwritten from its start to its end.
pub(crate) struct Changes {
    pages: Pages,
    /// The difference, of the pages that have any.
    packed: Vec<u8>,
    /// More than so many bytes of it are of no use.
    limit: usize,
    is_over: bool,
    /// Of what was there before.
    before: Digest,
    /// Of what is there now.
    after: Digest,
}

/// Which pages of a shard have changed: bit `p % 8` of byte `p / 8` says it of page `p`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pages(Vec<u8>);

/// Pages that have changed, and how.
#[derive(Debug)]
pub(crate) struct Delta {
    pub(crate) pages: Pages,
    /// New XOR old, of these pages one after the other.
    pub(crate) packed: Vec<u8>,
}

/// Whether it is of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Whole,
    /// There is more of it than was wanted.
    TooMuch,
    /// What it was compared with was not what it should have been.
    Unsound,
}

/// A piece of a chunk that has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Where it is in the chunk.
    pub(crate) at: usize,
    /// Where it is in what was packed of the chunk.
    pub(crate) from: usize,
    pub(crate) len: usize,
}

impl Changes {
    /// Of a shard of `len` bytes, packed in this memory; they are of no use if more than `limit` bytes have to be sent.
    pub(crate) fn new(len: usize, limit: usize, memory: Vec<u8>) -> Self {
        let pages = Pages(vec![0; Pages::bytes(len)]);
        let mut packed = memory;
        packed.clear();
        Self { pages, packed, limit, is_over: false, before: Digest::new(), after: Digest::new() }
    }

    /// Overwrites `there`, which begins at byte `at` of the shard, with `new`. Each byte once, and in order.
    pub(crate) fn put(&mut self, mut at: usize, new: &[u8], there: &mut [u8]) {
        for (new, there) in new.chunks(STRIDE).zip(there.chunks_mut(STRIDE)) {
            // Of a page that has changed the rest is in the difference too.
            let in_changed_page = self.pages.has(at / PAGE);
            if !self.is_over && !in_changed_page && new.len() == STRIDE && new == there {
                self.after.update_both(&mut self.before, new);
                at += new.len();
                continue;
            }
            self.after.update(new);
            if self.is_over {
                copy_past_caches(new, there);
                continue;
            }
            self.before.update(there);
            let (mut new, mut there) = (new, there);
            while !new.is_empty() && !self.is_over {
                let count = (PAGE - at % PAGE).min(new.len());
                let (old, rest) = there.split_at_mut(count);
                self.put_in_page(at, &new[..count], old);
                (new, there, at) = (&new[count..], rest, at + count);
            }
            there.copy_from_slice(new);
            at += new.len();
        }
    }

    /// The next `len` bytes, from byte `at` of the shard on, are what was there, with this checksum.
    pub(crate) fn skip(&mut self, at: usize, len: usize, crc: u64) {
        self.after.skip(crc, len);
        self.before.skip(crc, len);
        // Of a page that has changed the rest is in the difference too.
        if !self.is_over && self.pages.has(at / PAGE) {
            self.packed.resize(self.packed.len() + len.min(PAGE - at % PAGE), 0);
        }
    }

    /// Overwrites a piece of one page.
    fn put_in_page(&mut self, at: usize, new: &[u8], there: &mut [u8]) {
        let page = at / PAGE;
        if !self.pages.has(page) {
            if new == there {
                return;
            }
            if self.packed.len() + PAGE > self.limit {
                self.is_over = true;
                return there.copy_from_slice(new);
            }
            self.pages.0[page / 8] |= 1 << (page % 8);
            // What came before it of the page is as it was.
            self.packed.resize(self.packed.len() + at % PAGE, 0);
        }
        self.packed.extend(new.iter().zip(&*there).map(|(new, old)| new ^ old));
        there.copy_from_slice(new);
    }

    /// The checksum of what is there now.
    pub(crate) fn crc(&self) -> u64 {
        self.after.finalize()
    }

    /// What has changed, if that is of use. It has changed of a shard that had the checksum `before`.
    pub(crate) fn finish(self, before: u64) -> (Delta, Use) {
        let is_sound = self.before.finalize() == before;
        let of_use = match () {
            () if self.is_over => Use::TooMuch,
            () if !is_sound => Use::Unsound,
            () => Use::Whole,
        };
        (Delta { pages: self.pages, packed: self.packed }, of_use)
    }
}

impl Pages {
    /// Bytes that say it of a shard of `len` bytes.
    pub(crate) fn bytes(len: usize) -> usize {
        len.div_ceil(PAGE).div_ceil(8)
    }

    /// As another rank has told them.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    /// As others are told them, in as many bytes.
    pub(crate) fn told(&self, bytes: usize) -> Vec<u8> {
        let mut told = self.0.clone();
        told.resize(bytes, 0);
        told
    }

    fn has(&self, page: usize) -> bool {
        self.0.get(page / 8).is_some_and(|byte| byte & 1 << (page % 8) != 0)
    }

    /// How many of the first `count` pages have changed.
    fn before(&self, count: usize) -> usize {
        let whole: u32 = self.0[..count / 8].iter().map(|byte| byte.count_ones()).sum();
        let rest = self.0.get(count / 8).map_or(0, |byte| (byte & !(0xff << (count % 8))).count_ones());
        (whole + rest) as usize
    }

    /// Where in the packed difference byte `at` of the shard is, or would be.
    fn packed(&self, at: usize) -> usize {
        self.before(at / PAGE) * PAGE + if self.has(at / PAGE) { at % PAGE } else { 0 }
    }

    /// Where the difference of `chunk`, a range of the shard, is in the packed one.
    pub(crate) fn packed_range(&self, chunk: &Range<usize>) -> Range<usize> {
        self.packed(chunk.start)..self.packed(chunk.end)
    }

    /// The pieces of `chunk` that have changed, in order and as long as they can be.
    pub(crate) fn runs(&self, chunk: &Range<usize>) -> Vec<Run> {
        let (mut runs, mut from): (Vec<Run>, usize) = (vec![], 0);
        for page in (chunk.start / PAGE..chunk.end.div_ceil(PAGE)).filter(|page| self.has(*page)) {
            let piece = chunk.start.max(page * PAGE)..chunk.end.min((page + 1) * PAGE);
            let (at, len) = (piece.start - chunk.start, piece.len());
            match runs.last_mut() {
                Some(last) if last.at + last.len == at => last.len += len,
                _ => runs.push(Run { at, from, len }),
            }
            from += len;
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::ShardMeta;

    /// Overwrites `old` with `new` in pieces of these lengths.
    fn changes(old: &[u8], new: &[u8], limit: usize, pieces: &[usize]) -> (Vec<u8>, Option<Delta>) {
        let (mut there, mut changes) = (old.to_vec(), Changes::new(old.len(), limit, vec![9]));
        let mut at = 0;
        for len in pieces.iter().cycle() {
            let end = (at + len).min(new.len());
            changes.put(at, &new[at..end], &mut there[at..end]);
            at = end;
            if at == new.len() {
                break;
            }
        }
        let (delta, of_use) = changes.finish(ShardMeta::of(old).crc);
        (there, (of_use == Use::Whole).then_some(delta))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn what_was_there_and_what_has_changed_give_what_is_there(
            len in 1..200_000usize,
            flips in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
            pieces in prop::collection::vec(1..100_000usize, 1..5),
            cuts in [any::<prop::sample::Index>(), any::<prop::sample::Index>()],
        ) {
            let old: Vec<u8> = (0..len).map(|at| (at * 31 / 7) as u8).collect();
            let mut new = old.clone();
            flips.iter().for_each(|flip| new[flip.index(len)] ^= 0x11);
            let (there, delta) = changes(&old, &new, usize::MAX, &pieces);
            let delta = delta.expect("it is sound");
            prop_assert_eq!(&there, &new);
            prop_assert!(delta.packed.len() <= 40 * PAGE);
            // Of any chunk, as others see it.
            let pages = Pages::of(&delta.pages.told(Pages::bytes(len) + 3));
            let (one, other) = (cuts[0].index(len + 1), cuts[1].index(len + 1));
            let chunk = one.min(other)..one.max(other);
            let packed = &delta.packed[pages.packed_range(&chunk)];
            let mut found = old[chunk.clone()].to_vec();
            let runs = pages.runs(&chunk);
            for run in &runs {
                let pairs = found[run.at..][..run.len].iter_mut().zip(&packed[run.from..][..run.len]);
                pairs.for_each(|(byte, delta)| *byte ^= delta);
            }
            prop_assert_eq!(&found, &new[chunk]);
            prop_assert_eq!(runs.iter().map(|run| run.len).sum::<usize>(), packed.len());
            prop_assert!(runs.windows(2).all(|two| two[0].at + two[0].len < two[1].at), "they are as long as they can be");
        }
    }

    #[test]
    fn too_much_is_copied_all_the_same() {
        let (old, new) = (vec![1; 9 * PAGE + 5], vec![2; 9 * PAGE + 5]);
        let (there, delta) = changes(&old, &new, 4 * PAGE, &[1000, 5 * PAGE]);
        assert_eq!((there, delta.is_none()), (new.clone(), true));
        assert!(
            changes(&old, &new, usize::MAX, &[77]).1.is_some_and(|delta| delta.packed.len() == old.len())
        );
    }

    #[test]
    fn a_flipped_bit_of_what_was_there_spoils_them() {
        let old = vec![7; 3 * PAGE];
        let (mut there, mut changes) = (old.clone(), Changes::new(old.len(), usize::MAX, vec![]));
        there[PAGE + 9] ^= 4;
        changes.put(0, &old, &mut there);
        assert_eq!(there, old);
        assert_eq!(changes.finish(ShardMeta::of(&old).crc).1, Use::Unsound);
    }
}
