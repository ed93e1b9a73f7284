//! Bytes between links and memory: frames leave as many at a time as a link takes, payloads land where they belong.

use std::io::{IoSlice, IoSliceMut};

use crate::transport::{LinkError, LinkId};
use ft_proto::endpoint::Landing;
use ft_proto::error::CommError;
use ft_proto::rank::Rank;
use ft_proto::wire::header::{HEADER_BYTES, Header};

use super::Driver;
use super::memory::Memory;

/// Bytes that are read ahead from a link, so that many small messages cost one read.
const STAGING_BYTES: usize = 64 << 10;
/// Pieces of memory that one call sends from.
const BATCH_PIECES: usize = 128;
/// Why a link is of no use over which this came.
const NONSENSE: &str = "what came over it is no message";
/// Bytes of messages of several small pieces that are packed for one call.
const PACKED_BYTES: usize = 64 << 10;

/// What has come over a link and was not used yet.
pub(super) struct Inbound {
    pub(super) rank: Rank,
    pub(super) staging: Box<[u8]>,
    start: usize,
    end: usize,
    pub(super) body: Option<Body>,
}

pub(super) struct Body {
    header: Header,
    pub(super) landing: Landing,
    /// Bytes at its front that nobody needs.
    skip: usize,
    done: usize,
    length: usize,
}

impl Inbound {
    fn new(rank: Rank, staging: Option<Box<[u8]>>) -> Self {
        let staging = staging.unwrap_or_else(|| vec![0; STAGING_BYTES].into_boxed_slice());
        Self { rank, staging, start: 0, end: 0, body: None }
    }

    /// Moves what is staged to the front.
    fn compact(&mut self) {
        if self.start > 0 {
            self.staging.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
    }
}

impl Driver {
    pub(super) fn accept(&mut self) {
        while let Some((peer, link)) = self.transport.accepted() {
            match self.membership.seats.iter().position(|seat| seat.peer == peer) {
                Some(rank) => self.adopt(rank, link),
                None => self.transport.close(link),
            }
        }
    }

    fn adopt(&mut self, rank: Rank, link: LinkId) {
        if self.cut[rank] || self.endpoint.is_lost(rank) {
            return self.transport.close(link);
        }
        self.inbound.insert(link, Inbound::new(rank, self.spare.pop()));
        self.outbound[rank].get_or_insert(link);
        self.greet(rank, link);
    }

    /// The link on which frames to `rank` leave; none if there is to be none any more.
    fn link_to(&mut self, rank: Rank) -> Result<Option<LinkId>, CommError> {
        loop {
            if self.cut[rank] || self.endpoint.is_lost(rank) {
                return Ok(None);
            }
            if self.outbound[rank].is_none() {
                self.accept();
            }
            if let Some(link) = self.outbound[rank] {
                return Ok(Some(link));
            }
            match self.transport.open(self.membership.seats[rank].peer) {
                Ok(link) => self.adopt(rank, link),
                Err(LinkError::Interrupted) => {
                    self.ready.clear();
                    self.transport.wait(&[], std::time::Duration::ZERO, &mut self.ready);
                    self.check()?;
                }
                Err(LinkError::Down(why)) => self.lost(rank, &why)?,
            }
        }
    }

    pub(super) fn flush_all(&mut self, memory: &Memory<'_>) -> Result<(), CommError> {
        let mut at = 0;
        // A rank whose frames have all left is not listed any more.
        while let Some(&rank) = self.endpoint.busy().get(at) {
            self.flush(rank, memory)?;
            at += usize::from(self.endpoint.busy().get(at) == Some(&rank));
        }
        Ok(())
    }

    /// Sends frames to `rank` until its link takes no more.
    pub(super) fn flush(&mut self, rank: Rank, memory: &Memory<'_>) -> Result<(), CommError> {
        while !self.endpoint.frames(rank).is_empty() {
            let Some(link) = self.link_to(rank)? else { return Ok(()) };
            let mut packing = std::mem::take(&mut self.packing);
            let sent = self.send_batch(rank, link, memory, &mut packing);
            self.packing = packing;
            let (sent, offered) = match sent {
                Ok(sent) => sent,
                Err(error) => return self.lost(rank, error.why()),
            };
            self.moves += u64::from(sent > 0);
            let mut left = self.left[rank] + sent;
            while let Some(bytes) = self.first_frame(rank).filter(|bytes| left >= *bytes) {
                left -= bytes;
                self.endpoint.left(rank);
            }
            self.left[rank] = left;
            if sent < offered {
                return Ok(()); // the socket is full
            }
        }
        Ok(())
    }

    /// Bytes of the first frame to a rank.
    fn first_frame(&self, rank: Rank) -> Option<usize> {
        self.endpoint.frames(rank).front().map(|frame| HEADER_BYTES + frame.length)
    }

    /// Gives the link as many bytes of frames as one call takes; how many went and how many were there.
    fn send_batch(
        &mut self,
        rank: Rank,
        link: LinkId,
        memory: &Memory<'_>,
        packing: &mut Vec<u8>,
    ) -> Result<(usize, usize), LinkError> {
        let mut pieces = [IoSlice::new(&[]); BATCH_PIECES];
        let mut count = 0;
        let mut packed = None;
        for (at, frame) in self.endpoint.frames(rank).iter().enumerate() {
            if count + 2 > BATCH_PIECES {
                break;
            }
            let skip = if at == 0 { self.left[rank] } else { 0 };
            let offset = skip.saturating_sub(HEADER_BYTES);
            let body = match frame.body {
                Some(op) if frame.length > offset => match self.stock.contiguous(op, memory) {
                    Some(bytes) => &bytes[offset..],
                    // A message of many pieces leaves alone, a packed lump at a time.
                    None if at == 0 => {
                        self.stock.pack(op, offset, memory, packing, PACKED_BYTES);
                        packed = Some(skip);
                        break;
                    }
                    None => break,
                },
                _ => &[],
            };
            for piece in [&frame.header[skip.min(HEADER_BYTES)..], body] {
                if !piece.is_empty() {
                    pieces[count] = IoSlice::new(piece);
                    count += 1;
                }
            }
        }
        if let Some(skip) = packed
            && let Some(frame) = self.endpoint.frames(rank).front()
        {
            pieces[0] = IoSlice::new(&frame.header[skip.min(HEADER_BYTES)..]);
            pieces[1] = IoSlice::new(packing);
            count = 2;
        }
        let offered = pieces[..count].iter().map(|piece| piece.len()).sum();
        self.transport.send(link, &pieces[..count]).map(|sent| (sent, offered))
    }

    /// Receives from `link` until nothing more is there; true if something came.
    pub(super) fn drain(&mut self, link: LinkId, memory: &mut Memory<'_>) -> Result<bool, CommError> {
        let mut moved = false;
        loop {
            let Some(inbound) = self.inbound.get_mut(&link) else { return Ok(moved) };
            let rank = inbound.rank;
            inbound.compact();
            let (end, mut straight, mut whole) = (inbound.end, None, true);
            // What is staged comes before what is on the link.
            if let Some(body) = &inbound.body
                && end == 0
                && body.done >= body.skip
            {
                straight = self.stock.direct(body.landing, body.done, body.length, memory);
                whole = straight.as_ref().is_none_or(|bytes| bytes.len() == body.length - body.done);
            }
            let direct = straight.as_ref().map_or(0, |bytes| bytes.len());
            let staging: &mut [u8] = if whole { &mut inbound.staging[end..] } else { &mut [] };
            let wanted = direct + staging.len();
            let mut pieces = [IoSliceMut::new(straight.unwrap_or_default()), IoSliceMut::new(staging)];
            let pieces = if direct == 0 { &mut pieces[1..] } else { &mut pieces[..] };
            match self.transport.receive(link, pieces) {
                Ok(0) => return Ok(moved),
                Ok(count) => {
                    moved = true;
                    self.moves += 1;
                    self.heard[rank] = Some(link);
                    inbound.end += count.saturating_sub(direct);
                    if let Some(body) = &mut inbound.body
                        && direct > 0
                    {
                        body.done += count.min(direct);
                        self.stock.landed(body.landing, count.min(direct), memory);
                    }
                    self.digest(link, memory)?;
                    if count < wanted {
                        return Ok(true); // the socket is empty; asking again costs a call
                    }
                }
                Err(error) => return self.lost(rank, error.why()).map(|()| moved),
            }
        }
    }

    /// Uses what is in the staging buffer of `link`, and finishes a body that is complete.
    fn digest(&mut self, link: LinkId, memory: &mut Memory<'_>) -> Result<(), CommError> {
        loop {
            let Some(inbound) = self.inbound.get_mut(&link) else { return Ok(()) };
            let rank = inbound.rank;
            if let Some(body) = &mut inbound.body {
                let staged = &inbound.staging[inbound.start..inbound.end];
                let count = staged.len().min(body.length - body.done);
                if count > 0 {
                    let known = body.skip.saturating_sub(body.done).min(count);
                    self.stock.put(body.landing, body.done + known, &staged[known..count], memory);
                    body.done += count;
                    inbound.start += count;
                }
                if body.done < body.length {
                    return Ok(());
                }
                let Body { header, landing, .. } = inbound.body.take().expect("just seen");
                self.complete(rank, &header, landing, memory);
                continue;
            }
            let staged = &inbound.staging[inbound.start..inbound.end];
            let Some(bytes) = staged.first_chunk::<HEADER_BYTES>() else { return Ok(()) };
            let Ok(header) = Header::decode(bytes) else { return self.lost(rank, NONSENSE) };
            inbound.start += HEADER_BYTES;
            let Ok(landing) = self.endpoint.arrived(rank, &header) else { return self.lost(rank, NONSENSE) };
            if let Landing::Bounce(bounce) = landing {
                self.stock.bounces.insert(bounce, vec![0; self.endpoint.bounce_bytes(bounce)]);
            }
            let (length, skip) = (header.body_bytes() as usize, self.stock.skipped(landing));
            inbound.body = Some(Body { header, landing, skip, done: 0, length });
            self.read_all(memory)?;
        }
    }

    /// A payload is where it belongs.
    fn complete(&mut self, rank: Rank, header: &Header, landing: Landing, memory: &mut Memory<'_>) {
        let claim = self.endpoint.landed(rank, header, landing);
        if let Landing::Bounce(bounce) = landing {
            match claim {
                Some(op) => self.take(op, bounce, memory),
                None if !self.endpoint.is_kept(bounce) => drop(self.stock.bounces.remove(bounce)),
                None => {}
            }
        }
    }
}
