//! Short messages that leave at once: where nothing is before them, they never wait as frames, and have no state of their own until they have left.

use super::credit::Cost;
use super::peer::{About, Frame};
use super::{Endpoint, OpId, Outcome, Outgoing, State};
use crate::matching::Envelope;
use crate::rank::Rank;
use crate::wire::header::{HEADER_BYTES, Kind};

impl<P> Endpoint<P> {
    /// The header of a message that may leave now: there is credit to send it eagerly, and nothing to `to` waits. Whoever is given it sends it
    /// with its payload, and says how far that went: [`Endpoint::has_left`] or [`Endpoint::has_begun`].
    #[inline]
    pub fn express(&mut self, to: Rank, message: &Outgoing) -> Option<[u8; HEADER_BYTES]> {
        let envelope = self.envelope(message);
        let peer = &mut self.peers[to];
        let is_free = !peer.is_gone && peer.frames().is_empty() && peer.parked.is_empty();
        if !is_free || message.offer.is_some() || !peer.may_be_eager(message.mode, message.length, false) {
            return None;
        }
        peer.credit
            .pay(Cost::eager(message.length))
            .then(|| peer.number(Kind::Eager, self.generation, envelope, About::default()).1)
    }

    /// A message of [`Endpoint::express`] has left, which was in `place`: the send is finished.
    #[inline]
    pub fn has_left(&mut self, message: &Outgoing, place: P) -> OpId {
        self.start(State::Finished(Outcome::Done(self.envelope(message))), place)
    }

    /// A message of [`Endpoint::express`] has left in part, or not at all: it is the first frame now.
    pub fn has_begun(&mut self, to: Rank, message: &Outgoing, header: [u8; HEADER_BYTES], place: P) -> OpId {
        let op = self.start(State::Send(self.envelope(message), message.mode, None), place);
        self.busy.push(to);
        self.peers[to].queue(Frame { header, body: Some(op), length: message.length as usize });
        op
    }

    /// What a message of this rank is matched by.
    #[inline]
    pub fn envelope(&self, message: &Outgoing) -> Envelope {
        let Outgoing { context, tag, length, .. } = *message;
        Envelope { context, source: self.source(), tag, length }
    }
}
