//! A transport whose links can be cut and slow, for injected failures; around another one, and only in jobs that ask for
//! such failures.
//!
//! *Cut.* Nothing is sent, nothing is handed out, no link is opened, no end of a link is seen. What comes all the same was
//! on its way when the cut struck: it is held back and handed out in order when the cut heals, as TCP would send it
//! again. An attempt to open a link ends after the time that one to a silent host takes.
//!
//! *Slow.* What is sent leaves in pieces of at most [`PIECE_BYTES`], each as much later as [`SlowSpec::delay`] says. So
//! nothing is buffered: a slow link looks like one whose socket is full most of the time.

use std::collections::{BTreeMap, VecDeque};
use std::io::{IoSlice, IoSliceMut};
use std::time::Duration;

use super::connect::{OPEN_TIMEOUT, down};
use super::{Cuts, LinkError, LinkId, Patience, Transport};
use crate::time::Time;
use ft_proto::fault::SlowSpec;
use ft_proto::rank::{Generation, PeerId};

/// Environment: the slow links, as [`SlowSpec`] writes them, with blanks between them. There, but perhaps empty, if
/// links are to be cut or slow.
pub const ENV_LINK_FAULTS: &str = "FTRUN_LINK_FAULTS";

/// Most bytes that leave a slow link together.
pub const PIECE_BYTES: usize = 64 << 10;

#[derive(Debug)]
struct Link {
    peer: PeerId,
    /// Came during a cut.
    held: VecDeque<u8>,
    /// The link broke during a cut.
    ended: Option<LinkError>,
    /// When the next piece may leave a slow link, and its bytes.
    leaves: Option<(Time, usize)>,
}

/// A transport around another one, whose links can be cut and slow.
pub struct FaultyTransport<T> {
    inner: T,
    now: Box<dyn Fn() -> Time>,
    me: PeerId,
    cuts: Cuts,
    slow: Vec<SlowSpec>,
    /// The peers of this generation to which links are slow.
    factors: BTreeMap<PeerId, f64>,
    links: BTreeMap<LinkId, Link>,
    /// Since when links are being opened to peers that are cut off.
    tries: BTreeMap<PeerId, Time>,
    found: Vec<LinkId>,
}

impl<T> std::fmt::Debug for FaultyTransport<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FaultyTransport").field("me", &self.me).field("links", &self.links).finish()
    }
}

impl<T: Transport> FaultyTransport<T> {
    /// The links of `inner`, which belongs to process `me`, with these failures; `now` is the clock of `cuts`.
    pub fn new(
        inner: T,
        me: PeerId,
        cuts: Cuts,
        slow: Vec<SlowSpec>,
        now: impl Fn() -> Time + 'static,
    ) -> Self {
        Self {
            inner,
            now: Box::new(now),
            me,
            cuts,
            slow,
            factors: BTreeMap::new(),
            links: BTreeMap::new(),
            tries: BTreeMap::new(),
            found: vec![],
        }
    }

    fn adopt(&mut self, peer: PeerId, link: LinkId) {
        self.links.insert(link, Link { peer, held: VecDeque::new(), ended: None, leaves: None });
    }

    /// Takes what comes over a link that is cut, so that it wakes nobody.
    fn hold_back(&mut self, id: LinkId) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let mut buffer = vec![0; PIECE_BYTES];
        loop {
            match self.inner.receive(id, &mut [IoSliceMut::new(&mut buffer)]) {
                Ok(0) => return,
                Ok(count) => link.held.extend(&buffer[..count]),
                Err(error) => {
                    link.ended = Some(error);
                    return self.inner.close(id);
                }
            }
        }
    }
}

impl<T: Transport> Transport for FaultyTransport<T> {
    fn change(&mut self, generation: Generation, peers: &[(PeerId, String)]) {
        self.links.clear();
        self.tries.clear();
        let rank = peers.iter().position(|(peer, _)| *peer == self.me);
        let slow =
            |other: usize| self.slow.iter().find(|slow| rank.is_some_and(|me| slow.concerns(me, other)));
        let others = peers.iter().enumerate();
        self.factors = others.filter_map(|(rank, (peer, _))| Some((*peer, slow(rank)?.factor))).collect();
        self.inner.change(generation, peers);
    }

    fn open(&mut self, peer: PeerId) -> Result<LinkId, LinkError> {
        let now = (self.now)();
        if let Some(left) = self.cuts.left(now, peer) {
            let tried = now.since(*self.tries.entry(peer).or_insert(now));
            if tried >= OPEN_TIMEOUT {
                self.tries.remove(&peer);
                return Err(down(format!("no answer in {OPEN_TIMEOUT:?}")));
            }
            // There may be news by then; the caller looks, and tries again.
            self.inner.idle(left.min(OPEN_TIMEOUT - tried));
            return Err(LinkError::Interrupted);
        }
        self.tries.remove(&peer);
        let link = self.inner.open(peer)?;
        self.adopt(peer, link);
        Ok(link)
    }

    fn accepted(&mut self) -> Option<(PeerId, LinkId)> {
        let (peer, link) = self.inner.accepted()?;
        self.adopt(peer, link);
        Some((peer, link))
    }

    fn send(&mut self, id: LinkId, pieces: &[IoSlice<'_>]) -> Result<usize, LinkError> {
        let now = (self.now)();
        let Some(link) = self.links.get_mut(&id) else { return self.inner.send(id, pieces) };
        if !self.cuts.is_open(now, link.peer) {
            return Ok(0);
        }
        if let Some(ended) = &link.ended {
            return Err(ended.clone());
        }
        let Some(factor) = self.factors.get(&link.peer) else { return self.inner.send(id, pieces) };
        let offered = pieces.iter().map(|piece| piece.len()).sum::<usize>().min(PIECE_BYTES);
        let (at, bytes) =
            *link.leaves.get_or_insert_with(|| (now.after(SlowSpec::delay(*factor, offered)), offered));
        if now < at {
            return Ok(0);
        }
        let sent = self.inner.send(id, &prefix(pieces, bytes))?;
        link.leaves = (sent < bytes).then(|| (at, bytes - sent));
        Ok(sent)
    }

    fn receive(&mut self, id: LinkId, pieces: &mut [IoSliceMut<'_>]) -> Result<usize, LinkError> {
        let now = (self.now)();
        let Some(link) = self.links.get_mut(&id) else { return self.inner.receive(id, pieces) };
        if !self.cuts.is_open(now, link.peer) {
            return Ok(0);
        }
        if !link.held.is_empty() {
            let room = pieces.iter().map(|piece| piece.len()).sum::<usize>();
            let count = room.min(link.held.len());
            let into = pieces.iter_mut().flat_map(|piece| piece.iter_mut());
            into.zip(link.held.drain(..count)).for_each(|(to, from)| *to = from);
            return Ok(count);
        }
        match &link.ended {
            Some(ended) => Err(ended.clone()),
            None => self.inner.receive(id, pieces),
        }
    }

    fn wait(&mut self, writing: &[LinkId], timeout: Duration, ready: &mut Vec<LinkId>) {
        let now = (self.now)();
        let mut timeout = timeout;
        let first = ready.len();
        for (id, link) in &self.links {
            match self.cuts.left(now, link.peer) {
                Some(left) => timeout = timeout.min(left), // what is held is due then
                None if link.held.is_empty() && link.ended.is_none() => {}
                None => {
                    ready.push(*id);
                    timeout = Duration::ZERO;
                }
            }
        }
        let mut open = Vec::with_capacity(writing.len());
        for id in writing {
            match self.links.get(id) {
                Some(link) if !self.cuts.is_open(now, link.peer) => {}
                Some(Link { leaves: Some((at, _)), .. }) if now < *at => timeout = timeout.min(at.since(now)),
                _ => open.push(*id),
            }
        }
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        self.inner.wait(&open, timeout, &mut found);
        let now = (self.now)();
        for id in &found {
            match self.links.get(id) {
                Some(link) if !self.cuts.is_open(now, link.peer) => self.hold_back(*id),
                _ if ready[first..].contains(id) => {}
                _ => ready.push(*id),
            }
        }
        self.found = found;
    }

    fn idle(&mut self, timeout: Duration) {
        self.inner.idle(timeout);
    }

    fn relax(&mut self) {
        self.inner.relax();
    }

    fn close(&mut self, link: LinkId) {
        self.links.remove(&link);
        self.inner.close(link);
    }

    fn misses(&mut self, peer: PeerId) -> bool {
        self.inner.misses(peer)
    }

    fn has_losses(&mut self) {
        self.inner.has_losses();
    }

    fn patience(&self, ranks: usize) -> Patience {
        self.inner.patience(ranks)
    }
}

/// The first `bytes` bytes of `pieces`.
fn prefix<'a>(pieces: &'a [IoSlice<'_>], bytes: usize) -> Vec<IoSlice<'a>> {
    let mut left = bytes;
    let mut cut = |piece: &'a IoSlice<'_>| {
        let count = left.min(piece.len());
        left -= count;
        (count > 0).then(|| IoSlice::new(&piece[..count]))
    };
    pieces
        .iter()
        .map_while(|piece| if piece.is_empty() { Some(IoSlice::new(&[])) } else { cut(piece) })
        .collect()
}

#[cfg(test)]
mod tests;
