//! The values of all ranks on their way into one over the leaders of hosts.

use super::hosts::Hosts;
use super::{Order, Span, Step};
use crate::rank::Rank;

/// Which values meet on the host that they are from, and which go to other leaders.
///
/// They are combined in a given order, wherever ranks are: so no bit of the result depends on that. Within a host those meet that the
/// order has next to each other; what is left goes to other leaders as it is.
pub(super) struct Combining<'a> {
    hosts: &'a Hosts,
    /// Pairs of the order of which both values are from one host alone; the first rank of a pair gets what becomes of it.
    within: Vec<(Rank, Rank)>,
    /// All other pairs.
    between: Vec<(Rank, Rank)>,
    /// By rank the place of its value with a leader: first those that leaders exchange, host by host.
    slots: Vec<usize>,
    /// Where in the scratch of a leader the elements begin that each host gives to the others, and where the last ones end.
    pub(super) starts: Vec<usize>,
    len: usize,
}

impl<'a> Combining<'a> {
    /// `order` are all pairs of values of `len` elements, one after the other; rank 0 is the first one of the last pair.
    pub(super) fn new(hosts: &'a Hosts, order: Vec<(Rank, Rank)>, len: usize) -> Self {
        let size = order.len() + 1;
        // By rank the host that all of its value is from so far.
        let mut from: Vec<Option<usize>> = (0..size).map(|rank| Some(hosts.of(rank))).collect();
        let mut is_given = vec![true; size];
        let (within, between): (Vec<_>, Vec<_>) = order.into_iter().partition(|&(low, high)| {
            let together = from[low].is_some() && from[low] == from[high];
            if together {
                is_given[high] = false;
            } else {
                from[low] = None;
            }
            together
        });
        let (given, kept): (Vec<Rank>, Vec<Rank>) = hosts.ranks().partition(|rank| is_given[*rank]);
        let mut slots = vec![0; size];
        given.iter().chain(&kept).enumerate().for_each(|(slot, rank)| slots[*rank] = slot);
        let before = |host| given.iter().filter(|rank| hosts.of(**rank) < host).count() * len;
        let starts = (0..=hosts.count()).map(before).collect();
        Self { hosts, within, between, slots, starts, len }
    }

    fn value(&self, rank: Rank) -> Span {
        let slot = self.slots[rank];
        Span::scratch(slot * self.len..(slot + 1) * self.len)
    }

    fn combine(&self, &(low, high): &(Rank, Rank)) -> Step {
        Step::reduce(self.value(high), self.value(low), Order::MineFirst)
    }

    /// The leader of a host gets the values of its ranks, and has what it gives to others at their `starts`.
    pub(super) fn within(&self, host: usize) -> Vec<Step> {
        let mut steps = vec![Step::copy(0..self.len, self.value(self.hosts.leader(host)))];
        steps.extend(self.hosts.others(host).iter().map(|&from| Step::recv(from, self.value(from))));
        let here = self.within.iter().filter(|(low, _)| self.hosts.of(*low) == host);
        steps.extend(here.map(|pair| self.combine(pair)));
        steps
    }

    /// A leader that has what all hosts give makes the result of it in its buffer.
    pub(super) fn between(&self) -> Vec<Step> {
        let combined = self.between.iter().map(|pair| self.combine(pair));
        combined.chain([Step::copy(self.value(0), 0..self.len)]).collect()
    }
}
