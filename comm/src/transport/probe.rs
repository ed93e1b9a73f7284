//! A question to another process: does it live, and is it in reach? Asked by the first half of a handshake over a
//! connection of its own, which its service thread answers whatever its program does. Never blocks.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags};
use socket2::{SockAddr, Socket, Type};

use super::accept::nonce;
use crate::rank::{Generation, PeerId};
use crate::wire::handshake::{Client, JobKey, Opening, REPLY_BYTES};

/// See the module. A connection that fails is tried again by the next [`Probe::advance`].
#[derive(Debug)]
pub struct Probe {
    address: SockAddr,
    client: Client,
    key: JobKey,
    opening: Opening,
    connection: Option<Connection>,
}

#[derive(Debug)]
struct Connection {
    socket: Socket,
    /// The hello has left.
    asked: bool,
    reply: [u8; REPLY_BYTES],
    filled: usize,
}

impl Probe {
    /// A question of process `from` to process `to`, which accepts links at `address`.
    pub fn new(key: &JobKey, from: PeerId, to: PeerId, generation: Generation, address: SockAddr) -> Self {
        let opening = Opening { from, to, generation };
        Self {
            client: Client::new(key, opening, nonce()),
            key: key.clone(),
            opening,
            address,
            connection: None,
        }
    }

    /// Moves on as far as it goes; true when the other process has answered.
    pub fn advance(&mut self) -> bool {
        match self.try_advance() {
            Ok(answered) => answered,
            Err(_) => {
                self.connection = None;
                self.client = Client::new(&self.key, self.opening, nonce());
                false
            }
        }
    }

    fn try_advance(&mut self) -> std::io::Result<bool> {
        if self.connection.is_none() {
            let socket = Socket::new(self.address.domain(), Type::STREAM, None)?;
            socket.set_nonblocking(true)?;
            match socket.connect(&self.address) {
                Err(error) if error.raw_os_error() != Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => {
                    return Err(error);
                }
                _ => {}
            }
            self.connection = Some(Connection { socket, asked: false, reply: [0; REPLY_BYTES], filled: 0 });
        }
        let Some(connection) = &mut self.connection else { return Ok(false) };
        if !connection.asked {
            match connection.socket.write_all(self.client.hello()) {
                Ok(()) => connection.asked = true,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false), // not connected yet
                Err(error) => return Err(error),
            }
        }
        while connection.filled < REPLY_BYTES {
            match connection.socket.read(&mut connection.reply[connection.filled..]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => connection.filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        // Only who has the key of the job counts.
        self.client.reply(&connection.reply).map(|_| true).map_err(std::io::Error::other)
    }

    /// What it waits for, while it waits for a connection.
    pub fn poll_fd(&self) -> Option<PollFd<'_>> {
        let connection = self.connection.as_ref()?;
        let fd: BorrowedFd<'_> = connection.socket.as_fd();
        Some(PollFd::from_borrowed_fd(fd, if connection.asked { PollFlags::IN } else { PollFlags::OUT }))
    }
}
