//! Links over TCP.
//!
//! Both ends of a link set `TCP_NODELAY`, and a user timeout, so that a cut link is noticed by the kernel.
//! Sockets never block; waiting is one `epoll_wait` over all links, the channel of accepted links and news.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::Receiver;
use rustix::event::{PollFd, PollFlags, Timespec, epoll};
use socket2::{SockRef, TcpKeepalive};

use super::accept::nonce;
use super::{Accepted, LinkError, LinkId, Transport};
use crate::rank::{Generation, PeerId};
use crate::time::Clock;
use crate::wire::handshake::{Client, JobKey, Opening, REPLY_BYTES};

/// Longest time to open a link.
const OPEN_TIMEOUT: Duration = Duration::from_secs(3);
/// Unacknowledged bytes for this long mean that the link is cut.
const CUT_TIMEOUT: Duration = Duration::from_secs(5);
const WAKE: u64 = u64::MAX;

#[derive(Debug)]
struct Link {
    stream: TcpStream,
}

/// See the module.
pub struct TcpTransport {
    key: JobKey,
    me: PeerId,
    clock: Clock,
    generation: Option<Generation>,
    addresses: HashMap<PeerId, SocketAddr>,
    links: BTreeMap<LinkId, Link>,
    next: u64,
    inbox: Receiver<Accepted>,
    /// Accepted links of a generation that this rank has not reached yet.
    early: Vec<Accepted>,
    epoll: OwnedFd,
    writing: BTreeSet<LinkId>,
    /// Written by the service thread when there is news or an accepted link.
    wake: Arc<OwnedFd>,
    events: Vec<epoll::Event>,
}

impl std::fmt::Debug for TcpTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TcpTransport").field("me", &self.me).field("links", &self.links).finish()
    }
}

fn down(error: impl std::fmt::Display) -> LinkError {
    LinkError::Down(error.to_string())
}

/// Sets the options of every data link.
fn tune(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
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
    address: SocketAddr,
    wake: Option<&OwnedFd>,
    clock: &Clock,
) -> Result<TcpStream, LinkError> {
    let until = clock.now().after(OPEN_TIMEOUT);
    let mut stream = TcpStream::connect_timeout(&address, OPEN_TIMEOUT).map_err(down)?;
    tune(&stream).map_err(down)?;
    let client = Client::new(key, opening, nonce());
    stream.write_all(client.hello()).map_err(down)?;
    let mut reply = [0; REPLY_BYTES];
    let mut filled = 0;
    while filled < REPLY_BYTES {
        match stream.read(&mut reply[filled..]) {
            Ok(0) => return Err(down("closed during the handshake")),
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let left = until.since(clock.now());
                if left.is_zero() {
                    return Err(down(format!("{address} did not answer the handshake in {OPEN_TIMEOUT:?}")));
                }
                let mut fds = vec![PollFd::new(&stream, PollFlags::IN)];
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
    stream.write_all(&proof).map_err(down)?;
    Ok(stream)
}

pub(crate) fn timespec(span: Duration) -> Timespec {
    Timespec { tv_sec: span.as_secs().min(1 << 30) as i64, tv_nsec: i64::from(span.subsec_nanos()) }
}

impl TcpTransport {
    /// A transport without links; `inbox` brings accepted ones, `wake` becomes readable when it or the news
    /// has something.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn new(
        key: JobKey,
        me: PeerId,
        inbox: Receiver<Accepted>,
        wake: Arc<OwnedFd>,
    ) -> std::io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &*wake, epoll::EventData::new_u64(WAKE), epoll::EventFlags::IN)?;
        Ok(Self {
            key,
            me,
            clock: Clock::start(),
            generation: None,
            addresses: HashMap::new(),
            links: BTreeMap::new(),
            next: 0,
            inbox,
            early: Vec::new(),
            epoll,
            writing: BTreeSet::new(),
            wake,
            events: Vec::with_capacity(64),
        })
    }

    fn add(&mut self, stream: TcpStream) -> Result<LinkId, LinkError> {
        let link = LinkId(self.next);
        self.next += 1;
        epoll::add(&self.epoll, &stream, epoll::EventData::new_u64(link.0), epoll::EventFlags::IN)
            .map_err(down)?;
        self.links.insert(link, Link { stream });
        Ok(link)
    }

    fn interest(&mut self, link: LinkId, write: bool) {
        let Some(entry) = self.links.get(&link) else { return };
        let flags =
            if write { epoll::EventFlags::IN | epoll::EventFlags::OUT } else { epoll::EventFlags::IN };
        // A link that cannot be watched is found broken at its next use.
        let _ = epoll::modify(&self.epoll, &entry.stream, epoll::EventData::new_u64(link.0), flags);
    }
}

impl Transport for TcpTransport {
    fn change(&mut self, generation: Generation, peers: &[(PeerId, String)]) {
        self.generation = Some(generation);
        self.links.clear(); // closing a socket takes it out of the epoll set
        self.writing.clear();
        let parse = |(peer, address): &(PeerId, String)| Some((*peer, address.parse().ok()?));
        self.addresses = peers.iter().filter_map(parse).collect();
    }

    fn open(&mut self, peer: PeerId) -> Result<LinkId, LinkError> {
        let generation = self.generation.ok_or_else(|| down("no generation has started"))?;
        let address = *self.addresses.get(&peer).ok_or_else(|| down("unknown peer"))?;
        let opening = Opening { from: self.me, to: peer, generation };
        let stream = connect(&self.key, opening, address, Some(&self.wake), &self.clock)?;
        self.add(stream)
    }

    fn accepted(&mut self) -> Option<(PeerId, LinkId)> {
        let generation = self.generation?;
        self.early.extend(self.inbox.try_iter());
        // Links of an older generation are dropped, those of a later one wait.
        self.early.retain(|accepted| accepted.opening.generation >= generation);
        let at = self.early.iter().position(|accepted| accepted.opening.generation == generation)?;
        let Accepted { opening, stream } = self.early.swap_remove(at);
        if !self.addresses.contains_key(&opening.from) || tune(&stream).is_err() {
            return self.accepted();
        }
        let link = self.add(stream).ok()?;
        Some((opening.from, link))
    }

    fn send(&mut self, link: LinkId, pieces: &[IoSlice<'_>]) -> Result<usize, LinkError> {
        let entry = self.links.get_mut(&link).ok_or_else(|| down("closed"))?;
        match entry.stream.write_vectored(pieces) {
            Ok(count) => Ok(count),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(0),
            Err(error) => Err(down(error)),
        }
    }

    fn receive(&mut self, link: LinkId, pieces: &mut [IoSliceMut<'_>]) -> Result<usize, LinkError> {
        let entry = self.links.get_mut(&link).ok_or_else(|| down("closed"))?;
        match entry.stream.read_vectored(pieces) {
            Ok(0) => Err(down("closed by the other side")),
            Ok(count) => Ok(count),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(0),
            Err(error) => Err(down(error)),
        }
    }

    fn wait(&mut self, writing: &[LinkId], timeout: Duration, ready: &mut Vec<LinkId>) {
        let wanted: BTreeSet<LinkId> = writing.iter().copied().collect();
        if wanted != self.writing {
            let old = std::mem::replace(&mut self.writing, wanted);
            let changed: Vec<LinkId> = old.symmetric_difference(&self.writing).copied().collect();
            for link in changed {
                self.interest(link, self.writing.contains(&link));
            }
        }
        self.events.clear();
        let span = timespec(timeout);
        let buffer = rustix::buffer::spare_capacity(&mut self.events);
        if epoll::wait(&self.epoll, buffer, Some(&span)).is_err() {
            return; // interrupted by a signal; the caller looks again
        }
        for event in &self.events {
            let (flags, data) = (event.flags, event.data.u64());
            if data == WAKE {
                let _ = rustix::io::read(&*self.wake, &mut [0; 8]);
            } else if flags != epoll::EventFlags::OUT {
                ready.push(LinkId(data));
            }
        }
    }

    fn idle(&mut self, timeout: Duration) {
        let mut fds = [PollFd::new(&*self.wake, PollFlags::IN)];
        if rustix::event::poll(&mut fds, Some(&timespec(timeout))).is_ok_and(|count| count > 0) {
            let _ = rustix::io::read(&*self.wake, &mut [0; 8]);
        }
    }

    fn relax(&mut self) {
        rustix::thread::sched_yield();
    }

    fn close(&mut self, link: LinkId) {
        self.links.remove(&link);
        self.writing.remove(&link);
    }
}
