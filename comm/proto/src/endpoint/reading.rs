//! Messages that their receiver reads from the memory of the sender: one copy instead of two, and only one of the two
//! processes has work (the single-copy mechanism of MPI libraries within a host).
//!
//! Two ranks of a host greet each other as soon as they have a link: each says where its *seal* is, a word of its memory. Who finds it there can read the other's
//! memory. After that the envelope of a long message says where its payload lies. The receiver reads it when a receive has matched, if it can, and a receipt
//! ends the send. Else it asks for the payload, as on a link between hosts.
//!
//! A send may end early, by a failure, and its memory be changed or freed. So a rank changes its seal
//! before that. An offer names the seal that it was made under, and what was read counts only if the seal is still the
//! same after the reading; else the payload is asked for as ever. A seal is random: a stranger that got the number of a process
//! that has died does not have it.

use super::credit::Cost;
use super::peer::About;
use super::{Endpoint, Landing, OpId, Outcome, Task};
use crate::matching::Envelope;
use crate::rank::Rank;
use crate::wire::header::{Header, Kind};

/// Where a payload lies in the memory of its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The address of its first byte, not 0.
    pub place: u64,
    /// The seal that must be there after the reading.
    pub seal: u64,
}

/// A message that is to be read.
#[derive(Clone, Copy, Debug)]
pub struct Fetch {
    /// The receive that it is for.
    pub op: OpId,
    /// Whose memory it is in.
    pub from: Rank,
    /// Its bytes.
    pub length: usize,
    /// Where it is.
    pub offer: Offer,
    /// Where the seal is.
    pub seal_at: u64,
    /// What it is.
    pub envelope: Envelope,
    sequence: u64,
}

/// A rank asks whether its memory can be read.
#[derive(Clone, Copy, Debug)]
pub struct Greeting {
    /// Who.
    pub from: Rank,
    /// Where its seal is.
    pub seal_at: u64,
    /// What is there.
    pub seal: u64,
}

/// What a rank knows of reading another's memory.
#[derive(Debug, Default)]
pub(super) struct Nearness {
    /// It was greeted: what is offered may be of use.
    pub(super) greeted: bool,
    /// There is no link yet, over which it would be greeted: what is offered waits for one.
    pub(super) awaits_link: bool,
    /// Where its seal is, if I can read its memory.
    pub(super) seal_at: Option<u64>,
}

/// The last word on an announced message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Announced {
    /// Of its envelope.
    pub(super) sequence: u64,
    pub(super) offer: Option<Offer>,
    /// It was announced for want of credit only ([`super::ahead`]).
    pub(super) wants_credit: bool,
}

impl From<&Header> for Announced {
    fn from(header: &Header) -> Self {
        let offer = Offer { place: header.place, seal: header.subject };
        Self {
            sequence: header.sequence,
            offer: (offer.place != 0).then_some(offer),
            wants_credit: (header.place, header.subject) == WANTS_CREDIT,
        }
    }
}

/// Place and subject of the envelope of a message that was announced for want of credit only.
const WANTS_CREDIT: (u64, u64) = (0, 1);

impl About {
    /// Of such an envelope.
    pub(super) const WANTS_CREDIT: Self = Self { place: WANTS_CREDIT.0, subject: WANTS_CREDIT.1 };
}

impl From<Offer> for About {
    fn from(Offer { place, seal }: Offer) -> Self {
        Self { subject: seal, place }
    }
}

impl<P> Endpoint<P> {
    /// A link to `to`, which shares this host, is open: it is told where my seal is, once.
    pub fn handle_near(&mut self, to: Rank, seal_at: u64, seal: u64) {
        if !std::mem::replace(&mut self.peers[to].nearness.greeted, true) {
            self.answer(to, Kind::Greeting, 0, About { subject: seal, place: seal_at });
        }
    }

    /// No link to `to` could be opened yet: what is offered to it, and what is behind that, waits for [`Endpoint::handle_link`].
    pub fn await_link(&mut self, to: Rank) {
        self.peers[to].nearness.awaits_link = true;
    }

    /// A link to `to` is open, and it was greeted if it is near.
    pub fn handle_link(&mut self, to: Rank) {
        if std::mem::take(&mut self.peers[to].nearness.awaits_link) {
            self.release(to);
        }
    }

    pub(super) fn greeting_came(&mut self, from: Rank, header: &Header) -> Landing {
        let greeting = Greeting { from, seal_at: header.place, seal: header.subject };
        self.tasks.push_back(Task::Answer(greeting));
        Landing::Nowhere
    }

    /// The seal was found where it should be.
    pub fn handle_readable(&mut self, greeting: Greeting) {
        self.peers[greeting.from].nearness.seal_at = Some(greeting.seal_at);
    }

    /// The payload of an announced message is wanted, by nobody or by this receive.
    pub(super) fn want(&mut self, envelope: Envelope, announced: Announced, op: Option<OpId>) {
        let from = envelope.source as Rank;
        let Announced { sequence, offer, .. } = announced;
        match (op, offer, self.peers[from].nearness.seal_at) {
            (Some(op), Some(offer), Some(seal_at)) => {
                let length = envelope.length as usize;
                let fetch = Fetch { op, from, length, offer, seal_at, envelope, sequence };
                self.tasks.push_back(Task::Fetch(fetch));
            }
            (Some(op), ..) => self.ask_for(envelope, sequence, Landing::Op(op)),
            (None, ..) => self.give_receipt(from, sequence),
        }
    }

    fn give_receipt(&mut self, from: Rank, sequence: u64) {
        if !self.peers[from].is_gone {
            self.answer(from, Kind::Receipt, 0, About::subject(sequence));
            self.give_back(from, Cost::ENVELOPE);
        }
    }

    /// The message is in the place of its receive, or could not be read, and is asked for.
    pub fn handle_fetched(&mut self, fetch: Fetch, is_whole: bool) {
        if is_whole {
            self.is_read(&fetch.envelope);
            self.end(fetch.op, Outcome::Done(fetch.envelope));
            self.delivered(fetch.op, &fetch.envelope);
            self.give_receipt(fetch.from, fetch.sequence);
        } else {
            self.ask_for(fetch.envelope, fetch.sequence, Landing::Op(fetch.op));
        }
    }
}
