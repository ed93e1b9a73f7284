//! Links over anything that carries packets between processes in order, such as an MPI library: it knows of no links and of no generations,
//! so both are written on the packets.
//!
//! Process `n` of those that carry packets is the peer `n + 1`. A link is known by who has opened it and by the number that it has there. Packets of an older
//! generation are dropped, those of a newer one wait for it.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};

use super::{LinkError, LinkId, Patience, Transport, Waiting, timespec};
use crate::binding::cores;
use crate::time::Clock;
use ft_proto::rank::{Generation, PeerId};

/// Most bytes of a link in one packet.
const PIECE_BYTES: usize = 64 << 10;
/// As long as so many bytes to a process are under way, no more are taken.
const WINDOW_BYTES: usize = 512 << 10;
/// Generation, number of the link, who has opened it, and what the packet is.
const HEADER_BYTES: usize = 10;
/// A sleeper looks at the packets that often: nothing else wakes it when one comes.
const NAP: Duration = Duration::from_micros(100);

/// What carries packets between processes, each pair's in order.
pub trait Packets {
    /// An empty packet to be filled, with the memory of an old one perhaps.
    fn blank(&mut self) -> Vec<u8>;

    /// Takes back the memory of a packet.
    fn recycle(&mut self, packet: Vec<u8>);

    /// Sends a packet. To a process that is gone it goes nowhere.
    fn post(&mut self, to: usize, packet: Vec<u8>);

    /// Bytes to a process that have not left yet.
    fn under_way(&self, to: usize) -> usize;

    /// The next packet that has come, and from whom; moves on what is under way.
    fn next(&mut self) -> Option<(usize, Vec<u8>)>;

    /// Why nothing can be sent to a process or received from it, if that is known. Most libraries never know.
    fn trouble(&self, process: usize) -> Option<String>;

    /// Processes of the job were lost.
    fn has_losses(&mut self);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Opens,
    Bytes,
    Closes,
}

/// What is at the front of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    generation: Generation,
    number: u32,
    /// The sender of the packet has opened the link.
    is_openers: bool,
    what: What,
}

impl Header {
    fn write(self, packet: &mut Vec<u8>) {
        packet.extend_from_slice(&self.generation.to_le_bytes());
        packet.extend_from_slice(&self.number.to_le_bytes());
        packet.extend_from_slice(&[u8::from(self.is_openers), self.what as u8]);
    }

    /// None if that is no packet of ours.
    fn read(packet: &[u8]) -> Option<Self> {
        let (generation, rest) = packet.split_first_chunk::<4>()?;
        let (number, rest) = rest.split_first_chunk::<4>()?;
        let (&[opener, what], _) = rest.split_first_chunk::<2>()?;
        let what = [What::Opens, What::Bytes, What::Closes].into_iter().find(|one| *one as u8 == what)?;
        Some(Self {
            generation: Generation::from_le_bytes(*generation),
            number: u32::from_le_bytes(*number),
            is_openers: opener == 1,
            what,
        })
    }
}

/// The process at the other end of a link, whether this one has opened it, and its number there.
type Name = (usize, bool, u32);

#[derive(Debug)]
struct Link {
    name: Name,
    /// What has come and was not received yet.
    inbox: VecDeque<Vec<u8>>,
    /// So far the first of it was received.
    at: usize,
    is_closed: bool,
}

/// See the module.
pub struct PacketTransport<P> {
    packets: P,
    waiting: Waiting,
    clock: Clock,
    generation: Option<Generation>,
    links: HashMap<LinkId, Link>,
    names: HashMap<Name, LinkId>,
    next: u64,
    /// The number of the next link that is opened here.
    number: u32,
    accepted: VecDeque<(PeerId, LinkId)>,
    /// Packets of generations to come.
    early: Vec<(usize, Vec<u8>)>,
    /// Readable when there is news.
    wake: Arc<OwnedFd>,
}

impl<P> fmt::Debug for PacketTransport<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacketTransport").field("links", &self.links).finish_non_exhaustive()
    }
}

fn down(why: impl Into<String>) -> LinkError {
    LinkError::Down(why.into())
}

impl<P: Packets> PacketTransport<P> {
    /// Without links; `wake` becomes readable when there is news for the caller.
    pub fn new(packets: P, waiting: Waiting, wake: Arc<OwnedFd>) -> Self {
        Self {
            packets,
            waiting,
            clock: Clock::start(),
            generation: None,
            links: HashMap::new(),
            names: HashMap::new(),
            next: 0,
            number: 0,
            accepted: VecDeque::new(),
            early: vec![],
            wake,
        }
    }

    fn add(&mut self, name: Name) -> LinkId {
        let link = LinkId(self.next);
        self.next += 1;
        self.names.insert(name, link);
        self.links.insert(link, Link { name, inbox: VecDeque::new(), at: 0, is_closed: false });
        link
    }

    /// An empty packet of a link with its header.
    fn packet(&mut self, (_, is_ours, number): Name, what: What) -> Vec<u8> {
        let mut packet = self.packets.blank();
        let generation = self.generation.unwrap_or_default();
        Header { generation, number, is_openers: is_ours, what }.write(&mut packet);
        packet
    }

    /// Takes in whatever has come.
    fn take_in(&mut self) {
        while let Some((from, packet)) = self.packets.next() {
            self.sort(from, packet);
        }
    }

    fn sort(&mut self, from: usize, packet: Vec<u8>) {
        let Some(header) = Header::read(&packet) else { return self.packets.recycle(packet) };
        match self.generation {
            Some(now) if header.generation < now => return self.packets.recycle(packet),
            Some(now) if header.generation == now => {}
            _ => return self.early.push((from, packet)),
        }
        let name = (from, !header.is_openers, header.number);
        match (header.what, self.names.get(&name).copied()) {
            (What::Opens, None) if header.is_openers => {
                let link = self.add(name);
                self.accepted.push_back((peer(from), link));
            }
            (What::Bytes, Some(link)) => {
                if let Some(link) = self.links.get_mut(&link) {
                    return link.inbox.push_back(packet);
                }
            }
            (What::Closes, Some(link)) => {
                self.links.get_mut(&link).into_iter().for_each(|link| link.is_closed = true);
            }
            _ => {} // of a link that was closed here
        }
        self.packets.recycle(packet);
    }

    /// Whether there is a reason to return from a wait; appends the links with something to receive.
    fn is_due(&mut self, writing: &[LinkId], ready: &mut Vec<LinkId>) -> bool {
        self.take_in();
        let before = ready.len();
        let has_something = |link: &Link| {
            !link.inbox.is_empty() || link.is_closed || self.packets.trouble(link.name.0).is_some()
        };
        ready.extend(self.links.iter().filter(|(_, link)| has_something(link)).map(|(id, _)| *id));
        ready[before..].sort_unstable();
        let has_room = |id: &LinkId| {
            self.links.get(id).is_none_or(|link| self.packets.under_way(link.name.0) < WINDOW_BYTES)
        };
        ready.len() > before || !self.accepted.is_empty() || writing.iter().any(has_room)
    }
}

fn peer(process: usize) -> PeerId {
    PeerId(process as u32 + 1)
}

impl<P: Packets> Transport for PacketTransport<P> {
    fn change(&mut self, generation: Generation, _: &[(PeerId, String)]) {
        if generation > 0 {
            self.packets.has_losses();
        }
        self.generation = Some(generation);
        for link in std::mem::take(&mut self.links).into_values() {
            link.inbox.into_iter().for_each(|packet| self.packets.recycle(packet));
        }
        self.names.clear();
        self.accepted.clear();
        for (from, packet) in std::mem::take(&mut self.early) {
            self.sort(from, packet);
        }
    }

    fn open(&mut self, peer: PeerId) -> Result<LinkId, LinkError> {
        if self.generation.is_none() {
            return Err(down("no generation has started"));
        }
        let to = (peer.0 as usize).checked_sub(1).ok_or_else(|| down("no rank"))?;
        if let Some(why) = self.packets.trouble(to) {
            return Err(down(why));
        }
        let name = (to, true, self.number);
        self.number = self.number.wrapping_add(1);
        let packet = self.packet(name, What::Opens);
        self.packets.post(to, packet);
        Ok(self.add(name))
    }

    fn accepted(&mut self) -> Option<(PeerId, LinkId)> {
        self.accepted.pop_front()
    }

    fn send(&mut self, link: LinkId, pieces: &[IoSlice<'_>]) -> Result<usize, LinkError> {
        let Link { name, is_closed, .. } = self.links.get(&link).ok_or_else(|| down("closed"))?;
        let (name, to) = (*name, name.0);
        if *is_closed {
            return Err(down("closed by the other side"));
        }
        if let Some(why) = self.packets.trouble(to) {
            return Err(down(why));
        }
        let total: usize = pieces.iter().map(|piece| piece.len()).sum();
        let mut sent = 0;
        while sent < total && self.packets.under_way(to) < WINDOW_BYTES {
            let mut packet = self.packet(name, What::Bytes);
            sent += fill(&mut packet, pieces, sent);
            self.packets.post(to, packet);
        }
        Ok(sent)
    }

    fn receive(&mut self, link: LinkId, pieces: &mut [IoSliceMut<'_>]) -> Result<usize, LinkError> {
        let is_empty = self.links.get(&link).is_some_and(|link| link.inbox.is_empty());
        if is_empty {
            self.take_in();
        }
        let entry = self.links.get_mut(&link).ok_or_else(|| down("closed"))?;
        let mut received = 0;
        for piece in pieces {
            let mut room: &mut [u8] = piece;
            while !room.is_empty() {
                let Some(packet) = entry.inbox.front() else { break };
                let bytes = &packet[HEADER_BYTES + entry.at..];
                let count = bytes.len().min(room.len());
                room[..count].copy_from_slice(&bytes[..count]);
                (received, entry.at) = (received + count, entry.at + count);
                if count == bytes.len() {
                    entry.at = 0;
                    let packet = entry.inbox.pop_front();
                    packet.into_iter().for_each(|packet| self.packets.recycle(packet));
                }
                room = &mut room[count..];
            }
        }
        if received == 0 {
            if entry.is_closed {
                return Err(down("closed by the other side"));
            }
            if let Some(why) = self.packets.trouble(entry.name.0) {
                return Err(down(why));
            }
        }
        Ok(received)
    }

    fn wait(&mut self, writing: &[LinkId], timeout: Duration, ready: &mut Vec<LinkId>) {
        if self.is_due(writing, ready) || timeout.is_zero() {
            return;
        }
        let until = self.clock.now().after(timeout);
        loop {
            let left = until.since(self.clock.now());
            let mut fds = [PollFd::from_borrowed_fd(self.wake.as_fd(), PollFlags::IN)];
            if rustix::event::poll(&mut fds, Some(&timespec(left.min(NAP)))).is_ok_and(|count| count > 0) {
                let _ = rustix::io::read(&*self.wake, &mut [0; 8]);
                return;
            }
            if self.is_due(writing, ready) || left.is_zero() {
                return;
            }
        }
    }

    fn relax(&mut self) {
        std::thread::yield_now();
    }

    fn close(&mut self, link: LinkId) {
        let Some(Link { name, inbox, .. }) = self.links.remove(&link) else { return };
        self.names.remove(&name);
        inbox.into_iter().for_each(|packet| self.packets.recycle(packet));
        let packet = self.packet(name, What::Closes);
        self.packets.post(name.0, packet);
    }

    fn has_losses(&mut self) {
        self.packets.has_losses();
    }

    fn patience(&self, ranks: usize) -> Patience {
        self.waiting.patience(ranks, cores().len())
    }
}

/// Fills a packet with what comes behind the first `skip` bytes of all pieces; how many bytes that are.
fn fill(packet: &mut Vec<u8>, pieces: &[IoSlice<'_>], mut skip: usize) -> usize {
    let before = packet.len();
    for piece in pieces {
        let from = skip.min(piece.len());
        skip -= from;
        let room = PIECE_BYTES - (packet.len() - before);
        let count = room.min(piece.len() - from);
        packet.extend_from_slice(&piece[from..from + count]);
        if count == room {
            break;
        }
    }
    packet.len() - before
}

#[cfg(test)]
mod tests;
