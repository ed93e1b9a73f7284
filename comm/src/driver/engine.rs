//! The engine of messages: one rank's [`Endpoint`], the links that its frames take, and the memory that they come from and
//! go to. It says nothing to anybody and waits for nobody: what goes wrong with a link it keeps until it is asked
//! ([`Findings`]).

use std::time::Duration;

use ft_proto::endpoint::{BounceId, Endpoint, Mode, OpId, Outcome, Outgoing, Task};
use ft_proto::error::CommError;
use ft_proto::matching::{Envelope, Pattern};
use ft_proto::rank::{Membership, Rank, Tag};

use super::links::Links;
use super::memory::{Buffer, Memory, Place, Stock};
use super::seal::Seal;
use crate::transport::{LinkId, Transport};
pub(super) use lined::Leaving;

mod awaited;
mod beside;
mod feed;
mod findings;
mod lined;
mod reading;
mod transfer;

pub(crate) use awaited::is_short;
use beside::Awaited;
use feed::Feed;
use findings::Findings;
use lined::copy_of_kept;
use reading::OFFERED_BYTES_MIN;
use transfer::Attempt;

/// Bytes of small messages that are gathered before they leave together.
const GATHER_BYTES: usize = 16 << 10;
/// Frames that are gathered at most.
const GATHER_FRAMES: usize = 64;

/// When the frames of a send leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// At once.
    Now,
    /// At once if it is the first to its rank since the links were last looked at, or goes through memory; what follows it is gathered until
    /// the next look, or until there is much of it.
    Soon,
}

/// Whom a message is for, what its receive matches it by, and how it leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Letter {
    pub(crate) to: Rank,
    pub(crate) context: u32,
    pub(crate) tag: Tag,
    pub(crate) mode: Mode,
    pub(crate) urgency: Urgency,
}

/// What has become of a send from memory of its own, or a place.
pub(crate) enum Sent<B> {
    /// It is finished, with this envelope.
    Left(B, Envelope),
    Begun(OpId),
}

/// What has become of a message that could leave at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Departure {
    Left,
    /// A part of it has left, or nothing: its buffer is needed.
    Begun(OpId),
    /// It is to be sent like any other, at once if it `leaves`.
    Waits {
        leaves: bool,
    },
}

/// How an operation ended, and its memory if it had some of its own.
pub(crate) type Finished = Result<(Outcome, Option<Place>), CommError>;

/// See the module.
pub(crate) struct Engine {
    pub(super) me: Rank,
    pub(super) links: Links,
    /// Changed before memory that others were offered, also at the end; so it comes before that memory here.
    pub(super) seal: Seal,
    /// Has the places of all operations.
    pub(super) endpoint: Endpoint<Place>,
    /// What these places name.
    pub(super) stock: Stock,
    /// To whom a link is to be opened, which news have kept from that: what is offered waits.
    unreached: Vec<Rank>,
    /// Receives whose messages may come into cells.
    awaited: Vec<Awaited>,
    /// What comes again to ranks that have gone back.
    feed: Feed,
    /// Links of which something was put into cells, and whose other sides may sleep.
    unroused: Vec<LinkId>,
    packing: Vec<u8>,
    pub(super) findings: Findings,
    /// Counts what has come or gone over links, and what step lists have made of it.
    pub(crate) moves: u64,
    sent: u64,
    read: u64,
}

impl Engine {
    pub(super) fn new(transport: Box<dyn Transport>, me: Rank) -> Self {
        Self {
            me,
            links: Links::new(transport),
            seal: Seal::new(),
            endpoint: Endpoint::new(me, 0, 0),
            stock: Stock::default(),
            unreached: vec![],
            awaited: vec![],
            feed: Feed::default(),
            unroused: vec![],
            packing: vec![],
            findings: Findings::default(),
            moves: 0,
            sent: 0,
            read: 0,
        }
    }

    /// Starts the generation of `membership`, in which this is rank `me`, with new links and nothing under way.
    pub(super) fn begin(&mut self, me: Rank, membership: &Membership) {
        self.seal.change();
        self.me = me;
        self.links.begin(membership);
        self.endpoint = Endpoint::new(me, membership.seats.len(), membership.generation);
        membership.holes.iter().for_each(|rank| self.endpoint.handle_loss(*rank, &[]));
        self.stock.clear();
        self.unreached.clear();
        self.awaited.clear();
        self.feed.clear();
        self.unroused.clear();
        self.findings = Findings::default();
    }

    /// The same of a generation that the program's operations outlast ([`Endpoint::go_on`]).
    pub(super) fn go_on(&mut self, membership: &Membership) {
        self.seal.change();
        let coming = self.links.coming();
        for (_, landing, done) in &coming {
            // What is combined as it comes has been combined so far.
            if let Some(place) = self.endpoint.landing_mut(*landing) {
                place.skip(*done);
            }
        }
        let coming: Vec<_> = coming.into_iter().map(|(rank, landing, _)| (rank, landing)).collect();
        self.links.begin(membership);
        self.feed.clear();
        self.endpoint.go_on(membership.generation, &coming);
        self.unreached.clear();
        self.unroused.clear();
        self.findings = Findings::default();
    }

    /// Bytes that were sent, and those that were read from the memory of others.
    pub(crate) fn traffic(&self) -> (u64, u64) {
        (self.sent, self.read)
    }

    /// Whether frames have not left, since the last call, because there is news; and then looks at it no more.
    pub(super) fn was_interrupted(&mut self) -> bool {
        let was = self.findings.take_interrupted();
        if was {
            let ready = self.links.wait(&[], Duration::ZERO);
            self.links.done_with(ready);
        }
        was
    }

    /// Starts a send.
    pub(super) fn send(&mut self, letter: Letter, place: Place, memory: &mut Memory<'_>) -> OpId {
        match self.begin_send(letter, place, memory) {
            Sent::Left(place, envelope) => self.endpoint.has_left(envelope, place),
            Sent::Begun(op) => op,
        }
    }

    /// The same without an operation for what has left already.
    pub(super) fn begin_send(
        &mut self,
        letter: Letter,
        place: Place,
        memory: &mut Memory<'_>,
    ) -> Sent<Place> {
        if self.leaving(letter.to, (letter.context, letter.tag), &place, memory) == Leaving::Not {
            let envelope = self.envelope(&letter, place.len());
            return Sent::Left(place, envelope);
        }
        self.begin_due_send(letter, place, memory)
    }

    /// The same of one of which is known that its receiver has not got it yet ([`Engine::leaving`]).
    pub(super) fn begin_due_send(
        &mut self,
        letter: Letter,
        place: Place,
        memory: &mut Memory<'_>,
    ) -> Sent<Place> {
        let leaves = self.leaves_now(&letter);
        self.start_send(letter, leaves, place, memory)
    }

    /// The same of a letter of which is known whether it `leaves` now.
    fn start_send(
        &mut self,
        letter: Letter,
        leaves: bool,
        place: Place,
        memory: &mut Memory<'_>,
    ) -> Sent<Place> {
        let Letter { to, context, tag, mode, .. } = letter;
        let length = place.len();
        self.sent += length as u64;
        if to == self.me {
            return Sent::Begun(self.send_to_self(context, tag, place, memory));
        }
        let offer = self.offer(&place, length, memory);
        // The link's opening greets: what is offered before is of no use.
        if offer.is_some() && self.link_to(to).is_none() {
            self.endpoint.await_link(to);
            self.unreached.push(to);
        }
        let message = Outgoing { context, tag, length: length as u64, mode, offer };
        if leaves {
            let Self { links, endpoint, stock, .. } = self;
            let body = stock.in_one_piece(&place, memory);
            match body.map_or(Attempt::None, |body| Attempt::make(links, endpoint, to, &message, body)) {
                Attempt::None => {}
                Attempt::Left => {
                    self.moves += 1;
                    return Sent::Left(place, self.endpoint.envelope(&message));
                }
                Attempt::Begun(begun) => return Sent::Begun(self.has_begun(to, &message, &begun, place)),
            }
        }
        let op = self.endpoint.send(to, message, place);
        if leaves || self.is_much(to) {
            self.flush(to, memory);
        }
        Sent::Begun(op)
    }

    /// Sends a message that is not to be read where it lies, if nothing is before it. Of one that has not left as a whole its buffer is to be
    /// handed over. (This takes no buffer, and gives a word back: the links are memory of another process, and what else goes through memory may wait
    /// until the message is there.)
    fn depart(&mut self, letter: &Letter, body: &[u8]) -> Departure {
        let Letter { to, context, tag, mode, .. } = *letter;
        let leaves = self.leaves_now(letter);
        if !leaves || to == self.me || body.len() >= OFFERED_BYTES_MIN {
            return Departure::Waits { leaves };
        }
        let message = Outgoing { context, tag, length: body.len() as u64, mode, offer: None };
        let attempt = Attempt::make(&mut self.links, &mut self.endpoint, to, &message, body);
        if let Attempt::None = attempt {
            return Departure::Waits { leaves };
        }
        self.sent += message.length;
        match attempt {
            Attempt::Begun(begun) => {
                Departure::Begun(self.has_begun(to, &message, &begun, Place::Gone(body.len())))
            }
            _ => {
                self.moves += 1;
                Departure::Left
            }
        }
    }

    /// The buffer of a message that has departed in part.
    fn hand_over(&mut self, op: OpId, buffer: Box<dyn Buffer>) {
        let place = self.endpoint.place_mut(op).expect("it has just begun");
        *place = Place::Owned(buffer);
    }

    /// The envelope of a message of this rank.
    #[inline]
    fn envelope(&self, letter: &Letter, length: usize) -> Envelope {
        let Letter { context, tag, mode, .. } = *letter;
        self.endpoint.envelope(&Outgoing { context, tag, length: length as u64, mode, offer: None })
    }

    /// As [`Engine::send`] for a buffer that the operation owns, which is given back if it has left already.
    #[inline]
    pub(super) fn send_owned<B: Buffer + 'static>(&mut self, letter: Letter, buffer: B) -> Sent<B> {
        let envelope = self.envelope(&letter, buffer.bytes().len());
        if self.leaving_owned(&letter, buffer.bytes()) == Leaving::Not {
            return Sent::Left(buffer, envelope);
        }
        match self.depart(&letter, buffer.bytes()) {
            Departure::Left => Sent::Left(buffer, envelope),
            Departure::Begun(op) => {
                self.hand_over(op, Box::new(buffer));
                Sent::Begun(op)
            }
            Departure::Waits { leaves } => Sent::Begun(self.send_boxed(letter, leaves, Box::new(buffer))),
        }
    }

    fn send_boxed(&mut self, letter: Letter, leaves: bool, buffer: Box<dyn Buffer>) -> OpId {
        match self.start_send(letter, leaves, Place::Owned(buffer), &mut Memory::none()) {
            Sent::Left(place, envelope) => self.endpoint.has_left(envelope, place),
            Sent::Begun(op) => op,
        }
    }

    /// Whether a letter leaves as soon as it can. To be asked once: what follows the first one to its rank may be gathered.
    fn leaves_now(&mut self, letter: &Letter) -> bool {
        letter.urgency == Urgency::Now || self.links.begins(letter.to) || self.links.is_cheap(letter.to)
    }

    /// Whether the frames to a rank are worth a call of their own.
    fn is_much(&self, to: Rank) -> bool {
        let frames = self.endpoint.frames(to);
        frames.len() >= GATHER_FRAMES
            || frames.iter().map(|frame| frame.length).sum::<usize>() >= GATHER_BYTES
    }

    fn send_to_self(&mut self, context: u32, tag: u32, place: Place, memory: &mut Memory<'_>) -> OpId {
        let copy = Place::Kept(self.stock.copy(&place, memory));
        let op = self.endpoint.send_to_self(context, tag, copy.len() as u64, place, copy);
        self.act(memory);
        op
    }

    /// Posts a receive, which ends at once if it needs `missing`; a message that has arrived already is taken at once.
    pub(super) fn receive(
        &mut self,
        pattern: Pattern,
        place: Place,
        missing: Option<Rank>,
        memory: &mut Memory<'_>,
    ) -> OpId {
        let op = self.endpoint.receive(pattern, place.len(), missing, place);
        self.act(memory);
        op
    }

    /// As [`Engine::receive`] of one that had begun before the line to which this rank has gone back, with this number.
    pub(super) fn receive_again(
        &mut self,
        pattern: Pattern,
        number: Option<u64>,
        place: Place,
        missing: Option<Rank>,
    ) -> OpId {
        let op = self.endpoint.receive_again(pattern, number, place.len(), missing, place);
        self.act(&mut Memory::none());
        op
    }

    /// Starts the receive of a message that was claimed.
    pub(super) fn receive_claimed(
        &mut self,
        bounce: BounceId,
        place: Place,
        memory: &mut Memory<'_>,
    ) -> OpId {
        let op = self.endpoint.receive_claimed(bounce, place);
        self.act(memory);
        op
    }

    /// Does what the endpoint asks for. Receipts leave at once: this rank may compute for long now, and their receivers wait.
    fn act(&mut self, memory: &mut Memory<'_>) {
        while let Some(task) = self.endpoint.poll_task() {
            match task {
                Task::Copy { op, from, late } => {
                    if let Some(place) = self.endpoint.place_mut(op) {
                        self.stock.copy_kept(&from, place, memory);
                    }
                    if let Some(message) = late {
                        self.endpoint.keep(message, from, copy_of_kept);
                    }
                }
                Task::Keep { op, message } => self.keep(op, message, memory),
                Task::Carry { from, luggage } => self.carry(from, &luggage),
                Task::Ahead(from) => self.endpoint.fetch_ahead(from, Place::kept),
                Task::Answer(greeting) => {
                    if self.word(greeting.from, greeting.seal_at) == Some(greeting.seal) {
                        self.endpoint.handle_readable(greeting);
                    }
                }
                Task::Fetch(fetch) => {
                    if self.endpoint.is_kept(&fetch.envelope)
                        && let Some(place) = self.endpoint.place_mut(fetch.op)
                    {
                        place.keep();
                    }
                    let is_whole = self.read(&fetch, memory);
                    self.moves += 1;
                    self.endpoint.handle_fetched(fetch, is_whole);
                    self.flush(fetch.from, memory);
                }
            }
        }
    }

    /// Does what was left when operations outlasted a repair.
    pub(super) fn act_on_rest(&mut self, memory: &mut Memory<'_>) {
        if self.endpoint.has_tasks() {
            self.act(memory);
        }
    }

    /// Takes a message that was probed out of the queue, so that no other receive gets it.
    pub(crate) fn claim(&mut self, pattern: &Pattern) -> Option<(BounceId, Envelope)> {
        self.endpoint.claim_message(pattern)
    }

    /// Nobody will receive a message that was claimed.
    pub(crate) fn drop_claimed(&mut self, bounce: BounceId, length: usize) {
        // Where it belongs to a line, it was received all the same.
        if self.endpoint.has_lines() {
            let op = self.receive_claimed(bounce, Place::kept(length), &mut Memory::none());
            return self.detach(op);
        }
        self.endpoint.drop_claimed(bounce);
    }

    /// A communicator with this context and the next one exists from now on.
    pub(crate) fn open_context(&mut self, context: u32) {
        self.endpoint.open_context(context);
        self.endpoint.open_context(context + 1);
    }

    /// The same of one that was made in an earlier generation.
    pub(crate) fn open_context_again(&mut self, context: u32) {
        self.endpoint.open_context_again(context);
        self.endpoint.open_context_again(context + 1);
    }

    /// It is gone: what it held is given back.
    pub(super) fn close_context(&mut self, context: u32) {
        self.endpoint.close_context(context);
        self.endpoint.close_context(context + 1);
    }

    /// Whether `op` still has memory here.
    pub(crate) fn holds(&self, op: OpId) -> bool {
        self.endpoint.holds(op)
    }

    /// Whether `op` is finished; no look at the links.
    pub(crate) fn is_finished(&self, op: OpId) -> bool {
        self.endpoint.is_finished(op)
    }

    /// The outcome of `op` if it is finished.
    #[inline]
    pub(crate) fn finish(&mut self, op: OpId) -> Option<Finished> {
        let (outcome, place) = self.endpoint.finish(op)?;
        let place = self.stock.reclaim(place);
        Some(self.well(outcome).map(|outcome| (outcome, place)))
    }

    /// The buffer of an operation that has one of its own, and the envelope of its message, if it is finished and well.
    #[inline]
    pub(crate) fn finish_owned(&mut self, op: OpId) -> Option<(Box<dyn Buffer>, Envelope)> {
        match self.endpoint.finish_if_done(op)? {
            (Place::Owned(buffer), envelope) => Some((buffer, envelope)),
            _ => unreachable!("its place is a buffer of its own"),
        }
    }

    /// Ends a send that is done, and well, and gives its place back; whether it was.
    pub(super) fn finish_if_done(&mut self, op: OpId) -> bool {
        let Some((place, _)) = self.endpoint.finish_if_done(op) else { return false };
        self.stock.reclaim(place);
        true
    }

    /// The error of an operation that did not end well.
    #[inline]
    pub(super) fn well(&self, outcome: Outcome) -> Result<Outcome, CommError> {
        let generation = self.endpoint.generation();
        match outcome {
            Outcome::Failed(rank) => Err(CommError::PeerFailed { ranks: vec![rank], generation }),
            Outcome::Revoked => Err(CommError::Revoked { generation }),
            Outcome::Done(_) | Outcome::Truncated { .. } => Ok(outcome),
        }
    }

    /// Withdraws a receive that nothing has matched; none if a message is on its way into it.
    pub(crate) fn cancel(&mut self, op: OpId) -> Option<Option<Place>> {
        self.endpoint.cancel(op).map(|place| self.stock.reclaim(place))
    }

    /// Nobody waits for `op` any more: a receive that nothing has matched is withdrawn, other operations
    /// finish behind the program's back.
    pub(crate) fn detach(&mut self, op: OpId) {
        self.endpoint.record_no_more(op);
        if let Some(place) = self.endpoint.detach(op) {
            self.stock.reclaim(place);
        }
    }

    /// As [`Engine::detach`] for an operation on lent memory, which it must not touch any more: what is still to be
    /// sent is copied, what is still to come is dropped.
    pub(crate) fn abandon(&mut self, op: OpId, memory: &mut Memory<'_>) {
        let is_send = self.endpoint.is_send(op);
        if let Some(place) = self.endpoint.place_mut(op) {
            let kept = if is_send {
                self.seal.change();
                Place::Kept(self.stock.copy(place, memory))
            } else {
                Place::Gone(place.len())
            };
            self.stock.reclaim(std::mem::replace(place, kept));
        }
        self.detach(op);
    }

    /// Frees what detached operations have finished with.
    pub(super) fn sweep(&mut self) {
        while let Some(place) = self.endpoint.reap() {
            self.stock.reclaim(place);
        }
    }

    /// No link leads to `rank` any more: receives whose payload was coming from it end.
    pub(super) fn shut(&mut self, rank: Rank) {
        for landing in self.links.shut(rank) {
            self.endpoint.handle_torn(rank, landing);
        }
    }

    /// `rank` has failed: what needs it ends, and so do receives from anybody of these contexts.
    pub(super) fn bury(&mut self, rank: Rank, contexts: &[u32]) {
        self.shut(rank);
        self.endpoint.handle_loss(rank, contexts);
        self.moves += 1;
    }

    /// The communicator with this context and the next one was revoked.
    pub(super) fn revoke(&mut self, context: u32) {
        self.seal.change();
        self.endpoint.handle_revocation(context);
        self.endpoint.handle_revocation(context + 1);
        self.moves += 1;
    }

    /// Takes in links that others have opened.
    pub(super) fn accept(&mut self) {
        while let Some((rank, link)) = self.links.accepted() {
            self.greet(rank, link);
        }
    }

    /// Waits until links take or give something, at most so long, and takes what they give; true if there was something.
    pub(super) fn wait(&mut self, sleep: Duration, memory: &mut Memory<'_>) -> bool {
        let blocked: Vec<LinkId> =
            self.endpoint.busy().iter().filter_map(|rank| self.links.outbound(*rank)).collect();
        let mut moved = self.look_beside(memory);
        let ready = self.links.wait(&blocked, if moved { Duration::ZERO } else { sleep });
        for link in &ready {
            moved |= self.drain(*link, memory);
        }
        self.links.done_with(ready);
        moved | self.look_beside(memory)
    }
}

#[cfg(test)]
mod tests;
