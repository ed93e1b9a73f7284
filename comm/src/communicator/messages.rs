//! Point-to-point messages of plain data (MPI 4.1, chapter 3).

use std::rc::Rc;

use super::*;
use crate::driver::Sent;
use crate::request::{Recorded, RequestRecord};
use ft_proto::endpoint::BounceId;
use ft_proto::layout::Layout;
use ft_proto::stamp::Mark;

impl Communicator {
    /// Sends `buf` to `dest` (`MPI_Send`): returns when the buffer may be changed.
    ///
    /// # Errors
    /// A failure, or `dest` does not exist.
    pub fn send<T: Plain>(&self, buf: &[T], dest: Rank, tag: Tag) -> Result<(), CommError> {
        let bytes: &[u8] = bytemuck::cast_slice(buf);
        self.send_from("send", bytes, all(bytes), dest, tag, Mode::Standard)
    }

    /// Sends `buf` to `dest` and returns when its receive has matched (`MPI_Ssend`).
    ///
    /// # Errors
    /// As [`Communicator::send`].
    pub fn ssend<T: Plain>(&self, buf: &[T], dest: Rank, tag: Tag) -> Result<(), CommError> {
        let bytes: &[u8] = bytemuck::cast_slice(buf);
        self.send_from("ssend", bytes, all(bytes), dest, tag, Mode::Synchronous)
    }

    /// Sends the elements of `buf` that `layout` names, in its order (`MPI_Send` of a derived datatype): a matrix
    /// column, a face of a block. No packed copy of the whole is made.
    ///
    /// # Errors
    /// As [`Communicator::send`], or `layout` names elements that `buf` has not ([`CommError::Layout`]).
    pub fn send_layout<T: Plain>(
        &self,
        buf: &[T],
        layout: &Layout,
        dest: Rank,
        tag: Tag,
    ) -> Result<(), CommError> {
        let extent = extent::<T>(layout, buf.len(), false)?;
        self.send_from("send", bytemuck::cast_slice(buf), extent, dest, tag, Mode::Standard)
    }

    /// A message of this communicator to world rank `to`.
    fn letter(&self, to: Rank, tag: Tag, mode: Mode, urgency: Urgency) -> Letter {
        Letter { to, context: self.shared.context, tag, mode, urgency }
    }

    fn send_from(
        &self,
        call: &'static str,
        bytes: &[u8],
        extent: Extent,
        dest: Rank,
        tag: Tag,
        mode: Mode,
    ) -> Result<(), CommError> {
        let to = self.world(dest)?;
        let Some(mut core) = self.core.pass() else { return Err(self.core.refusal()) };
        let core = &mut *core;
        self.enter(core)?;
        core.driver.waiting.enter(call, self.shared.context, Some(tag));
        let mut memory = Memory::of(bytes, &mut []);
        let letter = self.letter(to, tag, mode, Urgency::Now);
        core.send_wait(letter, Place::Read(extent), &mut memory)
    }

    /// Sends a copy of `buf` to `dest` and returns at once (`MPI_Bsend`).
    ///
    /// # Errors
    /// As [`Communicator::send`]; [`CommError::Buffer`]: copies of earlier ones have not left and take too much room.
    pub fn bsend<T: Plain>(&self, buf: &[T], dest: Rank, tag: Tag) -> Result<(), CommError> {
        let to = self.world(dest)?;
        let core = &mut *self.core.enter()?;
        self.enter(core)?;
        let wanted = size_of_val(buf);
        core.reserve_buffer(wanted)?;
        let place = Place::Owned(Box::new(buf.to_vec()));
        let letter = self.letter(to, tag, Mode::Standard, Urgency::Soon);
        let op = core.driver.send(letter, place, &mut Memory::none())?;
        core.has_buffered(op, wanted);
        core.driver.engine.detach(op);
        Ok(())
    }

    /// Receives into the front of `buf` (`MPI_Recv`); `source` and `tag` may be wildcards.
    ///
    /// # Errors
    /// A failure, `source` does not exist, or the message is longer than `buf`
    /// ([`CommError::Truncated`]: it is still to be received).
    pub fn recv<T: Plain>(
        &self,
        buf: &mut [T],
        source: impl Into<Source>,
        tag: impl Into<TagSel>,
    ) -> Result<Status, CommError> {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(buf);
        let extent = all(bytes);
        self.recv_into(bytes, extent, source.into(), tag.into())
    }

    /// Receives into the elements of `buf` that `layout` names, in its order (`MPI_Recv` of a derived datatype).
    ///
    /// # Errors
    /// As [`Communicator::recv`], or `layout` names elements that `buf` has not, or one twice
    /// ([`CommError::Layout`]).
    pub fn recv_layout<T: Plain>(
        &self,
        buf: &mut [T],
        layout: &Layout,
        source: impl Into<Source>,
        tag: impl Into<TagSel>,
    ) -> Result<Status, CommError> {
        let extent = extent::<T>(layout, buf.len(), true)?;
        self.recv_into(bytemuck::cast_slice_mut(buf), extent, source.into(), tag.into())
    }

    fn recv_into(
        &self,
        bytes: &mut [u8],
        extent: Extent,
        source: Source,
        tag: TagSel,
    ) -> Result<Status, CommError> {
        let pattern = self.pattern(source, tag)?;
        let Some(mut core) = self.core.pass() else { return Err(self.core.refusal()) };
        let core = &mut *core;
        self.enter(core)?;
        core.driver.waiting.enter("recv", self.shared.context, pattern.tag);
        let mut memory = Memory::of(&[], bytes);
        let outcome = core.receive_wait(pattern, Place::Write(extent), &mut memory)?;
        self.members().status(outcome)
    }

    /// Sends and receives at once (`MPI_Sendrecv`); cannot deadlock with itself.
    ///
    /// # Errors
    /// As [`Communicator::send`] and [`Communicator::recv`].
    pub fn sendrecv<T: Plain>(
        &self,
        out: &[T],
        dest: Rank,
        buf: &mut [T],
        source: impl Into<Source>,
        tag: Tag,
    ) -> Result<Status, CommError> {
        let (to, pattern) = (self.world(dest)?, self.pattern(source.into(), tag.into())?);
        let Some(mut core) = self.core.pass() else { return Err(self.core.refusal()) };
        let core = &mut *core;
        self.enter(core)?;
        core.driver.waiting.enter("sendrecv", self.shared.context, Some(tag));
        let (read, write) = (bytemuck::cast_slice(out), bytemuck::cast_slice_mut(buf));
        let (sent, room) = (all(read), all(write));
        let mut memory = Memory::of(read, write);
        let letter = self.letter(to, tag, Mode::Standard, Urgency::Now);
        let (sent, room) = (Place::Read(sent), Place::Write(room));
        self.members().status(core.send_and_receive(letter, sent, pattern, room, &mut memory)?)
    }

    /// Sends `buf` and receives into it (`MPI_Sendrecv_replace`).
    ///
    /// # Errors
    /// As [`Communicator::sendrecv`].
    pub fn sendrecv_replace<T: Plain>(
        &self,
        buf: &mut [T],
        dest: Rank,
        source: impl Into<Source>,
        tag: Tag,
    ) -> Result<Status, CommError> {
        let out = buf.to_vec();
        self.sendrecv(&out, dest, buf, source, tag)
    }

    /// Starts a send that owns its buffer (`MPI_Isend`).
    ///
    /// # Errors
    /// As [`Communicator::send`]; later ones are returned by [`Request::wait`].
    #[inline]
    pub fn isend<T: Plain>(&self, buf: Vec<T>, dest: Rank, tag: Tag) -> Result<Request<T>, CommError> {
        self.start_send(buf, dest, tag, Mode::Standard)
    }

    /// Starts a send that ends after its receive has matched (`MPI_Issend`).
    ///
    /// # Errors
    /// As [`Communicator::isend`].
    pub fn issend<T: Plain>(&self, buf: Vec<T>, dest: Rank, tag: Tag) -> Result<Request<T>, CommError> {
        self.start_send(buf, dest, tag, Mode::Synchronous)
    }

    #[inline]
    fn start_send<T: Plain>(
        &self,
        buf: Vec<T>,
        dest: Rank,
        tag: Tag,
        mode: Mode,
    ) -> Result<Request<T>, CommError> {
        let to = self.world(dest)?;
        let Some(mut core) = self.core.pass() else { return Err(self.core.refusal()) };
        let core = &mut *core;
        self.enter(core)?;
        let letter = self.letter(to, tag, mode, Urgency::Soon);
        let state = match core.driver.send_owned(letter, buf)? {
            Sent::Left(buf, envelope) => State::Left(buf, envelope),
            Sent::Begun(op) => State::Under(op),
        };
        Ok(self.handle(core, Aim::To(to as u32), state))
    }

    /// Starts a receive into a buffer that it owns (`MPI_Irecv`); the length of `buf` is the room.
    ///
    /// # Errors
    /// As [`Communicator::recv`]; later ones are returned by [`Request::wait`].
    #[inline]
    pub fn irecv<T: Plain>(
        &self,
        buf: Vec<T>,
        source: impl Into<Source>,
        tag: impl Into<TagSel>,
    ) -> Result<Request<T>, CommError> {
        let pattern = self.pattern(source.into(), tag.into())?;
        let Some(mut core) = self.core.pass() else { return Err(self.core.refusal()) };
        let core = &mut *core;
        self.enter(core)?;
        let op = core.driver.receive(pattern, Place::Owned(Box::new(buf)), &mut Memory::none())?;
        Ok(self.handle(core, Aim::From(pattern.source, pattern.tag), State::Under(op)))
    }

    /// Makes a request of this communicator again, with a buffer as that of then: a receive takes what the one of then took, or would have taken; a send is done.
    /// It has a record, as before.
    ///
    /// # Errors
    /// A failure; [`CommError::TooSoon`]: this rank is not in a step.
    pub fn request<T: Plain>(&self, record: &RequestRecord, buf: Vec<T>) -> Result<Request<T>, CommError> {
        let core = &mut *self.core.enter()?;
        self.enter(core)?;
        if !core.driver.engine.may_receive_again() {
            return Err(CommError::TooSoon);
        }
        let context = self.shared.context;
        Ok(match record.0 {
            Recorded::Send => {
                let (source, length) = (core.driver.count(true).1 as u32, size_of_val(&buf[..]) as u64);
                let envelope = Envelope { context, source, tag: 0, mark: Mark::NONE, length };
                self.handle(core, Aim::To(source), State::Left(buf, envelope))
            }
            Recorded::Receive { source, tag, number } => {
                let pattern = Pattern { context, source, tag };
                let op = core.driver.receive_again(pattern, number, Place::Owned(Box::new(buf)))?;
                core.driver.engine.record(op, context, true);
                self.handle(core, Aim::From(source, tag), State::Under(op))
            }
        })
    }

    /// Waits for a message that a receive with these arguments would take, without receiving it
    /// (`MPI_Probe`).
    ///
    /// # Errors
    /// A failure, or `source` does not exist.
    pub fn probe(&self, source: impl Into<Source>, tag: impl Into<TagSel>) -> Result<Status, CommError> {
        let pattern = self.pattern(source.into(), tag.into())?;
        let core = &mut *self.core.enter()?;
        self.enter(core)?;
        core.driver.waiting.enter("probe", self.shared.context, pattern.tag);
        Ok(self.members().found(core.probe_wait(&pattern)?))
    }

    /// As [`Communicator::probe`], but returns at once (`MPI_Iprobe`).
    ///
    /// # Errors
    /// As [`Communicator::probe`].
    pub fn iprobe(
        &self,
        source: impl Into<Source>,
        tag: impl Into<TagSel>,
    ) -> Result<Option<Status>, CommError> {
        let pattern = self.pattern(source.into(), tag.into())?;
        let core = &mut *self.core.enter()?;
        self.enter(core)?;
        Ok(core.probe(&pattern)?.map(|envelope| self.members().found(envelope)))
    }

    /// As [`Communicator::probe`], and takes the message, so that no other receive gets it (`MPI_Mprobe`).
    ///
    /// # Errors
    /// As [`Communicator::probe`].
    pub fn mprobe(&self, source: impl Into<Source>, tag: impl Into<TagSel>) -> Result<Message, CommError> {
        let pattern = self.pattern(source.into(), tag.into())?;
        let core = &mut *self.core.enter()?;
        self.enter(core)?;
        core.driver.waiting.enter("mprobe", self.shared.context, pattern.tag);
        let found = core.probe_wait(&pattern)?;
        Ok(self
            .claimed(core, &named(&found))
            .expect("a message that a probe has found stays until this rank takes it"))
    }

    /// As [`Communicator::mprobe`], but returns at once (`MPI_Improbe`).
    ///
    /// # Errors
    /// As [`Communicator::probe`].
    pub fn improbe(
        &self,
        source: impl Into<Source>,
        tag: impl Into<TagSel>,
    ) -> Result<Option<Message>, CommError> {
        let pattern = self.pattern(source.into(), tag.into())?;
        let core = &mut *self.core.enter()?;
        self.enter(core)?;
        let found = core.probe(&pattern)?;
        Ok(found.and_then(|found| self.claimed(core, &named(&found))))
    }

    fn claimed(&self, core: &mut Core, pattern: &Pattern) -> Option<Message> {
        let (bounce, envelope) = core.driver.engine.claim(pattern)?;
        let generation = core.driver.age(self.shared.context);
        Some(Message { comm: self.clone(), generation, bounce: Some(bounce), envelope })
    }
}

/// What accepts the messages that are as this one.
fn named(message: &Envelope) -> Pattern {
    Pattern { context: message.context, source: Some(message.source), tag: Some(message.tag) }
}

/// The bytes of a layout of elements of type `T` over a buffer of `length` of them.
pub(super) fn extent<T: Plain>(layout: &Layout, length: usize, written: bool) -> Result<Extent, CommError> {
    if layout.end() > length {
        let end = layout.end();
        return Err(CommError::Layout(format!("a layout of elements up to {end} over a buffer of {length}")));
    }
    if written && layout.overlaps_itself() {
        return Err(CommError::Layout("a layout to receive into names an element twice".into()));
    }
    match layout.pieces() {
        0 => Ok(Extent::Range(0..0)),
        1 => {
            let piece = layout.piece(0);
            Ok(Extent::Range(piece.start * size_of::<T>()..piece.end * size_of::<T>()))
        }
        _ => {
            let bytes = layout.scaled(size_of::<T>());
            Ok(Extent::Layout(Rc::new(bytes.map_err(|error| CommError::Layout(error.to_string()))?)))
        }
    }
}

/// A message that was probed and taken out of the queue (`MPI_Message`). Dropped without being received, its
/// payload is dropped as well.
#[derive(Debug)]
pub struct Message {
    comm: Communicator,
    generation: Generation,
    bounce: Option<BounceId>,
    envelope: Envelope,
}

impl Message {
    /// Who sent it, its tag, its length.
    pub fn status(&self) -> Status {
        self.comm.members().found(self.envelope)
    }

    /// Receives it into the front of `buf` (`MPI_Mrecv`).
    ///
    /// # Errors
    /// A failure; [`CommError::Truncated`] (receive it again with more room); [`CommError::Expired`]: a repair has
    /// come between, or it was received already.
    pub fn recv<T: Plain>(&mut self, buf: &mut [T]) -> Result<Status, CommError> {
        let core = &mut *self.comm.core.enter()?;
        self.comm.enter(core)?;
        core.driver.may_begin()?;
        let now = core.driver.age(self.comm.shared.context);
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(buf);
        let length = self.envelope.length as usize;
        if length > bytes.len() {
            let outcome = Outcome::Truncated { message: self.envelope, room: bytes.len() };
            return self.comm.members().status(outcome);
        }
        let bounce = match self.bounce.take() {
            Some(bounce) if now == self.generation => bounce,
            _ => return Err(CommError::Expired { started: self.generation, now }),
        };
        let from = self.envelope.source as Rank;
        core.driver.waiting.enter("mrecv", self.envelope.context, Some(self.envelope.tag));
        let mut memory = Memory::of(&[], bytes);
        let place = Place::Write(Extent::Range(0..length));
        let op = core.driver.receive_claimed(self.envelope.context, bounce, place, &mut memory)?;
        let (outcome, _) = core.wait(op, Some(from), &mut memory)?;
        self.comm.members().status(outcome)
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        if let (Some(bounce), Some(mut core)) = (self.bounce, self.comm.core.tidy())
            && core.driver.age(self.comm.shared.context) == self.generation
        {
            core.driver.engine.drop_claimed(bounce, self.envelope.length as usize);
        }
    }
}
