//! The launcher's end of one rank's control link. Never blocks.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use socket2::Socket;

use crate::wire::control::{ToArbiter, ToRank, decode, encode};

#[derive(Debug)]
pub(super) struct Control {
    stream: Socket,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
}

impl Control {
    pub(super) fn new(stream: Socket) -> Self {
        Self { stream, incoming: Vec::new(), outgoing: Vec::new() }
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    pub(super) fn is_blocked(&self) -> bool {
        !self.outgoing.is_empty()
    }

    pub(super) fn send(&mut self, message: &ToRank) {
        encode(message, &mut self.outgoing);
    }

    /// Sends what the socket takes. A link that takes nothing more is found broken when it is read.
    pub(super) fn flush(&mut self) {
        while !self.outgoing.is_empty() {
            match self.stream.write(&self.outgoing) {
                Ok(count) => drop(self.outgoing.drain(..count)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => return self.outgoing.clear(),
            }
        }
    }

    /// Hands every message that has come to `handle`; false when the link is closed or garbled.
    pub(super) fn receive(&mut self, mut handle: impl FnMut(ToArbiter)) -> bool {
        let mut buffer = [0; 16 << 10];
        let open = loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => break false,
                Ok(count) => self.incoming.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break true,
                Err(_) => break false,
            }
        };
        loop {
            match decode(&mut self.incoming) {
                Ok(Some(message)) => handle(message),
                Ok(None) => return open,
                Err(_) => return false,
            }
        }
    }
}
