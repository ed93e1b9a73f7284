//! Links over stream sockets: Unix sockets between processes of one host, TCP between hosts.
//!
//! A link is the same whatever carries it: the handshake, the bytes, and how its end is seen. Sockets never
//! block; waiting is one `epoll_wait` over all links, the channel of accepted links and news.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::Receiver;
use rustix::event::{PollFd, PollFlags, epoll};
use socket2::{SockAddr, Socket};

use self::arrivals::Arrivals;
use super::accounts::{Account, Accounts};
use super::address::Target;
use super::channel::Channel;
use super::connect::{connect, down, tune};
use super::cross_memory::{Neighbor, admit_siblings};
use super::opening::Credentials;
use super::options::{Carrier, LinkOptions};
use super::{Accepted, Address, LinkError, LinkId, Patience, Transport, timespec};
use crate::binding::cores;
use crate::time::Clock;
use ft_proto::rank::{Generation, PeerId};
use ft_proto::wire::handshake::Opening;

mod arrivals;

const WAKE: u64 = u64::MAX;

#[derive(Debug)]
struct Link {
    channel: Channel,
    /// With the peer at its other end, if that is on another host.
    account: Option<Arc<Account>>,
    /// The process at its other end, if its memory may be in reach.
    neighbor: Option<Neighbor>,
    /// The caller waits until something can be sent.
    writing: bool,
    /// `epoll` knows of it.
    armed: bool,
}

/// Links over stream sockets: Unix sockets within a host, TCP between hosts.
pub struct SocketTransport {
    credentials: Credentials,
    me: PeerId,
    options: LinkOptions,
    /// Cores that were there for all ranks when this process began.
    cores: usize,
    clock: Clock,
    /// Where the peers of this generation are reached.
    peers: HashMap<PeerId, Target>,
    links: BTreeMap<LinkId, Link>,
    accounts: Accounts,
    next: u64,
    arrivals: Arrivals,
    epoll: OwnedFd,
    /// The links of which something was read ahead that the caller has no room for yet.
    full: BTreeSet<LinkId>,
    /// The links to which the caller wanted to send when it waited last.
    writing: Vec<LinkId>,
    /// Written by the service thread when there is news or an accepted link.
    wake: Arc<OwnedFd>,
    /// Has room for an event of every link, so that none has to wait for its turn.
    events: Vec<epoll::Event>,
}

impl std::fmt::Debug for SocketTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SocketTransport").field("me", &self.me).field("links", &self.links).finish()
    }
}

impl SocketTransport {
    /// A transport without links; `inbox` brings accepted ones, `wake` becomes readable when it or the news
    /// has something. It keeps the `accounts` of what is sent and received.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn new(
        credentials: Credentials,
        me: PeerId,
        options: LinkOptions,
        inbox: Receiver<Accepted>,
        wake: Arc<OwnedFd>,
        accounts: Accounts,
    ) -> std::io::Result<Self> {
        admit_siblings();
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &*wake, epoll::EventData::new_u64(WAKE), epoll::EventFlags::IN)?;
        Ok(Self {
            credentials,
            me,
            options,
            cores: cores().len(),
            clock: Clock::start(),
            peers: HashMap::new(),
            links: BTreeMap::new(),
            accounts,
            next: 0,
            arrivals: Arrivals::new(inbox),
            epoll,
            full: BTreeSet::new(),
            writing: Vec::new(),
            wake,
            events: Vec::with_capacity(64),
        })
    }

    fn add(&mut self, peer: PeerId, channel: Channel) -> Result<LinkId, LinkError> {
        let socket = channel.socket();
        if is_loopback_tcp(socket) {
            self.options.congestion.apply(socket);
        }
        let link = LinkId(self.next);
        self.next += 1;
        epoll::add(&self.epoll, socket, epoll::EventData::new_u64(link.0), epoll::EventFlags::IN)
            .map_err(down)?;
        let reads = self.options.carrier == Carrier::Auto;
        let neighbor = Neighbor::of(socket).filter(|_| reads);
        let account = channel.is_far().then(|| self.accounts.of(peer));
        self.links.insert(link, Link { channel, account, neighbor, writing: false, armed: false });
        self.events.clear();
        self.events.reserve(self.links.len() + 1);
        Ok(link)
    }

    /// Makes `epoll` tell when the links of `writing`, and no others, can be sent to.
    fn watch(&mut self, writing: &[LinkId]) {
        if writing == self.writing {
            return; // as nearly always
        }
        let both = self.writing.iter().map(|id| (id, false)).chain(writing.iter().map(|id| (id, true)));
        for (id, wanted) in both {
            if let Some(link) = self.links.get_mut(id) {
                link.writing = wanted;
            }
        }
        for id in self.writing.iter().chain(writing) {
            let Some(link) = self.links.get_mut(id) else { continue };
            if link.writing != link.armed {
                link.armed = link.writing;
                let out = if link.armed { epoll::EventFlags::OUT } else { epoll::EventFlags::empty() };
                // A link that cannot be watched is found broken at its next use.
                let data = epoll::EventData::new_u64(id.0);
                let _ = epoll::modify(&self.epoll, &link.channel, data, epoll::EventFlags::IN | out);
            }
        }
        self.writing.clear();
        self.writing.extend_from_slice(writing);
    }
}

/// Whether both ends are of this host's loopback interface.
fn is_loopback_tcp(socket: &Socket) -> bool {
    let loopback = |address: std::io::Result<SockAddr>| {
        address.ok().and_then(|address| address.as_socket()).is_some_and(|address| address.ip().is_loopback())
    };
    loopback(socket.local_addr()) && loopback(socket.peer_addr())
}

impl Transport for SocketTransport {
    fn change(&mut self, generation: Generation, peers: &[(PeerId, String)]) {
        self.accounts.begin(generation);
        self.links.clear(); // closing a socket takes it out of the epoll set
        self.writing.clear();
        let nearest = |(peer, address): &(PeerId, String)| {
            Some((*peer, address.parse::<Address>().ok()?.nearest(&self.options.host)?))
        };
        self.peers = peers.iter().filter_map(nearest).collect();
        self.arrivals.begin(generation);
    }

    fn open(&mut self, peer: PeerId) -> Result<LinkId, LinkError> {
        let generation = self.arrivals.generation().ok_or_else(|| down("no generation has started"))?;
        let target = self.peers.get(&peer).ok_or_else(|| down("unknown peer"))?;
        let opening = Opening { from: self.me, to: peer, generation };
        let channel = connect(&self.credentials, opening, target, Some(&self.wake), &self.clock)?;
        self.add(peer, channel)
    }

    fn accepted(&mut self) -> Option<(PeerId, LinkId)> {
        while let Some(Accepted { opening, channel }) = self.arrivals.take() {
            if self.peers.contains_key(&opening.from)
                && tune(channel.socket()).is_ok()
                && let Ok(link) = self.add(opening.from, channel)
            {
                return Some((opening.from, link));
            }
        }
        None
    }

    fn send(&mut self, link: LinkId, pieces: &[IoSlice<'_>]) -> Result<usize, LinkError> {
        let entry = self.links.get_mut(&link).ok_or_else(|| down("closed"))?;
        let count = entry.channel.send(pieces).map_err(down)?;
        entry.account.iter().for_each(|account| account.sends(count));
        Ok(count)
    }

    fn receive(&mut self, link: LinkId, pieces: &mut [IoSliceMut<'_>]) -> Result<usize, LinkError> {
        let entry = self.links.get_mut(&link).ok_or_else(|| down("closed"))?;
        let received = entry.channel.receive(pieces).map_err(down);
        if entry.channel.holds_back() {
            self.full.insert(link);
        }
        if let (Ok(count), Some(account)) = (&received, &entry.account) {
            account.receives(*count);
        }
        received
    }

    fn is_near(&self, link: LinkId) -> bool {
        self.links.get(&link).is_some_and(|link| link.neighbor.is_some())
    }

    fn read(&mut self, link: LinkId, from: u64, into: &mut [u8]) -> bool {
        let neighbor = self.links.get(&link).and_then(|link| link.neighbor);
        neighbor.is_some_and(|neighbor| neighbor.read(from, into))
    }

    fn wait(&mut self, writing: &[LinkId], timeout: Duration, ready: &mut Vec<LinkId>) {
        self.watch(writing);
        self.events.clear();
        // Of what was read ahead from a link between hosts the system does not tell any more.
        let full = std::mem::take(&mut self.full).into_iter().filter(|link| self.links.contains_key(link));
        let before = ready.len();
        ready.extend(full);
        let held = before..ready.len();
        let span = timespec(if !held.is_empty() { Duration::ZERO } else { timeout });
        let buffer = rustix::buffer::spare_capacity(&mut self.events);
        if epoll::wait(&self.epoll, buffer, Some(&span)).is_err() {
            return; // interrupted by a signal; the caller looks again
        }
        for event in &self.events {
            let (flags, data) = (event.flags, event.data.u64());
            if data == WAKE {
                let _ = rustix::io::read(&*self.wake, &mut [0; 8]);
            } else if flags != epoll::EventFlags::OUT && !ready[held.clone()].contains(&LinkId(data)) {
                ready.push(LinkId(data));
            }
        }
    }

    fn idle(&mut self, timeout: Duration) {
        let mut fds = [PollFd::from_borrowed_fd(self.wake.as_fd(), PollFlags::IN)];
        if rustix::event::poll(&mut fds, Some(&timespec(timeout))).is_ok_and(|count| count > 0) {
            let _ = rustix::io::read(&*self.wake, &mut [0; 8]);
        }
    }

    fn relax(&mut self) {
        std::thread::yield_now();
    }

    fn close(&mut self, link: LinkId) {
        self.links.remove(&link);
    }

    fn misses(&mut self, peer: PeerId) -> bool {
        let account = self.accounts.of(peer);
        let is_short = account.is_short();
        let of_peer = |link: &&Link| link.account.as_ref().is_some_and(|a| Arc::ptr_eq(a, &account));
        is_short && !self.links.values().filter(of_peer).any(|link| link.channel.has_come())
    }

    fn patience(&self, ranks: usize) -> Patience {
        self.options.waiting.patience(ranks, self.cores)
    }
}

#[cfg(test)]
mod tests;
