//! Sends, receives and probes: what calls ask of the endpoint, and the memory that goes with it.

use super::{ActivityId, Driver, GATHER_BYTES, Hint, Memory, Place, Urgency};
use ft_proto::endpoint::{BounceId, Landing, Mode, OpId, Outcome};
use ft_proto::error::CommError;
use ft_proto::matching::{Envelope, Pattern};
use ft_proto::rank::Rank;

impl Driver {
    /// Starts a send.
    #[expect(clippy::too_many_arguments, reason = "an envelope, its memory, and how it leaves")]
    pub(crate) fn send(
        &mut self,
        to: Rank,
        context: u32,
        tag: u32,
        place: Place,
        mode: Mode,
        urgency: Urgency,
        memory: &mut Memory<'_>,
    ) -> Result<OpId, CommError> {
        self.check()?;
        let length = self.stock.len(&place);
        self.bytes_sent += length as u64;
        if to == self.me {
            return Ok(self.send_to_self(context, tag, place, memory));
        }
        let offer = self.offer(&place, length, memory);
        let op = self.endpoint.send(to, context, tag, length as u64, mode, offer);
        self.stock.places.insert(op, place);
        let leaves = match urgency {
            Urgency::Now => true,
            Urgency::Soon => !std::mem::replace(&mut self.begun[to], true) || self.is_much(to),
        };
        if leaves {
            self.flush(to, memory)?;
        }
        Ok(op)
    }

    /// Whether the frames to a rank are worth a call of their own.
    fn is_much(&self, to: Rank) -> bool {
        let frames = self.endpoint.frames(to);
        frames.len() >= 64 || frames.iter().map(|frame| frame.length).sum::<usize>() >= GATHER_BYTES
    }

    fn send_to_self(&mut self, context: u32, tag: u32, place: Place, memory: &mut Memory<'_>) -> OpId {
        let op = self.endpoint.finished_send();
        self.stock.places.insert(op, place);
        let bytes = self.stock.copy(op, memory);
        let landing = self.endpoint.local(context, tag, bytes.len() as u64);
        match landing {
            Landing::Op(receive) => {
                let source = u32::try_from(self.me).expect("ranks are few");
                let length = bytes.len() as u64;
                let envelope = Envelope { context, source, tag, length };
                self.stock.put(landing, 0, &bytes, memory);
                self.endpoint.local_landed(receive, envelope);
            }
            Landing::Bounce(bounce) => {
                self.stock.bounces.insert(bounce, bytes);
                let claimed = self.endpoint.bounce_landed(bounce);
                debug_assert!(claimed.is_none(), "nobody can claim in between");
            }
            Landing::Nowhere | Landing::Sink => {}
        }
        op
    }

    /// Posts a receive; a message that has arrived already is taken at once.
    pub(crate) fn receive(
        &mut self,
        pattern: Pattern,
        place: Place,
        memory: &mut Memory<'_>,
    ) -> Result<OpId, CommError> {
        self.check()?;
        let (op, bounce) = self.endpoint.receive(pattern, self.stock.len(&place));
        if let (None, Some(rank)) = (bounce, self.missing_sender(&pattern)) {
            self.endpoint.cancel_for(op, rank);
        }
        self.place(op, place, bounce, memory)?;
        Ok(op)
    }

    fn place(
        &mut self,
        op: OpId,
        place: Place,
        bounce: Option<BounceId>,
        memory: &mut Memory<'_>,
    ) -> Result<(), CommError> {
        self.stock.places.insert(op, place);
        if let Some(bounce) = bounce {
            self.take(op, bounce, memory);
        }
        self.read_all(memory)
    }

    pub(super) fn take(&mut self, op: OpId, bounce: BounceId, memory: &mut Memory<'_>) {
        let bytes = self.stock.bounces.remove(bounce).unwrap_or_default();
        self.stock.put(Landing::Op(op), 0, &bytes, memory);
        self.endpoint.taken(op, bounce);
    }

    /// The first message that `pattern` accepts, after a look at the links.
    pub(crate) fn probe(&mut self, pattern: &Pattern) -> Result<Option<Envelope>, CommError> {
        self.look()?;
        Ok(self.endpoint.probe(pattern))
    }

    /// Waits for a message that `pattern` accepts.
    pub(crate) fn probe_wait(&mut self, pattern: &Pattern) -> Result<Envelope, CommError> {
        let hint = pattern.source.map(|source| source as Rank);
        self.run_until(&mut Memory::none(), hint.into(), |driver| {
            let found = driver.endpoint.probe(pattern).map(Ok);
            let broken = || {
                let gone = driver.missing_sender(pattern).map(Outcome::Failed);
                let revoked = driver.is_revoked(pattern.context).then_some(Outcome::Revoked);
                gone.or(revoked).and_then(|outcome| driver.well(outcome).err()).map(Err)
            };
            found.or_else(broken)
        })?
    }

    /// Takes a message that was probed out of the queue, so that no other receive gets it.
    pub(crate) fn claim(&mut self, pattern: &Pattern) -> Option<(BounceId, Envelope)> {
        self.endpoint.claim_message(pattern)
    }

    /// Starts the receive of a message that was claimed.
    pub(crate) fn receive_claimed(
        &mut self,
        bounce: BounceId,
        place: Place,
        memory: &mut Memory<'_>,
    ) -> Result<OpId, CommError> {
        self.check()?;
        let (op, here) = self.endpoint.receive_claimed(bounce);
        self.place(op, place, here, memory)?;
        Ok(op)
    }

    /// Nobody will receive a message that was claimed.
    pub(crate) fn drop_claimed(&mut self, bounce: BounceId) {
        if self.endpoint.drop_claimed(bounce) {
            self.stock.bounces.remove(bounce);
        }
    }

    /// A communicator with this context and the next one exists from now on.
    pub(crate) fn open_context(&mut self, context: u32) {
        self.endpoint.open_context(context);
        self.endpoint.open_context(context + 1);
    }

    /// It is gone: what it held is given back, as soon as no step list of it is under way (`MPI_Comm_free`).
    pub(crate) fn close_context(&mut self, context: u32) {
        if self.uses_context(context) {
            return self.closing.push(context);
        }
        for bounce in [context, context + 1].into_iter().flat_map(|c| self.endpoint.close_context(c)) {
            self.stock.bounces.remove(bounce);
        }
    }

    /// Waits until `op` is finished; gives its outcome and its memory back.
    pub(crate) fn wait(
        &mut self,
        op: OpId,
        hint: Option<Rank>,
        memory: &mut Memory<'_>,
    ) -> Result<(Outcome, Option<Place>), CommError> {
        let outcome = self.run_until(memory, hint.into(), |driver| driver.endpoint.finish(op))?;
        let place = self.stock.forget(op);
        self.well(outcome).map(|outcome| (outcome, place))
    }

    /// Waits until a step list is done.
    pub(crate) fn wait_activity(&mut self, id: ActivityId, memory: &mut Memory<'_>) -> Result<(), CommError> {
        self.run_until(memory, Hint::Activity(id), |driver| driver.is_done(id).then_some(()))
    }

    /// Waits until something has moved; for operations that own their memory.
    pub(crate) fn await_change(&mut self) -> Result<(), CommError> {
        let before = self.moves;
        // Another call may have sent or received what a step list waited for.
        self.advance_all(&mut Memory::none())?;
        let moved = |driver: &mut Self| (driver.moves != before).then_some(());
        self.run_until(&mut Memory::none(), Hint::Any, moved)
    }

    /// Whether `op` still has memory here.
    pub(crate) fn holds(&self, op: OpId) -> bool {
        self.stock.places.contains_key(op)
    }

    /// Whether `op` is finished; no look at the links.
    pub(crate) fn is_finished(&self, op: OpId) -> bool {
        self.endpoint.is_finished(op)
    }

    /// The outcome of `op` if it is finished.
    pub(crate) fn finish(&mut self, op: OpId) -> Option<Result<(Outcome, Option<Place>), CommError>> {
        let outcome = self.endpoint.finish(op)?;
        let place = self.stock.forget(op);
        Some(self.well(outcome).map(|outcome| (outcome, place)))
    }

    /// Withdraws a receive that nothing has matched; false if a message is on its way into it.
    pub(crate) fn cancel(&mut self, op: OpId) -> Option<Option<Place>> {
        self.endpoint.cancel(op).then(|| self.stock.forget(op))
    }

    /// Nobody waits for `op` any more: a receive that nothing has matched is withdrawn, other operations
    /// finish behind the program's back.
    pub(crate) fn detach(&mut self, op: OpId) {
        if self.endpoint.cancel(op) || self.endpoint.finish(op).is_some() {
            self.stock.forget(op);
        } else if self.stock.places.contains_key(op) {
            self.detached.push(op);
        }
    }

    /// As [`Driver::detach`] for an operation on lent memory, which it must not touch any more: what is still to be
    /// sent is copied, what is still to come is dropped.
    pub(crate) fn abandon(&mut self, op: OpId, memory: &mut Memory<'_>) {
        if self.endpoint.is_send(op) {
            self.seal.change();
            let copy = self.stock.copy(op, memory);
            self.stock.places.insert(op, Place::Owned(Box::new(copy)));
        } else if let Some(place) = self.stock.places.get(op) {
            let gone = Place::Gone(self.stock.len(place));
            self.stock.forget(op);
            self.stock.places.insert(op, gone);
        }
        self.detach(op);
    }
}
