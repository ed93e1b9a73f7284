//! What processes of this host print, in whole lines.

use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ft_proto::rank::PeerId;
use ft_proto::wire::agent::Held;

/// A line that is longer than this is forwarded in pieces.
const LINE_BYTES_MAX: usize = 64 << 10;
/// How much is read of a process before others have their turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Nothing: it stays where it is.
    None,
    /// What a pipe usually holds.
    One,
    /// More than a pipe holds: the process has died.
    Last,
}

impl Turn {
    /// In pieces of 16 KiB.
    fn pieces(self) -> usize {
        match self {
            Self::None => 0,
            Self::One => 4,
            Self::Last => 128,
        }
    }
}

#[derive(Debug)]
struct Stream {
    peer: PeerId,
    error: bool,
    fd: OwnedFd,
    partial: Vec<u8>,
}

/// Lines of a process: who, whether to standard error, and the lines, each with its end.
pub(super) type Lines<'a> = &'a mut dyn FnMut(PeerId, bool, Vec<u8>);

#[derive(Debug, Default)]
pub(super) struct Pipes {
    streams: Vec<Stream>,
}

impl Pipes {
    /// Reads the standard output of a process, and its standard error.
    ///
    /// # Errors
    /// They cannot be read without waiting for them.
    pub(super) fn add(&mut self, peer: PeerId, output: [OwnedFd; 2]) -> std::io::Result<()> {
        for (error, fd) in [false, true].into_iter().zip(output) {
            rustix::io::ioctl_fionbio(&fd, true)?;
            self.streams.push(Stream { peer, error, fd, partial: vec![] });
        }
        Ok(())
    }

    /// Those of which nothing is held.
    pub(super) fn fds(&self, held: Held) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.streams.iter().filter(move |stream| !held.has(stream.error)).map(|stream| stream.fd.as_fd())
    }

    /// Hands on what has come, of each stream as much as its turn allows: whose it is, and whether it is standard error.
    pub(super) fn pump(&mut self, turn: impl Fn(PeerId, bool) -> Turn, lines: Lines<'_>) {
        self.streams.retain_mut(|stream| stream.pump(turn(stream.peer, stream.error), lines));
    }

    /// Hands on the rest; lines that never ended end here.
    pub(super) fn finish(&mut self, lines: Lines<'_>) {
        self.pump(|_, _| Turn::Last, lines);
        self.streams.drain(..).for_each(|mut stream| stream.end(lines));
    }
}

impl Stream {
    /// False when there will be no more.
    fn pump(&mut self, turn: Turn, lines: Lines<'_>) -> bool {
        let mut buffer = [0; 16 << 10];
        for _ in 0..turn.pieces() {
            let count = match rustix::io::read(&self.fd, &mut buffer).map_err(std::io::Error::from) {
                Ok(0) => {
                    self.end(lines);
                    return false;
                }
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            };
            self.partial.extend_from_slice(&buffer[..count]);
            let whole = self.partial.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
            let whole = whole.or((self.partial.len() > LINE_BYTES_MAX).then_some(self.partial.len()));
            if let Some(whole) = whole {
                lines(self.peer, self.error, self.partial.drain(..whole).collect());
            }
        }
        true
    }

    fn end(&mut self, lines: Lines<'_>) {
        if !self.partial.is_empty() {
            let mut line = std::mem::take(&mut self.partial);
            line.push(b'\n');
            lines(self.peer, self.error, line);
        }
    }
}
