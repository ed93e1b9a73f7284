//! Redundancy at the owner: the first holder of parity of a stripe gets all its chunks, computes all its blocks, and passes the others
//! on.

use std::ops::Range;

use ft_comm::collective::{Space, Span};

use super::arithmetic::Weights;
use super::{Combine, Recipe, View, Work, part, segment};

/// Segments of its sources that an owner receives at a time; more were not faster.
const RECEIVED: usize = 2;

/// Fills the redundant blocks of all stripes that are computed at their owners, in these segments.
pub(super) fn at_the_owner(
    view: View<'_>,
    block: &impl Fn(usize) -> Range<usize>,
    segments: Range<usize>,
    recipe: &mut Recipe,
) {
    let owner = Owner::new(view);
    for now in segments.start..segments.end + RECEIVED - 1 {
        if now < segments.end {
            owner.share(now, recipe);
        }
        // The segment before has had time to come.
        if let Some(before) = now.checked_sub(RECEIVED - 1).filter(|before| segments.contains(before)) {
            owner.compute(before, block, recipe);
            owner.receive_passed(before, block, recipe);
        }
    }
}

/// A member among those that compute all blocks of the stripes that they own.
struct Owner<'a> {
    view: View<'a>,
    /// The stripes that somebody computes.
    computed: Vec<usize>,
    /// Those that this member owns, with their weights.
    owned: Vec<(usize, Weights)>,
}

impl<'a> Owner<'a> {
    fn new(view: View<'a>) -> Self {
        let View { group, me, .. } = view;
        let computed: Vec<usize> =
            (0..group.stripes.len()).filter(|stripe| !view.is_copied(*stripe)).collect();
        let weights = |stripe: usize| {
            let (k, m) = (group.stripes[stripe].data.len(), group.stripes[stripe].parity.len());
            view.code.weights((0..m).flat_map(|j| (0..k).map(move |i| (j, i))))
        };
        let owned = computed.iter().copied().filter(|stripe| group.stripes[*stripe].parity[0] == me);
        let owned = owned.map(|stripe| (stripe, weights(stripe))).collect();
        Self { view, computed, owned }
    }

    /// The bytes of all blocks in segment `number`.
    fn bounds(&self, number: usize) -> (usize, usize) {
        (number * self.view.segment, (number + 1) * self.view.segment)
    }

    /// Room for the segments of the sources of a stripe that is owned, and of the blocks to be passed on.
    fn room(&self, stripe: usize) -> usize {
        let stripe = &self.view.group.stripes[stripe];
        stripe.data.len() + stripe.parity.len() - 1
    }

    /// Where the segment of number `at` of those of a stripe has its room: there is some for each segment under way.
    fn place(&self, segment: usize, stripe: usize, at: usize, len: usize) -> Span {
        let width: usize = self.owned.iter().map(|(stripe, _)| self.room(*stripe)).sum();
        let before = self.owned.iter().take_while(|(other, _)| *other < stripe);
        let before: usize = before.map(|(other, _)| self.room(*other)).sum();
        let start = ((segment % RECEIVED) * width + before + at) * self.view.segment;
        part(Space::Scratch, start..start + len)
    }

    /// Sends the own chunks to the owners of their stripes, and receives those of others.
    fn share(&self, now: usize, recipe: &mut Recipe) {
        let (view, (at, end)) = (self.view, self.bounds(now));
        let (View { group, me, .. }, size) = (view, view.group.members.len());
        for distance in 1..size {
            let (to, from) = ((me + distance) % size, (me + size - distance) % size);
            for stripe in self.computed.iter().map(|index| &group.stripes[*index]) {
                let mine = stripe.data.iter().filter(|(member, _)| *member == me && stripe.parity[0] == to);
                for data in mine {
                    let due = segment(&view.chunk(*data), at, end);
                    recipe.send(view.rank(to), view.input(data.1, due));
                }
            }
            for (index, _) in &self.owned {
                let sources = group.stripes[*index].data.iter().enumerate();
                for (i, data) in sources.filter(|(_, (member, _))| *member == from) {
                    let due = segment(&view.chunk(*data), at, end).len();
                    recipe.recv(view.rank(from), self.place(now, *index, i, due));
                }
            }
        }
    }

    /// Computes the blocks of the own stripes, and passes all but the first on.
    fn compute(&self, now: usize, block: &impl Fn(usize) -> Range<usize>, recipe: &mut Recipe) {
        let (view, (at, end)) = (self.view, self.bounds(now));
        for (index, weights) in &self.owned {
            let stripe = &view.group.stripes[*index];
            let own = segment(&block(*index), at, end);
            let len = own.len();
            if len == 0 {
                continue;
            }
            let source = |(i, data): (usize, &(usize, usize))| {
                self.place(now, *index, i, segment(&view.chunk(*data), at, end).len())
            };
            let sources = stripe.data.iter().enumerate().map(source).collect();
            let on = |j: usize| self.place(now, *index, stripe.data.len() + j - 1, len);
            let own = part(Space::Buffer, own);
            let targets = std::iter::once(own.clone()).chain((1..stripe.parity.len()).map(on)).collect();
            let digest = view.digests.then_some((*index, own));
            let weights = weights.clone();
            recipe.work(Work::Combine(Combine { sources, targets, weights, adds: false, digest }));
            for (j, holder) in stripe.parity.iter().enumerate().skip(1) {
                recipe.send(view.rank(*holder), on(j));
            }
        }
    }

    /// Receives the blocks that other owners pass on.
    fn receive_passed(&self, now: usize, block: &impl Fn(usize) -> Range<usize>, recipe: &mut Recipe) {
        let (view, (at, end)) = (self.view, self.bounds(now));
        for index in &self.computed {
            let stripe = &view.group.stripes[*index];
            if stripe.parity[1..].contains(&view.me) {
                let due = segment(&block(*index), at, end);
                recipe.recv(view.rank(stripe.parity[0]), part(Space::Buffer, due));
            }
        }
    }
}
