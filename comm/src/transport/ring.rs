//! Bytes between two processes of a host through memory that both have: for each direction a ring (`ft_proto::ring`) and a few cells (`ft_proto::cells`).
//!
//! The opener of a link makes the memory, a file without a name, and sends it along with the first message of the handshake, which takes the job key. Between
//! ranks that share memory the answer has one byte more, which says whether it was taken ([`RING_TAKEN`]). The socket of the link
//! stays: its end is the news of a death, and a byte on it wakes who sleeps. Nothing else goes over it.
//!
//! The memory itself is in `ring/mapped.rs`.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::SendFlags;
use socket2::Socket;

use ft_proto::cells::{Cells, Label};
use ft_proto::ring::{Receiver, Sender};
use ft_proto::shared::Nonsense;
use mapped::{Half, Mapped};
use room::Claim;

mod mapped;
mod room;

pub use room::Room;

/// Behind the answer: memory was offered and taken. Any other byte: there is none.
pub(super) const RING_TAKEN: u8 = 1;

fn is_broken(Nonsense: Nonsense) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the shared memory of the link was overwritten")
}

/// Both directions of a link within a host, at one of its ends.
#[derive(Debug)]
pub(super) struct Ring {
    out: Sender<Half>,
    into: Receiver<Half>,
    cells: Cells<Half>,
    /// The other side has closed the socket: nothing more will be written than is there.
    has_ended: bool,
    /// On the memory of this process that links have.
    _claim: Claim,
}

impl Ring {
    /// A new one of so many bytes each way, a power of two, and the file for the other side.
    ///
    /// # Errors
    /// There is no `room`, or the operating system has no such memory for this process.
    pub(super) fn create(capacity: usize, room: &Room) -> io::Result<(Self, OwnedFd)> {
        let claim = room.claim(mapped::bytes_of(capacity))?;
        let (memory, file) = Mapped::create(capacity)?;
        Ok((Self::of(memory, false, claim), file))
    }

    /// The other side of one.
    ///
    /// # Errors
    /// The file is none that [`Ring::create`] makes, there is no `room`, or the operating system has none.
    pub(super) fn adopt(file: &OwnedFd, room: &Room) -> io::Result<Self> {
        let memory = Mapped::open(file)?;
        let claim = room.claim(mapped::bytes_of(memory.capacity()))?;
        Ok(Self::of(memory, true, claim))
    }

    fn of(memory: Mapped, is_second: bool, claim: Claim) -> Self {
        let memory = Arc::new(memory);
        let half = |second| Half::new(Arc::clone(&memory), second);
        Self {
            out: Sender::new(half(is_second)),
            into: Receiver::new(half(!is_second)),
            cells: Cells::new(half(is_second), half(!is_second)),
            has_ended: false,
            _claim: claim,
        }
    }

    /// Sends a prefix of `pieces`; how many bytes of them.
    pub(super) fn send(&mut self, socket: &Socket, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.has_ended {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let count = self.out.send(pieces).map_err(is_broken)?;
        if count > 0 && self.out.must_wake() {
            wake(socket);
        }
        Ok(count)
    }

    /// Receives into the front of `pieces`; how many bytes.
    pub(super) fn receive(&mut self, socket: &Socket, pieces: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let (count, wakes) = self.into.receive(pieces).map_err(is_broken)?;
        if wakes {
            wake(socket);
        }
        if count == 0 && self.has_ended {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "closed by the other side"));
        }
        Ok(count)
    }

    /// Puts a message of few bytes into a cell; false if it has to be sent. A [`fence`] and [`Ring::rouse`] belong behind it.
    #[inline]
    pub(super) fn put(&mut self, label: Label, bytes: &[u8]) -> bool {
        !self.has_ended && self.cells.put(label, bytes)
    }

    /// Wakes the other side if it sleeps, after messages were put into cells.
    #[inline]
    pub(super) fn rouse(&self, socket: &Socket) {
        if self.cells.wakes() {
            wake(socket);
        }
    }

    /// Takes the message with this label out of its cell, if it is there: gives its length, and as much of it as there is room for.
    #[inline]
    pub(super) fn take(&mut self, label: Label, into: &mut [u8]) -> io::Result<Option<usize>> {
        self.cells.take(label, into).map_err(is_broken)
    }

    /// Whether a message has come into a cell since the last call.
    pub(super) fn notices(&mut self) -> bool {
        self.cells.notice()
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
