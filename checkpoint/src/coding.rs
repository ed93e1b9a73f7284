//! What one member of a group does so that redundancy is made, or what is lost is made again: a list of steps, and the
//! computations between them. Pure; [`crate::exchange`] runs it.
//!
//! Two patterns, both in segments that stay in the cache, so that no member ever holds more than its own:
//!
//! - *At the owner* ([`owner`]; [`encoding`] with rotated parity): each chunk goes to the first holder of parity of its stripe, which
//!   computes all `m` blocks and passes `m - 1` of them on. Each member sends its shard once, and `m - 1` blocks.
//! - *A chain* ([`chain`]; [`encoding`] with dedicated parity ranks, [`rebuilding`], [`trying`]): a partial sum for each wanted block goes from source to
//!   source, each adds its own, and the last one passes them to where they belong. Each member sends and receives as much as
//!   there is wanted, whatever their number.
//!
//! Where only what has changed is to be sent ([`updating`]), each difference goes straight to who holds redundancy of it.
//!
//! Blocks that are plain copies go straight to where they belong. A member is where the rank is that speaks for it; where one rank
//! speaks for several, what goes from one of them to another is copied.
//!
//! Messages between two members are received in the order in which they are sent, so both sides generate them in the same order:
//! by segment, and for each by stripe. A member that waits for a segment waits for members that are not further than it is in that
//! order; so nobody waits in a circle.

use std::ops::Range;

use ft_comm::collective::{Space, Span, Step};

use crate::error::CheckpointError;
use crate::layout::ParityGroup;

pub(crate) mod apart;
mod arithmetic;
mod chain;
pub(crate) mod choices;
mod owner;
#[cfg(test)]
mod tests;
mod update;
mod work;

pub(crate) use arithmetic::Arithmetic;
use chain::{Chain, run_chains};
use choices::Missing;
use owner::at_the_owner;
pub(crate) use update::updating;
use work::Combine;
pub(crate) use work::{Digests, Work, perform};

/// Bytes of all sources of a segment together: a few of them fit into the caches.
const SOURCES_BYTES: usize = 4 << 20;
/// Bytes of a segment at most. It is longer than what is sent before its receive is posted, so nothing is copied twice; and with more
/// ranks than cores the fewer messages are worth more than smaller caches (8 ranks over TCP: 10 % faster than with 148 KiB).
const SEGMENT_BYTES: usize = 512 << 10;
/// Bytes of a segment at least: less is not worth a message.
const SEGMENT_BYTES_MIN: usize = 64 << 10;

/// The steps of one member, and what its [`Step::Apply`]s do, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Recipe {
    pub(crate) steps: Vec<Step>,
    pub(crate) works: Vec<Work>,
}

impl Recipe {
    fn send(&mut self, to: usize, part: Span) {
        if !part.is_empty() {
            self.steps.push(Step::send(to, part));
        }
    }

    fn recv(&mut self, from: usize, part: Span) {
        if !part.is_empty() {
            self.steps.push(Step::recv(from, part));
        }
    }

    /// Bytes that this member sends.
    pub(crate) fn bytes_sent(&self) -> u64 {
        let sent = |step: &Step| if let Step::Send { part, .. } = step { part.len() as u64 } else { 0 };
        self.steps.iter().map(sent).sum()
    }

    fn copy(&mut self, from: Span, to: Span) {
        if !to.is_empty() {
            self.steps.push(Step::copy(from, to));
        }
    }

    /// Then what `other` does.
    pub(crate) fn append(&mut self, other: Self) {
        let before = self.works.len();
        self.works.extend(other.works);
        self.steps.extend(other.steps.into_iter().map(|step| match step {
            Step::Apply { number, reads, changes } => Step::Apply { number: before + number, reads, changes },
            other => other,
        }));
    }

    fn work(&mut self, work: Work) {
        let (reads, changes) = (work.reads(), work.changes());
        self.steps.push(Step::Apply { number: self.works.len(), reads, changes });
        self.works.push(work);
    }
}

/// The view of member `me` of its group, whose members' shards have these lengths.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) group: &'a ParityGroup,
    pub(crate) code: Arithmetic<'a>,
    pub(crate) me: usize,
    pub(crate) lens: &'a [usize],
    /// Where in the input the bytes begin that this is about.
    base: usize,
    /// Checksums of blocks are taken on the way.
    digests: bool,
    /// Bytes of a segment, a multiple of a line of the cache.
    segment: usize,
    /// The input has these bytes of each own chunk, one after the other; none: it is the shard.
    window: Option<(usize, usize)>,
}

fn part(space: Space, range: Range<usize>) -> Span {
    Span { space, range }
}

/// The piece of `range` that is in segment `at..end`, counted from its start.
fn segment(range: &Range<usize>, at: usize, end: usize) -> Range<usize> {
    let clip = |at: usize| (range.start + at).min(range.end);
    clip(at)..clip(end)
}

impl<'a> View<'a> {
    pub(crate) fn new(group: &'a ParityGroup, code: Arithmetic<'a>, me: usize, lens: &'a [usize]) -> Self {
        let sources = group.stripes.iter().map(|stripe| stripe.data.len()).max().unwrap_or(1).max(1);
        let segment = (SOURCES_BYTES / sources).clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES);
        let view = Self { group, code, me, lens, base: 0, digests: true, segment, window: None };
        let segment = segment.min(view.longest().max(1)).next_multiple_of(4096);
        Self { segment, ..view }
    }

    /// The same about strings that are a part of shards, the own one from `base` on; blocks are parts of blocks, whose checksums are
    /// not taken.
    pub(crate) fn of_strings(self, base: usize) -> Self {
        Self { base, digests: false, ..self }
    }

    /// The same, where the input has of the own shard what is in these segments alone: [`View::pieces`].
    pub(crate) fn in_window(self, segments: Range<usize>) -> Self {
        let bytes = |segments: usize| segments.saturating_mul(self.segment);
        Self { window: Some((bytes(segments.start), bytes(segments.end))), ..self }
    }

    /// What the input has of the own shard.
    pub(crate) fn pieces(&self) -> Vec<Range<usize>> {
        let Some(len) = self.lens.get(self.me) else { return vec![] };
        let Some((from, end)) = self.window else { return std::iter::once(0..*len).collect() };
        (0..self.group.chunks).map(|chunk| segment(&self.chunk((self.me, chunk)), from, end)).collect()
    }

    /// Where the input has `piece`, a range of the own shard which lies in this chunk of it.
    fn input(&self, chunk: usize, piece: Range<usize>) -> Span {
        if self.window.is_none() {
            return part(Space::Input, self.base + piece.start..self.base + piece.end);
        }
        let pieces = self.pieces();
        let before: usize = pieces[..chunk].iter().map(ExactSizeIterator::len).sum();
        let start = before + piece.start - pieces[chunk].start;
        part(Space::Input, self.base + start..self.base + start + piece.len())
    }

    /// The stripes of which this member holds a redundant block, with its length.
    pub(crate) fn held(&self) -> impl Iterator<Item = (usize, usize)> {
        let stripes = self.group.stripes.iter().enumerate();
        let mine = stripes.filter(|(_, stripe)| stripe.parity.contains(&self.me));
        mine.map(|(index, _)| (index, self.block_len(index)))
    }

    /// Bytes of the blocks of a stripe.
    pub(crate) fn block_len(&self, stripe: usize) -> usize {
        let data = self.group.stripes[stripe].data.iter();
        data.map(|data| self.chunk(*data).len()).max().unwrap_or(0)
    }

    fn rank(&self, member: usize) -> usize {
        self.group.members[member]
    }

    /// Whether this rank speaks for `member`.
    fn is_here(&self, member: usize) -> bool {
        self.rank(member) == self.rank(self.me)
    }

    /// Where in its shard the chunk of a member is.
    fn chunk(&self, (member, chunk): (usize, usize)) -> Range<usize> {
        let unit = self.code.unit();
        let units = self.group.chunk_range(self.lens[member] / unit, chunk);
        units.start * unit..units.end * unit
    }

    /// Whether the redundant blocks of `stripe` are copies of its only chunk.
    fn is_copied(&self, stripe: usize) -> bool {
        let stripe = &self.group.stripes[stripe];
        stripe.data.len() == 1
            && self.code.weights((0..stripe.parity.len()).map(|block| (block, 0))).are_ones()
    }

    /// Whether the holders of parity of `stripe` have no data at all.
    fn is_dedicated(&self, stripe: usize) -> bool {
        self.group.stripes[stripe].parity.iter().all(|holder| *holder >= self.group.computing)
    }

    fn longest(&self) -> usize {
        (0..self.group.stripes.len()).map(|stripe| self.block_len(stripe)).max().unwrap_or(0)
    }

    /// The number of segments of the longest block.
    pub(crate) fn segments(&self) -> usize {
        self.longest().div_ceil(self.segment)
    }
}

/// Fills the redundant blocks of all members, which lie where `block` says in [`Space::Buffer`], from their shards in
/// [`Space::Input`], or what is in the window of them, in these `segments` of them; a block that is computed here is digested on the way.
pub(crate) fn encoding(
    view: View<'_>,
    block: impl Fn(usize) -> Range<usize>,
    segments: Range<usize>,
) -> Recipe {
    let mut recipe = Recipe::default();
    let group = view.group;
    let bytes = view.segment;
    let (from, end) = (segments.start * bytes, segments.end.saturating_mul(bytes));
    copies(view, &block, from, end, &mut recipe);
    let chains: Vec<Chain> = (0..group.stripes.len())
        .filter(|stripe| view.is_dedicated(*stripe) && !view.is_copied(*stripe))
        .map(|stripe| Chain::of_parity(view, stripe, &block))
        .collect();
    if chains.is_empty() {
        at_the_owner(view, &block, segments, &mut recipe);
    } else {
        run_chains(view, &chains, bytes, segments, &mut recipe);
    }
    recipe
}

/// Copies need no computation, and so no segments but those that are asked for.
fn copies(
    view: View<'_>,
    block: &impl Fn(usize) -> Range<usize>,
    from: usize,
    end: usize,
    recipe: &mut Recipe,
) {
    for (index, stripe) in view.group.stripes.iter().enumerate().filter(|(index, _)| view.is_copied(*index)) {
        let data = stripe.data[0];
        let due = segment(&view.chunk(data), from, end);
        for holder in &stripe.parity {
            if data.0 == view.me {
                recipe.send(view.rank(*holder), view.input(data.1, due.clone()));
            } else if *holder == view.me {
                let place = segment(&block(index), from, end);
                recipe.recv(view.rank(data.0), part(Space::Buffer, place.start..place.start + due.len()));
            }
        }
    }
}

/// Which of the blocks of lost members are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Their shards; [`Space::Buffer`] is the shard at a lost member.
    Shards,
    /// The redundant blocks that they hold; [`Space::Buffer`] is the redundancy everywhere.
    Blocks,
}

/// Makes the shards, or the redundant blocks, of the members with `lost[member]` again from what the others have: their shards
/// in [`Space::Input`], their redundancy in [`Space::Buffer`], where `block` says.
///
/// # Errors
/// The group cannot be decoded.
pub(crate) fn rebuilding(
    view: View<'_>,
    lost: &[bool],
    wanted: Wanted,
    block: impl Fn(usize) -> Range<usize>,
) -> Result<Recipe, CheckpointError> {
    let present = |index: usize| {
        let stripe = &view.group.stripes[index];
        let holders = stripe.data.iter().map(|(member, _)| member).chain(&stripe.parity);
        Some(holders.map(|member| !lost[*member]).collect())
    };
    chained(view, present, wanted, |_| 0, block)
}

/// Makes the shards that are missing again; that of a member without one comes to [`Space::Buffer`] there. What the others have is as in
/// [`rebuilding`].
///
/// # Errors
/// The group cannot be decoded.
pub(crate) fn restoring(
    view: View<'_>,
    missing: Missing<'_>,
    block: impl Fn(usize) -> Range<usize>,
) -> Result<Recipe, CheckpointError> {
    let present = |index: usize| Some(missing.present_of(&view.group.stripes[index]));
    chained(view, present, Wanted::Shards, |_| view.base, block)
}

/// Makes the shards that are missing again by the `choice`-th selection of redundant blocks of each stripe; a stripe that has fewer is
/// left out. A shard comes to the rank that speaks for its member, in [`Space::Buffer`] from `room` on. That of this member is
/// in [`Space::Input`], its redundancy in [`Space::Buffer`], where `block` says.
///
/// # Errors
/// The group cannot be decoded.
pub(crate) fn trying(
    view: View<'_>,
    missing: Missing<'_>,
    choice: usize,
    block: impl Fn(usize) -> Range<usize>,
    room: impl Fn(usize) -> usize,
) -> Result<Recipe, CheckpointError> {
    let present = |index: usize| missing.present(&view.group.stripes[index], choice);
    chained(view, present, Wanted::Shards, room, block)
}

/// Makes what is wanted of each stripe for which `present` says which of its blocks there are. The shard of a member that comes here
/// begins at its `room`.
fn chained(
    view: View<'_>,
    present: impl Fn(usize) -> Option<Vec<bool>>,
    wanted: Wanted,
    room: impl Fn(usize) -> usize,
    block: impl Fn(usize) -> Range<usize>,
) -> Result<Recipe, CheckpointError> {
    let mut chains = vec![];
    for index in 0..view.group.stripes.len() {
        if let Some(present) = present(index) {
            chains.extend(Chain::of_missing(view, index, &present, wanted, &room, &block)?);
        }
    }
    let mut recipe = Recipe::default();
    run_chains(view, &chains, view.segment, 0..view.segments(), &mut recipe);
    Ok(recipe)
}
