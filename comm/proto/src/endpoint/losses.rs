//! What becomes of operations when the rank that they need has failed while the others go on (message mode `Continue`),
//! and when their communicator is revoked.

use super::{Endpoint, Landing, Op, OpId, Outcome, State};
use crate::matching::{Envelope, Pattern};
use crate::rank::Rank;

impl<P> Endpoint<P> {
    /// `rank` has failed: what is to go to it or to come from it ends with [`Outcome::Failed`], now and from now on. So do the receives from
    /// anybody that wait in these contexts, which cannot be sure of a sender any more. A message that is here already can still be received.
    pub fn handle_loss(&mut self, rank: Rank, contexts: &[u32]) {
        if self.is_lost(rank) {
            return;
        }
        let mut ops = self.peers[rank].lose();
        self.busy.retain(|busy| *busy != rank);
        let names = |pattern: &Pattern| match pattern.source {
            Some(source) => source as Rank == rank,
            None => contexts.contains(&pattern.context),
        };
        ops.extend(self.matching.withdraw(names));
        ops.extend(self.bounced.lose(rank, |bounce, envelope| self.matching.forget(bounce, envelope)));
        ops.into_iter().for_each(|op| self.break_off(op, Outcome::Failed(rank)));
    }

    /// The link to `rank` is shut: a payload that was on its way there does not come.
    pub fn handle_torn(&mut self, rank: Rank, landing: Landing) {
        if let Landing::Op(op) = landing {
            self.break_off(op, Outcome::Failed(rank));
        }
    }

    /// Whether `rank` has failed.
    pub fn is_lost(&self, rank: Rank) -> bool {
        self.peers[rank].is_gone
    }

    /// The failed rank that a receive with `pattern` names.
    pub fn failed_source(&self, pattern: &Pattern) -> Option<Rank> {
        pattern.source.map(|rank| rank as Rank).filter(|rank| self.is_lost(*rank))
    }

    /// An operation ends in another way than it should, unless it has ended.
    fn break_off(&mut self, op: OpId, outcome: Outcome) {
        if !self.is_finished(op) {
            self.end(op, outcome);
        }
    }

    /// The communicator with this context was revoked: its receives that nothing has matched end, and its sends that have not begun to leave.
    pub fn handle_revocation(&mut self, context: u32) {
        let mut doomed = self.matching.withdraw(|pattern| pattern.context == context);
        let of = |envelope: &Envelope| envelope.context == context;
        let asked = self.peers.iter_mut().flat_map(|peer| peer.asked.values_mut());
        doomed.extend(asked.filter(|(_, envelope)| of(envelope)).filter_map(|(landing, envelope)| {
            match std::mem::replace(landing, Landing::Sink) {
                Landing::Op(op) => Some(op),
                Landing::Bounce(bounce) => {
                    self.matching.forget(bounce, envelope);
                    self.bounced.give_up(bounce)
                }
                _ => None,
            }
        }));
        doomed.into_iter().for_each(|op| self.break_off(op, Outcome::Revoked));
        // A send whose receive will never be posted would wait for ever. The offer stays, but whoever asks for it is not
        // answered: it hears of the revocation, too.
        let waits = |(id, op): (OpId, &Op<P>)| match &op.state {
            State::Send(envelope, ..) if of(envelope) => Some(id),
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
            if peer.frames().iter().any(|frame| frame.body == Some(op)) {
                return; // it leaves as soon as the link takes it
            }
        }
        self.break_off(op, Outcome::Revoked);
    }
}
