//! Ranks by the hosts that they are on, for algorithms of two levels: the ranks of a host speak with their leader, and leaders with
//! each other (after N. T. Karonis, B. R. de Supinski, I. Foster et al., Exploiting hierarchy in parallel computer networks to optimize
//! collective operation performance, IPDPS 2000).

use std::ops::Range;

use super::{Span, Step};
use crate::rank::Rank;

/// The ranks of each host, their leader first; hosts are in the order of their lowest ranks.
pub(super) struct Hosts {
    ranks: Vec<Vec<Rank>>,
    /// The host of each rank.
    of: Vec<usize>,
}

impl Hosts {
    /// `labels` tell the hosts of the ranks apart; none: all are on one. The lowest rank of a host leads it.
    pub(super) fn new(size: usize, labels: &[usize]) -> Self {
        let (mut ranks, mut known): (Vec<Vec<Rank>>, Vec<usize>) = (vec![], vec![]);
        let mut of = vec![];
        for rank in 0..size {
            let label = labels.get(rank).copied().unwrap_or(0);
            let host = known.iter().position(|other| *other == label).unwrap_or_else(|| {
                known.push(label);
                ranks.push(vec![]);
                known.len() - 1
            });
            ranks[host].push(rank);
            of.push(host);
        }
        Self { ranks, of }
    }

    /// The same, where `root` leads its host.
    pub(super) fn led_by(root: Rank, size: usize, labels: &[usize]) -> Self {
        let mut hosts = Self::new(size, labels);
        let home = &mut hosts.ranks[hosts.of[root]];
        let at = home.iter().position(|rank| *rank == root).expect("it is on its host");
        home.swap(0, at);
        hosts
    }

    /// Number of hosts.
    pub(super) fn count(&self) -> usize {
        self.ranks.len()
    }

    /// The host of a rank.
    pub(super) fn of(&self, rank: Rank) -> usize {
        self.of[rank]
    }

    /// The leader of each host.
    pub(super) fn leader(&self, host: usize) -> Rank {
        self.ranks[host][0]
    }

    /// Those that the leader of a host speaks for.
    pub(super) fn others(&self, host: usize) -> &[Rank] {
        &self.ranks[host][1..]
    }

    /// All ranks, host by host.
    pub(super) fn ranks(&self) -> impl Iterator<Item = Rank> {
        self.ranks.iter().flatten().copied()
    }

    /// The steps of an algorithm whose ranks are the hosts, done by their leaders; its parts are those of `place`.
    pub(super) fn among_leaders(
        &self,
        steps: Vec<Step>,
        place: impl Fn(Range<usize>) -> Span,
    ) -> impl Iterator<Item = Step> {
        steps.into_iter().map(move |step| match step {
            Step::Send { to, part } => Step::send(self.leader(to), place(part.range)),
            Step::Recv { from, part } => Step::recv(self.leader(from), place(part.range)),
            Step::Fence => Step::Fence,
            other => unreachable!("{other:?} moves nothing"),
        })
    }
}
