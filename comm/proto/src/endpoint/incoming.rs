//! What frames that come mean: each is checked, and answered.

use super::bounced::{Landed, State};
use super::credit::{Cost, EAGER_BYTES_MAX, ENVELOPES_MAX};
use super::peer::About;
use super::reading::Announced;
use super::{CONTEXT_LUGGAGE, Endpoint, Landing, Outcome, Violation};
use crate::matching::Envelope;
use crate::planted;
use crate::rank::Rank;
use crate::wire::header::{Header, Kind};

impl<P> Endpoint<P> {
    /// A header came from `from`: says where its payload belongs. If that comes before its receive, `make` makes a place for so many bytes. Say
    /// [`Endpoint::handle_payload`] when it is there, at once if there is none.
    ///
    /// # Errors
    /// The other side broke the protocol.
    pub fn handle_header(
        &mut self,
        from: Rank,
        header: &Header,
        make: impl FnOnce(usize) -> P,
    ) -> Result<Landing, Violation> {
        let landing = self.check(from, header).and_then(|()| match header.kind {
            Kind::Eager => self.eager_came(from, header, make),
            Kind::Envelope => self.envelope_came(from, header),
            Kind::Ask => self.ask_came(from, header),
            Kind::Payload => self.payload_comes(from, header),
            Kind::Credit => self.credit_came(from, header),
            Kind::Greeting => Ok(self.greeting_came(from, header)),
            Kind::Receipt => self.receipt_came(from, header),
        });
        landing.map_err(|what| Violation { rank: from, what })
    }

    /// The payload of `header` from `from` is where [`Endpoint::handle_header`] wanted it.
    pub fn handle_payload(&mut self, from: Rank, header: &Header, landing: Landing) {
        if header.context == CONTEXT_LUGGAGE {
            return self.luggage_came(from, landing);
        }
        if self.has_lines() {
            self.is_whole(from);
        }
        match landing {
            Landing::Nowhere | Landing::Sink => {}
            Landing::Op(op) => {
                let envelope = self.came(from, header);
                self.end(op, Outcome::Done(envelope));
                self.delivered(op, &envelope);
            }
            Landing::Bounce(bounce) => match self.bounced.landed(bounce) {
                Landed::Kept => return, // it is not received yet
                Landed::Claimed(op, place) => {
                    let mut envelope = self.came(from, header);
                    if header.kind == Kind::Payload {
                        envelope.mark = envelope.mark.fetched();
                    }
                    self.end(op, Outcome::Done(envelope));
                    return self.deliver(op, envelope, place);
                }
                Landed::Unwanted => {}
            },
        }
        if header.kind == Kind::Eager {
            self.give_back(from, Cost::eager(header.length));
        }
    }

    /// Whether a frame belongs here and is the next one.
    pub(super) fn check(&mut self, from: Rank, header: &Header) -> Result<(), String> {
        if header.generation != self.generation && !planted::has(planted::TAKES_OLD_FRAMES) {
            let (theirs, mine) = (header.generation, self.generation);
            return Err(format!("a frame of generation {theirs} on a link of generation {mine}"));
        }
        if header.source as Rank != from {
            return Err(format!("a frame in the name of rank {}", header.source));
        }
        let counted = self.peers[from].count(header.sequence);
        counted.map_err(|due| format!("frame {} where {due} was due", header.sequence))
    }

    fn eager_came(
        &mut self,
        from: Rank,
        header: &Header,
        make: impl FnOnce(usize) -> P,
    ) -> Result<Landing, String> {
        if header.length > EAGER_BYTES_MAX as u64 {
            return Err(format!("an eager message of {} bytes", header.length));
        }
        if header.context == CONTEXT_LUGGAGE {
            return self.luggage_comes(header, make);
        }
        if !self.peers[from].grant.pay(Cost::eager(header.length)) {
            return Err("an eager message without credit for it".into());
        }
        if self.is_closed(header.context) {
            return Ok(Landing::Sink);
        }
        let envelope = self.message_of(from, header)?;
        if let Some(bounce) = self.due(from) {
            return self.due_comes(bounce, envelope, make);
        }
        Ok(match self.claim(&envelope) {
            Some(op) => Landing::Op(op),
            None => {
                let place = make(envelope.length as usize);
                Landing::Bounce(self.bounce(envelope, State::Arriving(place, None)))
            }
        })
    }

    fn envelope_came(&mut self, from: Rank, header: &Header) -> Result<Landing, String> {
        if !self.peers[from].grant.pay(Cost::ENVELOPE) {
            return Err(format!("more than {ENVELOPES_MAX} envelopes at a time"));
        }
        let announced = Announced::from(header);
        if announced.wants_credit && header.length > EAGER_BYTES_MAX as u64 {
            return Err(format!("a message of {} bytes that lacks credit alone", header.length));
        }
        let envelope = self.message_of(from, header)?;
        if let Some(bounce) = self.due(from) {
            self.is_announced(from, &envelope);
            return self.due_is_announced(from, bounce, envelope, announced);
        }
        self.is_announced(from, &envelope);
        if self.is_closed(header.context) {
            self.want(envelope, announced, None);
        } else if let Some(op) = self.claim(&envelope) {
            self.want(envelope, announced, Some(op));
        } else {
            let bounce = self.bounce(envelope, State::Announced(announced));
            if announced.wants_credit {
                self.is_announced_ahead(from, bounce);
            }
        }
        Ok(Landing::Nowhere)
    }

    /// The message that `header` begins.
    #[inline]
    fn message_of(&mut self, from: Rank, header: &Header) -> Result<Envelope, String> {
        match self.has_lines() {
            true => self.comes(from, header).map_err(|astray| astray.to_string()),
            false => Ok(Envelope::from(header)),
        }
    }

    fn ask_came(&mut self, from: Rank, header: &Header) -> Result<Landing, String> {
        let offered = self.peers[from].offered.remove(&header.subject);
        let op =
            offered.ok_or_else(|| format!("asks for message {}, which was not offered", header.subject))?;
        // An offer may have been withdrawn with its communicator; who asks for it hears of that, too.
        if let Some(message) = self.message(op) {
            self.post(from, Kind::Payload, message, About::subject(header.subject), Some(op));
        }
        Ok(Landing::Nowhere)
    }

    fn payload_comes(&mut self, from: Rank, header: &Header) -> Result<Landing, String> {
        let message = header.subject;
        match self.peers[from].asked.remove(&message) {
            Some((_, announced)) if !announced.is_of(header) => {
                Err(format!("a payload for message {message} is not the one that was announced"))
            }
            Some((landing, announced)) => {
                self.payload_is_of(from, announced, landing);
                Ok(landing)
            }
            None => Err(format!("a payload for message {message}, which was not asked for")),
        }
    }

    fn receipt_came(&mut self, from: Rank, header: &Header) -> Result<Landing, String> {
        let offered = self.peers[from].offered.remove(&header.subject);
        let op = offered
            .ok_or_else(|| format!("a receipt for message {}, which was not offered", header.subject))?;
        self.end_send(op);
        Ok(Landing::Nowhere)
    }

    fn credit_came(&mut self, from: Rank, header: &Header) -> Result<Landing, String> {
        if !self.peers[from].credit.refund(Cost { bytes: header.subject, envelopes: header.tag }) {
            return Err("returns more credit than it was given".into());
        }
        self.release(from);
        Ok(Landing::Nowhere)
    }
}
