//! One rank's end of all its data links: matching, eager credit, and the frames that are to be sent.
//!
//! A message of up to [`EAGER_BYTES_MAX`] bytes is sent at once while the sender has credit at the receiver;
//! a longer one, or one without credit, is announced by an envelope, and its payload follows when a receive
//! has matched it, or is read where it lies (`reading`). Credit comes back when a message has reached its receive. So what a slow receiver must
//! hold is bounded ([`CREDIT_BYTES`] and [`ENVELOPES_MAX`] per sender), and as envelopes overtake no message
//! and wait for no credit of the payload, no legal order of sends and receives deadlocks.
//!
//! The endpoint moves no payload: it says where an arriving one belongs ([`Landing`]) and which operation's
//! memory a frame is followed by. A violation of the protocol by the other side is a value, and the link that
//! it came from is to be closed.

use std::collections::{HashMap, HashSet, VecDeque};

use slotmap::{SlotMap, new_key_type};

use crate::matching::{Envelope, Matching, Pattern};
use crate::planted;
use crate::rank::{Generation, Rank};
use crate::wire::header::{HEADER_BYTES, Header, Kind};

mod losses;
mod reading;

use reading::{Announced, Nearness, Readings};
pub use reading::{Fetch, Greeting, Offer};

/// Longest message in bytes that is sent before its receive is posted.
pub const EAGER_BYTES_MAX: usize = 256 << 10;
/// Bytes of eager messages, [`MESSAGE_COST`] added to each, that one sender may have unreceived at one receiver.
pub const CREDIT_BYTES: u64 = 4 << 20;
/// What an eager message costs beside its length, so that the number of small ones is bounded too.
pub const MESSAGE_COST: u64 = 256;
/// First context of communicators that come and go; those below live as long as the job.
pub const CONTEXT_DYNAMIC: u32 = 1 << 16;
/// Envelopes that one sender may have unmatched at one receiver; more wait at the sender.
pub const ENVELOPES_MAX: u32 = 1 << 16;

new_key_type! {
    /// An operation of this endpoint: a send or a receive.
    pub struct OpId;

    /// A message that arrived before its receive; if it was sent eagerly, it waits in memory of the driver.
    pub struct BounceId;
}

/// When a send is finished (MPI 4.1, section 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// When its last byte has left.
    Standard,
    /// When moreover its receive has started: it is always announced, never sent eagerly.
    Synchronous,
}

/// Where the payload behind a header belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landing {
    /// No payload follows.
    Nowhere,
    /// To the start of this receive's memory, which is long enough.
    Op(OpId),
    /// To new memory of the driver.
    Bounce(BounceId),
    /// Nobody wants it: it is read and dropped.
    Sink,
}

/// A frame to be sent: the header, then `length` bytes of the memory of `body`.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Encoded header.
    pub header: [u8; HEADER_BYTES],
    /// The send whose memory follows.
    pub body: Option<OpId>,
    /// Bytes of it.
    pub length: usize,
}

/// What a finished receive took, or why it did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A send has left, or a receive took this message.
    Done(Envelope),
    /// The message was longer than the room; it is still to be received.
    Truncated {
        /// The message.
        message: Envelope,
        /// The room in bytes.
        room: usize,
    },
    /// This rank, whom it was for or from, has failed; a receive from anybody: one of those who might have sent.
    Failed(Rank),
    /// Its communicator was revoked.
    Revoked,
}

/// The other side broke the protocol; close the link.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rank {rank} broke the protocol: {what}")]
pub struct Violation {
    /// Who.
    pub rank: Rank,
    /// How.
    pub what: String,
}

#[derive(Debug)]
enum Op {
    /// A send that waits for credit, an ask, or the wire.
    Send(Envelope, Mode, Option<Offer>),
    /// A receive that nothing has matched, or whose message is under way.
    Receive {
        room: usize,
    },
    Finished(Outcome),
}

#[derive(Debug)]
struct Bounced {
    envelope: Envelope,
    state: BounceState,
}

#[derive(Debug)]
enum BounceState {
    /// The payload is arriving; a receive may have claimed it already.
    Arriving(Option<OpId>),
    /// The payload is here.
    Here,
    /// Only announced.
    Announced(Announced),
    /// The payload is arriving, and nobody wants it any more.
    Unwanted,
}

#[derive(Debug)]
struct Peer {
    /// Number of the next frame to it.
    send_sequence: u64,
    /// Number of the next frame from it.
    receive_sequence: u64,
    /// Eager bytes that I may still send.
    credit: u64,
    /// Envelopes that I may still send.
    envelopes: u32,
    /// Eager bytes and envelopes that it may still send, by what was given to it; it may break its word.
    granted: u64,
    granted_envelopes: u32,
    /// Eager bytes and envelopes that I have not given back yet.
    owed: u64,
    owed_envelopes: u32,
    out: VecDeque<Frame>,
    /// Sends that wait for an envelope credit, in order.
    parked: VecDeque<OpId>,
    /// My envelopes that were not asked for yet, by their sequence.
    offered: HashMap<u64, OpId>,
    /// Its envelopes that I have asked for; for no receive if nobody wants them any more.
    asked: HashMap<u64, (Option<OpId>, Envelope)>,
    nearness: Nearness,
    /// It is listed among the busy ones.
    busy: bool,
    /// It has failed.
    gone: bool,
}

impl Peer {
    fn new() -> Self {
        Self {
            send_sequence: 0,
            receive_sequence: 0,
            credit: CREDIT_BYTES,
            envelopes: ENVELOPES_MAX,
            granted: CREDIT_BYTES,
            granted_envelopes: ENVELOPES_MAX,
            owed: 0,
            owed_envelopes: 0,
            out: VecDeque::new(),
            parked: VecDeque::new(),
            offered: HashMap::new(),
            asked: HashMap::new(),
            nearness: Nearness::default(),
            busy: false,
            gone: false,
        }
    }
}

/// See the module. One endpoint serves one generation.
#[derive(Debug)]
pub struct Endpoint {
    me: Rank,
    generation: Generation,
    peers: Vec<Peer>,
    matching: Matching<OpId, BounceId>,
    ops: SlotMap<OpId, Op>,
    bounced: SlotMap<BounceId, Bounced>,
    readings: Readings,
    /// Ranks with frames to be sent.
    busy: Vec<Rank>,
    /// The contexts of communicators that come and go, as far as they are open here.
    open: HashSet<u32>,
    /// The highest context that was ever opened here; a higher one belongs to a communicator that others have
    /// made already and this rank is about to.
    newest: u32,
}

/// What a frame is about.
#[derive(Clone, Copy, Debug, Default)]
struct About {
    subject: u64,
    place: u64,
}

impl About {
    fn subject(subject: u64) -> Self {
        Self { subject, place: 0 }
    }

    fn offer(Offer { place, seal }: Offer) -> Self {
        Self { subject: seal, place }
    }
}

fn cost(length: u64) -> u64 {
    length + MESSAGE_COST
}

impl Endpoint {
    /// The endpoint of rank `me` of `size` in `generation`.
    pub fn new(me: Rank, size: usize, generation: Generation) -> Self {
        Self {
            me,
            generation,
            peers: (0..size).map(|_| Peer::new()).collect(),
            matching: Matching::default(),
            ops: SlotMap::with_key(),
            bounced: SlotMap::with_key(),
            readings: Readings::default(),
            busy: Vec::new(),
            open: HashSet::new(),
            newest: CONTEXT_DYNAMIC - 1,
        }
    }

    /// The generation that this endpoint serves.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// Starts a send of `length` bytes to another rank, which may read them if there is an offer. It is finished when its last
    /// byte has left or was read.
    pub fn send(
        &mut self,
        to: Rank,
        context: u32,
        tag: u32,
        length: u64,
        mode: Mode,
        offer: Option<Offer>,
    ) -> OpId {
        let source = u32::try_from(self.me).expect("ranks are few");
        if self.peers[to].gone {
            return self.ops.insert(Op::Finished(Outcome::Failed(to)));
        }
        let op = self.ops.insert(Op::Send(Envelope { context, source, tag, length }, mode, offer));
        self.peers[to].parked.push_back(op);
        self.release(to);
        op
    }

    /// Turns parked sends into frames, in order, as far as credit goes.
    fn release(&mut self, to: Rank) {
        while let Some(&op) = self.peers[to].parked.front() {
            let Some(&Op::Send(envelope, mode, offer)) = self.ops.get(op) else {
                unreachable!("parked sends are sends")
            };
            let peer = &mut self.peers[to];
            let eager = mode == Mode::Standard
                && envelope.length <= EAGER_BYTES_MAX as u64
                && peer.credit >= cost(envelope.length);
            if eager {
                peer.credit -= cost(envelope.length);
                peer.parked.pop_front();
                self.frame(to, Kind::Eager, envelope, About::default(), Some(op));
            } else if peer.envelopes > 0 {
                peer.envelopes -= 1;
                peer.parked.pop_front();
                let offer = offer.filter(|_| peer.nearness.reads);
                let about = offer.map_or(About::default(), About::offer);
                let sequence = self.frame(to, Kind::Envelope, envelope, about, None);
                self.peers[to].offered.insert(sequence, op);
            } else {
                break;
            }
        }
    }

    fn frame(&mut self, to: Rank, kind: Kind, message: Envelope, about: About, body: Option<OpId>) -> u64 {
        let peer = &mut self.peers[to];
        let sequence = peer.send_sequence;
        peer.send_sequence += 1;
        let header = Header {
            kind,
            generation: self.generation,
            context: message.context,
            source: u32::try_from(self.me).expect("ranks are few"),
            tag: message.tag,
            sequence,
            length: message.length,
            subject: about.subject,
            place: about.place,
        };
        let length = usize::try_from(header.body_bytes()).expect("memory is addressable");
        peer.out.push_back(Frame { header: header.encode(), body, length });
        if !peer.busy {
            peer.busy = true;
            self.busy.push(to);
        }
        sequence
    }

    fn answer(&mut self, to: Rank, kind: Kind, tag: u32, about: About) {
        let source = u32::try_from(self.me).expect("ranks are few");
        self.frame(to, kind, Envelope { context: 0, source, tag, length: 0 }, about, None);
    }

    /// Starts a receive of up to `room` bytes. If a bounced message is given back, copy it into the memory of
    /// the receive and call [`Endpoint::taken`].
    pub fn receive(&mut self, pattern: Pattern, room: usize) -> (OpId, Option<BounceId>) {
        let Some((bounce, envelope)) = self.matching.find(&pattern) else {
            if let Some(rank) = self.failed_source(&pattern) {
                return (self.ops.insert(Op::Finished(Outcome::Failed(rank))), None);
            }
            let op = self.ops.insert(Op::Receive { room });
            self.matching.post(op, pattern);
            return (op, None);
        };
        if envelope.length > room as u64 {
            let outcome = Outcome::Truncated { message: envelope, room };
            return (self.ops.insert(Op::Finished(outcome)), None);
        }
        self.matching.take(&pattern);
        self.receive_claimed(bounce)
    }

    /// Takes the first message that `pattern` accepts out of the queue (`MPI_Mprobe`); it is received by
    /// [`Endpoint::receive_claimed`] or given up by [`Endpoint::drop_claimed`].
    pub fn claim_message(&mut self, pattern: &Pattern) -> Option<(BounceId, Envelope)> {
        self.matching.take(pattern)
    }

    /// Starts the receive of a message that was taken out of the queue; there is room for it. As
    /// [`Endpoint::receive`].
    pub fn receive_claimed(&mut self, bounce: BounceId) -> (OpId, Option<BounceId>) {
        let Some(bounced) = self.bounced.get_mut(bounce) else { unreachable!("it was claimed") };
        let envelope = bounced.envelope;
        let op = self.ops.insert(Op::Receive { room: envelope.length as usize });
        match &mut bounced.state {
            BounceState::Here => return (op, Some(bounce)),
            BounceState::Arriving(claim) => *claim = Some(op),
            BounceState::Announced(announced) => {
                let announced = *announced;
                self.bounced.remove(bounce);
                self.want(envelope, announced, Some(op));
            }
            BounceState::Unwanted => unreachable!("nobody can claim it"),
        }
        (op, None)
    }

    /// Nobody will receive a message that was taken out of the queue. True if its payload is here and can be dropped
    /// at once.
    pub fn drop_claimed(&mut self, bounce: BounceId) -> bool {
        let Some(bounced) = self.bounced.get_mut(bounce) else { return false };
        let envelope = bounced.envelope;
        match &mut bounced.state {
            BounceState::Here => {
                self.bounced.remove(bounce);
                self.give_back(envelope.source as Rank, cost(envelope.length), 0);
                return true;
            }
            state @ BounceState::Arriving(_) => *state = BounceState::Unwanted,
            BounceState::Announced(announced) => {
                let announced = *announced;
                self.bounced.remove(bounce);
                self.want(envelope, announced, None);
            }
            BounceState::Unwanted => {}
        }
        false
    }

    /// Messages of `context`, one of [`CONTEXT_DYNAMIC`] and above, are welcome from now on.
    pub fn open_context(&mut self, context: u32) {
        self.open.insert(context);
        self.newest = self.newest.max(context);
    }

    /// Nobody receives messages of `context` any more: what is queued is given up, what comes later is dropped. Gives
    /// the payloads that can be dropped at once.
    pub fn close_context(&mut self, context: u32) -> Vec<BounceId> {
        self.open.remove(&context);
        let (receives, messages) = self.matching.remove_context(context);
        for op in receives {
            self.ops.remove(op);
        }
        messages.into_iter().filter(|bounce| self.drop_claimed(*bounce)).collect()
    }

    /// Whether a message of `context` can never be received here.
    fn is_closed(&self, context: u32) -> bool {
        (CONTEXT_DYNAMIC..=self.newest).contains(&context) && !self.open.contains(&context)
    }

    fn ask(&mut self, envelope: Envelope, sequence: u64, op: OpId) {
        let from = envelope.source as Rank;
        if self.peers[from].gone {
            return;
        }
        self.peers[from].asked.insert(sequence, (Some(op), envelope));
        self.answer(from, Kind::Ask, 0, About::subject(sequence));
        self.give_back(from, 0, 1);
    }

    /// The first message that a receive with `pattern` would take.
    pub fn probe(&self, pattern: &Pattern) -> Option<Envelope> {
        self.matching.find(pattern).map(|(_, envelope)| envelope)
    }

    /// Whether the operation is finished.
    pub fn is_finished(&self, op: OpId) -> bool {
        matches!(self.ops.get(op), Some(Op::Finished(_)))
    }

    /// Whether it is a send that is not finished.
    pub fn is_send(&self, op: OpId) -> bool {
        matches!(self.ops.get(op), Some(Op::Send(..)))
    }

    /// Takes the outcome of a finished operation; the operation is gone then.
    pub fn finish(&mut self, op: OpId) -> Option<Outcome> {
        if !self.is_finished(op) {
            return None;
        }
        match self.ops.remove(op) {
            Some(Op::Finished(outcome)) => Some(outcome),
            _ => None,
        }
    }

    /// Withdraws a receive that nothing has matched; false if a message is on its way into it.
    pub fn cancel(&mut self, op: OpId) -> bool {
        let cancelled = self.matching.cancel(op);
        if cancelled {
            self.ops.remove(op);
        }
        cancelled
    }

    /// A header came from `from`: says where its payload belongs. Call [`Endpoint::landed`] when it is there,
    /// at once if there is none.
    ///
    /// # Errors
    /// The other side broke the protocol.
    pub fn arrived(&mut self, from: Rank, header: &Header) -> Result<Landing, Violation> {
        let broken = |what: String| Err(Violation { rank: from, what });
        if header.generation != self.generation && !planted::has(planted::TAKES_OLD_FRAMES) {
            let (theirs, mine) = (header.generation, self.generation);
            return broken(format!("a frame of generation {theirs} on a link of generation {mine}"));
        }
        if header.source as Rank != from {
            return broken(format!("a frame in the name of rank {}", header.source));
        }
        let expected = self.peers[from].receive_sequence;
        if header.sequence != expected {
            return broken(format!("frame {} where {expected} was due", header.sequence));
        }
        self.peers[from].receive_sequence += 1;
        let envelope = Envelope::from(header);
        match header.kind {
            Kind::Eager if header.length > EAGER_BYTES_MAX as u64 => {
                broken(format!("an eager message of {} bytes", header.length))
            }
            Kind::Eager => {
                let granted = &mut self.peers[from].granted;
                let Some(rest) = granted.checked_sub(cost(header.length)) else {
                    return broken("an eager message without credit for it".into());
                };
                *granted = rest;
                Ok(if self.is_closed(header.context) { Landing::Sink } else { self.eager(envelope) })
            }
            Kind::Envelope => {
                let granted = &mut self.peers[from].granted_envelopes;
                let Some(rest) = granted.checked_sub(1) else {
                    return broken(format!("more than {ENVELOPES_MAX} envelopes at a time"));
                };
                *granted = rest;
                let announced = Announced::from(header);
                if self.is_closed(header.context) {
                    self.want(envelope, announced, None);
                } else if let Some(op) = self.claim(&envelope) {
                    self.want(envelope, announced, Some(op));
                } else {
                    self.bounce(envelope, BounceState::Announced(announced));
                }
                Ok(Landing::Nowhere)
            }
            Kind::Ask => match self.peers[from].offered.remove(&header.subject) {
                Some(op) => {
                    // An offer may have been withdrawn with its communicator; who asks for it hears of that, too.
                    let Some(&Op::Send(message, ..)) = self.ops.get(op) else { return Ok(Landing::Nowhere) };
                    self.frame(from, Kind::Payload, message, About::subject(header.subject), Some(op));
                    Ok(Landing::Nowhere)
                }
                None => broken(format!("asks for message {}, which was not offered", header.subject)),
            },
            Kind::Payload => match self.peers[from].asked.remove(&header.subject) {
                Some((_, announced)) if announced != envelope => broken(format!(
                    "a payload for message {} is not the one that was announced",
                    header.subject
                )),
                Some((Some(op), _)) => Ok(Landing::Op(op)),
                Some((None, _)) => Ok(Landing::Sink),
                None => broken(format!("a payload for message {}, which was not asked for", header.subject)),
            },
            Kind::Credit => {
                let peer = &mut self.peers[from];
                peer.credit = peer.credit.saturating_add(header.subject);
                peer.envelopes = peer.envelopes.saturating_add(header.tag);
                if peer.credit > CREDIT_BYTES || peer.envelopes > ENVELOPES_MAX {
                    return broken("returns more credit than it was given".into());
                }
                self.release(from);
                Ok(Landing::Nowhere)
            }
            Kind::Greeting => {
                self.greeting_arrived(from, header);
                Ok(Landing::Nowhere)
            }
            Kind::Readable => {
                self.peers[from].nearness.reads = true;
                Ok(Landing::Nowhere)
            }
            Kind::Receipt => match self.peers[from].offered.remove(&header.subject) {
                Some(op) => {
                    if let Some(&Op::Send(message, ..)) = self.ops.get(op) {
                        self.finished(op, Outcome::Done(message));
                    }
                    Ok(Landing::Nowhere)
                }
                None => broken(format!("a receipt for message {}, which was not offered", header.subject)),
            },
        }
    }

    /// A message of this rank to itself, as if it had come over a link.
    pub fn local(&mut self, context: u32, tag: u32, length: u64) -> Landing {
        let source = u32::try_from(self.me).expect("ranks are few");
        self.eager(Envelope { context, source, tag, length })
    }

    /// The payload of a message of this rank to itself is in the memory of `op`.
    pub fn local_landed(&mut self, op: OpId, envelope: Envelope) {
        self.finished(op, Outcome::Done(envelope));
    }

    /// A send of this rank to itself, which is finished at once.
    pub fn finished_send(&mut self) -> OpId {
        let source = u32::try_from(self.me).expect("ranks are few");
        let envelope = Envelope { context: 0, source, tag: 0, length: 0 };
        self.ops.insert(Op::Finished(Outcome::Done(envelope)))
    }

    fn finished(&mut self, op: OpId, outcome: Outcome) {
        if let Some(entry) = self.ops.get_mut(op) {
            *entry = Op::Finished(outcome);
        }
    }

    fn eager(&mut self, envelope: Envelope) -> Landing {
        match self.claim(&envelope) {
            Some(op) => Landing::Op(op),
            None => Landing::Bounce(self.bounce(envelope, BounceState::Arriving(None))),
        }
    }

    /// The posted receive that takes `envelope`. One that has no room for it is finished as truncated, and
    /// the message stays.
    fn claim(&mut self, envelope: &Envelope) -> Option<OpId> {
        let op = self.matching.matched(envelope)?;
        let Some(&Op::Receive { room }) = self.ops.get(op) else { unreachable!("posted ops are receives") };
        if envelope.length > room as u64 {
            self.finished(op, Outcome::Truncated { message: *envelope, room });
            return None;
        }
        Some(op)
    }

    fn bounce(&mut self, envelope: Envelope, state: BounceState) -> BounceId {
        let bounce = self.bounced.insert(Bounced { envelope, state });
        self.matching.keep(bounce, envelope);
        bounce
    }

    /// The payload of `header` from `from` is where [`Endpoint::arrived`] wanted it. If a receive is given
    /// back, copy the bounced message into its memory and call [`Endpoint::taken`].
    pub fn landed(&mut self, from: Rank, header: &Header, landing: Landing) -> Option<OpId> {
        match landing {
            Landing::Nowhere => None,
            Landing::Op(op) => {
                self.finished(op, Outcome::Done(Envelope::from(header)));
                if header.kind == Kind::Eager {
                    self.give_back(from, cost(header.length), 0);
                }
                None
            }
            Landing::Bounce(bounce) => self.bounce_landed(bounce),
            Landing::Sink => {
                if header.kind == Kind::Eager {
                    self.give_back(from, cost(header.length), 0);
                }
                None
            }
        }
    }

    /// The payload of a bounced message is in the memory of the driver.
    pub fn bounce_landed(&mut self, bounce: BounceId) -> Option<OpId> {
        let bounced = self.bounced.get_mut(bounce)?;
        match std::mem::replace(&mut bounced.state, BounceState::Here) {
            BounceState::Arriving(claim) => claim,
            BounceState::Unwanted => {
                self.drop_claimed(bounce);
                None
            }
            BounceState::Here | BounceState::Announced(_) => None,
        }
    }

    /// The bounced message was copied into the memory of `op`.
    pub fn taken(&mut self, op: OpId, bounce: BounceId) {
        let Some(bounced) = self.bounced.remove(bounce) else { return };
        self.finished(op, Outcome::Done(bounced.envelope));
        self.give_back(bounced.envelope.source as Rank, cost(bounced.envelope.length), 0);
    }

    /// Whether the driver still has to keep the payload of a bounced message.
    pub fn is_kept(&self, bounce: BounceId) -> bool {
        self.bounced.contains_key(bounce)
    }

    /// Bytes of a bounced message.
    pub fn bounce_bytes(&self, bounce: BounceId) -> usize {
        self.bounced.get(bounce).map_or(0, |bounced| bounced.envelope.length as usize)
    }

    /// Credit goes back in lumps of a quarter, so that most messages cost no frame of their own.
    fn give_back(&mut self, to: Rank, bytes: u64, envelopes: u32) {
        if to == self.me || self.peers[to].gone {
            return; // nobody counts what a rank sends to itself, nor what the dead have sent
        }
        let peer = &mut self.peers[to];
        peer.owed += bytes;
        peer.owed_envelopes += envelopes;
        if peer.owed >= CREDIT_BYTES / 4 || peer.owed_envelopes >= ENVELOPES_MAX / 4 {
            let (bytes, envelopes) = (peer.owed, peer.owed_envelopes);
            (peer.owed, peer.owed_envelopes) = (0, 0);
            peer.granted += bytes;
            peer.granted_envelopes += envelopes;
            self.answer(to, Kind::Credit, envelopes, About::subject(bytes));
        }
    }

    /// Ranks with frames to be sent.
    pub fn busy(&self) -> &[Rank] {
        &self.busy
    }

    /// The frames to `to` that have not left, in order.
    pub fn frames(&self, to: Rank) -> &VecDeque<Frame> {
        &self.peers[to].out
    }

    /// The next frame to `to` has left entirely.
    pub fn left(&mut self, to: Rank) {
        let peer = &mut self.peers[to];
        let Some(frame) = peer.out.pop_front() else { return };
        if peer.out.is_empty() {
            peer.busy = false;
            self.busy.retain(|rank| *rank != to);
        }
        if let Some(op) = frame.body
            && let Some(&Op::Send(envelope, ..)) = self.ops.get(op)
        {
            self.finished(op, Outcome::Done(envelope));
        }
    }
}

#[cfg(test)]
mod tests;
