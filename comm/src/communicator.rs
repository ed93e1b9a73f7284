//! Communicators: the calls that a program makes.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use crate::collective::{
    self, Step, allgather_dissemination, barrier_dissemination, bcast_binomial, gather_linear,
    reduce_binomial,
};
use crate::core::Core;
use crate::driver::{Memory, Place};
use crate::error::CommError;
use crate::plain::{Op, Plain, Reduce};
use crate::proto::endpoint::OpId;
use crate::proto::matching::{Envelope, Pattern};
use crate::rank::{Generation, Rank, Source, Status, Tag, TagSel};
use crate::request::{Request, status};

/// A group of ranks with a context of its own: messages of one communicator never meet those of another.
///
/// A handle stays valid through repairs: it speaks in the generation of its world. After a failure every call
/// returns [`CommError::PeerFailed`] until `World::repair` has returned. Cloning gives another handle of the
/// same communicator.
#[derive(Clone)]
pub struct Communicator {
    core: Rc<RefCell<Core>>,
    /// World rank of each rank.
    group: Rc<[Rank]>,
    me: Option<Rank>,
    context: u32,
    /// Collectives begun in a generation; their number is their tag.
    sequence: Rc<Cell<(Generation, u32)>>,
}

impl std::fmt::Debug for Communicator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Communicator").field("group", &self.group).field("rank", &self.me).finish()
    }
}

/// A message of [`Communicator::exchange`]: a part of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The rank it goes to or comes from.
    pub peer: Rank,
    /// Tag of the message.
    pub tag: Tag,
    /// Elements of the buffer.
    pub range: Range<usize>,
}

fn bytes_of<T: Plain>(elements: Range<usize>) -> Range<usize> {
    elements.start * size_of::<T>()..elements.end * size_of::<T>()
}

impl Communicator {
    pub(crate) fn new(core: Rc<RefCell<Core>>, group: Vec<Rank>, world_rank: Rank, context: u32) -> Self {
        let me = group.iter().position(|&rank| rank == world_rank);
        Self { core, group: group.into(), me, context, sequence: Rc::new(Cell::new((0, 0))) }
    }

    /// Rank of this process in the communicator.
    ///
    /// # Panics
    /// This process is no member (a parity rank asks for its rank among those that compute).
    pub fn rank(&self) -> Rank {
        self.me.expect("this process is a member of the communicator")
    }

    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.group.len()
    }

    fn world(&self, rank: Rank) -> Result<Rank, CommError> {
        let size = self.size();
        self.group.get(rank).copied().ok_or(CommError::RankOutOfRange { rank, size })
    }

    fn pattern(&self, source: Source, tag: TagSel) -> Result<Pattern, CommError> {
        let source = match source {
            Source::Any => None,
            Source::Rank(rank) => Some(self.world(rank)? as u32),
        };
        let tag = match tag {
            TagSel::Any => None,
            TagSel::Tag(tag) => Some(tag),
        };
        Ok(Pattern { context: self.context, source, tag })
    }

    // ---- point to point ----

    /// Sends `buf` to `dest` (`MPI_Send`): returns when the buffer may be changed. A message of up to
    /// [`crate::EAGER_BYTES_MAX`] bytes usually leaves before it is received; a longer one waits for its
    /// receive.
    ///
    /// # Errors
    /// A failure, or `dest` does not exist.
    pub fn send<T: Plain>(&self, buf: &[T], dest: Rank, tag: Tag) -> Result<(), CommError> {
        let to = self.world(dest)?;
        let core = &mut *self.core.borrow_mut();
        core.enter()?;
        let bytes: &[u8] = bytemuck::cast_slice(buf);
        let mut memory = Memory { read: bytes, write: &mut [] };
        let op = core.driver.send(to, self.context, tag, Place::Read(0..bytes.len()), &mut memory)?;
        core.driver.wait(op, Some(to), &mut memory).map(|_| ())
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
        let pattern = self.pattern(source.into(), tag.into())?;
        let core = &mut *self.core.borrow_mut();
        core.enter()?;
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(buf);
        let length = bytes.len();
        let mut memory = Memory { read: &[], write: bytes };
        let op = core.driver.receive(pattern, Place::Write(0..length), &mut memory)?;
        let hint = pattern.source.map(|rank| rank as Rank);
        let (outcome, _) = core.driver.wait(op, hint, &mut memory)?;
        status(outcome, &self.group)
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
        let core = &mut *self.core.borrow_mut();
        core.enter()?;
        let read: &[u8] = bytemuck::cast_slice(out);
        let write: &mut [u8] = bytemuck::cast_slice_mut(buf);
        let room = write.len();
        let mut memory = Memory { read, write };
        let receive = core.driver.receive(pattern, Place::Write(0..room), &mut memory)?;
        let send = core.driver.send(to, self.context, tag, Place::Read(0..read.len()), &mut memory)?;
        let hint = pattern.source.map(|rank| rank as Rank);
        let (outcome, _) = core.driver.wait(receive, hint, &mut memory)?;
        core.driver.wait(send, Some(to), &mut memory)?;
        status(outcome, &self.group)
    }

    /// Starts a send that owns its buffer (`MPI_Isend`).
    ///
    /// # Errors
    /// As [`Communicator::send`]; later ones are returned by [`Request::wait`].
    pub fn isend<T: Plain>(&self, buf: Vec<T>, dest: Rank, tag: Tag) -> Result<Request<T>, CommError> {
        let to = self.world(dest)?;
        let core = &mut *self.core.borrow_mut();
        core.enter()?;
        let place = Place::Owned(Box::new(buf));
        let op = core.driver.send(to, self.context, tag, place, &mut Memory::none())?;
        Ok(self.request(core, Some(to), op))
    }

    /// Starts a receive into a buffer that it owns (`MPI_Irecv`); the length of `buf` is the room.
    ///
    /// # Errors
    /// As [`Communicator::recv`]; later ones are returned by [`Request::wait`].
    pub fn irecv<T: Plain>(
        &self,
        buf: Vec<T>,
        source: impl Into<Source>,
        tag: impl Into<TagSel>,
    ) -> Result<Request<T>, CommError> {
        let pattern = self.pattern(source.into(), tag.into())?;
        let core = &mut *self.core.borrow_mut();
        core.enter()?;
        let op = core.driver.receive(pattern, Place::Owned(Box::new(buf)), &mut Memory::none())?;
        Ok(self.request(core, pattern.source.map(|rank| rank as Rank), op))
    }

    /// Exchanges parts of buffers with any number of ranks at once, as a halo exchange does: every part of
    /// `sends` leaves from `out`, every part of `recvs` arrives in `buf`, each as one message. Lengths must agree
    /// on both sides; parts of `recvs` must not overlap.
    ///
    /// # Errors
    /// A failure, a rank that does not exist, or a message of another length ([`CommError::Count`]).
    pub fn exchange<T: Plain>(
        &self,
        out: &[T],
        sends: &[Part],
        buf: &mut [T],
        recvs: &[Part],
    ) -> Result<(), CommError> {
        // Nothing may be under way in borrowed memory when an argument is refused.
        sends.iter().chain(recvs).try_for_each(|part| self.world(part.peer).map(|_| ()))?;
        let core = &mut *self.core.borrow_mut();
        core.enter()?;
        let driver = &mut core.driver;
        let mut memory = Memory { read: bytemuck::cast_slice(out), write: bytemuck::cast_slice_mut(buf) };
        let mut ops = Vec::with_capacity(recvs.len() + sends.len());
        for Part { peer, tag, range } in recvs {
            let pattern = self.pattern(Source::Rank(*peer), TagSel::Tag(*tag))?;
            let place = Place::Write(bytes_of::<T>(range.clone()));
            ops.push((driver.receive(pattern, place, &mut memory)?, *peer));
        }
        for Part { peer, tag, range } in sends {
            let (to, place) = (self.world(*peer)?, Place::Read(bytes_of::<T>(range.clone())));
            ops.push((driver.send(to, self.context, *tag, place, &mut memory)?, *peer));
        }
        let mut mismatch = None;
        for (at, (op, peer)) in ops.into_iter().enumerate() {
            let (outcome, _) = driver.wait(op, Some(self.group[peer]), &mut memory)?;
            let due = recvs.get(at).map(|part| part.range.len() * size_of::<T>());
            match (status(outcome, &self.group), due) {
                (Ok(Status { bytes, .. }), Some(due)) if bytes != due => {
                    let text = format!("exchange got {bytes} bytes from rank {peer}, {due} were due");
                    mismatch = Some(CommError::Count(text));
                }
                (Ok(_), _) => {}
                (Err(error), _) => mismatch = Some(error),
            }
        }
        mismatch.map_or(Ok(()), Err)
    }

    fn request<T: Plain>(&self, core: &Core, hint: Option<Rank>, op: OpId) -> Request<T> {
        Request::new(self.core.clone(), self.group.clone(), core.generation(), hint, op)
    }

    fn found(&self, envelope: Envelope) -> Status {
        status(crate::proto::endpoint::Outcome::Done(envelope), &self.group)
            .expect("an envelope is no truncation")
    }

    /// Waits for a message that a receive with these arguments would take, without receiving it
    /// (`MPI_Probe`).
    ///
    /// # Errors
    /// A failure, or `source` does not exist.
    pub fn probe(&self, source: impl Into<Source>, tag: impl Into<TagSel>) -> Result<Status, CommError> {
        let pattern = self.pattern(source.into(), tag.into())?;
        let core = &mut *self.core.borrow_mut();
        core.enter()?;
        Ok(self.found(core.driver.probe_wait(&pattern)?))
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
        let core = &mut *self.core.borrow_mut();
        core.enter()?;
        Ok(core.driver.probe(&pattern)?.map(|envelope| self.found(envelope)))
    }

    // ---- collectives ----

    /// No rank returns before every rank has called (`MPI_Barrier`). Dissemination.
    ///
    /// # Errors
    /// A failure.
    pub fn barrier(&self) -> Result<(), CommError> {
        let steps = barrier_dissemination(self.rank(), self.size());
        self.execute::<u8>(&steps, &mut [], |_, _| {})
    }

    /// All ranks get the `buf` of `root`; lengths are equal on all ranks (`MPI_Bcast`). Binomial tree.
    ///
    /// # Errors
    /// A failure, or `root` does not exist.
    pub fn bcast<T: Plain>(&self, buf: &mut [T], root: Rank) -> Result<(), CommError> {
        self.world(root)?;
        let steps = bcast_binomial(self.rank(), self.size(), root, buf.len());
        self.execute(&steps, buf, |_, _| {})
    }

    /// The `buf` of `root` becomes the elementwise reduction over all ranks; the others' are unspecified
    /// afterwards (`MPI_Reduce`, in place). Binomial tree.
    ///
    /// # Errors
    /// A failure, or `root` does not exist.
    pub fn reduce<T: Reduce>(&self, buf: &mut [T], op: Op, root: Rank) -> Result<(), CommError> {
        self.world(root)?;
        let steps = reduce_binomial(self.rank(), self.size(), root, buf.len());
        self.execute(&steps, buf, |into, from| T::combine(op, into, from))
    }

    /// `buf` becomes the elementwise reduction over all ranks, with the same bits everywhere
    /// (`MPI_Allreduce`, in place). The algorithm depends on size and length only.
    ///
    /// # Errors
    /// A failure.
    pub fn allreduce<T: Reduce>(&self, buf: &mut [T], op: Op) -> Result<(), CommError> {
        let (rank, size, len) = (self.rank(), self.size(), buf.len());
        let steps = collective::Selection::builtin().allreduce(rank, size, len, size_of::<T>(), true);
        self.execute(&steps, buf, |into, from| T::combine(op, into, from))
    }

    /// The root gets the `mine` of all ranks, in order of ranks; lengths are equal (`MPI_Gather`).
    ///
    /// # Errors
    /// A failure, or `root` does not exist.
    pub fn gather<T: Plain>(&self, mine: &[T], root: Rank) -> Result<Option<Vec<T>>, CommError> {
        self.world(root)?;
        let (rank, size, len) = (self.rank(), self.size(), mine.len());
        let steps = gather_linear(rank, size, root, len, &collective::equal_starts(size, len));
        if rank != root {
            let mut buf = mine.to_vec();
            return self.execute(&steps, &mut buf, |_, _| {}).map(|()| None);
        }
        let mut all = vec![T::zeroed(); size * len];
        all[rank * len..(rank + 1) * len].copy_from_slice(mine);
        self.execute(&steps, &mut all, |_, _| {})?;
        Ok(Some(all))
    }

    /// `all` becomes the `mine` of all ranks, in order of ranks; `all.len() == size * mine.len()`
    /// (`MPI_Allgather`).
    ///
    /// # Errors
    /// A failure, or the lengths do not fit.
    pub fn allgather<T: Plain>(&self, mine: &[T], all: &mut [T]) -> Result<(), CommError> {
        let (rank, size, len) = (self.rank(), self.size(), mine.len());
        if all.len() != size * len {
            let text = format!("allgather of {size} parts of {len} elements into {}", all.len());
            return Err(CommError::Count(text));
        }
        all[rank * len..(rank + 1) * len].copy_from_slice(mine);
        self.allgatherv(all, &vec![len; size])
    }

    /// Rank `r` has `counts[r]` elements of `buf`, in order of ranks, in place already; all ranks get all of
    /// them (`MPI_Allgatherv`, in place).
    ///
    /// # Errors
    /// A failure, or the counts do not fit.
    pub fn allgatherv<T: Plain>(&self, buf: &mut [T], counts: &[usize]) -> Result<(), CommError> {
        let mut starts = vec![0];
        starts.extend(counts.iter().scan(0, |end, count| {
            *end += count;
            Some(*end)
        }));
        if counts.len() != self.size() || starts.last() != Some(&buf.len()) {
            let text = format!("allgatherv of counts {counts:?} into {} elements", buf.len());
            return Err(CommError::Count(text));
        }
        let steps = allgather_dissemination(self.rank(), self.size(), &starts);
        self.execute(&steps, buf, |_, _| {})
    }

    /// Runs the steps of one rank: the one place where collectives meet the wire, and failures.
    fn execute<T: Plain>(
        &self,
        steps: &[Step],
        buf: &mut [T],
        combine: impl Fn(&mut [T], &[T]),
    ) -> Result<(), CommError> {
        let core = &mut *self.core.borrow_mut();
        core.enter_collective()?;
        let driver = &mut core.driver;
        let generation = driver.generation();
        let (started, number) = self.sequence.get();
        let tag = if started == generation { number } else { 0 };
        self.sequence.set((generation, tag.wrapping_add(1)));
        // Collectives have a context of their own beside that of the point-to-point messages.
        let context = self.context + 1;

        let mut sends: Vec<(OpId, Range<usize>)> = Vec::new();
        let mut scratch: Vec<T> = Vec::new();
        for step in steps {
            match step {
                Step::Send { to, part } => {
                    let part = &part.range;
                    let mut memory = Memory { read: &[], write: bytemuck::cast_slice_mut(buf) };
                    let place = Place::Write(bytes_of::<T>(part.clone()));
                    let op = driver.send(self.group[*to], context, tag, place, &mut memory)?;
                    sends.push((op, part.clone()));
                }
                Step::Recv { from, part } | Step::RecvReduce { from, part, .. } => {
                    let part = &part.range;
                    let from = self.group[*from];
                    let pattern = Pattern { context, source: Some(from as u32), tag: Some(tag) };
                    let reduce = matches!(step, Step::RecvReduce { .. });
                    let place = if reduce {
                        scratch.resize(part.len(), T::zeroed());
                        Place::Owned(Box::new(std::mem::take(&mut scratch)))
                    } else {
                        Place::Write(bytes_of::<T>(part.clone()))
                    };
                    if !reduce {
                        settle(driver, &mut sends, part, buf)?;
                    }
                    let mut memory = Memory { read: &[], write: bytemuck::cast_slice_mut(buf) };
                    let op = driver.receive(pattern, place, &mut memory)?;
                    let (outcome, place) = driver.wait(op, Some(from), &mut memory)?;
                    let due = part.len() * size_of::<T>();
                    let fits = status(outcome, &self.group).and_then(|Status { bytes, .. }| {
                        let text =
                            || format!("a collective got {bytes} bytes from rank {from}, {due} were due");
                        if bytes == due { Ok(()) } else { Err(CommError::Count(text())) }
                    });
                    if let Err(mismatch) = fits {
                        // What is under way uses `buf`, which is lent for this call only.
                        settle(driver, &mut sends, &(0..usize::MAX), buf)?;
                        return Err(mismatch);
                    }
                    if let (true, Some(Place::Owned(buffer))) = (reduce, place) {
                        scratch = *buffer.into_any().downcast::<Vec<T>>().expect("the type is ours");
                        settle(driver, &mut sends, part, buf)?;
                        combine(&mut buf[part.clone()], &scratch);
                    }
                }
                Step::Fence => {} // receives are done when they return
                other => unreachable!("no algorithm has {other:?} yet"),
            }
        }
        settle(driver, &mut sends, &(0..usize::MAX), buf)
    }
}

/// Waits until no send of a part that overlaps `part` is under way.
fn settle<T: Plain>(
    driver: &mut crate::driver::Driver,
    sends: &mut Vec<(OpId, Range<usize>)>,
    part: &Range<usize>,
    buf: &mut [T],
) -> Result<(), CommError> {
    let mut memory = Memory { read: &[], write: bytemuck::cast_slice_mut(buf) };
    let mut at = 0;
    while at < sends.len() {
        let sent = &sends[at].1;
        // An empty message touches no memory, but at the end it is to have left as well.
        let overlaps = part.end == usize::MAX || (sent.start < part.end && part.start < sent.end);
        if overlaps {
            let (op, _) = sends.swap_remove(at);
            driver.wait(op, None, &mut memory)?;
        } else {
            at += 1;
        }
    }
    Ok(())
}
