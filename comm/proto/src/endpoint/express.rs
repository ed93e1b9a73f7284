//! Short messages that leave at once: where nothing is before them, they never wait as frames, and have no state of their own until they have left.
//! At the other end those that somebody waits for go straight to him: neither the receive nor the message is ever in a queue.

use super::credit::Cost;
use super::peer::{About, Frame};
use super::{Endpoint, OpId, Outcome, Outgoing, State};
use crate::matching::{Envelope, Pattern};
use crate::rank::Rank;
use crate::wire::header::{HEADER_BYTES, Header, Kind};

/// What a header is to a receive that is not posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The message is received, its payload is the caller's to copy.
    Yes,
    /// It will be, when all of it is there.
    Later,
    /// It is for [`Endpoint::handle_header`].
    No,
    /// It cannot be: the other side broke the protocol.
    Astray,
}

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
    pub fn has_left(&mut self, envelope: Envelope, place: P) -> OpId {
        self.start(State::Finished(Outcome::Done(envelope)), place)
    }

    /// A message of [`Endpoint::express`] has left in part, or not at all: it is the first frame now.
    pub fn has_begun(&mut self, to: Rank, message: &Outgoing, header: [u8; HEADER_BYTES], place: P) -> OpId {
        let op = self.start(State::Send(self.envelope(message), message.mode, None), place);
        self.busy.push(to);
        self.peers[to].queue(Frame { header, body: Some(op), length: message.length as usize });
        op
    }

    /// Whether somebody may wait for the next message that `pattern` accepts without posting a receive: none is here already, and no frame of
    /// this rank has to leave.
    #[inline]
    pub fn may_take(&self, pattern: &Pattern) -> bool {
        self.busy.is_empty()
            && self.matching.find(pattern).is_none()
            && !(self.is_in_lines() && pattern.is_open())
    }

    /// A header came from `from`, and its payload too if `is_whole`, while somebody waits for what `pattern` accepts, with so much room. It is his
    /// if no receive that was posted before wants it, nor a message that came before is his.
    #[inline]
    pub fn take(
        &mut self,
        from: Rank,
        header: &Header,
        pattern: &Pattern,
        room: usize,
        is_whole: bool,
    ) -> Taken {
        let envelope = Envelope::from(header);
        let is_his = header.kind == Kind::Eager
            && pattern.accepts(&envelope)
            && header.length <= room as u64
            && !self.waits_for_repair(header.context, header.stamp)
            && !self.matching.is_wanted(&envelope)
            && self.matching.find(pattern).is_none()
            && !self.is_closed(header.context);
        if !is_his {
            return Taken::No;
        }
        if !is_whole {
            return Taken::Later;
        }
        let cost = Cost::eager(header.length);
        if self.check(from, header).is_err() || !self.peers[from].grant.pay(cost) {
            return Taken::No; // which will find out what is wrong with it
        }
        self.give_back(from, cost);
        if self.has_lines() {
            if self.comes(from, header).is_err() {
                return Taken::Astray;
            }
            self.is_whole(from);
        }
        Taken::Yes
    }

    /// What a message of this rank is matched by.
    #[inline]
    pub fn envelope(&self, message: &Outgoing) -> Envelope {
        let Outgoing { context, tag, length, .. } = *message;
        Envelope { context, source: self.source(), tag, mark: self.mark(context), length }
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
        let envelope = end.envelope(&short);
        let left = end.has_left(envelope, 33);
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

    const FROM: Pattern = Pattern { context: 1, source: Some(0), tag: Some(7) };

    /// The headers of so many messages of 8 bytes with tag 7 from rank 0 to rank 1, and who receives them.
    fn under_way(count: usize) -> (Vec<Header>, Endpoint<usize>) {
        let mut sender: Endpoint<usize> = Endpoint::new(0, 2, 0);
        let next = |_| Header::decode(&sender.express(1, &message(1, 7, 8)).expect("credit")).unwrap();
        ((0..count).map(next).collect(), Endpoint::new(1, 2, 0))
    }

    #[test]
    fn what_somebody_waits_for_is_his_unless_others_came_first() {
        let (headers, mut end) = under_way(4);
        assert!(end.may_take(&FROM));
        let take = |end: &mut Endpoint<usize>, at: usize, room: usize, is_whole: bool| {
            end.take(0, &headers[at], &FROM, room, is_whole)
        };
        assert_eq!(take(&mut end, 0, 8, false), Taken::Later);
        assert_eq!(take(&mut end, 0, 7, true), Taken::No, "too long");
        let other = Pattern { tag: Some(8), ..FROM };
        assert_eq!(end.take(0, &headers[0], &other, 8, true), Taken::No);
        assert_eq!(take(&mut end, 1, 8, true), Taken::No, "another one is due");
        let mut end = under_way(0).1;
        assert_eq!(take(&mut end, 0, 8, true), Taken::Yes);
        // A receive that was posted wants the next one.
        let posted = end.receive(Pattern { source: None, ..FROM }, 8, None, 0);
        assert_eq!(take(&mut end, 1, 8, true), Taken::No);
        let landing = end.handle_header(0, &headers[1], |bytes| bytes).unwrap();
        end.handle_payload(0, &headers[1], landing);
        assert!(end.is_finished(posted));
        // One that came before is his.
        let landing = end.handle_header(0, &headers[2], |bytes| bytes).unwrap();
        end.handle_payload(0, &headers[2], landing);
        assert!(!end.may_take(&FROM));
        assert_eq!(take(&mut end, 3, 8, true), Taken::No);
    }

    #[test]
    fn what_was_taken_gives_its_credit_back_and_who_has_none_is_found_out() {
        let each = 8 + MESSAGE_COST;
        let count = (CREDIT_BYTES / each) as usize;
        let (headers, mut end) = under_way(count);
        for header in &headers {
            assert_eq!(end.take(0, header, &FROM, 8, true), Taken::Yes);
        }
        let returned: Vec<Header> =
            end.frames(0).iter().map(|frame| Header::decode(&frame.header).unwrap()).collect();
        assert!(returned.iter().all(|header| header.kind == Kind::Credit));
        let bytes = returned.iter().map(|header| header.subject).sum::<u64>();
        assert!((CREDIT_BYTES / 2..=CREDIT_BYTES).contains(&bytes), "{bytes}");
        assert!(!end.may_take(&FROM), "that has to leave first");
        // Messages that stay take what there is.
        let mut end = under_way(0).1;
        for header in &headers {
            end.handle_header(0, header, |bytes| bytes).unwrap();
        }
        let beyond = Header { sequence: count as u64, tag: 9, ..headers[0] };
        let pattern = Pattern { tag: Some(9), ..FROM };
        assert_eq!(end.take(0, &beyond, &pattern, 8, true), Taken::No);
        assert!(end.handle_header(0, &beyond, |bytes| bytes).is_err());
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
