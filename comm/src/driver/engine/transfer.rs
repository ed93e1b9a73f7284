//! Bytes between links and memory: frames leave as many at a time as a link takes, payloads land where they belong.

use std::io::{IoSlice, IoSliceMut};

use ft_proto::endpoint::{Endpoint, OpId, Outgoing, Taken};
use ft_proto::rank::Rank;
use ft_proto::wire::header::{HEADER_BYTES, Header};

use super::Engine;
use super::awaited::Expected;
use crate::driver::links::{Body, Links};
use crate::driver::memory::{Memory, Place};
use crate::transport::{LinkError, LinkId};

/// Pieces of memory that one call sends from.
const BATCH_PIECES: usize = 128;
/// Bytes of messages of several small pieces that are packed for one call.
const PACKED_BYTES: usize = 64 << 10;
/// Why a link is of no use over which this came.
const NONSENSE: &str = "what came over it is no message";

/// What came over a link is no message.
struct Nonsense;

/// What has become of a short message that was given to a link before it was anything else.
pub(super) enum Attempt {
    /// There was none: something is before it, or there is no link yet. It is to be sent like any other.
    None,
    Left,
    /// It has left in part, or not at all.
    Begun(Box<Begun>),
}

/// See [`Attempt::Begun`].
pub(super) struct Begun {
    pub(super) header: [u8; HEADER_BYTES],
    sent: Result<usize, LinkError>,
}

impl Attempt {
    #[inline]
    pub(super) fn make(
        links: &mut Links,
        endpoint: &mut Endpoint<Place>,
        to: Rank,
        message: &Outgoing,
        body: &[u8],
    ) -> Self {
        let Some(link) = links.outbound(to) else { return Self::None };
        let Some(header) = endpoint.express(to, message) else { return Self::None };
        let pieces = [IoSlice::new(&header), IoSlice::new(body)];
        let count = if body.is_empty() { 1 } else { 2 };
        match links.transport.send(link, &pieces[..count]) {
            Ok(sent) if sent == header.len() + body.len() => Self::Left,
            sent => Self::Begun(Box::new(Begun { header, sent })),
        }
    }
}

impl Engine {
    /// The link on which frames to `rank` leave, opened if there is none yet; none if there is to be none, or cannot be one
    /// now.
    pub(super) fn link_to(&mut self, rank: Rank) -> Option<LinkId> {
        if self.links.is_shut(rank) {
            return None;
        }
        if self.links.outbound(rank).is_none() {
            self.accept();
        }
        if let Some(link) = self.links.outbound(rank) {
            return Some(link);
        }
        match self.links.open(rank) {
            Ok(link) => {
                self.greet(rank, link);
                return Some(link);
            }
            Err(LinkError::Interrupted) => self.findings.interrupted(),
            Err(LinkError::Down(why)) => self.findings.broke(rank, &why),
        }
        None
    }

    /// A message to `to`, which is in `place`, has begun to leave: it is the first frame now.
    pub(super) fn has_begun(&mut self, to: Rank, message: &Outgoing, begun: &Begun, place: Place) -> OpId {
        match &begun.sent {
            Ok(count) => {
                self.moves += u64::from(*count > 0);
                self.links.set_left(to, *count);
            }
            Err(error) => self.findings.broke(to, error.why()),
        }
        self.endpoint.has_begun(to, message, begun.header, place)
    }

    /// Sends frames to all ranks until their links take no more.
    pub(in crate::driver) fn flush_all(&mut self, memory: &Memory<'_>) {
        self.feed_on();
        for rank in std::mem::take(&mut self.unreached) {
            if self.link_to(rank).is_none() && !self.links.is_shut(rank) {
                self.unreached.push(rank);
            }
        }
        let mut at = 0;
        // A rank whose frames have all left is not listed any more.
        while let Some(&rank) = self.endpoint.busy().get(at) {
            self.flush(rank, memory);
            at += usize::from(self.endpoint.busy().get(at) == Some(&rank));
        }
    }

    /// Sends frames to `rank` until its link takes no more.
    pub(in crate::driver) fn flush(&mut self, rank: Rank, memory: &Memory<'_>) {
        while !self.endpoint.frames(rank).is_empty() {
            let Some(link) = self.link_to(rank) else { return };
            let mut packing = std::mem::take(&mut self.packing);
            let sent = self.send_batch(rank, link, memory, &mut packing);
            self.packing = packing;
            let (sent, offered) = match sent {
                Ok(sent) => sent,
                Err(error) => return self.findings.broke(rank, error.why()),
            };
            self.moves += u64::from(sent > 0);
            let mut left = self.links.left(rank) + sent;
            while let Some(bytes) = self.first_frame(rank).filter(|bytes| left >= *bytes) {
                left -= bytes;
                self.endpoint.handle_sent(rank);
            }
            self.links.set_left(rank, left);
            if sent < offered {
                return; // the socket is full
            }
        }
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
        // Mostly one frame leaves alone.
        if let ([frame], []) = self.endpoint.frames(rank).as_slices()
            && let Some(body) = match frame.body.filter(|_| frame.length > 0) {
                None => Some(&[][..]),
                Some(op) => self.endpoint.place(op).and_then(|place| self.stock.in_one_piece(place, memory)),
            }
        {
            let skip = self.links.left(rank);
            let (header, body) =
                (&frame.header[skip.min(HEADER_BYTES)..], &body[skip.saturating_sub(HEADER_BYTES)..]);
            let pieces = [header, body].map(IoSlice::new);
            let from = usize::from(header.is_empty());
            let to = if body.is_empty() { 1 } else { 2 };
            let sent = self.links.transport.send(link, &pieces[from..to])?;
            return Ok((sent, header.len() + body.len()));
        }
        let mut pieces = [IoSlice::new(&[]); BATCH_PIECES];
        let mut count = 0;
        let mut packed = None;
        for (at, frame) in self.endpoint.frames(rank).iter().enumerate() {
            if count + 2 > BATCH_PIECES {
                break;
            }
            let skip = if at == 0 { self.links.left(rank) } else { 0 };
            let offset = skip.saturating_sub(HEADER_BYTES);
            let place = frame.body.filter(|_| frame.length > offset).and_then(|op| self.endpoint.place(op));
            let body = match place.map(|place| (place, self.stock.in_one_piece(place, memory))) {
                None => &[],
                Some((_, Some(bytes))) => &bytes[offset..],
                // A message of many pieces leaves alone, a packed lump at a time.
                Some((place, None)) if at == 0 => {
                    self.stock.pack(place, offset, memory, packing, PACKED_BYTES);
                    packed = Some(skip);
                    break;
                }
                Some((_, None)) => break,
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
        self.links.transport.send(link, &pieces[..count]).map(|sent| (sent, offered))
    }

    /// Receives from `link` until nothing more is there; true if something came.
    pub(in crate::driver) fn drain(&mut self, link: LinkId, memory: &mut Memory<'_>) -> bool {
        self.drain_for(link, None, memory)
    }

    /// The same while somebody waits for a message that no receive was posted for.
    pub(super) fn drain_for(
        &mut self,
        link: LinkId,
        mut expected: Option<&mut Expected<'_>>,
        memory: &mut Memory<'_>,
    ) -> bool {
        let mut moved = self.look_beside(memory);
        while let Some((rank, received)) = self.receive_batch(link, memory) {
            match received {
                Ok((0, _)) => return moved,
                Ok((count, wanted)) => {
                    moved = true;
                    self.moves += 1;
                    self.links.hear(rank, link);
                    if let Err(Nonsense) = self.digest(link, expected.as_deref_mut(), memory) {
                        self.findings.broke(rank, NONSENSE);
                        return true;
                    }
                    if count < wanted {
                        return true; // the socket is empty; asking again costs a call
                    }
                }
                Err(error) => {
                    self.findings.broke(rank, error.why());
                    return moved;
                }
            }
        }
        moved
    }

    /// Takes what one call gets from `link`: how many bytes came and how many there was room for. None if it is closed.
    #[expect(clippy::type_complexity, reason = "whose link it is, and what came")]
    fn receive_batch(
        &mut self,
        link: LinkId,
        memory: &mut Memory<'_>,
    ) -> Option<(Rank, Result<(usize, usize), LinkError>)> {
        let Self { links, endpoint, stock, .. } = self;
        let (transport, inbound) = links.with_transport(link)?;
        inbound.compact();
        let (end, mut place, mut straight, mut whole) = (inbound.end, None, None, true);
        // What is staged comes before what is on the link.
        if let Some(body) = &inbound.body
            && end == 0
            && body.done >= body.skip
        {
            place = endpoint.landing_mut(body.landing);
            straight =
                place.as_deref_mut().and_then(|place| stock.direct(place, body.done, body.length, memory));
            whole = straight.as_ref().is_none_or(|bytes| bytes.len() == body.length - body.done);
        }
        let direct = straight.as_ref().map_or(0, |bytes| bytes.len());
        let staging: &mut [u8] = if whole { &mut inbound.staging[end..] } else { &mut [] };
        let wanted = direct + staging.len();
        let mut pieces = [IoSliceMut::new(straight.unwrap_or_default()), IoSliceMut::new(staging)];
        let pieces = if direct == 0 { &mut pieces[1..] } else { &mut pieces[..] };
        let received = transport.receive(link, pieces);
        if let Ok(count) = received {
            inbound.end += count.saturating_sub(direct);
            if let (Some(body), Some(place)) = (&mut inbound.body, place)
                && direct > 0
                && count > 0
            {
                body.done += count.min(direct);
                stock.landed(place, count.min(direct), memory);
            }
        }
        Some((inbound.rank, received.map(|count| (count, wanted))))
    }

    /// Uses what is in the staging buffer of `link`, and finishes a body that is complete.
    fn digest(
        &mut self,
        link: LinkId,
        mut expected: Option<&mut Expected<'_>>,
        memory: &mut Memory<'_>,
    ) -> Result<(), Nonsense> {
        loop {
            let Some(inbound) = self.links.inbound(link) else { return Ok(()) };
            let rank = inbound.rank;
            if let Some(body) = &mut inbound.body {
                let staged = &inbound.staging[inbound.start..inbound.end];
                let count = staged.len().min(body.length - body.done);
                if count > 0 {
                    let known = body.skip.saturating_sub(body.done).min(count);
                    if let Some(place) = self.endpoint.landing_mut(body.landing) {
                        self.stock.put(place, body.done + known, &staged[known..count], memory);
                    }
                    body.done += count;
                    inbound.start += count;
                }
                if body.done < body.length {
                    return Ok(());
                }
                let Some(Body { header, landing, .. }) = inbound.body.take() else { continue };
                self.endpoint.handle_payload(rank, &header, landing);
                self.act(memory);
                continue;
            }
            let staged = &inbound.staging[inbound.start..inbound.end];
            let Some(bytes) = staged.first_chunk::<HEADER_BYTES>() else { return Ok(()) };
            let header = Header::decode(bytes).map_err(|_| Nonsense)?;
            inbound.start += HEADER_BYTES;
            if let Some(expected) = expected.as_deref_mut() {
                let owners = (&mut self.endpoint, &mut self.stock);
                match expected.take(rank, &header, inbound, owners, memory) {
                    Taken::Yes => continue,
                    Taken::Astray => return Err(Nonsense),
                    Taken::No => {}
                    Taken::Later => {
                        inbound.start -= HEADER_BYTES; // the rest comes with the next bytes
                        return Ok(());
                    }
                }
            }
            let landing = self.endpoint.handle_header(rank, &header, Place::kept).map_err(|_| Nonsense)?;
            let length = header.body_bytes() as usize;
            let is_kept = length > 0 && self.endpoint.is_incoming_kept(rank);
            let mut place = self.endpoint.landing_mut(landing);
            if let Some(place) = place.as_deref_mut().filter(|_| is_kept) {
                place.keep();
            }
            let skip = place.as_ref().map_or(0, |place| place.skipped());
            // Mostly a short message is there as a whole.
            if let Some(body) = inbound.staging[inbound.start..inbound.end].get(..length) {
                if let Some(place) = place.filter(|_| skip < length) {
                    self.stock.put(place, skip, &body[skip..], memory);
                }
                inbound.start += length;
                self.endpoint.handle_payload(rank, &header, landing);
            } else {
                inbound.body = Some(Body { header, landing, skip, done: 0, length });
            }
            self.act(memory);
        }
    }
}
