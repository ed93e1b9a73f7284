//! One end of a link between the launcher and a rank or an agent: whole messages in both directions. Never blocks.

use std::io::{IoSlice, IoSliceMut};

use rustix::event::{PollFd, PollFlags};
use serde::Serialize;
use serde::de::DeserializeOwned;

use ft_comm::transport::Channel;
use ft_proto::wire::control::{decode, encode};

#[derive(Debug)]
pub(super) struct Control {
    channel: Channel,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
}

impl Control {
    pub(super) fn new(channel: Channel) -> Self {
        Self { channel, incoming: Vec::new(), outgoing: Vec::new() }
    }

    /// What to wait for.
    pub(super) fn poll(&self) -> PollFd<'_> {
        let flags = if self.outgoing.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
        PollFd::new(&self.channel, flags)
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
            match self.channel.send(&[IoSlice::new(&self.outgoing)]) {
                Ok(0) => return,
                Ok(count) => drop(self.outgoing.drain(..count)),
                Err(_) => return self.outgoing.clear(),
            }
        }
    }

    /// Hands every message that has come to `handle`.
    ///
    /// # Errors
    /// The link is closed, garbled, or somebody on the way changes what is sent.
    pub(super) fn receive<M: DeserializeOwned>(
        &mut self,
        mut handle: impl FnMut(M),
    ) -> Result<(), std::io::Error> {
        let mut buffer = [0; 16 << 10];
        let end = loop {
            match self.channel.receive(&mut [IoSliceMut::new(&mut buffer)]) {
                Ok(0) => break Ok(()),
                Ok(count) => self.incoming.extend_from_slice(&buffer[..count]),
                Err(error) => break Err(error),
            }
        };
        loop {
            match decode(&mut self.incoming) {
                Ok(Some(message)) => handle(message),
                Ok(None) => return end,
                Err(error) => return Err(std::io::Error::other(error)),
            }
        }
    }
}
