//! The links to the other ranks of a generation: which one frames to a rank leave on, and what has come over each and was
//! not used yet.

use std::time::Duration;

use crate::transport::{ByLink, LinkError, LinkId, Transport};
use ft_proto::cells::Label;
use ft_proto::endpoint::Landing;
use ft_proto::rank::{Membership, PeerId, Rank};
use ft_proto::wire::header::Header;

/// Bytes that are read ahead from a link, so that many small messages cost one call of the system.
const STAGING_BYTES: usize = 64 << 10;
/// The same where a read is no call of the system.
const STAGING_BYTES_NEAR: usize = 2 << 10;

/// What leads to one rank.
#[derive(Debug)]
struct Line {
    peer: PeerId,
    /// The link on which frames leave; it never changes within a generation.
    outbound: Option<LinkId>,
    /// The link on which something came last. Two ranks that open a link at the same time have two, each of which
    /// carries frames one way.
    heard: Option<LinkId>,
    /// Bytes of the first frame that have left already.
    left: usize,
    /// The look at all links after which something left last.
    begun: u64,
    /// No link is to lead there any more, although the rank may live.
    shut: bool,
}

/// What has come over a link and was not used yet.
pub(super) struct Inbound {
    pub(super) rank: Rank,
    pub(super) staging: Box<[u8]>,
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) body: Option<Body>,
}

/// A payload that is coming.
pub(super) struct Body {
    pub(super) header: Header,
    pub(super) landing: Landing,
    /// Bytes at its front that nobody needs.
    pub(super) skip: usize,
    pub(super) done: usize,
    pub(super) length: usize,
}

impl Inbound {
    fn new(rank: Rank, staging: Box<[u8]>) -> Self {
        Self { rank, staging, start: 0, end: 0, body: None }
    }

    /// Moves what is staged to the front.
    pub(super) fn compact(&mut self) {
        if self.start > 0 {
            self.staging.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
    }
}

/// See the module. A link is open here if and only if it is among `inbound`.
pub(super) struct Links {
    pub(super) transport: Box<dyn Transport>,
    lines: Vec<Line>,
    inbound: ByLink<Inbound>,
    /// Staging memory that no link uses.
    spare: Vec<Box<[u8]>>,
    /// The links that the last wait has found something on.
    ready: Vec<LinkId>,
    /// Counts the looks at all links.
    looks: u64,
}

impl Links {
    pub(super) fn new(transport: Box<dyn Transport>) -> Self {
        Self { transport, lines: vec![], inbound: ByLink::default(), spare: vec![], ready: vec![], looks: 1 }
    }

    /// A generation begins: there are no links, and to its holes there will be none.
    pub(super) fn begin(&mut self, membership: &Membership) {
        let seats = &membership.seats;
        let peers: Vec<(PeerId, String)> = seats.iter().map(|s| (s.peer, s.address.clone())).collect();
        self.transport.change(membership.generation, &peers);
        self.spare.extend(self.inbound.take().map(|inbound| inbound.staging));
        let line = |(peer, _)| Line { peer, outbound: None, heard: None, left: 0, begun: 0, shut: false };
        self.lines = peers.into_iter().map(line).collect();
        membership.holes.iter().for_each(|rank| self.lines[*rank].shut = true);
    }

    /// The next link that another rank has opened.
    pub(super) fn accepted(&mut self) -> Option<(Rank, LinkId)> {
        loop {
            let (peer, link) = self.transport.accepted()?;
            match self.lines.iter().position(|line| line.peer == peer && !line.shut) {
                Some(rank) => return Some((rank, self.adopt(rank, link))),
                None => self.transport.close(link),
            }
        }
    }

    /// Opens a link to a rank to which none leads.
    ///
    /// # Errors
    /// See [`Transport::open`].
    pub(super) fn open(&mut self, rank: Rank) -> Result<LinkId, LinkError> {
        let link = self.transport.open(self.lines[rank].peer)?;
        Ok(self.adopt(rank, link))
    }

    fn adopt(&mut self, rank: Rank, link: LinkId) -> LinkId {
        let bytes = if self.transport.reads_ahead(link) { STAGING_BYTES } else { STAGING_BYTES_NEAR };
        let spare = self.spare.iter().position(|staging| staging.len() == bytes);
        let staging = spare.map(|at| self.spare.swap_remove(at));
        let staging = staging.unwrap_or_else(|| vec![0; bytes].into_boxed_slice());
        self.inbound.insert(link, Inbound::new(rank, staging));
        self.lines[rank].outbound.get_or_insert(link);
        link
    }

    /// The link on which frames to `rank` leave, if there is one.
    pub(super) fn outbound(&self, rank: Rank) -> Option<LinkId> {
        self.lines[rank].outbound
    }

    /// The link on which something from `rank` came last.
    pub(super) fn heard(&self, rank: Rank) -> Option<LinkId> {
        self.lines.get(rank)?.heard
    }

    /// A link to `rank` on which its process can be asked for.
    pub(super) fn any(&self, rank: Rank) -> Option<LinkId> {
        self.heard(rank).or(self.outbound(rank))
    }

    /// Bytes of the first frame to `rank` that have left already.
    pub(super) fn left(&self, rank: Rank) -> usize {
        self.lines[rank].left
    }

    pub(super) fn set_left(&mut self, rank: Rank, bytes: usize) {
        self.lines[rank].left = bytes;
    }

    /// All links are looked at now.
    pub(super) fn looked(&mut self) {
        self.looks += 1;
    }

    /// Something leaves to `rank`; true if it is the first since all links were looked at.
    pub(super) fn begins(&mut self, rank: Rank) -> bool {
        std::mem::replace(&mut self.lines[rank].begun, self.looks) != self.looks
    }

    /// Whether a send to `rank` is no call of the system, so that there is nothing to be saved by gathering.
    pub(super) fn is_cheap(&self, rank: Rank) -> bool {
        self.lines[rank].outbound.is_some_and(|link| !self.transport.reads_ahead(link))
    }

    /// What can receive from a link, and what has come over it, if it is open.
    pub(super) fn with_transport(&mut self, link: LinkId) -> Option<(&mut dyn Transport, &mut Inbound)> {
        Some((&mut *self.transport, self.inbound.get_mut(link)?))
    }

    /// What has come over a link, if it is open.
    pub(super) fn inbound(&mut self, link: LinkId) -> Option<&mut Inbound> {
        self.inbound.get_mut(link)
    }

    /// Takes a message out of a cell of any link to `rank`: over which link it came, and its length.
    pub(super) fn take(
        &mut self,
        rank: Rank,
        label: Label,
        into: &mut [u8],
    ) -> Result<Option<(LinkId, usize)>, LinkError> {
        let Self { transport, inbound, .. } = self;
        for (link, _) in inbound.iter().filter(|(_, inbound)| inbound.rank == rank) {
            if let Some(length) = transport.take(link, label, 1, into)? {
                return Ok(Some((link, length)));
            }
        }
        Ok(None)
    }

    /// Something came over a link of `rank`.
    pub(super) fn hear(&mut self, rank: Rank, link: LinkId) {
        self.lines[rank].heard = Some(link);
    }

    /// Waits until something can be received, one of `writing` takes more, or there is news; gives the links with something to
    /// receive, which [`Links::done_with`] takes back.
    pub(super) fn wait(&mut self, writing: &[LinkId], sleep: Duration) -> Vec<LinkId> {
        let mut ready = std::mem::take(&mut self.ready);
        ready.clear();
        self.transport.wait(writing, sleep, &mut ready);
        ready
    }

    pub(super) fn done_with(&mut self, ready: Vec<LinkId>) {
        self.ready = ready;
    }

    pub(super) fn is_shut(&self, rank: Rank) -> bool {
        self.lines[rank].shut
    }

    /// No link leads to `rank` any more. Gives the payloads that were coming from it.
    pub(super) fn shut(&mut self, rank: Rank) -> Vec<Landing> {
        let links: Vec<LinkId> =
            self.inbound.iter().filter(|(_, inbound)| inbound.rank == rank).map(|(link, _)| link).collect();
        let mut torn = vec![];
        for link in links {
            self.transport.close(link);
            let Some(inbound) = self.inbound.remove(link) else { continue };
            torn.extend(inbound.body.map(|body| body.landing));
            self.spare.push(inbound.staging);
        }
        let line = &mut self.lines[rank];
        *line = Line { outbound: None, heard: None, left: 0, shut: true, ..*line };
        torn
    }

    /// The payloads that are coming: from whom, where to, and how much of them has come.
    pub(super) fn coming(&self) -> Vec<(Rank, Landing, usize)> {
        let coming = |(_, inbound): (LinkId, &Inbound)| {
            let body = inbound.body.as_ref()?;
            Some((inbound.rank, body.landing, body.done.max(body.skip)))
        };
        self.inbound.iter().filter_map(coming).collect()
    }

    /// Whether something that `rank` has sent was lost on the way.
    pub(super) fn misses(&mut self, rank: Rank) -> bool {
        self.transport.misses(self.lines[rank].peer)
    }
}

#[cfg(test)]
mod tests {
    use super::super::wires::{Wires, membership, wires};
    use super::*;

    /// The links of rank 0 of three ranks, of which rank 2 is a hole.
    fn links() -> (Links, Wires) {
        let wires = wires(3, 100).remove(0);
        let mut links = Links::new(Box::new(wires.clone()));
        links.begin(&membership(3, &[2]));
        (links, wires)
    }

    #[test]
    fn strangers_and_holes_have_no_links() {
        let (mut links, wires) = links();
        [9, 3, 2].into_iter().for_each(|peer| wires.is_called_by(peer));
        assert_eq!(links.accepted(), Some((1, LinkId(2))));
        assert_eq!(links.accepted(), None);
        assert_eq!(wires.closed(), [(1, 9), (1, 3)]);
        assert_eq!((links.outbound(1), links.outbound(2), links.is_shut(2)), (Some(LinkId(2)), None, true));
    }

    #[test]
    fn frames_stay_on_the_first_link_and_answers_are_looked_for_on_the_last() {
        let (mut links, wires) = links();
        assert_eq!(links.any(1), None);
        assert_eq!(links.open(1), Ok(LinkId(2)));
        assert_eq!(
            (links.outbound(1), links.heard(1), links.any(1)),
            (Some(LinkId(2)), None, Some(LinkId(2)))
        );
        wires.is_called_by(2);
        links.accepted();
        links.hear(1, LinkId(7));
        assert_eq!(
            (links.outbound(1), links.heard(1), links.any(1)),
            (Some(LinkId(2)), Some(LinkId(7)), Some(LinkId(7)))
        );
    }

    #[test]
    fn a_rank_that_is_shut_out_stays_out_until_the_next_generation() {
        let (mut links, wires) = links();
        links.open(1).unwrap();
        links.set_left(1, 5);
        let landing = Landing::Sink;
        let header = Header::decode(&sample()).unwrap();
        links.inbound(LinkId(2)).unwrap().body = Some(Body { header, landing, skip: 0, done: 0, length: 9 });
        assert_eq!(links.shut(1), [landing]);
        assert_eq!(links.shut(1), []);
        assert_eq!((links.outbound(1), links.left(1), links.is_shut(1)), (None, 0, true));
        assert!(links.inbound(LinkId(2)).is_none());
        wires.is_called_by(2);
        assert_eq!(links.accepted(), None);
        assert_eq!(wires.closed(), [(1, 2), (1, 2)]);
        links.begin(&membership(3, &[]));
        assert!(!links.is_shut(1) && !links.is_shut(2));
    }

    fn sample() -> [u8; ft_proto::wire::header::HEADER_BYTES] {
        use ft_proto::endpoint::{Endpoint, Mode, Outgoing};
        let mut endpoint = Endpoint::new(1, 3, 3);
        endpoint.send(0, Outgoing { context: 0, tag: 0, length: 9, mode: Mode::Standard, offer: None }, ());
        endpoint.frames(0)[0].header
    }

    #[test]
    fn the_first_send_after_a_look_is_the_first_to_its_rank() {
        let (mut links, _) = links();
        assert!(links.begins(1) && !links.begins(1) && links.begins(0));
        links.looked();
        assert!(links.begins(1) && !links.begins(1));
    }

    #[test]
    fn what_is_staged_moves_to_the_front() {
        let mut inbound = Inbound::new(1, vec![0; 8].into());
        inbound.staging[3..6].copy_from_slice(b"abc");
        (inbound.start, inbound.end) = (3, 6);
        inbound.compact();
        assert_eq!((inbound.start, inbound.end, &inbound.staging[..3]), (0, 3, &b"abc"[..]));
    }
}
