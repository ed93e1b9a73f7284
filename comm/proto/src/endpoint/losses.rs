//! What becomes of operations when the rank that they need has failed while the others go on (message mode `Continue`),
//! and when their communicator is revoked.

use super::{BounceId, BounceState, Endpoint, Op, OpId, Outcome};
use crate::matching::Pattern;
use crate::rank::Rank;

impl Endpoint {
    /// `rank` has failed: what is to go to it or to come from it ends with [`Outcome::Failed`], now and from now on. A
    /// message that is here already can still be received. Gives the payloads that can be dropped.
    pub fn lose(&mut self, rank: Rank) -> Vec<BounceId> {
        let peer = &mut self.peers[rank];
        if std::mem::replace(&mut peer.gone, true) {
            return vec![];
        }
        let mut ops: Vec<OpId> = peer.parked.drain(..).collect();
        ops.extend(peer.offered.drain().map(|(_, op)| op));
        ops.extend(peer.out.drain(..).filter_map(|frame| frame.body));
        ops.extend(peer.asked.drain().filter_map(|(_, (op, _))| op));
        peer.busy = false;
        self.busy.retain(|busy| *busy != rank);
        ops.extend(self.matching.withdraw(|pattern| pattern.source == Some(rank as u32)));
        let mut dropped = vec![];
        let from = |bounced: &super::Bounced| bounced.envelope.source as Rank == rank;
        let torn: Vec<BounceId> = self
            .bounced
            .iter()
            .filter(|(_, bounced)| from(bounced) && !matches!(bounced.state, BounceState::Here))
            .map(|(id, _)| id)
            .collect();
        for bounce in torn {
            self.matching.forget(bounce);
            if let Some(bounced) = self.bounced.remove(bounce) {
                match bounced.state {
                    BounceState::Arriving(claim) => ops.extend(claim),
                    BounceState::Announced(_) => continue,
                    BounceState::Here | BounceState::Unwanted => {}
                }
                dropped.push(bounce);
            }
        }
        ops.into_iter().for_each(|op| self.break_off(op, Outcome::Failed(rank)));
        dropped
    }

    /// Whether `rank` has failed.
    pub fn is_lost(&self, rank: Rank) -> bool {
        self.peers[rank].gone
    }

    /// Receives from anybody in `context` cannot be sure of a sender any more: those that wait end.
    pub fn lose_wildcards(&mut self, context: u32, rank: Rank) {
        let doomed = self.matching.withdraw(|p| p.context == context && p.source.is_none());
        doomed.into_iter().for_each(|op| self.break_off(op, Outcome::Failed(rank)));
    }

    /// The failed rank that a receive with `pattern` names.
    pub fn failed_source(&self, pattern: &Pattern) -> Option<Rank> {
        pattern.source.map(|rank| rank as Rank).filter(|rank| self.peers[*rank].gone)
    }

    /// A receive that nothing has matched ends because `rank` has failed.
    pub fn cancel_for(&mut self, op: OpId, rank: Rank) {
        if self.matching.cancel(op) {
            self.break_off(op, Outcome::Failed(rank));
        }
    }

    /// An operation ends in another way than it should, unless it has ended.
    pub fn break_off(&mut self, op: OpId, outcome: Outcome) {
        if self.ops.get(op).is_some_and(|op| !matches!(op, Op::Finished(_))) {
            self.finished(op, outcome);
        }
    }

    /// The communicator with this context was revoked: its receives that nothing has matched end.
    pub fn revoke(&mut self, context: u32) {
        let doomed = self.matching.withdraw(|pattern| pattern.context == context);
        let of = |envelope: &crate::matching::Envelope| envelope.context == context;
        let asked = self.peers.iter_mut().flat_map(|peer| peer.asked.values_mut());
        let asked = asked.filter(|(_, envelope)| of(envelope)).filter_map(|(op, _)| op.take());
        let doomed: Vec<OpId> = doomed.into_iter().chain(asked).collect();
        doomed.into_iter().for_each(|op| self.break_off(op, Outcome::Revoked));
        // A send whose receive will never be posted would wait for ever. The offer stays, but whoever asks for it is not
        // answered: it hears of the revocation, too.
        let waits = |(op, state): (OpId, &Op)| match state {
            Op::Send(envelope, ..) if envelope.context == context => Some(op),
            _ => None,
        };
        let sends: Vec<OpId> = self.ops.iter().filter_map(waits).collect();
        for op in sends {
            self.withdraw_send(op);
        }
    }

    /// A send that has not begun to leave does not any more.
    fn withdraw_send(&mut self, op: OpId) {
        for peer in &mut self.peers {
            peer.parked.retain(|parked| *parked != op);
            if peer.out.iter().any(|frame| frame.body == Some(op)) {
                return; // it leaves as soon as the link takes it
            }
        }
        self.break_off(op, Outcome::Revoked);
    }
}
