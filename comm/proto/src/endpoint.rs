//! One rank's end of all its data links: matching, eager credit, and the frames that are to be sent.
//!
//! A message of up to [`EAGER_BYTES_MAX`] bytes is sent at once while the sender has credit at the receiver;
//! a longer one, or one without credit, is announced by an envelope, and its payload follows when a receive
//! has matched it, or is read where it lies (`reading`). Credit comes back when a message has reached its receive. So what a slow receiver must
//! hold is bounded ([`CREDIT_BYTES`], [`AHEAD_BYTES`] and [`ENVELOPES_MAX`] per sender), and as envelopes overtake no message
//! and wait for no credit of the payload, no legal order of sends and receives deadlocks.
//!
//! The endpoint moves no payload. It keeps the *place* of each operation, and of each message that came before its receive: where the bytes come
//! from or go to, in the driver's terms (`P`), into which it does not look. Who asks for an operation gives its place, and gets it back
//! when that is finished; meanwhile the driver finds it by the operation.
//!
//! What a program asks for has a plain name ([`Endpoint::send`]), what happens on links is told by `handle_*`, what the driver is to do is given by
//! [`Endpoint::poll_task`], and what is to be sent lies in [`Endpoint::frames`], as a link may take a part of it. A violation of the protocol by
//! the other side is a value, and the link that it came from is to be closed.

use std::collections::VecDeque;

use slotmap::{SlotMap, new_key_type};

use crate::matching::{Envelope, Matching, Pattern};
use crate::rank::{Generation, Rank};
use crate::stamp::Mark;
use crate::wire::header::Kind;

mod ahead;
mod begun;
mod beside;
mod bounced;
mod contexts;
mod credit;
mod detached;
mod express;
mod going_on;
mod incoming;
mod lined;
mod losses;
mod peer;
mod reading;
mod recorded;
mod tape;

pub use crate::wire::wait::CONTEXT_DYNAMIC;
pub use ahead::AHEAD_BYTES;
use bounced::{Bounced, Claimed, Dropped};
use contexts::Contexts;
use credit::Cost;
pub use credit::{CREDIT_BYTES, EAGER_BYTES_MAX, ENVELOPES_MAX, MESSAGE_COST};
pub use express::Taken;
pub use going_on::CONTEXT_LUGGAGE;
pub use lined::LINED_TAG;
use lined::Lined;
pub use peer::Frame;
use peer::{About, Peer};
pub use reading::{Fetch, Greeting, Offer};
pub use tape::TAPED_TAG;

new_key_type! {
    /// An operation of this endpoint: a send or a receive.
    pub struct OpId;

    /// A message that arrived before its receive; if it was sent eagerly, it has a place.
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

/// A message to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing {
    /// Context of the communicator.
    pub context: u32,
    /// Tag.
    pub tag: u32,
    /// Bytes.
    pub length: u64,
    /// When the send is finished.
    pub mode: Mode,
    /// Where the receiver may read it, if it can.
    pub offer: Option<Offer>,
}

/// Where the payload behind a header belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landing {
    /// No payload follows.
    Nowhere,
    /// To the start of this receive's place, which is long enough.
    Op(OpId),
    /// To the place of a message that came before its receive.
    Bounce(BounceId),
    /// Nobody wants it: it is read and dropped.
    Sink,
}

/// What the driver is to do.
#[derive(Debug)]
pub enum Task<P> {
    /// Copy a whole message to the place of its receive, which counts as finished already.
    Copy {
        /// The receive.
        op: OpId,
        /// Where the message is.
        from: P,
        /// It is late: what it says is kept ([`Endpoint::keep`]).
        late: Option<Envelope>,
    },
    /// What has to be known before the messages behind it has come ([`Endpoint::carries`]).
    Carry {
        /// From this rank.
        from: Rank,
        /// Where it is.
        luggage: P,
    },
    /// Keep what this late message says ([`Endpoint::keep`]), which is in the place of its receive.
    Keep {
        /// The receive.
        op: OpId,
        /// The message.
        message: Envelope,
    },
    /// A rank asks whether its memory can be read; if it can, say [`Endpoint::handle_readable`].
    Answer(Greeting),
    /// Read a message; say [`Endpoint::handle_fetched`] then.
    Fetch(Fetch),
    /// Short messages of this rank were only announced, and there may be room for them; say [`Endpoint::fetch_ahead`].
    Ahead(Rank),
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
struct Op<P> {
    state: State,
    place: P,
    /// Nobody waits for its end.
    is_detached: bool,
}

#[derive(Debug)]
enum State {
    /// A send that waits for credit, an ask, or the wire.
    Send(Envelope, Mode, Option<Offer>),
    /// A receive that nothing has matched, or whose message is under way.
    Receive {
        room: usize,
        context: u32,
    },
    Finished(Outcome),
}

/// One rank's end of all its data links, as a state machine: frames and calls go in, frames and completions come out. One endpoint serves one generation.
#[derive(Debug)]
pub struct Endpoint<P> {
    me: Rank,
    generation: Generation,
    peers: Vec<Peer>,
    matching: Matching<OpId, BounceId>,
    ops: SlotMap<OpId, Op<P>>,
    bounced: Bounced<P>,
    contexts: Contexts,
    tasks: VecDeque<Task<P>>,
    /// Operations that nobody waits for, and that are over.
    over: Vec<OpId>,
    /// Ranks with frames to be sent.
    busy: Vec<Rank>,
    /// If messages may cross recovery lines.
    lined: Option<Box<Lined<P>>>,
    /// A repair is under way that operations outlast: they take no messages until it is over.
    repairs: bool,
}

impl<P> Endpoint<P> {
    /// The endpoint of rank `me` of `size` in `generation`.
    pub fn new(me: Rank, size: usize, generation: Generation) -> Self {
        Self {
            me,
            generation,
            peers: (0..size).map(|_| Peer::default()).collect(),
            matching: Matching::default(),
            ops: SlotMap::with_key(),
            bounced: Bounced::default(),
            contexts: Contexts::default(),
            tasks: VecDeque::new(),
            over: vec![],
            busy: Vec::new(),
            lined: None,
            repairs: false,
        }
    }

    /// The generation that this endpoint serves.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// Starts a send of what is in `place` to another rank.
    pub fn send(&mut self, to: Rank, message: Outgoing, place: P) -> OpId {
        if self.peers[to].is_gone {
            return self.start(State::Finished(Outcome::Failed(to)), place);
        }
        let op = self.start(State::Send(self.envelope(&message), message.mode, message.offer), place);
        self.peers[to].parked.push_back(op);
        self.release(to);
        op
    }

    /// Starts a send of this rank to itself, which is finished at once: `copy` has the `length` bytes of `place`.
    pub fn send_to_self(&mut self, context: u32, tag: u32, length: u64, place: P, copy: P) -> OpId {
        let mark = self.mark(context);
        let envelope = Envelope { context, source: self.source(), tag, mark, length };
        match self.claim(&envelope) {
            Some(op) => {
                self.end(op, Outcome::Done(envelope));
                self.deliver(op, envelope, copy);
            }
            None => {
                self.bounce(envelope, bounced::State::Here(copy));
            }
        }
        self.start(State::Finished(Outcome::Done(envelope)), place)
    }

    /// Starts a receive of up to `room` bytes to `place`. Unless a message is here for it, it ends at once if it needs a rank that has failed:
    /// one that `pattern` names, or `missing`.
    pub fn receive(&mut self, pattern: Pattern, room: usize, missing: Option<Rank>, place: P) -> OpId {
        if self.has_lines() {
            let (pattern, choice) = self.choose(pattern);
            let (op, taken) = self.start_receive(pattern, room, missing, place);
            choice.into_iter().for_each(|number| self.chooses(op, number, taken.as_ref()));
            return op;
        }
        self.start_receive(pattern, room, missing, place).0
    }

    /// The same; gives the message that was here for it, too.
    #[inline]
    fn start_receive(
        &mut self,
        pattern: Pattern,
        room: usize,
        missing: Option<Rank>,
        place: P,
    ) -> (OpId, Option<Envelope>) {
        match self.matching.take_within(&pattern, room as u64) {
            Some(Ok((bounce, envelope))) => return (self.receive_claimed(bounce, place), Some(envelope)),
            Some(Err(message)) => {
                return (self.start(State::Finished(Outcome::Truncated { message, room }), place), None);
            }
            None => {}
        }
        if let Some(rank) = self.failed_source(&pattern).or(missing) {
            return (self.start(State::Finished(Outcome::Failed(rank)), place), None);
        }
        let op = self.start(State::Receive { room, context: pattern.context }, place);
        self.matching.post(op, pattern);
        (op, None)
    }

    /// Takes the first message that `pattern` accepts out of the queue (`MPI_Mprobe`); it is received by
    /// [`Endpoint::receive_claimed`] or given up by [`Endpoint::drop_claimed`].
    pub fn claim_message(&mut self, pattern: &Pattern) -> Option<(BounceId, Envelope)> {
        self.matching.take(pattern)
    }

    /// Starts the receive of a message that was taken out of the queue, to `place`, which has room for it.
    pub fn receive_claimed(&mut self, bounce: BounceId, place: P) -> OpId {
        let Some((envelope, claimed)) = self.bounced.claim(bounce) else {
            unreachable!("it was claimed, once")
        };
        let state = State::Receive { room: envelope.length as usize, context: envelope.context };
        match claimed {
            Claimed::Here(from) => {
                let op = self.start(State::Finished(Outcome::Done(envelope)), place);
                self.deliver(op, envelope, from);
                op
            }
            Claimed::Arriving(claim) => *claim.insert(self.ops.insert(Op::new(state, place))),
            Claimed::Announced(announced) => {
                let op = self.start(state, place);
                self.want(envelope, announced, Some(op));
                self.look_ahead(envelope.source as Rank, 1);
                op
            }
            Claimed::Lost => self.start(State::Finished(Outcome::Failed(envelope.source as Rank)), place),
        }
    }

    /// Nobody will receive a message that was taken out of the queue.
    pub fn drop_claimed(&mut self, bounce: BounceId) {
        match self.bounced.drop(bounce) {
            Dropped::Nothing => {}
            Dropped::Received(envelope) => {
                if envelope.mark.has_credit() {
                    self.give_back(envelope.source as Rank, Cost::eager(envelope.length));
                }
                self.look_ahead(envelope.source as Rank, 1);
            }
            Dropped::Refused(envelope, announced) => {
                self.want(envelope, announced, None);
                self.look_ahead(envelope.source as Rank, 1);
            }
        }
    }

    /// Messages of `context`, one of [`CONTEXT_DYNAMIC`] and above, are welcome from now on.
    pub fn open_context(&mut self, context: u32) {
        self.contexts.open(context);
    }

    /// The same of a communicator that was made in an earlier generation: others of then may be opened before and after.
    pub fn open_context_again(&mut self, context: u32) {
        self.contexts.open_again(context);
    }

    /// Nobody receives messages of `context` any more: what is queued is given up, what comes later is dropped. Where messages may cross recovery lines they belong to these all the same,
    /// and stay.
    pub fn close_context(&mut self, context: u32) {
        for op in self.matching.withdraw(|pattern| pattern.context == context) {
            self.chooses_no_more(op);
            self.ops.remove(op);
        }
        self.contexts.close(context);
        if self.has_lines() {
            return;
        }
        let messages = self.matching.remove_context(context);
        messages.into_iter().for_each(|bounce| self.drop_claimed(bounce));
    }

    /// Whether a message of `context` is dropped when it comes.
    #[inline]
    fn is_closed(&self, context: u32) -> bool {
        self.contexts.is_closed(context) && !self.has_lines()
    }

    /// The first message that a receive with `pattern` would take.
    pub fn probe(&self, pattern: &Pattern) -> Option<Envelope> {
        self.matching.find(pattern).map(|(_, envelope)| envelope)
    }

    /// Whether the operation is finished.
    pub fn is_finished(&self, op: OpId) -> bool {
        matches!(self.ops.get(op), Some(Op { state: State::Finished(_), .. }))
    }

    /// Whether it is a send that is not finished.
    pub fn is_send(&self, op: OpId) -> bool {
        matches!(self.ops.get(op), Some(Op { state: State::Send(..), .. }))
    }

    /// Takes the outcome of a finished operation, and its place; the operation is gone then.
    #[inline]
    pub fn finish(&mut self, op: OpId) -> Option<(Outcome, P)> {
        let State::Finished(outcome) = self.ops.get(op)?.state else { return None };
        self.ops.remove(op).map(|op| (outcome, op.place))
    }

    /// Takes the place of an operation that is finished, and well, with the envelope of its message; the operation is gone then.
    #[inline]
    pub fn finish_if_done(&mut self, op: OpId) -> Option<(P, Envelope)> {
        let State::Finished(Outcome::Done(envelope)) = self.ops.get(op)?.state else { return None };
        self.ops.remove(op).map(|op| (op.place, envelope))
    }

    /// Withdraws a receive that nothing has matched, and gives its place back; none if a message is on its way into it.
    pub fn cancel(&mut self, op: OpId) -> Option<P> {
        let may_wait = matches!(self.ops.get(op)?.state, State::Receive { .. });
        if !may_wait || !self.matching.cancel(op) {
            return None;
        }
        self.chooses_no_more(op);
        self.ops.remove(op).map(|op| op.place)
    }

    /// Whether the operation is under way or waits to be finished.
    pub fn holds(&self, op: OpId) -> bool {
        self.ops.contains_key(op)
    }

    /// No operation is under way or waits to be finished, and no message waits for its receive.
    pub fn is_idle(&self) -> bool {
        self.ops.is_empty() && self.bounced.is_empty()
    }

    /// The place of an operation.
    pub fn place(&self, op: OpId) -> Option<&P> {
        self.ops.get(op).map(|op| &op.place)
    }

    /// The place of an operation, to change it.
    pub fn place_mut(&mut self, op: OpId) -> Option<&mut P> {
        self.ops.get_mut(op).map(|op| &mut op.place)
    }

    /// The place that a payload goes to, if there is one.
    pub fn landing_mut(&mut self, landing: Landing) -> Option<&mut P> {
        match landing {
            Landing::Op(op) => self.place_mut(op),
            Landing::Bounce(bounce) => self.bounced.place_mut(bounce),
            Landing::Nowhere | Landing::Sink => None,
        }
    }

    /// The next frame to `to` has left entirely.
    pub fn handle_sent(&mut self, to: Rank) {
        let peer = &mut self.peers[to];
        let Some(frame) = peer.left() else { return };
        if peer.frames().is_empty() {
            self.busy.retain(|rank| *rank != to);
        }
        if let Some(op) = frame.body {
            self.end_send(op);
        }
    }

    /// What the driver is to do next, after any other call.
    pub fn poll_task(&mut self) -> Option<Task<P>> {
        self.tasks.pop_front()
    }

    /// Whether there is something for the driver to do.
    pub fn has_tasks(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// Ranks with frames to be sent.
    pub fn busy(&self) -> &[Rank] {
        &self.busy
    }

    /// The frames to `to` that have not left, in order.
    pub fn frames(&self, to: Rank) -> &VecDeque<Frame> {
        self.peers[to].frames()
    }

    /// This rank, as frames name it.
    fn source(&self) -> u32 {
        u32::try_from(self.me).expect("ranks are few")
    }

    fn start(&mut self, state: State, place: P) -> OpId {
        self.ops.insert(Op::new(state, place))
    }

    fn end(&mut self, id: OpId, outcome: Outcome) {
        if let Some(op) = self.ops.get_mut(id) {
            op.state = State::Finished(outcome);
            self.over.extend(op.is_detached.then_some(id));
        }
    }

    /// A send has left, or was read.
    fn end_send(&mut self, op: OpId) {
        if let Some(message) = self.message(op) {
            self.end(op, Outcome::Done(message));
        }
    }

    /// The message of a send that is not finished.
    fn message(&self, op: OpId) -> Option<Envelope> {
        match self.ops.get(op)?.state {
            State::Send(message, ..) => Some(message),
            _ => None,
        }
    }

    /// A receive has got a whole message that waited for it.
    fn deliver(&mut self, op: OpId, envelope: Envelope, from: P) {
        self.look_ahead(envelope.source as Rank, 1);
        let late = self.has_delivered(&envelope).then_some(envelope);
        self.tasks.push_back(Task::Copy { op, from, late });
        if envelope.mark.has_credit() {
            self.give_back(envelope.source as Rank, Cost::eager(envelope.length));
        }
    }

    /// The posted receive that takes `envelope`. One that has no room for it is finished as truncated, and
    /// the message stays.
    fn claim(&mut self, envelope: &Envelope) -> Option<OpId> {
        if self.waits_for_repair(envelope.context, envelope.mark.stamp()) {
            return None;
        }
        let op = self.matching.matched(envelope)?;
        let Some(&Op { state: State::Receive { room, .. }, .. }) = self.ops.get(op) else {
            unreachable!("posted ops are receives")
        };
        if envelope.length > room as u64 {
            self.end(op, Outcome::Truncated { message: *envelope, room });
            self.chooses_no_more(op);
            return None;
        }
        self.takes(op, envelope);
        Some(op)
    }

    fn bounce(&mut self, envelope: Envelope, state: bounced::State<P>) -> BounceId {
        let bounce = self.bounced.keep(envelope, state);
        self.matching.keep(bounce, envelope);
        bounce
    }

    /// Turns parked sends into frames, in order, as far as credit goes and links are not awaited.
    fn release(&mut self, to: Rank) {
        while let Some(&op) = self.peers[to].parked.front() {
            let Some(&Op { state: State::Send(envelope, mode, offer), .. }) = self.ops.get(op) else {
                unreachable!("parked sends are sends")
            };
            let peer = &mut self.peers[to];
            if offer.is_some() && peer.nearness.awaits_link {
                break;
            }
            let is_read = offer.is_some() && peer.nearness.seal_at.is_some();
            let Some(kind) = peer.pay(mode, envelope.length, is_read) else { break };
            peer.parked.pop_front();
            if kind == Kind::Eager {
                self.post(to, kind, envelope, About::default(), Some(op));
            } else {
                let about = match offer.filter(|_| peer.nearness.greeted) {
                    Some(offer) => About::from(offer),
                    None if peer.may_be_eager(mode, envelope.length, is_read) => About::WANTS_CREDIT,
                    None => About::default(),
                };
                let sequence = self.post(to, kind, envelope, about, None);
                self.peers[to].offered.insert(sequence, op);
            }
        }
    }

    /// Queues a frame; gives its number.
    fn post(&mut self, to: Rank, kind: Kind, message: Envelope, about: About, body: Option<OpId>) -> u64 {
        let peer = &mut self.peers[to];
        if peer.frames().is_empty() {
            self.busy.push(to);
        }
        peer.post(kind, self.generation, message, about, body)
    }

    /// Queues a frame that is not about a message of this rank.
    fn answer(&mut self, to: Rank, kind: Kind, tag: u32, about: About) {
        let message = Envelope { context: 0, source: self.source(), tag, mark: Mark::NONE, length: 0 };
        self.post(to, kind, message, about, None);
    }

    fn give_back(&mut self, to: Rank, cost: Cost) {
        if to == self.me || self.peers[to].is_gone {
            return; // nobody counts what a rank sends to itself, nor what the dead have sent
        }
        if let Some(Cost { bytes, envelopes }) = self.peers[to].grant.receive(cost) {
            self.answer(to, Kind::Credit, envelopes, About::subject(bytes));
        }
    }

    /// Asks for the payload of an announced message.
    fn ask_for(&mut self, envelope: Envelope, sequence: u64, landing: Landing) {
        let from = envelope.source as Rank;
        if self.peers[from].is_gone {
            return;
        }
        self.peers[from].asked.insert(sequence, (landing, envelope));
        self.answer(from, Kind::Ask, 0, About::subject(sequence));
        self.give_back(from, Cost::ENVELOPE);
    }
}

#[cfg(test)]
mod tests;
