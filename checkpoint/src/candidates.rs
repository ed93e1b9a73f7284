//! A shard that was computed in several ways, of which some were spoilt by a damaged block: puts together the one that its owner has
//! written down the checksum of.
//!
//! Chunks are in different stripes, so each may have been spoilt by another block. What a chunk changes in the checksum of the shard does
//! not depend on the others (CRCs are linear), so that combinations are tried without reading any byte again.

use std::ops::Range;

use crate::crc::{combine as checksum_combine, crc64_nvme};

/// Combinations that are tried.
const TRIES_MAX: usize = 1 << 20;

/// See the module.
#[derive(Debug)]
pub(crate) struct Candidates {
    chunks: Vec<Range<usize>>,
    due: u64,
    first: Option<Vec<u8>>,
    /// By chunk what differs from the first.
    others: Vec<Vec<Vec<u8>>>,
}

impl Candidates {
    /// Of a shard with these chunks and this checksum.
    pub(crate) fn new(chunks: Vec<Range<usize>>, due: u64) -> Self {
        Self { others: vec![vec![]; chunks.len()], chunks, due, first: None }
    }

    /// Memory for the next way to compute it; chunks that it leaves as they are count as computed before.
    pub(crate) fn room(&self) -> Vec<u8> {
        let len = self.chunks.last().map_or(0, |chunk| chunk.end);
        self.first.clone().unwrap_or_else(|| vec![0; len])
    }

    /// Takes what was computed; gives whether the shard can be put together now.
    pub(crate) fn add(&mut self, shard: Vec<u8>) -> bool {
        match &self.first {
            None => self.first = Some(shard),
            Some(first) => {
                for (chunk, others) in self.chunks.iter().zip(&mut self.others) {
                    let bytes = &shard[chunk.clone()];
                    if *bytes != first[chunk.clone()] && others.iter().all(|other| other != bytes) {
                        others.push(bytes.to_vec());
                    }
                }
            }
        }
        self.settle()
    }

    /// The shard, if it could be put together.
    pub(crate) fn found(&self) -> Option<&[u8]> {
        self.first.as_deref().filter(|first| crc64_nvme(first) == self.due)
    }

    fn settle(&mut self) -> bool {
        let Some(first) = &mut self.first else { return false };
        let differs = crc64_nvme(first) ^ self.due;
        // What each of the other candidates of a chunk changes.
        let changes = |(chunk, others): (&Range<usize>, &Vec<Vec<u8>>)| -> Vec<u64> {
            let behind = (first.len() - chunk.end) as u64;
            let part = |bytes: &[u8]| checksum_combine(crc64_nvme(bytes), 0, behind);
            let one = part(&first[chunk.clone()]);
            others.iter().map(|other| one ^ part(other)).collect()
        };
        let changes: Vec<Vec<u64>> = self.chunks.iter().zip(&self.others).map(changes).collect();
        let mut taken = vec![];
        if !combine(&changes, differs, &mut taken, &mut TRIES_MAX.clone()) {
            return false;
        }
        for (at, other) in taken {
            first[self.chunks[at].clone()].swap_with_slice(&mut self.others[at][other]);
        }
        self.found().is_some()
    }
}

/// Takes one or none of the changes of each chunk, so that together they are `wanted`.
fn combine(changes: &[Vec<u64>], wanted: u64, taken: &mut Vec<(usize, usize)>, left: &mut usize) -> bool {
    let from = taken.last().map_or(0, |(at, _)| at + 1);
    if wanted == 0 {
        return true;
    }
    for at in from..changes.len() {
        for (other, change) in changes[at].iter().enumerate() {
            let Some(less) = left.checked_sub(1) else { return false };
            *left = less;
            taken.push((at, other));
            if combine(changes, wanted ^ change, taken, left) {
                return true;
            }
            taken.pop();
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard() -> Vec<u8> {
        (0..1000u32).map(|at| ((at * at) >> 3) as u8).collect()
    }

    /// Chunks of 300 bytes, the last one shorter.
    fn chunks() -> Vec<Range<usize>> {
        (0..4).map(|at| at * 300..(at * 300 + 300).min(1000)).collect()
    }

    fn spoilt(at: &[usize]) -> Vec<u8> {
        let mut shard = shard();
        at.iter().for_each(|at| shard[*at] ^= 1 << (at % 8));
        shard
    }

    #[test]
    fn each_chunk_may_come_from_another_way() {
        let mut candidates = Candidates::new(chunks(), crc64_nvme(&shard()));
        assert!(!candidates.add(spoilt(&[5, 310, 999])));
        assert!(candidates.found().is_none());
        assert!(!candidates.add(spoilt(&[17, 650])));
        assert!(!candidates.add(spoilt(&[5, 310])), "the first chunk is spoilt in all");
        assert!(candidates.add(spoilt(&[320, 700, 910])));
        assert_eq!(candidates.found(), Some(&shard()[..]));
    }

    #[test]
    fn a_whole_one_needs_no_other() {
        let mut candidates = Candidates::new(chunks(), crc64_nvme(&shard()));
        assert_eq!(candidates.room(), vec![0; 1000]);
        assert!(candidates.add(shard()));
        assert_eq!(candidates.found(), Some(&shard()[..]));
        let mut empty = Candidates::new(std::iter::once(0..0).collect(), crc64_nvme(&[]));
        assert!(empty.add(vec![]));
    }

    #[test]
    fn a_chunk_that_is_spoilt_everywhere_is_not_made_up() {
        let mut candidates = Candidates::new(chunks(), crc64_nvme(&shard()));
        for bit in 0..10 {
            assert!(!candidates.add(spoilt(&[bit, 300 + bit, 600 + bit, 900])));
        }
        assert!(candidates.found().is_none());
    }
}
