//! Accepting links: the server's side of the handshake for many connections at once, without ever waiting
//! for one of them.
//!
//! A connection that has not proved itself within `HANDSHAKE_SECONDS` is closed, as is one that comes while
//! `PENDING_MAX` others are unproven. When `SILENT_MAX` are unproven, a new one takes the place of the oldest that has
//! said nothing: however many strangers knock and say nothing, whoever belongs to the job is let in. A Unix socket lets
//! in processes of the same user only. Nothing that a stranger sends reaches beyond its own connection.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use socket2::{SockAddr, Socket, Type};

use super::address::{Address, abstract_socket};
use super::options::{Carrier, LinkOptions};
use crate::rank::PeerId;
use crate::time::Time;
use crate::wire::handshake::{HELLO_BYTES, JobKey, Opening, PROOF_BYTES, Server, hex};

/// Unproven connections at one time.
pub(super) const PENDING_MAX: usize = 1024;
/// With so many unproven connections silent ones give way; far below the number of files that a process may have open by
/// default.
const SILENT_MAX: usize = 256;
/// Seconds until an unproven connection is closed.
pub(super) const HANDSHAKE_SECONDS: u64 = 5;

/// A connection whose other side has proved that it belongs to the job.
#[derive(Debug)]
pub struct Accepted {
    /// Who it is and what it wants.
    pub opening: Opening,
    /// The connection, non-blocking, without delay.
    pub stream: Socket,
}

#[derive(Debug)]
enum Stage {
    Hello([u8; HELLO_BYTES]),
    Proof(Box<Server>, [u8; PROOF_BYTES]),
}

#[derive(Debug)]
struct Pending {
    stream: Socket,
    stage: Stage,
    filled: usize,
    until: Time,
}

/// Listening sockets with their unproven connections.
#[derive(Debug)]
pub struct Doorman {
    key: JobKey,
    me: PeerId,
    tcp: Socket,
    /// The socket for processes of the same host, and its name.
    unix: Option<(Socket, String)>,
    pending: Vec<Pending>,
    refused: u64,
    left_off: u64,
}

impl Doorman {
    /// Listens at an ephemeral port of this host's address `at`; of all its addresses if that is unspecified.
    ///
    /// # Errors
    /// The operating system refuses the socket.
    pub fn listen(key: JobKey, me: PeerId, at: IpAddr) -> std::io::Result<Self> {
        let tcp = listener(&SocketAddr::new(at, 0).into())?;
        Ok(Self { key, me, tcp, unix: None, pending: Vec::new(), refused: 0, left_off: 0 })
    }

    /// Listens for data links as `options` say: over TCP, and at a Unix socket too unless TCP is to carry all. The
    /// socket is in the abstract namespace, so no file is left whatever happens; its name cannot be guessed, so
    /// nobody can hold it first.
    ///
    /// # Errors
    /// The operating system refuses a socket.
    pub fn listen_for_links(key: JobKey, me: PeerId, options: &LinkOptions) -> std::io::Result<Self> {
        let mut doorman = Self::listen(key, me, options.listen)?;
        if options.carrier != Carrier::Tcp {
            let name = format!("ftrun-{}-{}-{}", hex(&doorman.key.job), me.0, hex(&nonce()[..8]));
            doorman.unix = Some((listener(&abstract_socket(&name)?)?, name));
        }
        Ok(doorman)
    }

    /// Where others connect to over TCP.
    ///
    /// # Errors
    /// The operating system does not tell.
    pub fn tcp(&self) -> std::io::Result<SocketAddr> {
        let address = self.tcp.local_addr()?.as_socket();
        address.ok_or_else(|| std::io::Error::other("a TCP socket without an address"))
    }

    /// Where peers connect to, those on `host`, which is this one, and others.
    ///
    /// # Errors
    /// The operating system does not tell, or `host` is no label of a host.
    pub fn address(&self, host: &str) -> std::io::Result<Address> {
        let unix = self.unix.as_ref().map(|(_, name)| name.as_str());
        Address::new(host, self.tcp()?, unix).map_err(std::io::Error::other)
    }

    /// Connections that were refused so far, or given up by the other side.
    pub fn refused(&self) -> u64 {
        self.refused + self.left_off
    }

    /// Of these the ones that cannot be of this job. Its own processes begin as they should and leave when they wanted a sign
    /// of life only, or have no use for the link any more; so does a stranger whose key is wrong.
    pub fn refused_strangers(&self) -> u64 {
        self.refused
    }

    fn note(&mut self, end: End) {
        match end {
            End::Refused => self.refused += 1,
            End::LeftOff => self.left_off += 1,
        }
    }

    fn listeners(&self) -> impl Iterator<Item = &Socket> {
        std::iter::once(&self.tcp).chain(self.unix.iter().map(|(socket, _)| socket))
    }

    /// Everything to wait for: readable means [`Doorman::serve`] has work.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.listeners().chain(self.pending.iter().map(|p| &p.stream)).map(AsFd::as_fd)
    }

    /// Moves every handshake as far as it goes; gives the connections that are proved.
    pub fn serve(&mut self, now: Time) -> Vec<Accepted> {
        let (mut arrived, mut proved) = (Vec::new(), Vec::new());
        for listener in self.listeners() {
            arrived.extend(std::iter::from_fn(|| listener.accept().ok()));
        }
        for (stream, from) in arrived {
            let fits = if from.is_unix() { is_own(&stream) } else { stream.set_tcp_nodelay(true).is_ok() };
            if !fits || stream.set_nonblocking(true).is_err() {
                self.refused += 1;
                continue;
            }
            if self.pending.len() >= SILENT_MAX
                && let Some(silent) = self.pending.iter().position(Pending::is_silent)
            {
                self.pending.remove(silent);
                self.refused += 1;
            }
            if self.pending.len() >= PENDING_MAX {
                self.refused += 1;
                continue;
            }
            let until = now.after(Duration::from_secs(HANDSHAKE_SECONDS));
            let pending = Pending { stream, stage: Stage::Hello([0; HELLO_BYTES]), filled: 0, until };
            // What it has said already counts before another one may take its place.
            match advance(pending, &self.key, self.me) {
                Ok(Progress::Open(accepted)) => proved.push(accepted),
                Ok(Progress::Wait(pending)) => self.pending.push(pending),
                Err(end) => self.note(end),
            }
        }
        let mut waiting = Vec::with_capacity(self.pending.len());
        for pending in std::mem::take(&mut self.pending) {
            let expired = now > pending.until;
            match advance(pending, &self.key, self.me) {
                Ok(Progress::Open(accepted)) => proved.push(accepted),
                Ok(Progress::Wait(pending)) if !expired => waiting.push(pending),
                Ok(Progress::Wait(_)) => self.refused += 1,
                Err(end) => self.note(end),
            }
        }
        self.pending = waiting;
        proved
    }
}

impl Pending {
    fn is_silent(&self) -> bool {
        self.filled == 0 && matches!(self.stage, Stage::Hello(_))
    }
}

/// Whether the process behind a Unix socket is one of this user.
fn is_own(stream: &Socket) -> bool {
    rustix::net::sockopt::socket_peercred(stream).is_ok_and(|theirs| theirs.uid == rustix::process::geteuid())
}

enum Progress {
    Open(Accepted),
    Wait(Pending),
}

/// How a handshake ends that opens nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// This is nobody of the job, or says nothing.
    Refused,
    /// After a proper beginning the other side has left.
    LeftOff,
}

fn advance(mut pending: Pending, key: &JobKey, me: PeerId) -> Result<Progress, End> {
    loop {
        let buffer: &mut [u8] = match &mut pending.stage {
            Stage::Hello(buffer) => buffer,
            Stage::Proof(_, buffer) => buffer,
        };
        // Exactly the handshake is read: what follows it belongs to the link.
        if pending.filled < buffer.len() {
            match pending.stream.read(&mut buffer[pending.filled..]) {
                Ok(0) if matches!(pending.stage, Stage::Proof(..)) && pending.filled == 0 => {
                    return Err(End::LeftOff);
                }
                Ok(0) => return Err(End::Refused),
                Ok(count) => pending.filled += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Progress::Wait(pending)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) if matches!(pending.stage, Stage::Proof(..)) => return Err(End::LeftOff),
                Err(_) => return Err(End::Refused),
            }
            continue;
        }
        match &pending.stage {
            Stage::Hello(hello) => {
                let server = Server::new(key, me, hello, nonce()).map_err(|_| End::Refused)?;
                // 64 bytes always fit into the empty buffer of a new socket.
                pending.stream.write_all(&server.reply()).map_err(|_| End::LeftOff)?;
                pending.stage = Stage::Proof(Box::new(server), [0; PROOF_BYTES]);
                pending.filled = 0;
            }
            Stage::Proof(server, proof) => {
                let opening = server.proof(proof).map_err(|_| End::Refused)?;
                return Ok(Progress::Open(Accepted { opening, stream: pending.stream }));
            }
        }
    }
}

/// A socket that listens at `address`.
fn listener(address: &SockAddr) -> std::io::Result<Socket> {
    let socket = Socket::new(address.domain(), Type::STREAM, None)?;
    socket.bind(address)?;
    socket.listen(1024)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Fresh random bytes.
pub(crate) fn nonce() -> [u8; 32] {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).expect("the operating system has random numbers");
    bytes
}
