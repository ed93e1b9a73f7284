//! Messages that their receiver reads from the memory of the sender: one copy instead of two, and only one of the two
//! processes has work (the single-copy mechanism of MPI libraries within a host).
//!
//! Two ranks whose driver can read the other's memory greet each other on their link; who could read answers. From then on the
//! envelope of a long message says where its payload lies. The receiver reads it when a receive has matched, and a receipt ends
//! the send.
//!
//! A send may end early, by a failure, and its memory be changed or freed. So each rank has a *seal*, a word of its memory that it
//! changes before that. An offer names the seal that it was made under, and what was read counts only if the seal is still the
//! same after the reading; else the payload is asked for as ever. A seal is random: a stranger that got the number of a process
//! that has died does not have it.

use std::collections::VecDeque;

use super::{About, Endpoint, OpId, Outcome};
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
    envelope: Envelope,
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
    /// It was greeted.
    greeted: bool,
    /// It can read mine.
    pub(super) reads: bool,
    /// Where its seal is, if I can read its memory.
    pub(super) seal_at: Option<u64>,
}

/// What is to be read.
#[derive(Debug, Default)]
pub(super) struct Readings {
    greetings: VecDeque<Greeting>,
    fetches: VecDeque<Fetch>,
}

/// The last word on an announced message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Announced {
    /// Of its envelope.
    pub(super) sequence: u64,
    pub(super) offer: Option<Offer>,
}

impl From<&Header> for Announced {
    fn from(header: &Header) -> Self {
        let offer = Offer { place: header.place, seal: header.subject };
        Self { sequence: header.sequence, offer: (offer.place != 0).then_some(offer) }
    }
}

impl Endpoint {
    /// The other rank shares this host: it is told where my seal is, once.
    pub fn greet(&mut self, to: Rank, seal_at: u64, seal: u64) {
        if !std::mem::replace(&mut self.peers[to].nearness.greeted, true) {
            self.answer(to, Kind::Greeting, 0, About { subject: seal, place: seal_at });
        }
    }

    pub(super) fn greeting_arrived(&mut self, from: Rank, header: &Header) {
        let greeting = Greeting { from, seal_at: header.place, seal: header.subject };
        self.readings.greetings.push_back(greeting);
    }

    /// The next rank that asks whether its memory can be read; if it can, say [`Endpoint::can_read`].
    pub fn next_greeting(&mut self) -> Option<Greeting> {
        self.readings.greetings.pop_front()
    }

    /// The seal was found where it should be.
    pub fn can_read(&mut self, greeting: Greeting) {
        self.peers[greeting.from].nearness.seal_at = Some(greeting.seal_at);
        self.answer(greeting.from, Kind::Readable, 0, About::default());
    }

    /// The payload of an announced message is wanted, by nobody or by this receive.
    pub(super) fn want(&mut self, envelope: Envelope, announced: Announced, op: Option<OpId>) {
        let from = envelope.source as Rank;
        let (offer, seal_at) = (announced.offer, self.peers[from].nearness.seal_at);
        match (op, offer, seal_at) {
            (Some(op), Some(offer), Some(seal_at)) => {
                let (sequence, length) = (announced.sequence, envelope.length as usize);
                self.readings.fetches.push_back(Fetch {
                    op,
                    from,
                    length,
                    offer,
                    seal_at,
                    envelope,
                    sequence,
                });
            }
            (Some(op), ..) => self.ask(envelope, announced.sequence, op),
            (None, ..) => self.give_receipt(from, announced.sequence),
        }
    }

    fn give_receipt(&mut self, from: Rank, sequence: u64) {
        if !self.peers[from].gone {
            self.answer(from, Kind::Receipt, 0, About::subject(sequence));
            self.give_back(from, 0, 1);
        }
    }

    /// The next message to be read; say [`Endpoint::fetched`] then.
    pub fn next_fetch(&mut self) -> Option<Fetch> {
        self.readings.fetches.pop_front()
    }

    /// The message is in the memory of its receive, or could not be read, and is asked for.
    pub fn fetched(&mut self, fetch: Fetch, is_whole: bool) {
        if is_whole {
            self.finished(fetch.op, Outcome::Done(fetch.envelope));
            self.give_receipt(fetch.from, fetch.sequence);
        } else {
            self.ask(fetch.envelope, fetch.sequence, fetch.op);
        }
    }
}
