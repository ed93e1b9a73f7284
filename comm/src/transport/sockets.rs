//! Links over stream sockets: Unix sockets between processes of one host, with memory beside them, TCP between hosts.
//!
//! A link is the same whatever carries it: the handshake, the bytes, and how its end is seen. Sockets never
//! block; waiting is one `epoll_wait` over all links, the channel of accepted links and news. A look at the memory
//! beside a socket costs no call of the system: where all links have some, the sockets are looked at every so often, and before a sleep.

use std::collections::{BTreeSet, HashMap};
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
use super::connect::{connect_beside, down, tune};
use super::cross_memory::{Neighbor, admit_siblings};
use super::opening::Credentials;
use super::options::{Carrier, LinkOptions};
use super::ring::{Room, fence};
use super::{Accepted, Address, ByLink, LinkError, LinkId, Patience, Transport, timespec};
use crate::binding::cores;
use crate::time::Clock;
use ft_proto::cells::Label;
use ft_proto::rank::{Generation, PeerId};
use ft_proto::wire::handshake::Opening;

mod arrivals;

const WAKE: u64 = u64::MAX;
/// Bytes of memory that all links within the host have together, about, and the least and the most that one has each way.
const RINGS_BYTES: usize = 2 << 20;
const RING_BYTES: (usize, usize) = (8 << 10, 64 << 10);
/// Of so many looks at links that all have memory the last one is at their sockets too.
const LOOKS_AT_MEMORY: u32 = 64;

#[derive(Debug)]
struct Link {
    channel: Channel,
    /// With the peer at its other end, if that is on another host.
    account: Option<Arc<Account>>,
    /// The process at its other end, if its memory may be in reach.
    neighbor: Option<Neighbor>,
    /// There is memory beside the socket.
    has_ring: bool,
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
    /// Bytes each way of the memory beside the next link.
    ring: usize,
    /// Links with memory.
    rings: usize,
    /// For it.
    room: Room,
    looks: u32,
    links: ByLink<Link>,
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
    /// has something. It keeps the `accounts` of what is sent and received, and takes memory for links from `room`.
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
        room: Room,
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
            ring: RING_BYTES.0,
            rings: 0,
            room,
            looks: 0,
            links: ByLink::default(),
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

    fn add(&mut self, peer: PeerId, mut channel: Channel) -> Result<LinkId, LinkError> {
        let has_ring = channel.ring().is_some();
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
        self.links.insert(link, Link { channel, account, neighbor, has_ring, writing: false, armed: false });
        self.rings += usize::from(has_ring);
        self.events.clear();
        self.events.reserve(self.links.count() + 1);
        Ok(link)
    }

    /// Makes `epoll` tell when the links of `writing`, and no others, can be sent to.
    fn watch(&mut self, writing: &[LinkId]) {
        if writing == self.writing {
            return; // as nearly always
        }
        let both = self.writing.iter().map(|id| (id, false)).chain(writing.iter().map(|id| (id, true)));
        for (id, wanted) in both {
            if let Some(link) = self.links.get_mut(*id) {
                link.writing = wanted;
            }
        }
        for id in self.writing.iter().chain(writing) {
            let Some(link) = self.links.get_mut(*id) else { continue };
            let arms = link.writing && !link.has_ring;
            if arms != link.armed {
                link.armed = arms;
                let out = if link.armed { epoll::EventFlags::OUT } else { epoll::EventFlags::empty() };
                // A link that cannot be watched is found broken at its next use.
                let data = epoll::EventData::new_u64(id.0);
                let _ = epoll::modify(&self.epoll, &link.channel, data, epoll::EventFlags::IN | out);
            }
        }
        self.writing.clear();
        self.writing.extend_from_slice(writing);
    }

    /// Looks at the memory of links: appends those with something to receive that are not in `ready` yet; whether there are any, or one that
    /// the caller wants to send to has room.
    fn look(&mut self, ready: &mut Vec<LinkId>) -> bool {
        let mut found = false;
        for (id, link) in self.links.iter_mut().filter(|(_, link)| link.has_ring) {
            let Some((ring, _)) = link.channel.ring() else { continue };
            let has_come = ring.has_come();
            if ring.notices() || has_come {
                found = true;
                if !ready.contains(&id) {
                    ready.push(id);
                }
            }
            found |= link.writing && ring.has_room();
        }
        found
    }

    /// Tells the other sides of links with memory that this one is about to sleep, or is awake.
    fn doze(&mut self, does: bool) {
        for link in self.links.iter_mut().map(|(_, link)| link).filter(|link| link.has_ring) {
            let writing = link.writing;
            if let Some((ring, _)) = link.channel.ring() {
                ring.sleeps(does, writing);
            }
        }
        fence();
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
        drop(self.links.take()); // closing a socket takes it out of the epoll set
        self.rings = 0;
        self.writing.clear();
        let nearest = |(peer, address): &(PeerId, String)| {
            Some((*peer, address.parse::<Address>().ok()?.nearest(&self.options.host)?))
        };
        self.peers = peers.iter().filter_map(nearest).collect();
        let near = self.peers.values().filter(|target| !target.is_far).count().max(1);
        let (least, most) = RING_BYTES;
        self.ring = (RINGS_BYTES / 2 / near).clamp(least, most).next_power_of_two().min(most);
        self.arrivals.begin(generation);
    }

    fn open(&mut self, peer: PeerId) -> Result<LinkId, LinkError> {
        let generation = self.arrivals.generation().ok_or_else(|| down("no generation has started"))?;
        let target = self.peers.get(&peer).ok_or_else(|| down("unknown peer"))?;
        let opening = Opening { from: self.me, to: peer, generation };
        let memory = (self.options.carrier == Carrier::Auto).then_some((self.ring, &self.room));
        let (credentials, wake) = (&self.credentials, Some(&*self.wake));
        let channel = connect_beside(credentials, opening, target, wake, &self.clock, memory)?;
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
        let entry = self.links.get_mut(link).ok_or_else(|| down("closed"))?;
        let count = entry.channel.send(pieces).map_err(down)?;
        entry.account.iter().for_each(|account| account.sends(count));
        Ok(count)
    }

    fn receive(&mut self, link: LinkId, pieces: &mut [IoSliceMut<'_>]) -> Result<usize, LinkError> {
        let entry = self.links.get_mut(link).ok_or_else(|| down("closed"))?;
        let received = entry.channel.receive(pieces).map_err(down);
        if entry.channel.holds_back() {
            self.full.insert(link);
        }
        if let (Ok(count), Some(account)) = (&received, &entry.account) {
            account.receives(*count);
        }
        received
    }

    fn has_cells(&self) -> bool {
        self.options.carrier == Carrier::Auto
    }

    #[inline]
    fn put(&mut self, link: LinkId, label: Label, bytes: &[u8]) -> bool {
        let ring = self.links.get_mut(link).and_then(|link| link.channel.ring());
        ring.is_some_and(|(ring, _)| ring.put(label, bytes))
    }

    #[inline]
    fn rouse(&mut self, links: &[LinkId]) {
        fence();
        for link in links {
            if let Some((ring, socket)) = self.links.get_mut(*link).and_then(|link| link.channel.ring()) {
                ring.rouse(socket);
            }
        }
    }

    #[inline]
    fn take(
        &mut self,
        link: LinkId,
        label: Label,
        times: u32,
        into: &mut [u8],
    ) -> Result<Option<usize>, LinkError> {
        let Some((ring, _)) = self.links.get_mut(link).and_then(|link| link.channel.ring()) else {
            return Ok(None);
        };
        for _ in 0..times {
            if let Some(length) = ring.take(label, into).map_err(down)? {
                return Ok(Some(length));
            }
            std::hint::spin_loop();
        }
        Ok(None)
    }

    fn is_near(&self, link: LinkId) -> bool {
        self.links.get(link).is_some_and(|link| link.neighbor.is_some())
    }

    fn read(&mut self, link: LinkId, from: u64, into: &mut [u8]) -> bool {
        let neighbor = self.links.get(link).and_then(|link| link.neighbor);
        neighbor.is_some_and(|neighbor| neighbor.read(from, into))
    }

    fn wait(&mut self, writing: &[LinkId], timeout: Duration, ready: &mut Vec<LinkId>) {
        self.watch(writing);
        let before = ready.len();
        // Of what was read ahead from a link between hosts the system does not tell any more.
        if !self.full.is_empty() {
            ready.extend(
                std::mem::take(&mut self.full).into_iter().filter(|link| self.links.get(*link).is_some()),
            );
        }
        let (held, mut found) = (before..ready.len(), ready.len() > before);
        let sleeps = !timeout.is_zero();
        if self.rings > 0 {
            found |= self.look(ready);
            self.looks = self.looks.wrapping_add(1);
            let is_turn = self.looks.is_multiple_of(LOOKS_AT_MEMORY);
            if self.rings == self.links.count() && !is_turn && (found || !sleeps) {
                return;
            }
            if sleeps && !found {
                self.doze(true);
                found = self.look(ready);
            }
        }
        let span = timespec(if found { Duration::ZERO } else { timeout });
        self.events.clear();
        let buffer = rustix::buffer::spare_capacity(&mut self.events);
        // Interrupted by a signal, the caller looks again.
        let _ = epoll::wait(&self.epoll, buffer, Some(&span));
        if self.rings > 0 && sleeps {
            self.doze(false);
        }
        for event in &self.events {
            let (flags, data) = (event.flags, event.data.u64());
            if data == WAKE {
                let _ = rustix::io::read(&*self.wake, &mut [0; 8]);
                continue;
            }
            let id = LinkId(data);
            match self.links.get_mut(id).and_then(|link| link.channel.ring()) {
                // What is there is found below.
                Some((ring, socket)) => ring.hear(socket),
                None if flags != epoll::EventFlags::OUT && !ready[held.clone()].contains(&id) => {
                    ready.push(id)
                }
                None => {}
            }
        }
        if self.rings > 0 {
            self.look(ready);
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
        let closed = self.links.remove(link);
        self.rings -= usize::from(closed.is_some_and(|link| link.has_ring));
    }

    fn glance(&mut self, link: LinkId, times: u32) -> bool {
        let Some((ring, _)) = self.links.get_mut(link).and_then(|link| link.channel.ring()) else {
            return false;
        };
        (0..times).any(|_| {
            std::hint::spin_loop();
            ring.has_come()
        })
    }

    fn reads_ahead(&self, link: LinkId) -> bool {
        self.links.get(link).is_none_or(|link| !link.has_ring)
    }

    fn misses(&mut self, peer: PeerId) -> bool {
        let account = self.accounts.of(peer);
        let is_short = account.is_short();
        let of_peer = |link: &&Link| link.account.as_ref().is_some_and(|a| Arc::ptr_eq(a, &account));
        is_short
            && !self.links.iter().map(|(_, link)| link).filter(of_peer).any(|link| link.channel.has_come())
    }

    fn patience(&self, ranks: usize) -> Patience {
        self.options.waiting.patience(ranks, self.cores)
    }
}

#[cfg(test)]
mod tests;
