//! One end of a link between the launcher and a rank or an agent: whole messages in both directions. Never blocks.

use std::io::{IoSlice, IoSliceMut};

use rustix::event::{PollFd, PollFlags};
use serde::Serialize;
use serde::de::DeserializeOwned;

use ft_comm::transport::Channel;
use ft_proto::wire::control::{decode_first, encode};

/// How much is read of a link before others have their turn.
const TURN_BYTES: usize = 256 << 10;

#[derive(Debug)]
pub(super) struct Control {
    channel: Channel,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    /// The last turn has ended before all was read.
    has_more: bool,
}

impl Control {
    pub(super) fn new(channel: Channel) -> Self {
        Self { channel, incoming: Vec::new(), outgoing: Vec::new(), has_more: false }
    }

    /// What to wait for.
    pub(super) fn poll(&self) -> PollFd<'_> {
        let flags = if self.outgoing.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
        PollFd::new(&self.channel, flags)
    }

    /// Whether there may be more to read than can be waited for: a sealed link has opened it already.
    pub(super) fn has_more(&self) -> bool {
        self.has_more
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

    /// Hands messages that have come to `handle`: no more than [`TURN_BYTES`] of them, the rest the next time. Whoever sends as fast as they are read
    /// would hold up everything else.
    ///
    /// # Errors
    /// The link is closed, garbled, or somebody on the way changes what is sent.
    pub(super) fn receive<M: DeserializeOwned>(
        &mut self,
        handle: impl FnMut(M),
    ) -> Result<(), std::io::Error> {
        self.receive_up_to(TURN_BYTES, handle)
    }

    /// As [`Control::receive`], all that there is: whoever has sent it is dead.
    ///
    /// # Errors
    /// As there.
    pub(super) fn receive_last<M: DeserializeOwned>(
        &mut self,
        handle: impl FnMut(M),
    ) -> Result<(), std::io::Error> {
        self.receive_up_to(usize::MAX, handle)
    }

    fn receive_up_to<M: DeserializeOwned>(
        &mut self,
        most: usize,
        mut handle: impl FnMut(M),
    ) -> Result<(), std::io::Error> {
        let (mut buffer, mut read) = ([0; 16 << 10], 0);
        let end = loop {
            if read >= most {
                break Ok(());
            }
            match self.channel.receive(&mut [IoSliceMut::new(&mut buffer)]) {
                Ok(0) => break Ok(()),
                Ok(count) => {
                    self.incoming.extend_from_slice(&buffer[..count]);
                    read += count;
                }
                Err(error) => break Err(error),
            }
        };
        self.has_more = end.is_ok() && read >= most;
        let mut taken = 0;
        let end = loop {
            match decode_first(&self.incoming[taken..]) {
                Ok(Some((message, length))) => {
                    taken += length;
                    handle(message);
                }
                Ok(None) => break end,
                Err(error) => break Err(std::io::Error::other(error)),
            }
        };
        self.incoming.drain(..taken);
        end
    }
}
