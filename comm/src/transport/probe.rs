//! A question to another process: does it live, is it in reach, and how much has it sent? Asked by the first half of a handshake over a
//! connection of its own, which its service thread answers whatever its program does. Never blocks.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags};
use socket2::{Socket, Type};

use super::address::Target;
use super::opening::{Client, Credentials};
use ft_proto::rank::{Generation, PeerId};
use ft_proto::wire::handshake::Opening;

/// A question to another process: does it live, is it in reach, and how much has it sent? A connection that fails is tried again by the next [`Probe::advance`].
#[derive(Debug)]
pub struct Probe {
    credentials: Credentials,
    opening: Opening,
    target: Target,
    connection: Option<Connection>,
}

#[derive(Debug)]
struct Connection {
    socket: Socket,
    client: Client,
    /// The hello has left.
    asked: bool,
    reply: Vec<u8>,
    filled: usize,
}

impl Probe {
    /// A question of process `from` to process `to`, which accepts links at `target`.
    pub fn new(
        credentials: &Credentials,
        from: PeerId,
        to: PeerId,
        generation: Generation,
        target: Target,
    ) -> Self {
        let opening = Opening { from, to, generation };
        Self { credentials: credentials.clone(), opening, target, connection: None }
    }

    /// Moves on as far as it goes. When the other process has answered: how many bytes it has sent to this one over links
    /// between hosts.
    pub fn advance(&mut self) -> Option<u64> {
        let connection = match self.connection.take() {
            Some(connection) => Ok(connection),
            None => self.connect(),
        };
        // Whoever refuses, leaves or answers wrongly is asked again.
        let Ok(Some((connection, is_whole))) = connection.and_then(Connection::advance) else { return None };
        if !is_whole {
            self.connection = Some(connection);
            return None;
        }
        // Only who has the key of the job counts.
        connection.client.reply(&connection.reply).ok().map(|answered| answered.sent)
    }

    fn connect(&self) -> std::io::Result<Connection> {
        let address = &self.target.socket;
        let socket = Socket::new(address.domain(), Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        match socket.connect(address) {
            Err(error) if error.raw_os_error() != Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => {
                return Err(error);
            }
            _ => {}
        }
        let client = Client::new(&self.credentials, self.opening, self.target.is_far);
        let reply = vec![0; client.reply_bytes()];
        Ok(Connection { socket, client, asked: false, reply, filled: 0 })
    }

    /// What it waits for, while it waits for a connection.
    pub fn poll_fd(&self) -> Option<PollFd<'_>> {
        let connection = self.connection.as_ref()?;
        let fd: BorrowedFd<'_> = connection.socket.as_fd();
        Some(PollFd::from_borrowed_fd(fd, if connection.asked { PollFlags::IN } else { PollFlags::OUT }))
    }
}

impl Connection {
    /// Goes on as far as it can; whether the answer is whole. None if the other side has left.
    fn advance(mut self) -> std::io::Result<Option<(Self, bool)>> {
        if !self.asked {
            match self.socket.write_all(self.client.hello()) {
                Ok(()) => self.asked = true,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Some((self, false))), // not connected yet
                Err(error) => return Err(error),
            }
        }
        while self.filled < self.reply.len() {
            match self.socket.read(&mut self.reply[self.filled..]) {
                Ok(0) => return Ok(None),
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Some((self, false))),
                Err(error) => return Err(error),
            }
        }
        Ok(Some((self, true)))
    }
}
