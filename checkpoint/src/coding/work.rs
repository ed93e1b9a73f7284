//! The computations between the messages.

use std::ops::Range;

use ft_comm::Spaces;
use ft_comm::collective::{Space, Span};

use super::arithmetic::{Weights, add_products};
use super::part;
use crate::changes::Run;
use crate::crc::Digest;

/// One of them.
#[derive(Debug)]
pub(crate) enum Work {
    Combine(Combine),
    Update(Update),
}

/// `targets[j] (+)= sum_i weights[j * k + i] * sources[i]`, of `k` sources, over GF(2^8) or in doubles.
#[derive(Debug)]
pub(crate) struct Combine {
    /// Shorter ones count as padded with zeros.
    pub(super) sources: Vec<Span>,
    /// None, or parts of the buffer and the scratch of equal or descending lengths.
    pub(super) targets: Vec<Span>,
    pub(super) weights: Weights,
    /// What is there is added to, else replaced.
    pub(super) adds: bool,
    /// Then this part of the block of this stripe goes into its checksum, each part once and in order.
    pub(super) digest: Option<(usize, Span)>,
}

impl Work {
    pub(super) fn digest(stripe: usize, part: Span) -> Self {
        let digest = Some((stripe, part));
        let nothing =
            Combine { sources: vec![], targets: vec![], weights: Weights::none(), adds: false, digest };
        Self::Combine(nothing)
    }

    pub(super) fn reads(&self) -> Vec<Span> {
        match self {
            Self::Combine(Combine { sources, digest, .. }) => {
                sources.iter().chain(digest.as_ref().map(|(_, part)| part)).cloned().collect()
            }
            Self::Update(Update { sources, .. }) => {
                sources.iter().map(|source| part(Space::Scratch, source.packed.clone())).collect()
            }
        }
    }

    pub(super) fn changes(&self) -> Vec<Span> {
        match self {
            Self::Combine(combine) => combine.targets.clone(),
            Self::Update(update) => vec![part(Space::Buffer, update.block.clone())],
        }
    }
}

/// `block ^= XOR_i weight_i * delta_i` over GF(2^8), where each difference is in pieces.
#[derive(Debug)]
pub(crate) struct Update {
    pub(super) stripe: usize,
    /// The redundant block, in the buffer.
    pub(super) block: Range<usize>,
    pub(super) sources: Vec<Difference>,
    /// The checksum that the block has to have before, if its new one is to be taken. A block that was damaged before stays so.
    pub(super) before: Option<u64>,
}

/// What has changed of a source.
#[derive(Debug)]
pub(crate) struct Difference {
    /// In the scratch.
    pub(super) packed: Range<usize>,
    pub(super) runs: Vec<Run>,
    pub(super) weight: u8,
}

/// Bytes of a block that are read, changed and read again while they are in the cache.
const WINDOW: usize = 32 << 10;

impl Update {
    fn perform(&self, scratch: &[u8], buffer: &mut [u8], digests: &mut Digests) {
        let block = &mut buffer[self.block.clone()];
        let mut sources: Vec<(&[u8], &[Run], u8)> = (self.sources.iter())
            .map(|source| (&scratch[source.packed.clone()], &source.runs[..], source.weight))
            .collect();
        let mut crcs = self.before.map(|_| [Digest::new(), Digest::new()]);
        let window = if crcs.is_some() { WINDOW } else { block.len().max(1) };
        for (start, window) in (0..).step_by(window).zip(block.chunks_mut(window)) {
            crcs.iter_mut().for_each(|[before, _]| before.update(window));
            for (packed, runs, weight) in &mut sources {
                add(packed, runs, *weight, start, window);
            }
            crcs.iter_mut().for_each(|[_, after]| after.update(window));
        }
        if let Some([before, after]) = crcs {
            if self.before != Some(before.finalize()) {
                digests.spoiled.push(self.stripe);
            }
            digests.grown.push((self.stripe, after));
        }
    }
}

/// Adds the pieces of `runs` that lie in the window which begins at `start` of a block; those that lie before its end are done then.
fn add(packed: &[u8], runs: &mut &[Run], weight: u8, start: usize, window: &mut [u8]) {
    let end = start + window.len();
    while let Some(run) = runs.first().filter(|run| run.at < end) {
        let (from, to) = (run.at.max(start), (run.at + run.len).min(end));
        let source = &packed[run.from + (from - run.at)..][..to - from];
        let target = &mut window[from - start..to - start];
        ft_encoders::combine(|_, _| weight, &[source], &mut [target], true).expect("they have one length");
        if run.at + run.len > end {
            return;
        }
        *runs = &runs[1..];
    }
}

/// Checksums (CRC-64/NVME) of redundant blocks that grow with them.
#[derive(Debug, Default)]
pub(crate) struct Digests {
    grown: Vec<(usize, Digest)>,
    /// Stripes whose blocks were damaged before they were changed: their checksums are to be wrong.
    spoiled: Vec<usize>,
}

impl Digests {
    /// The checksum of the block of `stripe`, if any of it was digested.
    pub(crate) fn of(&self, stripe: usize) -> Option<u64> {
        let of_stripe = self.grown.iter().find(|(other, _)| *other == stripe);
        let crc = of_stripe.map(|(_, digest)| digest.finalize());
        crc.map(|crc| if self.spoiled.contains(&stripe) { !crc } else { crc })
    }

    fn update(&mut self, stripe: usize, bytes: &[u8]) {
        let at = self.grown.iter().position(|(other, _)| *other == stripe).unwrap_or_else(|| {
            self.grown.push((stripe, Digest::new()));
            self.grown.len() - 1
        });
        self.grown[at].1.update(bytes);
    }
}

/// Does the work.
///
/// # Panics
/// Parts are not in their memories, or targets overlap.
pub(crate) fn perform(work: &Work, spaces: Spaces<'_>, digests: &mut Digests) {
    let Spaces { input, buffer, scratch } = spaces;
    let work = match work {
        Work::Combine(combine) => combine,
        Work::Update(update) => return update.perform(scratch, buffer, digests),
    };
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
fn combine(work: &Combine, sources: &[&[u8]], targets: &mut [&mut [u8]], first: usize) {
    let Some(len) = targets.first().map(|target| target.len()) else { return };
    let alike = targets.iter().take_while(|target| target.len() == len).count();
    let (now, later) = targets.split_at_mut(alike);
    let at = |j: usize, i: usize| (first + j) * sources.len() + i;
    match &work.weights {
        Weights::Field(weights) => {
            let weights = &weights[..];
            ft_encoders::combine(|j, i| weights[at(j, i)], sources, now, work.adds)
                .expect("pieces of a stripe have one length");
        }
        Weights::Doubles(weights) => add_products(|j, i| weights[at(j, i)], sources, now, work.adds),
    }
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
