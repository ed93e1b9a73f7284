//! Accepting links: the server's side of the handshake for many connections at once, without ever waiting
//! for one of them.
//!
//! What a connection says is judged byte by byte. Whoever has not said the first message, which takes the job key, is a
//! *newcomer*: there are at most [`NEWCOMERS_MAX`], and the oldest gives way to the next. Whoever has is *known*, and has
//! [`KNOWN_MAX`] places of the same kind. A connection that has not proved itself within `HANDSHAKE_SECONDS` is closed. So
//! however many strangers knock, whatever they say, those who belong to the job are let in, and files are left for them. A
//! Unix socket lets in processes of the same user only. Nothing that a stranger sends reaches beyond its own connection.

use std::collections::VecDeque;
use std::io::{ErrorKind, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{self, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use socket2::{SockAddr, Socket, Type};

use super::accounts::Accounts;
use super::address::{Address, abstract_socket};
use super::channel::{Carriage, Channel};
use super::opening::{Credentials, Server};
use super::options::{Carrier, LinkOptions};
use super::ring::{RING_TAKEN, Ring, Room};
use crate::time::Time;
use ft_proto::rank::PeerId;
use ft_proto::wire::handshake::{Opening, hex};

/// Connections at one time that have not said the first message.
pub(super) const NEWCOMERS_MAX: usize = 64;
/// Connections at one time that have said it but were not heard of since.
const KNOWN_MAX: usize = 1024;
/// Seconds until an unproven connection is closed.
pub(super) const HANDSHAKE_SECONDS: u64 = 5;
/// Connections that are taken from one socket before others have their turn.
const TURN: usize = 256;
/// How long nobody is let in after connections could not be taken.
const PAUSE: Duration = Duration::from_millis(100);

/// A connection whose other side has proved that it belongs to the job.
#[derive(Debug)]
pub struct Accepted {
    /// Who it is and what it wants.
    pub opening: Opening,
    /// The connection, non-blocking, without delay.
    pub channel: Channel,
}

#[derive(Debug)]
struct Pending {
    stream: Socket,
    /// Room for memory that comes along, if it comes over the Unix socket to one who takes it.
    room: Option<Room>,
    heard: Vec<u8>,
    /// What came with the first message.
    file: Option<OwnedFd>,
    /// Who has said the first message.
    known: Option<Server>,
    /// Made of what came with it.
    ring: Option<Ring>,
    until: Time,
}

/// Listening sockets with their unproven connections.
#[derive(Debug)]
pub struct Doorman {
    credentials: Credentials,
    me: PeerId,
    /// Who asks is told how much was sent to him.
    accounts: Accounts,
    tcp: Vec<Socket>,
    /// The socket for processes of the same host, and its name.
    unix: Option<(Socket, String)>,
    /// Room for memory that a process of this host offers beside its link, if it is taken.
    room: Option<Room>,
    /// The oldest first.
    newcomers: VecDeque<Pending>,
    known: VecDeque<Pending>,
    refused: u64,
    left_off: u64,
    /// Connections cannot be taken; until then nobody is let in.
    closed_until: Option<Time>,
    trouble: Option<std::io::Error>,
}

impl Doorman {
    /// Listens at an ephemeral port of each of this host's addresses `at`, and for processes of this host at a Unix
    /// socket if `is_near`. The Unix socket is in the abstract namespace, so no file is left whatever happens; its name
    /// cannot be guessed, so nobody can hold it first.
    ///
    /// # Errors
    /// The operating system refuses a socket.
    pub fn listen(
        credentials: Credentials,
        me: PeerId,
        at: &[IpAddr],
        is_near: bool,
    ) -> std::io::Result<Self> {
        let tcp = at.iter().map(|ip| listener(&SocketAddr::new(*ip, 0).into())).collect::<Result<_, _>>()?;
        let name = || format!("ftrun-{}-{}-{}", hex(&credentials.key.job), me.0, hex(&nonce()[..8]));
        let unix = |name: String| Ok::<_, std::io::Error>((listener(&abstract_socket(&name)?)?, name));
        let unix = is_near.then(name).map(unix).transpose()?;
        Ok(Self {
            credentials,
            me,
            accounts: Accounts::default(),
            tcp,
            unix,
            room: None,
            newcomers: VecDeque::new(),
            known: VecDeque::new(),
            refused: 0,
            left_off: 0,
            closed_until: None,
            trouble: None,
        })
    }

    /// Listens for data links as `options` say: at a Unix socket unless TCP is to carry all, and there memory is taken that is offered beside a
    /// link unless it is to carry nothing, as far as there is `room`; and over TCP if other hosts are to reach this process. What went over them is in `accounts`.
    ///
    /// # Errors
    /// The operating system refuses a socket.
    pub fn listen_for_links(
        credentials: Credentials,
        me: PeerId,
        options: &LinkOptions,
        accounts: Accounts,
        room: Room,
    ) -> std::io::Result<Self> {
        let at: Vec<IpAddr> = options.listen.into_iter().collect();
        let doorman = Self::listen(credentials, me, &at, options.carrier != Carrier::Tcp)?;
        let room = (options.carrier == Carrier::Auto).then_some(room);
        Ok(Self { accounts, room, ..doorman })
    }

    /// Where others connect to over TCP, in the order of the addresses it was told to listen at.
    ///
    /// # Errors
    /// The operating system does not tell.
    pub fn tcp(&self) -> std::io::Result<Vec<SocketAddr>> {
        let address = |socket: &Socket| socket.local_addr().map(|address| address.as_socket());
        let missing = || std::io::Error::other("a TCP socket without an address");
        self.tcp.iter().map(|socket| address(socket)?.ok_or_else(missing)).collect()
    }

    /// Where peers connect to, those on `host`, which is this one, and others.
    ///
    /// # Errors
    /// The operating system does not tell, or `host` is no label of a host.
    pub fn address(&self, host: &str) -> std::io::Result<Address> {
        let unix = self.unix.as_ref().map(|(_, name)| name.as_str());
        Address::new(host, self.tcp()?.first().copied(), unix).map_err(std::io::Error::other)
    }

    /// Connections that were refused so far, or given up by the other side.
    pub fn refused(&self) -> u64 {
        self.refused + self.left_off
    }

    /// Of these the ones that cannot be of this job. Its own processes begin as they should, and leave when they wanted a sign
    /// of life only, have no use for the link any more, or die; so does a stranger who says nothing and leaves, or, at the Unix socket,
    /// says nothing at all.
    pub fn refused_strangers(&self) -> u64 {
        self.refused
    }

    /// Why connections could not be taken since the last call, so that they had to wait.
    pub fn trouble(&mut self) -> Option<std::io::Error> {
        self.trouble.take()
    }

    fn note(&mut self, end: End) {
        match end {
            End::Refused => self.refused += 1,
            End::LeftOff => self.left_off += 1,
        }
    }

    fn listeners(&self) -> impl Iterator<Item = &Socket> {
        self.tcp.iter().chain(self.unix.iter().map(|(socket, _)| socket))
    }

    /// Everything to wait for: readable means [`Doorman::serve`] has work.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let open = self.listeners().filter(|_| self.closed_until.is_none());
        open.chain(self.newcomers.iter().chain(&self.known).map(|p| &p.stream)).map(AsFd::as_fd)
    }

    /// Moves every handshake as far as it goes; gives the connections that are proved.
    pub fn serve(&mut self, now: Time) -> Vec<Accepted> {
        let mut proved = Vec::new();
        // Those who wait first: what they have said already counts before others may take their places.
        for pending in std::mem::take(&mut self.newcomers).into_iter().chain(std::mem::take(&mut self.known))
        {
            self.advance(now, pending, &mut proved);
        }
        if self.closed_until.is_some_and(|until| now < until) {
            return proved;
        }
        self.closed_until = None;
        for at in 0..self.listeners().count() {
            for _ in 0..TURN {
                let Some(listener) = self.listeners().nth(at) else { break };
                match listener.accept() {
                    Ok((stream, from)) => self.welcome(now, stream, &from, &mut proved),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if has_left(&error) => {}
                    Err(error) => {
                        let is_shortage = is_shortage(&error);
                        self.trouble = Some(error);
                        if !(is_shortage && self.evict()) {
                            self.closed_until = Some(now.after(PAUSE));
                            break;
                        }
                    }
                }
            }
        }
        proved
    }

    fn welcome(&mut self, now: Time, stream: Socket, from: &SockAddr, proved: &mut Vec<Accepted>) {
        let fits = if from.is_unix() { is_own(&stream) } else { stream.set_tcp_nodelay(true).map(|()| true) };
        match fits.and_then(|fits| stream.set_nonblocking(true).map(|()| fits)) {
            Ok(true) => {}
            Ok(false) => return self.note(End::Refused),
            Err(error) => {
                // A connection that has ended meanwhile has no options.
                self.trouble = Some(error).filter(is_denied).or(self.trouble.take());
                return self.note(End::LeftOff);
            }
        }
        let until = now.after(Duration::from_secs(HANDSHAKE_SECONDS));
        let room = self.room.clone().filter(|_| from.is_unix());
        self.advance(
            now,
            Pending { stream, room, heard: Vec::new(), file: None, known: None, ring: None, until },
            proved,
        );
        if self.newcomers.len() > NEWCOMERS_MAX || self.known.len() > KNOWN_MAX {
            self.evict();
        }
    }

    /// Closes the oldest newcomer; if there is none, the oldest of those who are known. False if nobody is unproven.
    fn evict(&mut self) -> bool {
        let places = if self.known.len() > KNOWN_MAX { &mut self.known } else { &mut self.newcomers };
        let Some(oldest) = places.pop_front().or_else(|| self.known.pop_front()) else { return false };
        self.note(oldest.given_up());
        true
    }

    fn advance(&mut self, now: Time, mut pending: Pending, proved: &mut Vec<Accepted>) {
        match pending.advance(&self.credentials, self.me, &self.accounts) {
            Ok(Some((opening, carriage))) => {
                let carriage = pending.ring.map_or(carriage, |ring| Carriage::Ring(Box::new(ring)));
                proved.push(Accepted { opening, channel: Channel::new(pending.stream, carriage) });
            }
            Ok(None) if now > pending.until => self.note(pending.given_up()),
            Ok(None) if pending.known.is_some() => self.known.push_back(pending),
            Ok(None) => self.newcomers.push_back(pending),
            Err(end) => self.note(end),
        }
    }
}

/// Whether the process behind a Unix socket is one of this user.
fn is_own(stream: &Socket) -> std::io::Result<bool> {
    Ok(rustix::net::sockopt::socket_peercred(stream)?.uid == rustix::process::geteuid())
}

/// Whether the operating system does not let this process do what it needs for any connection.
fn is_denied(error: &std::io::Error) -> bool {
    let denials = [Errno::PERM, Errno::ACCESS, Errno::NOSYS];
    denials.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Whether a connection ended before it was taken (accept(2), which reports errors of the network as well).
fn has_left(error: &std::io::Error) -> bool {
    let ends = [
        Errno::CONNABORTED,
        Errno::INTR,
        Errno::PROTO,
        Errno::NETDOWN,
        Errno::NETUNREACH,
        Errno::HOSTDOWN,
        Errno::HOSTUNREACH,
        Errno::NONET,
    ];
    ends.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Whether a connection could not be taken because this process, or the system, has too many files.
pub fn is_shortage(error: &std::io::Error) -> bool {
    let shortages = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    shortages.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// How a handshake ends that opens nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// This is nobody of the job, or says nothing.
    Refused,
    /// After a proper beginning, which may be none, the other side has left.
    LeftOff,
}

impl Pending {
    /// How it counts when it is waited for no longer. Who has said what takes the key is of the job, but stopped or dead; so may
    /// be a process of this user that has said nothing yet.
    fn given_up(&self) -> End {
        let is_near = || self.stream.local_addr().is_ok_and(|address| address.is_unix());
        if self.known.is_some() || self.heard.is_empty() && is_near() { End::LeftOff } else { End::Refused }
    }

    /// Goes on as far as it can; who it is and what seals the link, when it is open.
    fn advance(
        &mut self,
        credentials: &Credentials,
        me: PeerId,
        accounts: &Accounts,
    ) -> Result<Option<Proved>, End> {
        loop {
            // Exactly the handshake is read: what follows it belongs to the link.
            let due = match &self.known {
                None => Server::hello_bytes(&self.heard),
                Some(server) => server.proof_bytes(),
            };
            if self.heard.len() < due {
                let at = self.heard.len();
                self.heard.resize(due, 0);
                let into = &mut self.heard[at..];
                let read = match self.known {
                    None if self.room.is_some() => hear_with(&self.stream, into, &mut self.file),
                    _ => self.stream.read(into),
                };
                self.heard.truncate(at + read.as_ref().map_or(0, |count| *count));
                match read {
                    Ok(0) => return Err(End::LeftOff),
                    Ok(_) if self.known.is_none() => {
                        credentials.key.judge(&self.heard).map_err(|_| End::Refused)?;
                    }
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(_) => return Err(End::LeftOff),
                }
                continue;
            }
            match self.known.take() {
                None => {
                    let server =
                        Server::new(credentials, me, &self.heard, accounts).map_err(|_| End::Refused)?;
                    let mut reply = server.reply();
                    if let Some(room) = &self.room {
                        self.ring = self.file.take().and_then(|file| Ring::adopt(&file, room).ok());
                        reply.push(if self.ring.is_some() { RING_TAKEN } else { 0 });
                    }
                    // So few bytes always fit into the empty buffer of a new socket.
                    self.stream.write_all(&reply).map_err(|_| End::LeftOff)?;
                    self.known = Some(server);
                    self.heard.clear();
                }
                Some(server) => return server.proof(&self.heard).map(Some).map_err(|_| End::Refused),
            }
        }
    }
}

/// Who has opened a link, and what seals it.
type Proved = (Opening, Carriage);

/// Reads from a Unix socket, and takes a file that comes along.
fn hear_with(stream: &Socket, into: &mut [u8], file: &mut Option<OwnedFd>) -> std::io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let heard = net::recvmsg(stream, &mut [IoSliceMut::new(into)], &mut control, RecvFlags::CMSG_CLOEXEC);
    // Where files cannot come along, the link is without memory.
    let heard = match heard {
        Err(Errno::PERM | Errno::ACCESS | Errno::NOSYS) => return Ok(rustix::io::read(stream, into)?),
        heard => heard?,
    };
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(files) = message {
            *file = files.last().or(file.take());
        }
    }
    Ok(heard.bytes)
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
pub(super) fn nonce() -> [u8; 32] {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).expect("the operating system has random numbers");
    bytes
}
