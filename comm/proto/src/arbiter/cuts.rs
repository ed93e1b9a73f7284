//! Cuts that are in force: between which processes nothing passes.
//!
//! A cut lies between the processes that hold its ranks when it strikes, as between their hosts. A replacement may be
//! elsewhere and is not cut off: otherwise no job could survive a cut that lasts.

use crate::rank::PeerId;
use crate::time::Time;
use crate::wire::control::News;

/// Nothing passes between two processes.
#[derive(Debug)]
struct Cut {
    spec: usize,
    one: PeerId,
    other: PeerId,
    /// Without it for ever.
    until: Option<Time>,
}

/// The cuts of a job that have struck.
#[derive(Debug, Default)]
pub(super) struct Cuts(Vec<Cut>);

impl Cuts {
    /// The failure at this position cuts all processes of one side off from all of the other.
    pub(super) fn add(&mut self, spec: usize, near: &[PeerId], far: &[PeerId], until: Option<Time>) {
        let pairs = near.iter().flat_map(|one| far.iter().map(move |other| (*one, *other)));
        self.0.extend(pairs.map(|(one, other)| Cut { spec, one, other, until }));
    }

    /// Those in force that `peer` has to do with, with the process at the other end.
    fn of(&self, now: Time, peer: PeerId) -> impl Iterator<Item = (&Cut, PeerId)> {
        let cuts = self.0.iter().filter(move |cut| cut.until.is_none_or(|until| now < until));
        cuts.filter_map(move |cut| match peer {
            _ if cut.one == peer => Some((cut, cut.other)),
            _ if cut.other == peer => Some((cut, cut.one)),
            _ => None,
        })
    }

    /// What a process is to be told of the cut at this position, if it has to do with it.
    pub(super) fn news(&self, now: Time, peer: PeerId, spec: usize) -> Option<News> {
        let cuts = self.of(now, peer).filter(|(cut, _)| cut.spec == spec);
        let (until, peers): (Vec<_>, Vec<_>) = cuts.map(|(cut, other)| (cut.until, other)).unzip();
        let millis = (*until.first()?)
            .map(|until| u64::try_from(until.since(now).as_millis()).unwrap_or(u64::MAX).max(1));
        Some(News::Cut { spec, peers, millis })
    }

    /// What a process is to be told of all cuts, in the order in which they struck.
    pub(super) fn all_news(&self, now: Time, peer: PeerId) -> Vec<News> {
        let mut specs: Vec<usize> = self.of(now, peer).map(|(cut, _)| cut.spec).collect();
        specs.dedup();
        specs.into_iter().filter_map(|spec| self.news(now, peer, spec)).collect()
    }
}
