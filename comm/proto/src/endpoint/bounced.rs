//! Messages that came before their receives, and the places in which they wait.

use slotmap::SlotMap;

use super::reading::Announced;
use super::{BounceId, OpId};
use crate::matching::Envelope;
use crate::rank::Rank;

/// How far a message is.
#[derive(Debug)]
pub(super) enum State<P> {
    /// Its payload is arriving there; a receive may have claimed it already.
    Arriving(P, Option<OpId>),
    /// Its payload is here.
    Here(P),
    /// It was only announced.
    Announced(Announced),
    /// Its payload is arriving, and nobody wants it any more.
    Unwanted,
    /// It was claimed, and will never be whole: its sender has failed.
    Lost,
    /// It was here in part, and comes again; a receive may have claimed it already.
    Due(Option<OpId>),
}

/// What becomes of a receive that takes a message.
#[derive(Debug)]
pub(super) enum Claimed<'a, P> {
    /// The payload is its own; the message is gone from here.
    Here(P),
    /// The payload is arriving, and is for the receive that this will name.
    Arriving(&'a mut Option<OpId>),
    /// The payload is to be had from the sender; the message is gone from here.
    Announced(Announced),
    /// There is none; the message is gone from here.
    Lost,
}

/// What is to be said to the sender of a message that nobody will receive.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Dropped {
    /// Nothing yet.
    Nothing,
    /// It is received, as far as credit goes.
    Received(Envelope),
    /// Its payload is not wanted.
    Refused(Envelope, Announced),
}

/// What becomes of a payload that is whole.
#[derive(Debug)]
pub(super) enum Landed<P> {
    /// It waits for its receive.
    Kept,
    /// It is the payload of this receive.
    Claimed(OpId, P),
    /// Nobody wanted it.
    Unwanted,
}

#[derive(Debug)]
struct Message<P> {
    envelope: Envelope,
    state: State<P>,
}

/// See the module. A message is here from its header until its payload has found its receive or nobody wants it.
#[derive(Debug)]
pub(super) struct Bounced<P>(SlotMap<BounceId, Message<P>>);

impl<P> Default for Bounced<P> {
    fn default() -> Self {
        Self(SlotMap::with_key())
    }
}

impl<P> Bounced<P> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn keep(&mut self, envelope: Envelope, state: State<P>) -> BounceId {
        self.0.insert(Message { envelope, state })
    }

    /// Where an arriving payload goes, if anybody wants it.
    pub(super) fn place_mut(&mut self, bounce: BounceId) -> Option<&mut P> {
        match &mut self.0.get_mut(bounce)?.state {
            State::Arriving(place, _) => Some(place),
            _ => None,
        }
    }

    /// A message that is here as a whole, and nobody has claimed.
    pub(super) fn here(&mut self, bounce: BounceId) -> Option<(&mut Envelope, &P)> {
        match self.0.get_mut(bounce)? {
            Message { envelope, state: State::Here(place) } => Some((envelope, place)),
            _ => None,
        }
    }

    /// The payload of a message that was only announced is to come to a place of its own. Gives its envelope, and the number of that.
    pub(super) fn fetch(
        &mut self,
        bounce: BounceId,
        make: impl FnOnce(usize) -> P,
    ) -> Option<(Envelope, u64)> {
        let Message { envelope, state } = self.0.get_mut(bounce)?;
        let State::Announced(Announced { sequence, .. }) = *state else { return None };
        let asked = *envelope;
        *state = State::Arriving(make(envelope.length as usize), None);
        envelope.mark = envelope.mark.fetched();
        Some((asked, sequence))
    }

    /// Whether a message was only announced, for want of credit.
    pub(super) fn wants_credit(&self, bounce: BounceId) -> bool {
        self.0.get(bounce).is_some_and(|message| {
            matches!(message.state, State::Announced(Announced { wants_credit: true, .. }))
        })
    }

    /// The payload of a message that was arriving does not come. Gives the receive that had claimed it.
    pub(super) fn give_up(&mut self, bounce: BounceId) -> Option<OpId> {
        let message = self.0.get_mut(bounce)?;
        match std::mem::replace(&mut message.state, State::Lost) {
            State::Arriving(_, Some(op)) => {
                self.0.remove(bounce);
                Some(op)
            }
            State::Unwanted => {
                self.0.remove(bounce);
                None
            }
            _ => None,
        }
    }

    /// A receive takes a message, which no other has claimed.
    pub(super) fn claim(&mut self, bounce: BounceId) -> Option<(Envelope, Claimed<'_, P>)> {
        if !matches!(self.0.get(bounce)?.state, State::Arriving(..) | State::Due(_)) {
            let Message { envelope, state } = self.0.remove(bounce)?;
            return match state {
                State::Here(place) => Some((envelope, Claimed::Here(place))),
                State::Announced(announced) => Some((envelope, Claimed::Announced(announced))),
                State::Lost => Some((envelope, Claimed::Lost)),
                State::Arriving(..) | State::Due(_) | State::Unwanted => None,
            };
        }
        match self.0.get_mut(bounce)? {
            Message { envelope, state: State::Arriving(_, claim) | State::Due(claim) } => {
                Some((*envelope, Claimed::Arriving(claim)))
            }
            _ => None,
        }
    }

    /// Nobody will receive a message.
    pub(super) fn drop(&mut self, bounce: BounceId) -> Dropped {
        let Some(message) = self.0.get_mut(bounce) else { return Dropped::Nothing };
        let (envelope, dropped) = (message.envelope, std::mem::replace(&mut message.state, State::Unwanted));
        if matches!(dropped, State::Arriving(..) | State::Unwanted) {
            return Dropped::Nothing; // there is more to be said when it is whole
        }
        self.0.remove(bounce);
        match dropped {
            State::Here(_) => Dropped::Received(envelope),
            State::Announced(announced) => Dropped::Refused(envelope, announced),
            State::Arriving(..) | State::Unwanted | State::Lost | State::Due(_) => Dropped::Nothing,
        }
    }

    /// A message is as far as this.
    pub(super) fn set(&mut self, bounce: BounceId, envelope: Envelope, state: State<P>) {
        if let Some(message) = self.0.get_mut(bounce) {
            *message = Message { envelope, state };
        }
    }

    /// What a message is known by.
    pub(super) fn envelope(&self, bounce: BounceId) -> Option<&Envelope> {
        Some(&self.0.get(bounce)?.envelope)
    }

    /// A message that was here in part comes again. Gives the receive that had claimed it.
    pub(super) fn becomes_due(&mut self, bounce: BounceId) -> Option<OpId> {
        let message = self.0.get_mut(bounce)?;
        match std::mem::replace(&mut message.state, State::Due(None)) {
            State::Arriving(_, claim) => claim,
            _ => None,
        }
    }

    /// A message that was due comes; if a receive has claimed it, it is that one's, and gone from here.
    pub(super) fn claimed_due(&mut self, bounce: BounceId) -> Option<OpId> {
        let State::Due(Some(op)) = self.0.get(bounce)?.state else { return None };
        self.0.remove(bounce);
        Some(op)
    }

    /// The receives of messages that are due still, and these; nobody claims them any more.
    pub(super) fn release_due(&mut self) -> Vec<(OpId, BounceId)> {
        let claim = |(bounce, message): (BounceId, &mut Message<P>)| match &mut message.state {
            State::Due(claim) => claim.take().map(|op| (op, bounce)),
            _ => None,
        };
        self.0.iter_mut().filter_map(claim).collect()
    }

    /// Messages that were only announced.
    pub(super) fn announced(&self) -> Vec<(BounceId, Envelope)> {
        let is_announced =
            |(_, message): &(BounceId, &Message<P>)| matches!(message.state, State::Announced(_));
        self.0.iter().filter(is_announced).map(|(bounce, message)| (bounce, message.envelope)).collect()
    }

    /// What all messages are matched by.
    pub(super) fn envelopes_mut(&mut self) -> impl Iterator<Item = &mut Envelope> {
        self.0.values_mut().map(|message| &mut message.envelope)
    }

    /// Only these messages are kept.
    pub(super) fn retain(&mut self, which: impl Fn(&Envelope) -> bool) {
        self.0.retain(|_, message| which(&message.envelope));
    }

    /// A payload that was arriving is whole.
    pub(super) fn landed(&mut self, bounce: BounceId) -> Landed<P> {
        let Some(message) = self.0.get_mut(bounce) else { return Landed::Unwanted };
        match std::mem::replace(&mut message.state, State::Unwanted) {
            State::Arriving(place, None) => {
                message.state = State::Here(place);
                Landed::Kept
            }
            State::Arriving(place, Some(op)) => {
                self.0.remove(bounce);
                Landed::Claimed(op, place)
            }
            State::Unwanted => {
                self.0.remove(bounce);
                Landed::Unwanted
            }
            other => {
                message.state = other;
                Landed::Kept
            }
        }
    }

    /// `rank` has failed: of its messages only those are kept that are whole. `unqueue` takes one out of the queue, if it is there. Gives the
    /// receives that had claimed others.
    pub(super) fn lose(
        &mut self,
        rank: Rank,
        mut unqueue: impl FnMut(BounceId, &Envelope) -> bool,
    ) -> Vec<OpId> {
        let mut ops = vec![];
        self.0.retain(|bounce, Message { envelope, state }| {
            if envelope.source as Rank != rank || matches!(state, State::Here(_)) {
                return true;
            }
            let is_queued = unqueue(bounce, envelope);
            match std::mem::replace(state, State::Lost) {
                State::Arriving(_, Some(op)) => {
                    ops.push(op);
                    false
                }
                State::Unwanted => false,
                // What the program has claimed, and will still receive or drop, is not forgotten.
                _ => !is_queued,
            }
        });
        ops
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamp::Mark;

    const LONG: Envelope = Envelope { context: 1, source: 2, tag: 3, mark: Mark::NONE, length: 40 };
    const ANNOUNCED: Announced = Announced { sequence: 5, offer: None, wants_credit: false };

    fn op() -> OpId {
        SlotMap::with_key().insert(())
    }

    fn of(state: State<u8>) -> (Bounced<u8>, BounceId) {
        let mut bounced = Bounced::default();
        let bounce = bounced.keep(LONG, state);
        (bounced, bounce)
    }

    #[test]
    fn a_payload_waits_until_it_is_claimed() {
        let (mut bounced, bounce) = of(State::Arriving(7, None));
        *bounced.place_mut(bounce).unwrap() += 1;
        assert!(matches!(bounced.landed(bounce), Landed::Kept));
        assert_eq!(bounced.place_mut(bounce), None, "nothing more comes");
        assert!(matches!(bounced.claim(bounce), Some((LONG, Claimed::Here(8)))));
        assert!(bounced.is_empty() && bounced.claim(bounce).is_none());
    }

    #[test]
    fn a_receive_that_claims_what_is_arriving_gets_it_when_it_is_whole() {
        let (mut bounced, bounce) = of(State::Arriving(7, None));
        let Some((LONG, Claimed::Arriving(claim))) = bounced.claim(bounce) else { panic!() };
        *claim = Some(op());
        assert!(matches!(bounced.landed(bounce), Landed::Claimed(by, 7) if by == op()));
        assert!(bounced.is_empty());
    }

    #[test]
    fn what_is_dropped_while_it_arrives_takes_no_place_any_more() {
        let (mut bounced, bounce) = of(State::Arriving(7, None));
        assert_eq!(bounced.drop(bounce), Dropped::Nothing);
        assert_eq!(bounced.place_mut(bounce), None);
        assert_eq!(bounced.drop(bounce), Dropped::Nothing, "again");
        assert!(matches!(bounced.landed(bounce), Landed::Unwanted));
        assert!(bounced.is_empty());
    }

    #[test]
    fn the_sender_of_what_is_dropped_hears_of_it() {
        for (state, dropped) in [
            (State::Here(7), Dropped::Received(LONG)),
            (State::Announced(ANNOUNCED), Dropped::Refused(LONG, ANNOUNCED)),
            (State::Lost, Dropped::Nothing),
        ] {
            let (mut bounced, bounce) = of(state);
            assert_eq!(bounced.drop(bounce), dropped);
            assert!(bounced.is_empty());
        }
    }

    #[test]
    fn of_a_lost_rank_what_is_whole_is_kept_and_what_was_claimed_is_known_to_be_lost() {
        let states = || {
            [
                State::Here(1),
                State::Arriving(2, None),
                State::Arriving(3, Some(op())),
                State::Announced(ANNOUNCED),
            ]
        };
        for (is_queued, lost) in [(true, 0), (false, 2)] {
            let mut bounced = Bounced::default();
            let kept = states().map(|state| bounced.keep(LONG, state));
            let other = bounced.keep(Envelope { source: 1, ..LONG }, State::Announced(ANNOUNCED));
            let mut asked = vec![];
            let ops = bounced.lose(2, |bounce, _| {
                asked.push(bounce);
                is_queued
            });
            assert_eq!((ops, asked), (vec![op()], kept[1..].to_vec()));
            assert!(matches!(bounced.claim(kept[0]), Some((LONG, Claimed::Here(1)))));
            assert!(matches!(bounced.claim(other), Some((_, Claimed::Announced(ANNOUNCED)))));
            let claims = kept.map(|bounce| bounced.claim(bounce).is_some());
            assert_eq!(claims.into_iter().filter(|was_there| *was_there).count(), lost);
        }
    }
}
