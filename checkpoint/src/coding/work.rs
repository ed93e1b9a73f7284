//! The computations between the messages.

use std::ops::Range;
use std::rc::Rc;

use crc_fast::{CrcAlgorithm, Digest};
use ft_comm::Spaces;
use ft_comm::collective::{Space, Span};

/// `targets[j] (^)= XOR_i weights[j * k + i] * sources[i]` over GF(2^8), of `k` sources.
#[derive(Debug)]
pub(crate) struct Work {
    /// Shorter ones count as padded with zeros.
    pub(super) sources: Vec<Span>,
    /// None, or parts of the buffer and the scratch of equal or descending lengths.
    pub(super) targets: Vec<Span>,
    pub(super) weights: Rc<[u8]>,
    /// What is there is added to, else replaced.
    pub(super) adds: bool,
    /// Then this part of the block of this stripe goes into its checksum, each part once and in order.
    pub(super) digest: Option<(usize, Span)>,
}

impl Work {
    pub(super) fn digest(stripe: usize, part: Span) -> Self {
        let digest = Some((stripe, part));
        Self { sources: vec![], targets: vec![], weights: Rc::default(), adds: false, digest }
    }

    pub(super) fn reads(&self) -> Vec<Span> {
        self.sources.iter().chain(self.digest.as_ref().map(|(_, part)| part)).cloned().collect()
    }
}

/// Checksums (CRC-64/NVME) of redundant blocks that grow with them.
#[derive(Debug, Default)]
pub(crate) struct Digests(Vec<(usize, Digest)>);

impl Digests {
    /// The checksum of the block of `stripe`, if any of it was digested.
    pub(crate) fn of(&self, stripe: usize) -> Option<u64> {
        self.0.iter().find(|(other, _)| *other == stripe).map(|(_, digest)| digest.finalize())
    }

    fn update(&mut self, stripe: usize, bytes: &[u8]) {
        let at = self.0.iter().position(|(other, _)| *other == stripe).unwrap_or_else(|| {
            self.0.push((stripe, Digest::new(CrcAlgorithm::Crc64Nvme)));
            self.0.len() - 1
        });
        self.0[at].1.update(bytes);
    }
}

/// Does the work.
///
/// # Panics
/// Parts are not in their memories, or targets overlap.
pub(crate) fn perform(work: &Work, spaces: Spaces<'_>, digests: &mut Digests) {
    let Spaces { input, buffer, scratch } = spaces;
    {
        let ranges = |space: Space| {
            let parts = work.sources.iter().chain(&work.targets);
            parts.filter(move |part| part.space == space && !part.is_empty()).map(|part| part.range.clone())
        };
        let buffers = carve(&mut *buffer, ranges(Space::Buffer).collect());
        let scratches = carve(&mut *scratch, ranges(Space::Scratch).collect());
        let (mut buffers, mut scratches) = (buffers.into_iter(), scratches.into_iter());
        let mut next = |part: &Span| match part.space {
            _ if part.is_empty() => &mut [],
            Space::Buffer => buffers.next().expect("one for each part"),
            Space::Scratch => scratches.next().expect("one for each part"),
            Space::Input => unreachable!("it is only read"),
        };
        let sources: Vec<&[u8]> = work
            .sources
            .iter()
            .map(|part| match part.space {
                Space::Input => &input[part.range.clone()],
                _ => &*next(part),
            })
            .collect();
        let mut targets: Vec<&mut [u8]> = work.targets.iter().map(&mut next).collect();
        combine(work, &sources, &mut targets, 0);
    }
    if let Some((stripe, part)) = &work.digest {
        let bytes = match part.space {
            Space::Input => &input[part.range.clone()],
            Space::Buffer => &buffer[part.range.clone()],
            Space::Scratch => &scratch[part.range.clone()],
        };
        digests.update(*stripe, bytes);
    }
}

/// Targets of one length at a time, from number `first` on.
fn combine(work: &Work, sources: &[&[u8]], targets: &mut [&mut [u8]], first: usize) {
    let Some(len) = targets.first().map(|target| target.len()) else { return };
    let alike = targets.iter().take_while(|target| target.len() == len).count();
    let (now, later) = targets.split_at_mut(alike);
    let (weights, width) = (&*work.weights, sources.len());
    let weight = |j: usize, i: usize| weights[(first + j) * width + i];
    ft_encoders::combine(weight, sources, now, work.adds).expect("pieces of a stripe have one length");
    combine(work, sources, later, first + alike);
}

/// The pieces of `bytes` in these ranges, which do not overlap, in their order.
fn carve(mut bytes: &mut [u8], ranges: Vec<Range<usize>>) -> Vec<&mut [u8]> {
    let mut order: Vec<usize> = (0..ranges.len()).collect();
    order.sort_unstable_by_key(|index| ranges[*index].start);
    let mut pieces: Vec<&mut [u8]> = ranges.iter().map(|_| Default::default()).collect();
    let mut at = 0;
    for index in order {
        let Range { start, end } = ranges[index];
        let (piece, rest) = std::mem::take(&mut bytes)[start - at..].split_at_mut(end - start);
        (pieces[index], bytes, at) = (piece, rest, end);
    }
    pieces
}
