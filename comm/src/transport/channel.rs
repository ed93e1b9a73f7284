//! A socket after its handshake: bytes as they are within a host, or through memory ([`super::ring`]), records ([`super::seal`]) between hosts.

use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{self, SendAncillaryBuffer, SendFlags};
use socket2::Socket;

use super::cross_memory::Neighbor;
use super::ring::Ring;
use super::seal::{Broken, FRAME_BYTES, Half, TEXT_MAX, text_length};
use super::timespec;

/// Bytes that are read from a socket at a time: a few records.
const INCOMING_BYTES: usize = 4 * (TEXT_MAX + FRAME_BYTES);

/// A socket after its handshake: bytes as they are within a host, or beside it through memory, sealed records between hosts. Never blocks.
#[derive(Debug)]
pub struct Channel {
    socket: Socket,
    carriage: Carriage,
}

/// What takes the bytes to the other side.
#[derive(Debug)]
pub(super) enum Carriage {
    /// The socket, as they are.
    Bare,
    /// The socket, in records.
    Sealed(Box<Sealed>),
    /// Memory that both sides have.
    Ring(Box<Ring>),
}

impl Channel {
    /// A socket of which the handshake is over.
    pub(super) fn new(socket: Socket, carriage: Carriage) -> Self {
        Self { socket, carriage }
    }

    /// Whether it goes to another host.
    pub(super) fn is_far(&self) -> bool {
        matches!(self.carriage, Carriage::Sealed(_))
    }

    /// Whether something has come that was not received, or the end.
    pub(super) fn has_come(&self) -> bool {
        let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
        let polled = rustix::event::poll(&mut fds, Some(&timespec(Duration::ZERO)));
        self.holds_back() || polled != Ok(0)
    }

    /// The socket, to poll it.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// The number of the process at the other end, if that is on this host and can be seen.
    pub fn process(&self) -> Option<i32> {
        Neighbor::of(&self.socket).map(Neighbor::id)
    }

    /// Something has come that was not handed out, and of which the socket does not tell any more.
    pub(super) fn holds_back(&self) -> bool {
        matches!(&self.carriage, Carriage::Sealed(sealed) if sealed.holds_back())
    }

    /// The memory through which bytes go, if they do.
    pub(super) fn ring(&mut self) -> Option<(&mut Ring, &Socket)> {
        match &mut self.carriage {
            Carriage::Ring(ring) => Some((ring, &self.socket)),
            Carriage::Bare | Carriage::Sealed(_) => None,
        }
    }

    /// Sends a prefix of `pieces`; how many bytes went, fewer than there are only if the socket takes no more. What did not go
    /// is to be offered again, as the same bytes.
    ///
    /// # Errors
    /// The link is of no use any more.
    pub fn send(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match &mut self.carriage {
            Carriage::Bare => offer(&self.socket, pieces),
            Carriage::Sealed(sealed) => sealed.send(&self.socket, pieces),
            Carriage::Ring(ring) => ring.send(&self.socket, pieces),
        }
    }

    /// Receives into the front of `pieces`; how many bytes came, fewer than there is room for only if no more are there.
    ///
    /// # Errors
    /// The other side has closed it ([`io::ErrorKind::UnexpectedEof`]), or it is of no use any more.
    pub fn receive(&mut self, pieces: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match &mut self.carriage {
            Carriage::Bare => take(&self.socket, pieces),
            Carriage::Sealed(sealed) => sealed.receive(&self.socket, pieces),
            Carriage::Ring(ring) => ring.receive(&self.socket, pieces),
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Straight system calls: those of the C library are points of cancellation, which costs as much as the crate's own part in a
/// message.
fn offer(socket: &Socket, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
    let sent = match pieces {
        [piece] => net::send(socket, piece, SendFlags::NOSIGNAL),
        pieces => {
            let mut control = SendAncillaryBuffer::default();
            net::sendmsg(socket, pieces, &mut control, SendFlags::NOSIGNAL)
        }
    };
    match sent {
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        sent => Ok(sent?),
    }
}

fn take(socket: &Socket, pieces: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
    let received = match pieces {
        [piece] => rustix::io::read(socket, &mut **piece),
        pieces => rustix::io::readv(socket, pieces),
    };
    match received {
        Ok(0) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "closed by the other side")),
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        received => Ok(received?),
    }
}

/// The text of the next record: `pieces` without their first `skip` bytes, as far as there is room. It stays where it lies if that is one
/// piece, and is `gathered` from several. Its last byte is never the first one of a longer piece: that byte is owed, and whoever
/// has not begun a message may yet think better of it.
fn next_text<'a>(pieces: &'a [IoSlice<'_>], mut skip: usize, gathered: &'a mut Vec<u8>) -> &'a [u8] {
    gathered.clear();
    for (at, piece) in pieces.iter().enumerate() {
        let rest = &piece[skip.min(piece.len())..];
        let is_begun = skip > 0;
        skip = skip.saturating_sub(piece.len());
        let room = TEXT_MAX - gathered.len();
        let is_alone = rest.len() >= room || pieces[at + 1..].iter().all(|piece| piece.is_empty());
        let count = rest.len().min(room);
        if gathered.is_empty() && is_alone {
            return &rest[..count];
        }
        if count == 1 && rest.len() > 1 && !is_begun {
            break;
        }
        gathered.extend_from_slice(&rest[..count]);
        if gathered.len() == TEXT_MAX {
            break;
        }
    }
    gathered
}

/// Both directions of a link between hosts, at one of its ends.
pub(super) struct Sealed {
    sealer: Half,
    opener: Half,
    /// Text of a record that lay in several pieces.
    gathered: Vec<u8>,
    /// A record, and what of it has not left.
    outgoing: Box<[u8]>,
    leaving: Range<usize>,
    /// The last byte of the record that is leaving was not said to have gone. So whoever sends comes again until it has left, and
    /// nothing lies here that nobody would send.
    owes: bool,
    incoming: Box<[u8]>,
    /// What has come and was not opened.
    raw: Range<usize>,
    /// What was opened and not handed out: nobody offered room for all of a record.
    opened: Box<[u8]>,
    text: Range<usize>,
    /// A record did not open.
    broken: bool,
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealed").field("raw", &self.raw).field("text", &self.text).finish_non_exhaustive()
    }
}

impl Sealed {
    pub(super) fn new(sealer: Half, opener: Half) -> Self {
        Self {
            sealer,
            opener,
            gathered: Vec::new(),
            outgoing: Box::default(),
            leaving: 0..0,
            owes: false,
            incoming: Box::default(),
            raw: 0..0,
            opened: Box::default(),
            text: 0..0,
            broken: false,
        }
    }

    fn holds_back(&self) -> bool {
        !self.text.is_empty() || self.broken || text_length(&self.incoming[self.raw.clone()]) != Ok(None)
    }

    /// Whether nothing of a record is left to be sent.
    fn flush(&mut self, socket: &Socket) -> io::Result<bool> {
        while !self.leaving.is_empty() {
            match offer(socket, &[IoSlice::new(&self.outgoing[self.leaving.clone()])])? {
                0 => return Ok(false),
                count => self.leaving.start += count,
            }
        }
        Ok(true)
    }

    fn send(&mut self, socket: &Socket, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        if !self.flush(socket)? {
            return Ok(0);
        }
        let mut gone = usize::from(std::mem::take(&mut self.owes));
        loop {
            let count = self.seal(pieces, gone)?;
            if count == 0 {
                return Ok(gone);
            }
            if !self.flush(socket)? {
                self.owes = true;
                return Ok(gone + count - 1);
            }
            gone += count;
        }
    }

    /// Makes the next record, of `pieces` without their first `skip` bytes; how much of them is in it.
    fn seal(&mut self, pieces: &[IoSlice<'_>], skip: usize) -> Result<usize, Broken> {
        let text = next_text(pieces, skip, &mut self.gathered);
        if text.is_empty() {
            return Ok(0);
        }
        if self.outgoing.is_empty() {
            self.outgoing = vec![0; TEXT_MAX + FRAME_BYTES].into_boxed_slice();
        }
        self.leaving = 0..self.sealer.seal(text, &mut self.outgoing)?;
        Ok(text.len())
    }

    fn receive(&mut self, socket: &Socket, pieces: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let mut done = 0;
        let mut pieces = pieces.iter_mut().map(|piece| &mut **piece).filter(|piece| !piece.is_empty());
        let Some(mut into) = pieces.next() else { return Ok(0) };
        let mut is_drained = false;
        loop {
            let count = match self.hand_out(into) {
                Ok(count) => count,
                // What came before is used first.
                Err(_) if done > 0 => {
                    self.broken = true;
                    return Ok(done);
                }
                Err(broken) => return Err(broken.into()),
            };
            match count {
                Some(count) => {
                    done += count;
                    into = &mut into[count..];
                    if into.is_empty() {
                        into = match pieces.next() {
                            Some(piece) => piece,
                            None => return Ok(done),
                        };
                    }
                }
                None if is_drained => return Ok(done),
                None => {
                    let room = self.room();
                    match take(socket, &mut [IoSliceMut::new(&mut self.incoming[self.raw.end..])]) {
                        Ok(count) => {
                            self.raw.end += count;
                            is_drained = count < room;
                        }
                        // What came before is used first; the end is still there at the next call.
                        Err(_) if done > 0 => return Ok(done),
                        Err(error) => return Err(error),
                    }
                }
            }
        }
    }

    /// Writes text to the front of `into`, of one record at most; how much. None if there is none yet. A record for which there is room
    /// opens where it belongs.
    fn hand_out(&mut self, into: &mut [u8]) -> Result<Option<usize>, Broken> {
        if self.text.is_empty() {
            let Some(length) = text_length(&self.incoming[self.raw.clone()])? else { return Ok(None) };
            let record = &self.incoming[self.raw.start..][..FRAME_BYTES + length];
            let place = match into.get_mut(..length) {
                Some(place) => place,
                None => {
                    if self.opened.is_empty() {
                        self.opened = vec![0; TEXT_MAX].into_boxed_slice();
                    }
                    self.text = 0..length;
                    &mut self.opened[..length]
                }
            };
            self.opener.open(record, place).inspect_err(|_| self.text = 0..0)?;
            self.raw.start += FRAME_BYTES + length;
            if self.text.is_empty() {
                return Ok(Some(length));
            }
        }
        let count = self.text.len().min(into.len());
        into[..count].copy_from_slice(&self.opened[self.text.start..][..count]);
        self.text.start += count;
        Ok(Some(count))
    }

    /// Makes room behind what has come, for a whole record at least; how much.
    fn room(&mut self) -> usize {
        if self.incoming.is_empty() {
            self.incoming = vec![0; INCOMING_BYTES].into_boxed_slice();
        }
        if self.raw.is_empty() {
            self.raw = 0..0;
        } else if self.incoming.len() - self.raw.start < TEXT_MAX + FRAME_BYTES {
            self.incoming.copy_within(self.raw.clone(), 0);
            self.raw = 0..self.raw.len();
        }
        self.incoming.len() - self.raw.end
    }
}

#[cfg(test)]
mod tests;
