//! Failures while the others go on (message mode `Continue`), and communicators that are revoked.

use std::rc::Rc;

use super::{Driver, Memory, State};
use crate::transport::LinkId;
use ft_proto::endpoint::{Landing, Outcome};
use ft_proto::error::CommError;
use ft_proto::matching::Pattern;
use ft_proto::rank::{MessageMode, Rank};
use ft_proto::wire::control::ToArbiter;

impl Driver {
    pub(crate) fn set_mode(&mut self, mode: MessageMode) {
        self.mode = mode;
        match (mode, &self.state) {
            (MessageMode::Continue, State::Interrupted) => {
                self.state = State::Running;
                let known: Vec<Rank> = self.failed.iter().copied().collect();
                self.bury(&known);
            }
            (MessageMode::Nop, State::Running) if !self.news_of_failures().is_empty() => {
                self.interrupt();
            }
            _ => {}
        }
    }

    pub(crate) fn mode(&self) -> MessageMode {
        self.mode
    }

    /// Ranks that have failed in this generation.
    pub(crate) fn news_of_failures(&self) -> Vec<Rank> {
        let holes = &self.membership.holes;
        self.failed.iter().copied().filter(|rank| !holes.contains(rank)).collect()
    }

    /// Those of `world` that have failed.
    pub(crate) fn failed_of(&self, world: &[Rank]) -> Vec<Rank> {
        self.failed.iter().copied().filter(|rank| world.contains(rank)).collect()
    }

    /// The program knows of these failures: receives from anybody need not fear them any more.
    pub(crate) fn acknowledge(&mut self, ranks: &[Rank]) {
        self.acknowledged.extend(ranks);
    }

    /// A communicator with this context has these members.
    pub(crate) fn enrol(&mut self, context: u32, world: Rc<[Rank]>) {
        self.rosters.insert(context, world);
    }

    /// It is gone.
    pub(crate) fn strike_off(&mut self, context: u32) {
        self.rosters.remove(&context);
        // Those that were made from it now stand behind the one that it was made from.
        let parent = self.parents.remove(&context);
        let children = self.parents.iter().filter(|(_, parent)| **parent == context);
        let children: Vec<u32> = children.map(|(child, _)| *child).collect();
        for child in children {
            match parent {
                Some(parent) => self.parents.insert(child, parent),
                None => self.parents.remove(&child),
            };
        }
    }

    /// The link to `rank` is of no use, and this is what was seen of it: its process is gone, or the link is cut. An error unless the program goes on;
    /// then what needs that rank waits for the word of the launcher, which declares somebody lost.
    pub(super) fn lost(&mut self, rank: Rank, why: &str) -> Result<(), CommError> {
        let generation = self.generation();
        if self.leaving {
            return Err(CommError::PeerFailed { ranks: vec![rank], generation });
        }
        let goes_on = self.mode == MessageMode::Continue;
        match self.state {
            State::Running if goes_on => {
                self.close_links(rank);
                self.cut[rank] = true;
            }
            State::Running => self.interrupt(),
            _ => return Err(self.failure()),
        }
        self.submit(ToArbiter::Suspect { generation, rank, goes_on, why: why.to_owned() });
        if goes_on { Ok(()) } else { Err(self.failure()) }
    }

    fn close_links(&mut self, rank: Rank) {
        let links: Vec<LinkId> =
            self.inbound.iter().filter(|(_, inbound)| inbound.rank == rank).map(|(link, _)| *link).collect();
        for link in links {
            self.transport.close(link);
            let Some(inbound) = self.inbound.remove(&link) else { continue };
            if let Some(Landing::Op(op)) = inbound.body.map(|body| body.landing) {
                self.endpoint.break_off(op, Outcome::Failed(rank));
            }
            self.spare.push(inbound.staging);
        }
        (self.outbound[rank], self.heard[rank], self.left[rank]) = (None, None, 0);
    }

    /// These ranks have failed, and the others go on.
    pub(super) fn bury(&mut self, ranks: &[Rank]) {
        self.seal.change();
        for &rank in ranks {
            self.failed.insert(rank);
            if self.endpoint.is_lost(rank) {
                continue;
            }
            self.close_links(rank);
            for bounce in self.endpoint.lose(rank) {
                self.stock.bounces.remove(bounce);
            }
            let of: Vec<u32> = self.with_member(rank);
            of.into_iter().for_each(|context| self.endpoint.lose_wildcards(context, rank));
            let generation = self.generation();
            let error = || CommError::PeerFailed { ranks: vec![rank], generation };
            self.break_off_lists(|list| list.messages.is_none() && list.world.contains(&rank), error);
            self.moves += 1;
        }
    }

    fn with_member(&self, rank: Rank) -> Vec<u32> {
        self.rosters.iter().filter(|(_, world)| world.contains(&rank)).map(|(context, _)| *context).collect()
    }

    /// A communicator was made from another one: it is revoked with that, now or later.
    pub(crate) fn derived(&mut self, context: u32, parent: u32) {
        self.parents.insert(context, parent);
        if self.is_revoked(parent) {
            self.revoked(context);
        }
    }

    /// The communicator with this context was revoked, and with it all that were made from it.
    pub(crate) fn revoked(&mut self, context: u32) {
        if !self.revoked.insert(context) {
            return;
        }
        self.seal.change();
        let children = self.parents.iter().filter(|(_, parent)| **parent == context);
        let children: Vec<u32> = children.map(|(child, _)| *child).collect();
        children.into_iter().for_each(|child| self.revoked(child));
        self.endpoint.revoke(context);
        self.endpoint.revoke(context + 1);
        let generation = self.generation();
        self.break_off_lists(|list| list.context & !1 == context, || CommError::Revoked { generation });
        self.moves += 1;
    }

    pub(crate) fn is_revoked(&self, context: u32) -> bool {
        self.revoked.contains(&context)
    }

    /// Frees what operations of step lists that were broken off hold of `memory`.
    pub(super) fn release_broken_off(&mut self, memory: &mut Memory<'_>) {
        if std::mem::take(&mut self.broken_off) {
            self.advance_broken_off(memory);
        }
    }

    /// A receive from anybody in `context` cannot be sure of a sender: one that has failed, which nobody has acknowledged.
    pub(super) fn missing_sender(&self, pattern: &Pattern) -> Option<Rank> {
        if let Some(rank) = self.endpoint.failed_source(pattern) {
            return Some(rank);
        }
        let world = self.rosters.get(&pattern.context).filter(|_| pattern.source.is_none())?;
        self.failed.iter().copied().find(|rank| !self.acknowledged.contains(rank) && world.contains(rank))
    }

    /// The error of an operation that did not end well.
    pub(super) fn well(&self, outcome: Outcome) -> Result<Outcome, CommError> {
        let generation = self.generation();
        match outcome {
            Outcome::Failed(rank) => Err(CommError::PeerFailed { ranks: vec![rank], generation }),
            Outcome::Revoked => Err(CommError::Revoked { generation }),
            Outcome::Done(_) | Outcome::Truncated { .. } => Ok(outcome),
        }
    }
}
