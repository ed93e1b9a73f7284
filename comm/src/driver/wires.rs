//! A transport for the tests of this folder: links in memory that take a few bytes at a time.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::io::{IoSlice, IoSliceMut};
use std::rc::Rc;
use std::time::Duration;

use super::engine::Engine;
use crate::transport::{LinkError, LinkId, Transport};
use ft_proto::rank::{Generation, Membership, PeerId, Rank, Seat};
use ft_proto::wire::header::Header;

/// What leads from one process to another.
type Way = (u32, u32);

#[derive(Debug, Default)]
struct Net {
    /// Bytes under way.
    queues: HashMap<Way, VecDeque<u8>>,
    /// Who has opened a link to whom, which has not accepted it.
    opened: HashMap<u32, VecDeque<PeerId>>,
    closed: Vec<Way>,
    down: HashSet<Way>,
    has_news: bool,
    /// All are of one host. (Nothing is read: that is for tests with processes.)
    is_near: bool,
}

/// The links of one process, the number of which is one more than its rank. A link has the number of the process at its other end.
#[derive(Clone, Debug)]
pub(super) struct Wires {
    me: u32,
    /// Bytes that one call moves at most.
    most: usize,
    net: Rc<RefCell<Net>>,
}

/// The wires of so many processes, of which each call moves `most` bytes at most.
pub(super) fn wires(count: usize, most: usize) -> Vec<Wires> {
    let net = Rc::<RefCell<Net>>::default();
    (1..=count as u32).map(|me| Wires { me, most, net: net.clone() }).collect()
}

/// Generation 3 of so many ranks, which all compute.
pub(super) fn membership(ranks: usize, holes: &[Rank]) -> Membership {
    let seat = |rank| Seat { peer: PeerId(rank as u32 + 1), incarnation: 0, address: String::new() };
    Membership {
        generation: 3,
        seats: (0..ranks).map(seat).collect(),
        compute: ranks,
        before: (0..ranks).map(Some).collect(),
        holes: holes.to_vec(),
        ..Membership::default()
    }
}

/// The engines of so many ranks.
pub(super) fn engines(count: usize, most: usize) -> (Vec<Engine>, Wires) {
    let wires = wires(count, most);
    let one = wires[0].clone();
    let engine = |(me, wires)| {
        let mut engine = Engine::new(Box::new(wires), me);
        engine.begin(me, &membership(count, &[]));
        engine
    };
    (wires.into_iter().enumerate().map(engine).collect(), one)
}

impl Wires {
    /// Whatever goes this way is lost, and both ends hear of it.
    pub(super) fn cut(&self, from: Rank, to: Rank) {
        self.net.borrow_mut().down.insert((from as u32 + 1, to as u32 + 1));
    }

    /// These bytes come next on the way from one rank to another.
    pub(super) fn inject(&self, from: Rank, to: Rank, bytes: &[u8]) {
        self.net.borrow_mut().queues.entry((from as u32 + 1, to as u32 + 1)).or_default().extend(bytes);
    }

    pub(super) fn rings(&self) {
        self.net.borrow_mut().has_news = true;
    }

    /// All share a host.
    pub(super) fn are_near(&self) {
        self.net.borrow_mut().is_near = true;
    }

    /// The headers under way from one rank to another, of messages without bodies.
    pub(super) fn headers(&self, from: Rank, to: Rank) -> Vec<Header> {
        let bytes: Vec<u8> =
            self.net.borrow().queues[&(from as u32 + 1, to as u32 + 1)].iter().copied().collect();
        bytes.as_chunks().0.iter().map(|header| Header::decode(header).expect("a header")).collect()
    }

    /// A process opens a link to this one.
    pub(super) fn is_called_by(&self, peer: u32) {
        self.net.borrow_mut().opened.entry(self.me).or_default().push_back(PeerId(peer));
    }

    /// The links that were closed, by both ends.
    pub(super) fn closed(&self) -> Vec<Way> {
        self.net.borrow().closed.clone()
    }

    fn to(&self, link: LinkId) -> Way {
        (self.me, link.0 as u32)
    }
}

impl Transport for Wires {
    fn change(&mut self, _: Generation, _: &[(PeerId, String)]) {}

    fn open(&mut self, peer: PeerId) -> Result<LinkId, LinkError> {
        let mut net = self.net.borrow_mut();
        if net.has_news {
            return Err(LinkError::Interrupted);
        }
        if net.down.contains(&(self.me, peer.0)) {
            return Err(LinkError::Down("nobody is there".into()));
        }
        net.opened.entry(peer.0).or_default().push_back(PeerId(self.me));
        Ok(LinkId(peer.0.into()))
    }

    fn accepted(&mut self) -> Option<(PeerId, LinkId)> {
        let peer = self.net.borrow_mut().opened.get_mut(&self.me)?.pop_front()?;
        Some((peer, LinkId(peer.0.into())))
    }

    fn send(&mut self, link: LinkId, pieces: &[IoSlice<'_>]) -> Result<usize, LinkError> {
        let mut net = self.net.borrow_mut();
        let way = self.to(link);
        if net.down.contains(&way) {
            return Err(LinkError::Down("cut".into()));
        }
        let queue = net.queues.entry(way).or_default();
        let room = self.most.saturating_sub(queue.len());
        let bytes: Vec<u8> = pieces.iter().flat_map(|piece| piece.iter().copied()).take(room).collect();
        queue.extend(&bytes);
        Ok(bytes.len())
    }

    fn receive(&mut self, link: LinkId, pieces: &mut [IoSliceMut<'_>]) -> Result<usize, LinkError> {
        let mut net = self.net.borrow_mut();
        let (me, other) = self.to(link);
        let mut count = 0;
        if let Some(queue) = net.queues.get_mut(&(other, me)) {
            for byte in pieces.iter_mut().flat_map(|piece| piece.iter_mut()).take(self.most) {
                let Some(next) = queue.pop_front() else { break };
                *byte = next;
                count += 1;
            }
        }
        if count == 0 && net.down.contains(&(other, me)) {
            return Err(LinkError::Down("cut".into()));
        }
        Ok(count)
    }

    fn wait(&mut self, _: &[LinkId], _: Duration, ready: &mut Vec<LinkId>) {
        let mut net = self.net.borrow_mut();
        net.has_news = false;
        let to_me = |(from, to): &Way| *to == self.me && !net.closed.contains(&(self.me, *from));
        let ways: HashSet<Way> = net.queues.keys().chain(&net.down).copied().filter(to_me).collect();
        ready.extend(ways.into_iter().map(|(from, _)| LinkId(from.into())));
        ready.sort_unstable();
    }

    fn is_near(&self, _: LinkId) -> bool {
        self.net.borrow().is_near
    }

    fn relax(&mut self) {}

    fn close(&mut self, link: LinkId) {
        let way = self.to(link);
        self.net.borrow_mut().closed.push(way);
    }
}
