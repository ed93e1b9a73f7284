//! Bytes between two processes of a host through memory that both have: a ring for each direction.
//!
//! The opener of a link makes the memory, a file without a name, and sends it along with the first message of the handshake, which takes the job key. Between
//! ranks that share memory the answer has one byte more, which says whether it was taken ([`RING_TAKEN`]). The socket of the link
//! stays: its end is the news of a death, and a byte on it wakes who sleeps. Nothing else goes over it.
//!
//! A ring is a row of bytes and two positions that only grow: as far as was written (*head*), by the sender, and as far as was
//! read (*tail*), by the receiver. Bytes are there before the head says so, and are out before the tail says so. So a sender that is killed has published
//! whole pieces or nothing, and a receiver never sees what is being written.
//!
//! Who is about to sleep says so in a word of the ring, and looks again; who has published something looks at that word. Between the writing and the
//! looking each has a full fence, so one of the two sees the other, and no wake-up is lost (Dekker's algorithm).
//!
//! The other side is not trusted. What it writes are numbers and bytes: a number is read once, and one that cannot be is the end of the
//! link; bytes are copied out once, and judged by those above.
//!
//! The protocol is in this file, over [`Shared`]; the memory itself is in `ring/mapped.rs`.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::SendFlags;
use socket2::Socket;

use mapped::{Half, Mapped};

mod mapped;

/// Behind the answer: memory was offered and taken. Any other byte: there is none.
pub(super) const RING_TAKEN: u8 = 1;

/// A ring is filled and emptied in so many lumps at least.
const LUMPS: usize = 4;

/// A word of a ring. Each has a cache line of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// Bytes that were written since the beginning. The sender writes it.
    Head,
    /// Bytes that were read. The receiver writes it.
    Tail,
    /// Not 0: the receiver sleeps, or is about to. Whoever wakes it takes this back.
    ReceiverSleeps,
    /// Not 0: the sender sleeps until there is room.
    SenderSleeps,
}

/// A ring's memory as both sides see it.
trait Shared {
    /// Bytes of the row, a power of two.
    fn capacity(&self) -> usize;
    /// What was written before the other side's [`Shared::store`] is seen.
    fn load(&self, word: Word) -> u64;
    fn store(&self, word: Word, value: u64);
    /// What was stored before it is seen by whoever loads after a fence of his own, or the other way round.
    fn fence(&self);
    /// Copies bytes of the row from `at` on, which lie in it.
    fn read(&self, at: usize, into: &mut [u8]);
    /// Writes bytes of the row from `at` on, which lie in it.
    fn write(&self, at: usize, from: &[u8]);
}

/// The other side's numbers cannot be.
#[derive(Debug, PartialEq, Eq)]
struct Nonsense;

impl From<Nonsense> for io::Error {
    fn from(Nonsense: Nonsense) -> Self {
        Self::new(io::ErrorKind::InvalidData, "the shared memory of the link was overwritten")
    }
}

/// Whether the other side sleeps, or is about to; then it is to be woken, once. If it sleeps anew by now and this takes that back, it is woken all the same.
fn wakes(memory: &impl Shared, sleeps: Word) -> bool {
    let does = memory.load(sleeps) != 0;
    if does {
        memory.store(sleeps, 0);
    }
    does
}

/// The end of a ring that writes.
#[derive(Debug)]
struct Sender<M> {
    memory: M,
    head: u64,
    /// As it was seen last.
    tail: u64,
}

impl<M: Shared> Sender<M> {
    fn new(memory: M) -> Self {
        Self { memory, head: 0, tail: 0 }
    }

    /// Bytes that can be written.
    fn room(&self) -> usize {
        self.memory.capacity() - (self.head - self.tail) as usize
    }

    /// As [`Sender::room`], after a look at what was read meanwhile.
    fn look(&mut self) -> Result<usize, Nonsense> {
        let tail = self.memory.load(Word::Tail);
        if tail < self.tail || tail > self.head {
            return Err(Nonsense);
        }
        self.tail = tail;
        Ok(self.room())
    }

    /// Writes a prefix of `pieces`, as far as there is room; how much of them. The receiver may read while more is written.
    fn send(&mut self, pieces: &[IoSlice<'_>]) -> Result<usize, Nonsense> {
        let (capacity, before) = (self.memory.capacity(), self.head);
        let wanted: usize = pieces.iter().map(|piece| piece.len()).sum();
        let mut room = self.room();
        if room < wanted {
            room = self.look()?;
        }
        for piece in pieces {
            let mut rest = &piece[..piece.len().min(room)];
            room -= rest.len();
            while !rest.is_empty() {
                let at = (self.head % capacity as u64) as usize;
                let (part, behind) = rest.split_at(rest.len().min(capacity - at).min(capacity / LUMPS));
                self.memory.write(at, part);
                self.head += part.len() as u64;
                rest = behind;
                if !rest.is_empty() {
                    self.memory.store(Word::Head, self.head);
                }
            }
        }
        self.memory.store(Word::Head, self.head);
        Ok((self.head - before) as usize)
    }

    /// After something was written: whether the receiver is to be woken.
    fn must_wake(&self) -> bool {
        self.memory.fence();
        wakes(&self.memory, Word::ReceiverSleeps)
    }

    /// Says that this side is about to sleep until there is room, or does not any more. A fence and another look belong behind it.
    fn sleeps(&self, does: bool) {
        self.memory.store(Word::SenderSleeps, u64::from(does));
    }
}

/// The end of a ring that reads.
#[derive(Debug)]
struct Receiver<M> {
    memory: M,
    tail: u64,
    /// As the sender knows it.
    told: u64,
    /// As it was seen last.
    head: u64,
}

impl<M: Shared> Receiver<M> {
    fn new(memory: M) -> Self {
        Self { memory, tail: 0, told: 0, head: 0 }
    }

    /// Bytes that can be read, by what was seen.
    fn seen(&self) -> usize {
        (self.head - self.tail) as usize
    }

    /// The same after a look.
    fn look(&mut self) -> Result<usize, Nonsense> {
        let head = self.memory.load(Word::Head);
        let capacity = self.memory.capacity() as u64;
        if head < self.head || head - self.told > capacity {
            return Err(Nonsense);
        }
        self.head = head;
        Ok(self.seen())
    }

    /// Reads into the front of `pieces`, as far as there is something; how much, and whether the sender is to be woken. It is told of what was read in
    /// lumps: until then it has the rest of the ring.
    fn receive(&mut self, pieces: &mut [IoSliceMut<'_>]) -> Result<(usize, bool), Nonsense> {
        let (capacity, before, mut wakes) = (self.memory.capacity(), self.tail, false);
        'pieces: for piece in pieces {
            let mut rest = &mut piece[..];
            while !rest.is_empty() {
                let there = if self.seen() == 0 { self.look()? } else { self.seen() };
                if there == 0 {
                    break 'pieces;
                }
                let at = (self.tail % capacity as u64) as usize;
                let most = there.min(capacity - at).min(capacity / LUMPS);
                let (part, behind) = rest.split_at_mut(rest.len().min(most));
                self.memory.read(at, part);
                self.tail += part.len() as u64;
                rest = behind;
                wakes |= self.tell();
            }
        }
        Ok(((self.tail - before) as usize, wakes))
    }

    /// Tells the sender what was read, if that is much; whether it is to be woken then.
    fn tell(&mut self) -> bool {
        if self.tail - self.told < (self.memory.capacity() / LUMPS) as u64 {
            return false;
        }
        self.told = self.tail;
        self.memory.store(Word::Tail, self.tail);
        self.memory.fence();
        wakes(&self.memory, Word::SenderSleeps)
    }

    /// Says that this side is about to sleep until something is there, or does not any more. A fence and another look belong behind it.
    fn sleeps(&self, does: bool) {
        self.memory.store(Word::ReceiverSleeps, u64::from(does));
    }
}

/// Both directions of a link within a host, at one of its ends.
#[derive(Debug)]
pub(super) struct Ring {
    out: Sender<Half>,
    into: Receiver<Half>,
    /// The other side has closed the socket: nothing more will be written than is there.
    has_ended: bool,
}

impl Ring {
    /// A new one of so many bytes each way, a power of two, and the file for the other side.
    ///
    /// # Errors
    /// The operating system has no such memory for this process.
    pub(super) fn create(capacity: usize) -> io::Result<(Self, OwnedFd)> {
        let (memory, file) = Mapped::create(capacity)?;
        Ok((Self::of(memory, false), file))
    }

    /// The other side of one.
    ///
    /// # Errors
    /// The file is none that [`Ring::create`] makes, or the operating system has no room for it.
    pub(super) fn adopt(file: &OwnedFd) -> io::Result<Self> {
        Mapped::open(file).map(|memory| Self::of(memory, true))
    }

    fn of(memory: Mapped, is_second: bool) -> Self {
        let memory = Arc::new(memory);
        let half = |second| Half::new(Arc::clone(&memory), second);
        Self { out: Sender::new(half(is_second)), into: Receiver::new(half(!is_second)), has_ended: false }
    }

    /// Sends a prefix of `pieces`; how many bytes of them.
    pub(super) fn send(&mut self, socket: &Socket, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.has_ended {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let count = self.out.send(pieces)?;
        if count > 0 && self.out.must_wake() {
            wake(socket);
        }
        Ok(count)
    }

    /// Receives into the front of `pieces`; how many bytes.
    pub(super) fn receive(&mut self, socket: &Socket, pieces: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let (count, wakes) = self.into.receive(pieces)?;
        if wakes {
            wake(socket);
        }
        if count == 0 && self.has_ended {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "closed by the other side"));
        }
        Ok(count)
    }

    /// Whether something can be received: bytes, the end, or that the link is of no use.
    pub(super) fn has_come(&mut self) -> bool {
        self.has_ended || self.into.seen() > 0 || self.into.look() != Ok(0)
    }

    /// Whether something can be sent, or the link is of no use.
    pub(super) fn has_room(&mut self) -> bool {
        self.has_ended || self.out.room() > 0 || self.out.look() != Ok(0)
    }

    /// Says that this side is about to sleep, and whether it waits for room, or that it is awake. [`fence`] and another look belong behind it.
    pub(super) fn sleeps(&self, does: bool, writing: bool) {
        self.into.sleeps(does);
        self.out.sleeps(does && writing);
    }

    /// The socket has something: that this side was woken, or the end.
    pub(super) fn hear(&mut self, socket: &Socket) {
        let heard = rustix::io::read(socket, &mut [0; 64]);
        self.has_ended |= !matches!(heard, Ok(1..) | Err(Errno::AGAIN | Errno::INTR));
    }
}

/// What belongs between saying that this side sleeps and the last look.
pub(super) fn fence() {
    mapped::fence();
}

/// Wakes the other side. If its socket is full, bytes for it are there already, and if it is closed, that is seen when it is read.
fn wake(socket: &Socket) {
    let _ = rustix::net::send(socket, &[0], SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
}

#[cfg(test)]
mod tests;
