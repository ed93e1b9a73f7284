//! A chain: partial sums go from source to source, and the last one gives each target what it wants.

use std::ops::Range;

use ft_comm::collective::{Space, Span};

use super::arithmetic::Weights;
use super::{Combine, Recipe, View, Wanted, Work, part, segment};
use crate::error::CheckpointError;

/// Segments of a chain that a member is ready to receive beyond the one that it works on: with more ranks than cores a chain of two
/// or three waits for the scheduler.
const AHEAD: usize = 4;
/// Segments of a chain that a member may have in hand, received or not yet sent.
const RING: usize = 2 * AHEAD;

/// One stripe of which blocks are wanted.
pub(super) struct Chain {
    stripe: usize,
    sources: Vec<Source>,
    targets: Vec<Target>,
}

struct Source {
    member: usize,
    /// Where the block is, if it is that of this member: in its shard, as this chunk of it, or in the buffer.
    place: Range<usize>,
    chunk: Option<usize>,
    len: usize,
    /// What it is multiplied by for each target.
    weights: Weights,
}

struct Target {
    member: usize,
    /// Where it goes in the buffer, if it goes here.
    place: Range<usize>,
    len: usize,
    /// Its checksum is to be taken.
    is_digested: bool,
}

impl Source {
    /// The block at `position` of stripe `index`, data first.
    fn of(
        view: View<'_>,
        index: usize,
        position: usize,
        weights: Weights,
        block: &impl Fn(usize) -> Range<usize>,
    ) -> Self {
        let stripe = &view.group.stripes[index];
        if let Some(data) = stripe.data.get(position) {
            let chunk = view.chunk(*data);
            return Self { member: data.0, len: chunk.len(), place: chunk, chunk: Some(data.1), weights };
        }
        let member = stripe.parity[position - stripe.data.len()];
        let place = if member == view.me { block(index) } else { 0..0 };
        Self { member, place, chunk: None, len: view.block_len(index), weights }
    }

    /// Where bytes `at..end` of the block are, if it is that of this member.
    fn segment(&self, view: View<'_>, at: usize, end: usize) -> Span {
        let segment = segment(&self.place, at, end);
        match self.chunk {
            Some(chunk) => view.input(chunk, segment),
            None => part(Space::Buffer, segment),
        }
    }
}

impl Target {
    /// The block at `position` of stripe `index`, data first; that of a member whose shard comes here goes to its `room`.
    fn of(
        view: View<'_>,
        index: usize,
        position: usize,
        room: &impl Fn(usize) -> usize,
        block: &impl Fn(usize) -> Range<usize>,
    ) -> Self {
        let stripe = &view.group.stripes[index];
        if let Some(data) = stripe.data.get(position) {
            let chunk = view.chunk(*data);
            let room = if view.is_here(data.0) { room(data.0) } else { 0 };
            let place = room + chunk.start..room + chunk.end;
            return Self { member: data.0, len: chunk.len(), place, is_digested: false };
        }
        let member = stripe.parity[position - stripe.data.len()];
        let place = if view.is_here(member) { block(index) } else { 0..0 };
        // The checksum of a copy is that of its original.
        let is_digested = view.group.copied(index).is_none();
        Self { member, place, len: view.block_len(index), is_digested }
    }
}

impl Chain {
    pub(super) fn of_parity(view: View<'_>, index: usize, block: &impl Fn(usize) -> Range<usize>) -> Self {
        let stripe = &view.group.stripes[index];
        let (k, m) = (stripe.data.len(), stripe.parity.len());
        let weights = |i: usize| view.code.weights((0..m).map(|j| (j, i)));
        Self {
            stripe: index,
            sources: (0..k).map(|i| Source::of(view, index, i, weights(i), block)).collect(),
            targets: (k..k + m).map(|position| Target::of(view, index, position, &|_| 0, block)).collect(),
        }
    }

    /// What is wanted of the blocks of stripe `index` that are not `present`, data first; none if that is nothing.
    pub(super) fn of_missing(
        view: View<'_>,
        index: usize,
        present: &[bool],
        wanted: Wanted,
        room: &impl Fn(usize) -> usize,
        block: &impl Fn(usize) -> Range<usize>,
    ) -> Result<Option<Self>, CheckpointError> {
        let data = view.group.stripes[index].data.len();
        let missing =
            |position: &usize| !present[*position] && (*position < data) == (wanted == Wanted::Shards);
        let missing: Vec<usize> = (0..present.len()).filter(missing).collect();
        let mut combined = view.code.combined(present, &missing)?;
        let source = |position: usize| {
            let weights = std::mem::replace(&mut combined[position], Weights::none());
            weights.is_used().then(|| Source::of(view, index, position, weights, block))
        };
        let target = |position: &usize| Target::of(view, index, *position, room, block);
        let sources = (0..present.len()).filter_map(source).collect();
        let targets: Vec<Target> = missing.iter().map(target).collect();
        Ok((!targets.is_empty()).then_some(Self { stripe: index, sources, targets }))
    }
}

/// What a member does of one segment of one chain.
struct ChainLink<'a> {
    chain: &'a Chain,
    at: usize,
    end: usize,
    /// Where in the scratch its partial sums are.
    sums: usize,
}

impl ChainLink<'_> {
    /// Bytes of the segment of target `j`.
    fn due(&self, j: usize) -> usize {
        segment(&(0..self.chain.targets[j].len), self.at, self.end).len()
    }

    /// The partial sums, one after the other.
    fn sums(&self) -> Vec<Span> {
        let mut start = self.sums;
        let next = |j: usize| {
            let piece = start..start + self.due(j);
            start = piece.end;
            part(Space::Scratch, piece)
        };
        (0..self.chain.targets.len()).map(next).collect()
    }

    fn all_sums(&self) -> Span {
        let due: usize = (0..self.chain.targets.len()).map(|j| self.due(j)).sum();
        part(Space::Scratch, self.sums..self.sums + due)
    }

    /// The only source has what is wanted as it is.
    fn is_copy(&self) -> bool {
        let Chain { sources, targets, .. } = self.chain;
        let is_whole = |source: &Source| targets.iter().all(|target| target.len == source.len);
        matches!(&sources[..], [one] if one.weights.are_ones() && is_whole(one))
    }

    fn position(&self, me: usize) -> Option<usize> {
        self.chain.sources.iter().position(|source| source.member == me)
    }

    /// What comes before the computation.
    fn receive(&self, view: View<'_>, recipe: &mut Recipe) {
        if let Some(before) = self.position(view.me).and_then(|position| position.checked_sub(1)) {
            recipe.recv(view.rank(self.chain.sources[before].member), self.all_sums());
        }
        let last = self.chain.sources.last().expect("a chain begins at a member that has something").member;
        for target in
            self.chain.targets.iter().filter(|target| last != view.me && view.is_here(target.member))
        {
            recipe.recv(view.rank(last), self.place(target));
        }
    }

    /// Where the segment of a target that goes here belongs.
    fn place(&self, target: &Target) -> Span {
        part(Space::Buffer, segment(&target.place, self.at, self.end))
    }

    /// Gives a target its segment, which has been computed here.
    fn deliver(&self, view: View<'_>, target: &Target, bytes: Span, recipe: &mut Recipe) {
        match view.is_here(target.member) {
            true => recipe.copy(bytes, self.place(target)),
            false => recipe.send(view.rank(target.member), bytes),
        }
    }

    /// The computation, and what follows it.
    fn proceed(&self, view: View<'_>, recipe: &mut Recipe) {
        let Some(position) = self.position(view.me) else { return };
        let source = &self.chain.sources[position];
        let mine = source.segment(view, self.at, self.end);
        if self.is_copy() {
            let targets = self.chain.targets.iter();
            return targets.for_each(|target| self.deliver(view, target, mine.clone(), recipe));
        }
        if let (0, [_], Some(next)) = (position, &self.chain.targets[..], self.chain.sources.get(1))
            && source.weights.are_ones()
            && mine.len() == self.due(0)
        {
            return recipe.send(view.rank(next.member), mine); // the sum so far is what is there
        }
        let (sources, targets) = (vec![mine], self.sums());
        let weights = source.weights.clone();
        recipe.work(Work::Combine(Combine { sources, targets, weights, adds: position > 0, digest: None }));
        match self.chain.sources.get(position + 1) {
            Some(next) => recipe.send(view.rank(next.member), self.all_sums()),
            None => {
                let targets = self.chain.targets.iter().zip(self.sums());
                targets.for_each(|(target, sum)| self.deliver(view, target, sum, recipe));
            }
        }
    }

    /// At a target: digests what has come.
    fn complete(&self, view: View<'_>, recipe: &mut Recipe) {
        let mine = |target: &&Target| view.is_here(target.member) && target.is_digested;
        for due in self.chain.targets.iter().filter(mine).map(|target| self.place(target)) {
            if !due.is_empty() {
                recipe.work(Work::digest(self.chain.stripe, due));
            }
        }
    }
}

/// What a member does for all chains in these segments of so many bytes.
pub(super) fn run_chains(
    view: View<'_>,
    chains: &[Chain],
    bytes: usize,
    segments: Range<usize>,
    recipe: &mut Recipe,
) {
    let width = chains.iter().map(|chain| chain.targets.len()).max().unwrap_or(0) * bytes;
    let takes_part = |chain: &Chain| {
        chain.sources.iter().any(|source| source.member == view.me)
            || chain.targets.iter().any(|target| view.is_here(target.member))
    };
    let mut links: Vec<ChainLink<'_>> = vec![];
    for now in segments {
        for chain in chains.iter().filter(|chain| takes_part(chain)) {
            let sums = links.len() % RING * width;
            links.push(ChainLink { chain, at: now * bytes, end: (now + 1) * bytes, sums });
        }
    }
    links.iter().take(AHEAD).for_each(|link| link.receive(view, recipe));
    for (index, link) in links.iter().enumerate() {
        if let Some(next) = links.get(index + AHEAD) {
            next.receive(view, recipe);
        }
        link.proceed(view, recipe);
        link.complete(view, recipe);
    }
}
