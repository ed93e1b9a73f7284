//! Opening links: the client's side of the handshake.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use socket2::{SockAddr, Socket, TcpKeepalive, Type};

use super::accept::nonce;
use super::{LinkError, timespec};
use crate::time::Clock;
use crate::wire::handshake::{Client, JobKey, Opening, REPLY_BYTES};

/// Longest time to open a link.
pub(super) const OPEN_TIMEOUT: Duration = Duration::from_secs(3);
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

/// Connects to `address` and does the client's side of the handshake; gives up when `wake` becomes readable.
///
/// # Errors
/// The other side is not there, is a stranger, or does not answer in time.
pub fn connect(
    key: &JobKey,
    opening: Opening,
    address: &SockAddr,
    wake: Option<&OwnedFd>,
    clock: &Clock,
) -> Result<Socket, LinkError> {
    let until = clock.now().after(OPEN_TIMEOUT);
    let mut socket = reach(address).map_err(down)?;
    tune(&socket).map_err(down)?;
    let client = Client::new(key, opening, nonce());
    socket.write_all(client.hello()).map_err(down)?;
    let mut reply = [0; REPLY_BYTES];
    let mut filled = 0;
    while filled < REPLY_BYTES {
        match socket.read(&mut reply[filled..]) {
            Ok(0) => return Err(down("closed during the handshake")),
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let left = until.since(clock.now());
                if left.is_zero() {
                    return Err(down(format!("no answer to the handshake in {OPEN_TIMEOUT:?}")));
                }
                let mut fds = vec![PollFd::new(&socket, PollFlags::IN)];
                fds.extend(wake.map(|wake| PollFd::from_borrowed_fd(wake.as_fd(), PollFlags::IN)));
                let _ = rustix::event::poll(&mut fds, Some(&timespec(left)));
                if fds.get(1).is_some_and(|fd| !fd.revents().is_empty()) {
                    return Err(LinkError::Interrupted);
                }
            }
            Err(error) => return Err(down(error)),
        }
    }
    let proof = client.reply(&reply).map_err(down)?;
    socket.write_all(&proof).map_err(down)?;
    Ok(socket)
}

/// A socket that is connected to `address`, in bounded time.
fn reach(address: &SockAddr) -> std::io::Result<Socket> {
    let socket = Socket::new(address.domain(), Type::STREAM, None)?;
    if address.is_unix() {
        // It waits only while too many others wait to be accepted, and for the time that a send would.
        socket.set_write_timeout(Some(OPEN_TIMEOUT))?;
        socket.connect(address)?;
    } else {
        socket.connect_timeout(address, OPEN_TIMEOUT)?;
    }
    Ok(socket)
}
