//! One end of a link between the launcher and a rank or an agent: whole messages in both directions. Never blocks.

use std::io::{ErrorKind, Read, Write};

use rustix::event::{PollFd, PollFlags};
use serde::Serialize;
use serde::de::DeserializeOwned;
use socket2::Socket;

use crate::wire::control::{decode, encode};

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

    /// What to wait for.
    pub(super) fn poll(&self) -> PollFd<'_> {
        let flags = if self.outgoing.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
        PollFd::new(&self.stream, flags)
    }

    /// Bytes that the other side has not taken yet.
    pub(super) fn waiting(&self) -> usize {
        self.outgoing.len()
    }

    pub(super) fn send<M: Serialize>(&mut self, message: &M) {
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
    pub(super) fn receive<M: DeserializeOwned>(&mut self, mut handle: impl FnMut(M)) -> bool {
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
