//! Opening links: the client's side of the handshake.

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::net::{self, SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use socket2::{SockAddr, Socket, TcpKeepalive, Type};

use super::address::Target;
use super::channel::{Carriage, Channel};
use super::opening::{Answered, Client, Credentials};
use super::ring::{RING_TAKEN, Ring, Room};
use super::{LinkError, timespec};
use crate::limits;
use crate::time::{Clock, Time};
use ft_proto::rank::PeerId;
use ft_proto::wire::handshake::Opening;

/// Longest time to open a link.
pub(super) const OPEN_TIMEOUT: Duration = Duration::from_secs(3);
/// The same to the launcher, which may be stopped or busy for a while; when it is gone, so is its socket.
const LAUNCHER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long to wait before a second attempt, twice as long before each that follows, and before the last.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LAST_PAUSE: Duration = Duration::from_millis(128);
/// Unacknowledged bytes for this long mean that the link is cut.
const CUT_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes that a Unix socket holds on their way, which the kernel doubles for its own needs and limits to
/// `net.core.wmem_max`. With its default of 208 KiB a large message goes in many turns; where a turn costs a wake-up,
/// 1 MiB took twice and 16 MiB three times as long. Where waiting never sleeps it makes no difference.
const UNIX_SEND_BUFFER: usize = 1 << 20;

pub(super) fn down(error: impl std::fmt::Display) -> LinkError {
    LinkError::Down(error.to_string())
}

/// Sets the options of every link: it never blocks. TCP sends at once what it has, and notices by itself when
/// the other host is silent, and its buffers grow by themselves; on one host the kernel sees to the first two.
pub(super) fn tune(socket: &Socket) -> std::io::Result<()> {
    socket.set_nonblocking(true)?;
    if socket.local_addr()?.is_unix() {
        return socket.set_send_buffer_size(UNIX_SEND_BUFFER);
    }
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_user_timeout(Some(CUT_TIMEOUT))?;
    socket.set_tcp_keepalive(
        &TcpKeepalive::new().with_time(CUT_TIMEOUT / 2).with_interval(CUT_TIMEOUT / 4).with_retries(2),
    )
}

/// Connects to `target` and does the client's side of the handshake; gives up when `wake` becomes readable.
///
/// # Errors
/// The other side is not there, is a stranger, or does not answer in time.
pub fn connect(
    credentials: &Credentials,
    opening: Opening,
    target: &Target,
    wake: Option<&OwnedFd>,
    clock: &Clock,
) -> Result<Channel, LinkError> {
    connect_beside(credentials, opening, target, wake, clock, None)
}

/// As [`connect`]. To a process of this host, which takes memory, some is offered beside the socket, of so many bytes each way, if it can be had and there is room.
pub(super) fn connect_beside(
    credentials: &Credentials,
    opening: Opening,
    target: &Target,
    wake: Option<&OwnedFd>,
    clock: &Clock,
    memory: Option<(usize, &Room)>,
) -> Result<Channel, LinkError> {
    let patience = if opening.to == PeerId::LAUNCHER { LAUNCHER_TIMEOUT } else { OPEN_TIMEOUT };
    let until = clock.now().after(patience);
    let mut pause = FIRST_PAUSE;
    loop {
        match attempt(credentials, opening, target, wake, clock, until, memory) {
            // A place at a door where many strangers knock may be lost before it was used.
            Err(Refusal::Closed) if pause <= LAST_PAUSE => {
                await_news(None, wake, pause)?;
                pause *= 2;
            }
            Err(Refusal::Closed) => return Err(down("closed during the handshake")),
            Err(Refusal::Link(error)) => return Err(error),
            Ok(channel) => return Ok(channel),
        }
    }
}

/// Why a link was not opened.
enum Refusal {
    /// The other side has closed the connection without a word.
    Closed,
    Link(LinkError),
}

impl From<LinkError> for Refusal {
    fn from(error: LinkError) -> Self {
        Self::Link(error)
    }
}

fn attempt(
    credentials: &Credentials,
    opening: Opening,
    target: &Target,
    wake: Option<&OwnedFd>,
    clock: &Clock,
    until: Time,
    memory: Option<(usize, &Room)>,
) -> Result<Channel, Refusal> {
    let mut socket = reach(&target.socket).map_err(down)?;
    tune(&socket).map_err(down)?;
    let client = Client::new(credentials, opening, target.is_far);
    let asked = memory.filter(|_| target.socket.is_unix());
    let ring = asked.and_then(|(capacity, room)| Ring::create(capacity, room).ok());
    match &ring {
        None => socket.write_all(client.hello()).map_err(closed)?,
        Some((_, file)) => send_with(&socket, client.hello(), file).map_err(closed)?,
    }
    let reply_bytes = client.reply_bytes();
    let mut reply = vec![0; reply_bytes + usize::from(asked.is_some())];
    let mut filled = 0;
    while filled < reply.len() {
        match socket.read(&mut reply[filled..]) {
            Ok(0) => return Err(Refusal::Closed),
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let left = until.since(clock.now());
                if left.is_zero() {
                    return Err(down("no answer to the handshake in time").into());
                }
                await_news(Some(&socket), wake, left)?;
            }
            Err(error) => return Err(closed(error)),
        }
    }
    let Answered { proof, carriage, .. } = client.reply(&reply[..reply_bytes]).map_err(down)?;
    socket.write_all(&proof).map_err(down)?;
    let carriage = match ring {
        Some((ring, _)) if reply[reply_bytes] == RING_TAKEN => Carriage::Ring(Box::new(ring)),
        _ => carriage,
    };
    Ok(Channel::new(socket, carriage))
}

/// Sends the first message of a link, and with it a file. The buffer of a new socket has room for it.
fn send_with(socket: &Socket, bytes: &[u8], file: &OwnedFd) -> std::io::Result<()> {
    let files = [file.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&files));
    let count = net::sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?;
    if count == bytes.len() { Ok(()) } else { Err(ErrorKind::WriteZero.into()) }
}

fn closed(error: std::io::Error) -> Refusal {
    match error.kind() {
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Refusal::Closed,
        _ => Refusal::Link(down(error)),
    }
}

/// Waits until `socket` has something, at most `span`; news end it as an error.
fn await_news(socket: Option<&Socket>, wake: Option<&OwnedFd>, span: Duration) -> Result<(), LinkError> {
    let readable = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
    let mut fds: Vec<PollFd<'_>> = wake.map(|wake| readable(wake.as_fd())).into_iter().collect();
    fds.extend(socket.map(|socket| readable(socket.as_fd())));
    let _ = rustix::event::poll(&mut fds, Some(&timespec(span)));
    let is_news = wake.is_some() && fds.first().is_some_and(|fd| !fd.revents().is_empty());
    if is_news { Err(LinkError::Interrupted) } else { Ok(()) }
}

/// A socket that is connected to `address`, in bounded time.
fn reach(address: &SockAddr) -> std::io::Result<Socket> {
    let named = |error: std::io::Error| std::io::Error::new(error.kind(), limits::explain(&error));
    let socket = Socket::new(address.domain(), Type::STREAM, None).map_err(named)?;
    if address.is_unix() {
        // It waits only while too many others wait to be accepted, and for the time that a send would.
        socket.set_write_timeout(Some(OPEN_TIMEOUT))?;
        socket.connect(address)?;
    } else {
        socket.connect_timeout(address, OPEN_TIMEOUT)?;
    }
    Ok(socket)
}
