//! What one member of a group does so that redundancy is made, or what is lost is made again: a list of steps, and the
//! computations between them. Pure; [`crate::exchange`] runs it.
//!
//! Two patterns, both in segments that stay in the cache, so that no member ever holds more than its own:
//!
//! - *At the owner* ([`encoding`] with rotated parity): each chunk goes to the first holder of parity of its stripe, which
//!   computes all `m` blocks and passes `m - 1` of them on. Each member sends its shard once, and `m - 1` blocks.
//! - *A chain* ([`encoding`] with dedicated parity ranks, [`rebuilding`]): a partial sum for each wanted block goes from source to
//!   source, each adds its own, and the last one passes them to where they belong. Each member sends and receives as much as
//!   there is wanted, whatever their number.
//!
//! Blocks that are plain copies go straight to where they belong. A member is where the rank is that speaks for it; where one rank
//! speaks for several, what goes from one of them to another is copied.
//!
//! Messages between two members are received in the order in which they are sent, so both sides generate them in the same order:
//! by segment, and for each by stripe. A member that waits for a segment waits for members that are not further than it is in that
//! order; so nobody waits in a circle.

use std::ops::Range;
use std::rc::Rc;

use ft_comm::collective::{Part, Space, Step};
use ft_encoders::{Code, Plan};

use crate::error::CheckpointError;
use crate::layout::Group;

pub(crate) mod choices;
#[cfg(test)]
mod tests;
mod work;

use choices::Missing;
pub(crate) use work::{Digests, Work, perform};

/// Bytes of all sources of a segment together: a few of them fit into the caches.
const SOURCES_BYTES: usize = 4 << 20;
/// Bytes of a segment at most. It is longer than what is sent before its receive is posted, so nothing is copied twice; and with more
/// ranks than cores the fewer messages are worth more than smaller caches (8 ranks over TCP: 10 % faster than with 148 KiB).
const SEGMENT_BYTES: usize = 512 << 10;
/// Bytes of a segment at least: less is not worth a message.
const SEGMENT_BYTES_MIN: usize = 64 << 10;
/// Segments of its sources that an owner receives at a time; more were not faster.
const RECEIVED: usize = 2;
/// Segments of a chain that a member is ready to receive beyond the one that it works on: with more ranks than cores a chain of two
/// or three waits for the scheduler.
const AHEAD: usize = 4;
/// Segments of a chain that a member may have in hand, received or not yet sent.
const RING: usize = 2 * AHEAD;

/// The steps of one member, and what its [`Step::Apply`]s do, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Recipe {
    pub(crate) steps: Vec<Step>,
    pub(crate) works: Vec<Work>,
}

impl Recipe {
    fn send(&mut self, to: usize, part: Part) {
        if !part.is_empty() {
            self.steps.push(Step::send(to, part));
        }
    }

    fn recv(&mut self, from: usize, part: Part) {
        if !part.is_empty() {
            self.steps.push(Step::recv(from, part));
        }
    }

    /// Bytes that this member sends.
    pub(crate) fn bytes_sent(&self) -> u64 {
        let sent = |step: &Step| if let Step::Send { part, .. } = step { part.len() as u64 } else { 0 };
        self.steps.iter().map(sent).sum()
    }

    fn copy(&mut self, from: Part, to: Part) {
        if !to.is_empty() {
            self.steps.push(Step::copy(from, to));
        }
    }

    fn work(&mut self, work: Work) {
        let (reads, changes) = (work.reads(), work.targets.clone());
        self.steps.push(Step::Apply { number: self.works.len(), reads, changes });
        self.works.push(work);
    }
}

/// The view of member `me` of its group, whose members' shards have these lengths.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) group: &'a Group,
    pub(crate) code: &'a dyn Code,
    pub(crate) me: usize,
    pub(crate) lens: &'a [usize],
    /// Bytes of a segment, a multiple of a line of the cache.
    segment: usize,
}

fn part(space: Space, range: Range<usize>) -> Part {
    Part { space, range }
}

/// The piece of `range` that is in segment `at..end`, counted from its start.
fn segment(range: &Range<usize>, at: usize, end: usize) -> Range<usize> {
    let clip = |at: usize| (range.start + at).min(range.end);
    clip(at)..clip(end)
}

impl<'a> View<'a> {
    pub(crate) fn new(group: &'a Group, code: &'a dyn Code, me: usize, lens: &'a [usize]) -> Self {
        let sources = group.stripes.iter().map(|stripe| stripe.data.len()).max().unwrap_or(1).max(1);
        let segment = (SOURCES_BYTES / sources).clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES);
        let view = Self { group, code, me, lens, segment };
        let segment = segment.min(view.longest().max(1)).next_multiple_of(4096);
        Self { segment, ..view }
    }

    /// The stripes of which this member holds a redundant block, with its length.
    pub(crate) fn held(&self) -> impl Iterator<Item = (usize, usize)> {
        let stripes = self.group.stripes.iter().enumerate();
        let mine = stripes.filter(|(_, stripe)| stripe.parity.contains(&self.me));
        mine.map(|(index, _)| (index, self.group.block_len(index, self.lens)))
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
        self.group.chunk_range(self.lens[member], chunk)
    }

    /// Whether the redundant blocks of `stripe` are copies of its only chunk.
    fn is_copied(&self, stripe: usize) -> bool {
        let stripe = &self.group.stripes[stripe];
        stripe.data.len() == 1 && (0..stripe.parity.len()).all(|block| self.code.weight(block, 0) == 1)
    }

    /// Whether the holders of parity of `stripe` have no data at all.
    fn is_dedicated(&self, stripe: usize) -> bool {
        self.group.stripes[stripe].parity.iter().all(|holder| *holder >= self.group.computing)
    }

    fn longest(&self) -> usize {
        (0..self.group.stripes.len()).map(|stripe| self.group.block_len(stripe, self.lens)).max().unwrap_or(0)
    }

    /// The number of segments of the longest block.
    pub(crate) fn segments(&self) -> usize {
        self.longest().div_ceil(self.segment)
    }
}

/// Fills the redundant blocks of all members, which lie where `block` says in [`Space::Buffer`], from their shards in
/// [`Space::Input`], in these `segments` of them; a block that is computed here is digested on the way.
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
                recipe.send(view.rank(*holder), part(Space::Input, due.clone()));
            } else if *holder == view.me {
                let place = segment(&block(index), from, end);
                recipe.recv(view.rank(data.0), part(Space::Buffer, place.start..place.start + due.len()));
            }
        }
    }
}

/// See the module.
fn at_the_owner(
    view: View<'_>,
    block: &impl Fn(usize) -> Range<usize>,
    segments: Range<usize>,
    recipe: &mut Recipe,
) {
    let View { group, me, .. } = view;
    let (bytes, size) = (view.segment, group.members.len());
    let computed: Vec<usize> = (0..group.stripes.len()).filter(|stripe| !view.is_copied(*stripe)).collect();
    let owned: Vec<usize> =
        computed.iter().copied().filter(|stripe| group.stripes[*stripe].parity[0] == me).collect();
    // Room for the segments of the sources, and of the blocks to be passed on, of each stripe that is owned; all that for each
    // segment under way.
    let room = |stripe: usize| group.stripes[stripe].data.len() + group.stripes[stripe].parity.len() - 1;
    let width: usize = owned.iter().map(|stripe| room(*stripe)).sum();
    let place = |segment: usize, stripe: usize, at: usize| {
        let before: usize = owned.iter().take_while(|other| **other < stripe).map(|other| room(*other)).sum();
        let start = ((segment % RECEIVED) * width + before + at) * bytes;
        move |len: usize| part(Space::Scratch, start..start + len)
    };
    let weights: Vec<Rc<[u8]>> = owned
        .iter()
        .map(|stripe| {
            let (k, m) = (group.stripes[*stripe].data.len(), group.stripes[*stripe].parity.len());
            (0..m).flat_map(|j| (0..k).map(move |i| view.code.weight(j, i))).collect()
        })
        .collect();

    for now in segments.start..segments.end + RECEIVED - 1 {
        let (at, end) = (now * bytes, (now + 1) * bytes);
        if now < segments.end {
            for distance in 1..size {
                let (to, from) = ((me + distance) % size, (me + size - distance) % size);
                for stripe in computed.iter().map(|index| &group.stripes[*index]) {
                    let mine =
                        stripe.data.iter().filter(|(member, _)| *member == me && stripe.parity[0] == to);
                    for data in mine {
                        let due = segment(&view.chunk(*data), at, end);
                        recipe.send(view.rank(to), part(Space::Input, due));
                    }
                }
                for index in &owned {
                    let sources = group.stripes[*index].data.iter().enumerate();
                    for (i, data) in sources.filter(|(_, (member, _))| *member == from) {
                        let due = segment(&view.chunk(*data), at, end).len();
                        recipe.recv(view.rank(from), place(now, *index, i)(due));
                    }
                }
            }
        }
        // The segment before has had time to come.
        let Some(before) = now.checked_sub(RECEIVED - 1).filter(|before| segments.contains(before)) else {
            continue;
        };
        let (at, end) = (before * bytes, (before + 1) * bytes);
        for (index, weights) in owned.iter().zip(&weights) {
            let stripe = &group.stripes[*index];
            let own = segment(&block(*index), at, end);
            let len = own.len();
            if len == 0 {
                continue;
            }
            let source = |(i, data): (usize, &(usize, usize))| {
                place(before, *index, i)(segment(&view.chunk(*data), at, end).len())
            };
            let sources = stripe.data.iter().enumerate().map(source).collect();
            let on = |j: usize| place(before, *index, stripe.data.len() + j - 1)(len);
            let own = part(Space::Buffer, own);
            let targets = std::iter::once(own.clone()).chain((1..stripe.parity.len()).map(on)).collect();
            let digest = Some((*index, own));
            recipe.work(Work { sources, targets, weights: weights.clone(), adds: false, digest });
            for (j, holder) in stripe.parity.iter().enumerate().skip(1) {
                recipe.send(view.rank(*holder), on(j));
            }
        }
        for index in &computed {
            let stripe = &group.stripes[*index];
            if stripe.parity[1..].contains(&me) {
                let due = segment(&block(*index), at, end);
                recipe.recv(view.rank(stripe.parity[0]), part(Space::Buffer, due));
            }
        }
    }
}

/// One stripe of which blocks are wanted.
struct Chain {
    stripe: usize,
    sources: Vec<Source>,
    targets: Vec<Target>,
}

struct Source {
    member: usize,
    /// Where the block is, if it is that of this member.
    place: Part,
    len: usize,
    /// What it is multiplied by for each target.
    weights: Rc<[u8]>,
}

struct Target {
    member: usize,
    /// Where it goes in the buffer, if it goes here.
    place: Range<usize>,
    len: usize,
    /// Its checksum is to be taken.
    is_digested: bool,
}

impl Chain {
    fn of_parity(view: View<'_>, index: usize, block: &impl Fn(usize) -> Range<usize>) -> Self {
        let stripe = &view.group.stripes[index];
        let len = view.group.block_len(index, view.lens);
        let source = |(i, data): (usize, &(usize, usize))| {
            let chunk = view.chunk(*data);
            let weights = (0..stripe.parity.len()).map(|j| view.code.weight(j, i)).collect();
            Source { member: data.0, len: chunk.len(), place: part(Space::Input, chunk), weights }
        };
        let target = |holder: &usize| {
            let place = if *holder == view.me { block(index) } else { 0..0 };
            Target { member: *holder, place, len, is_digested: true }
        };
        Self {
            stripe: index,
            sources: stripe.data.iter().enumerate().map(source).collect(),
            targets: stripe.parity.iter().map(target).collect(),
        }
    }

    /// What is wanted of the blocks of stripe `index` that are not `present`, data first; none if that is nothing.
    fn of_missing(
        view: View<'_>,
        index: usize,
        present: &[bool],
        wanted: Wanted,
        room: &impl Fn(usize) -> usize,
        block: &impl Fn(usize) -> Range<usize>,
    ) -> Result<Option<Self>, CheckpointError> {
        let stripe = &view.group.stripes[index];
        let holders = stripe.data.iter().map(|(member, _)| *member).chain(stripe.parity.iter().copied());
        let holders: Vec<usize> = holders.collect();
        let is_data = |position: usize| position < stripe.data.len();
        let missing =
            |position: &usize| !present[*position] && is_data(*position) == (wanted == Wanted::Shards);
        let missing: Vec<usize> = (0..holders.len()).filter(missing).collect();
        let plans = missing.iter().map(|position| view.code.plan(present, *position));
        let plans = plans.collect::<Result<Vec<Plan>, _>>()?;
        let len = |position: usize| match stripe.data.get(position) {
            Some(data) => view.chunk(*data).len(),
            None => view.group.block_len(index, view.lens),
        };
        let weight = |plan: &Plan, position: usize| {
            plan.sources().find(|(source, _)| *source == position).map_or(0, |(_, weight)| weight)
        };
        let source = |position: usize| {
            let weights: Rc<[u8]> = plans.iter().map(|plan| weight(plan, position)).collect();
            let place = match stripe.data.get(position) {
                _ if weights.iter().all(|weight| *weight == 0) => return None,
                Some(data) => part(Space::Input, view.chunk(*data)),
                None if holders[position] == view.me => part(Space::Buffer, block(index)),
                None => part(Space::Buffer, 0..0),
            };
            Some(Source { member: holders[position], place, len: len(position), weights })
        };
        let target = |position: &usize| {
            let member = holders[*position];
            let place = match stripe.data.get(*position) {
                _ if !view.is_here(member) => 0..0,
                Some(data) => {
                    let (chunk, room) = (view.chunk(*data), room(member));
                    room + chunk.start..room + chunk.end
                }
                None => block(index),
            };
            // The checksum of a copy is that of its original.
            let is_digested = !is_data(*position) && view.group.copied(index).is_none();
            Target { member, place, len: len(*position), is_digested }
        };
        let sources = (0..holders.len()).filter_map(source).collect();
        let targets: Vec<Target> = missing.iter().map(target).collect();
        Ok((!targets.is_empty()).then_some(Self { stripe: index, sources, targets }))
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

/// What a member does of one segment of one chain.
struct Link<'a> {
    chain: &'a Chain,
    at: usize,
    end: usize,
    /// Where in the scratch its partial sums are.
    sums: usize,
}

impl Link<'_> {
    /// Bytes of the segment of target `j`.
    fn due(&self, j: usize) -> usize {
        segment(&(0..self.chain.targets[j].len), self.at, self.end).len()
    }

    /// The partial sums, one after the other.
    fn sums(&self) -> Vec<Part> {
        let mut start = self.sums;
        let next = |j: usize| {
            let piece = start..start + self.due(j);
            start = piece.end;
            part(Space::Scratch, piece)
        };
        (0..self.chain.targets.len()).map(next).collect()
    }

    fn all_sums(&self) -> Part {
        let due: usize = (0..self.chain.targets.len()).map(|j| self.due(j)).sum();
        part(Space::Scratch, self.sums..self.sums + due)
    }

    /// The only source has what is wanted as it is.
    fn is_copy(&self) -> bool {
        let Chain { sources, targets, .. } = self.chain;
        let is_whole = |source: &Source| targets.iter().all(|target| target.len == source.len);
        matches!(&sources[..], [one] if one.weights.iter().all(|weight| *weight == 1) && is_whole(one))
    }

    fn position(&self, me: usize) -> Option<usize> {
        self.chain.sources.iter().position(|source| source.member == me)
    }

    /// What comes before the computation.
    fn receive(&self, view: View<'_>, recipe: &mut Recipe) {
        if let Some(before) = self.position(view.me).and_then(|position| position.checked_sub(1)) {
            recipe.recv(view.rank(self.chain.sources[before].member), self.all_sums());
        }
        let last = self.chain.sources.last().expect("nothing comes of nothing").member;
        for target in
            self.chain.targets.iter().filter(|target| last != view.me && view.is_here(target.member))
        {
            recipe.recv(view.rank(last), self.place(target));
        }
    }

    /// Where the segment of a target that goes here belongs.
    fn place(&self, target: &Target) -> Part {
        part(Space::Buffer, segment(&target.place, self.at, self.end))
    }

    /// Gives a target its segment, which has been computed here.
    fn deliver(&self, view: View<'_>, target: &Target, bytes: Part, recipe: &mut Recipe) {
        match view.is_here(target.member) {
            true => recipe.copy(bytes, self.place(target)),
            false => recipe.send(view.rank(target.member), bytes),
        }
    }

    /// The computation, and what follows it.
    fn proceed(&self, view: View<'_>, recipe: &mut Recipe) {
        let Some(position) = self.position(view.me) else { return };
        let source = &self.chain.sources[position];
        let mine = part(source.place.space, segment(&source.place.range, self.at, self.end));
        if self.is_copy() {
            let targets = self.chain.targets.iter();
            return targets.for_each(|target| self.deliver(view, target, mine.clone(), recipe));
        }
        if let (0, [1], Some(next)) = (position, &*source.weights, self.chain.sources.get(1))
            && mine.len() == self.due(0)
        {
            return recipe.send(view.rank(next.member), mine); // the sum so far is what is there
        }
        let (sources, targets) = (vec![mine], self.sums());
        let weights = source.weights.clone();
        recipe.work(Work { sources, targets, weights, adds: position > 0, digest: None });
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

fn run_chains(view: View<'_>, chains: &[Chain], bytes: usize, segments: Range<usize>, recipe: &mut Recipe) {
    let width = chains.iter().map(|chain| chain.targets.len()).max().unwrap_or(0) * bytes;
    let takes_part = |chain: &Chain| {
        chain.sources.iter().any(|source| source.member == view.me)
            || chain.targets.iter().any(|target| view.is_here(target.member))
    };
    let mut links: Vec<Link<'_>> = vec![];
    for now in segments {
        for chain in chains.iter().filter(|chain| takes_part(chain)) {
            let sums = links.len() % RING * width;
            links.push(Link { chain, at: now * bytes, end: (now + 1) * bytes, sums });
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
