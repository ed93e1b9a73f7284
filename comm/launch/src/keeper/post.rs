//! Messages with open files between two processes of one host, over a Unix socket.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use ft_proto::wire::control::{decode, encode};

/// How long a message may take that the other side does not read, or does not send: it is stopped, or hangs.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most files of a message.
const FILES_MAX: usize = 16;

/// One end. Files come in the order in which they were sent, so that each message need only say how many are its own.
#[derive(Debug)]
pub(crate) struct Post {
    socket: UnixStream,
    incoming: Vec<u8>,
    files: VecDeque<OwnedFd>,
}

impl Post {
    /// Over this socket.
    ///
    /// # Errors
    /// It is none.
    pub(crate) fn new(socket: UnixStream) -> io::Result<Self> {
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { socket, incoming: vec![], files: VecDeque::new() })
    }

    /// Readable when a message has come, or the other side is gone.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Sends a message, with files.
    ///
    /// # Errors
    /// The other side is gone, or takes nothing.
    pub(crate) fn send<M: Serialize>(&mut self, message: &M, files: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut bytes = Vec::new();
        encode(message, &mut bytes);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(files)) {
            return Err(io::Error::other("too many files in one message"));
        }
        let sent = rustix::io::retry_on_intr(|| {
            rustix::net::sendmsg(&self.socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL)
        })?;
        self.socket.write_all(&bytes[sent..])
    }

    /// The next message; if none has come, none, or with `waits` the next that comes.
    ///
    /// # Errors
    /// The other side is gone, or has not said anything for long.
    pub(crate) fn receive<M: DeserializeOwned>(&mut self, waits: bool) -> io::Result<Option<M>> {
        loop {
            if let Some(message) = decode(&mut self.incoming).map_err(io::Error::other)? {
                return Ok(Some(message));
            }
            match self.read(waits) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock && !waits => return Ok(None),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(ErrorKind::TimedOut.into()),
                Err(error) => return Err(error),
            }
        }
    }

    fn read(&mut self, waits: bool) -> io::Result<()> {
        let mut bytes = [0; 16 << 10];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | if waits { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
        let got = rustix::io::retry_on_intr(|| {
            rustix::net::recvmsg(&self.socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags)
        })?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(files) = message {
                self.files.extend(files);
            }
        }
        if got.bytes == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.incoming.extend_from_slice(&bytes[..got.bytes]);
        Ok(())
    }

    /// The next files, those of the message that was received last.
    ///
    /// # Errors
    /// They have not come: this process may have no more open files.
    pub(crate) fn files(&mut self, count: usize) -> io::Result<Vec<OwnedFd>> {
        if self.files.len() < count {
            return Err(io::Error::other("files that were to come with a message are not there"));
        }
        Ok(self.files.drain(..count).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Read;

    #[test]
    fn files_come_with_their_messages() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (mut ours, mut theirs) = (Post::new(ours).unwrap(), Post::new(theirs).unwrap());
        assert_eq!(theirs.receive::<u32>(false).unwrap(), None);
        let mut ends = vec![];
        for number in [1_usize, 0, 3] {
            let pipes: Vec<_> = (0..number).map(|_| std::io::pipe().unwrap()).collect();
            let files: Vec<BorrowedFd<'_>> = pipes.iter().map(|(_, end)| end.as_fd()).collect();
            // More than one piece of a message is of the socket's.
            ours.send(&(number, vec![7_u8; 100_000]), &files).unwrap();
            ends.extend(pipes.into_iter().map(|(read, _)| read));
            let (count, rest): (usize, Vec<u8>) = theirs.receive(true).unwrap().unwrap();
            assert_eq!((count, rest.len()), (number, 100_000));
            for file in theirs.files(count).unwrap() {
                File::from(file).write_all(&[number as u8]).unwrap();
            }
        }
        let read = ends.into_iter().map(|mut end| {
            let mut text = vec![];
            end.read_to_end(&mut text).unwrap();
            text
        });
        assert_eq!(read.collect::<Vec<_>>(), [[1], [3], [3], [3]]);
        assert!(theirs.files(1).is_err());
        drop(ours);
        assert_eq!(theirs.receive::<u32>(false).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }
}
