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

#[cfg(test)]
mod tests {
    use super::super::{CREDIT_BYTES, EAGER_BYTES_MAX, ENVELOPES_MAX, MESSAGE_COST, Mode, Offer};
    use super::*;
    use crate::wire::header::Header;

    fn message(context: u32, tag: u32, length: u64) -> Outgoing {
        Outgoing { context, tag, length, mode: Mode::Standard, offer: None }
    }

    #[test]
    fn a_message_leaves_at_once_only_where_nothing_is_before_it() {
        let short = message(1, 7, 8);
        let mut end: Endpoint<usize> = Endpoint::new(0, 2, 0);
        let header = Header::decode(&end.express(1, &short).expect("nothing waits")).unwrap();
        assert_eq!((header.kind, header.sequence, header.tag, header.length), (Kind::Eager, 0, 7, 8));
        let left = end.has_left(&short, 33);
        let envelope = end.envelope(&short);
        assert_eq!(end.finish(left), Some((Outcome::Done(envelope), 33)));
        // One that has begun is the first frame, and nothing overtakes it.
        let header = end.express(1, &short).expect("still nothing");
        let begun = end.has_begun(1, &short, header, 44);
        assert_eq!((end.busy(), end.frames(1).len(), end.place(begun)), (&[1][..], 1, Some(&44)));
        assert!(end.express(1, &short).is_none(), "a frame waits");
        end.send(1, message(1, 8, 8), 0);
        let numbers: Vec<u64> =
            end.frames(1).iter().map(|frame| Header::decode(&frame.header).unwrap().sequence).collect();
        assert_eq!(numbers, [1, 2]);
        end.handle_sent(1);
        assert!(end.is_finished(begun) && end.express(1, &short).is_none());
        end.handle_sent(1);
        assert!(end.express(1, &short).is_some());
    }

    #[test]
    fn what_is_no_eager_message_does_not_leave_at_once() {
        let fresh = || -> Endpoint<usize> { Endpoint::new(0, 2, 0) };
        let (long, most) = (EAGER_BYTES_MAX as u64 + 1, EAGER_BYTES_MAX as u64);
        assert!(fresh().express(1, &message(1, 7, most)).is_some());
        assert!(fresh().express(1, &message(1, 7, long)).is_none());
        assert!(fresh().express(1, &Outgoing { mode: Mode::Synchronous, ..message(1, 7, 0) }).is_none());
        let offer = Some(Offer { place: 1, seal: 2 });
        assert!(fresh().express(1, &Outgoing { offer, ..message(1, 7, most) }).is_none());
        let mut gone = fresh();
        gone.handle_loss(1, &[]);
        assert!(gone.express(1, &message(1, 7, 0)).is_none());
        // It costs what a frame costs.
        let mut poor = fresh();
        let times = (0..100).take_while(|_| poor.express(1, &message(1, 7, most)).is_some()).count() as u64;
        assert_eq!(times, CREDIT_BYTES / (most + MESSAGE_COST));
        // Without credit for an envelope a send waits, and nothing overtakes that either.
        for _ in 0..=ENVELOPES_MAX {
            poor.send(1, Outgoing { mode: Mode::Synchronous, ..message(1, 7, 0) }, 0);
            poor.handle_sent(1);
        }
        assert!(poor.frames(1).is_empty() && poor.express(1, &message(1, 7, 0)).is_none(), "one is parked");
    }
}
