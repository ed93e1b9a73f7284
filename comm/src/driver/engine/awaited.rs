//! Short messages that somebody waits for: each goes from its link to its place, without an operation for its receive.

use ft_proto::endpoint::Taken;
use ft_proto::matching::{Envelope, Pattern};
use ft_proto::rank::Rank;
use ft_proto::wire::header::Header;

use super::Engine;
use crate::driver::looks::Looks;
use crate::driver::memory::{Memory, Place};

/// Longer ones are received by operations: they may come in parts, which go straight to their place.
const AWAITED_BYTES_MAX: usize = 1 << 10;

/// Whether a receive of so many bytes may be of this kind.
pub(crate) fn is_awaited(bytes: usize) -> bool {
    bytes <= AWAITED_BYTES_MAX
}

/// A message that somebody waits for.
pub(super) struct Expected<'a> {
    pattern: &'a Pattern,
    place: &'a mut Place,
    came: Option<Envelope>,
}

impl Engine {
    /// Receives the next message that `pattern` accepts into `place`, if it is short and comes within so many `looks` at its link.
    pub(in crate::driver) fn receive_within(
        &mut self,
        looks: &mut Looks<'_>,
        pattern: &Pattern,
        place: &mut Place,
        memory: &mut Memory<'_>,
    ) -> Option<Envelope> {
        let from = pattern.source? as Rank;
        if !is_awaited(place.len()) {
            return None;
        }
        let mut expected = Expected { pattern, place, came: None };
        loop {
            // What a look brings may be somebody else's, and ask for an answer.
            let link = self.links.heard(from)?;
            if !self.endpoint.may_take(pattern) || self.findings.has_broken() {
                return None;
            }
            if self.links.transport.reads_ahead(link) || self.links.transport.glance(link, looks.glances()) {
                self.drain_for(link, Some(&mut expected), memory);
                if expected.came.is_some() {
                    looks.found();
                    return expected.came;
                }
            }
            if !looks.again(&mut *self.links.transport) {
                return None;
            }
        }
    }

    /// Puts a payload that was awaited where it belongs; whether it was one. None: it is one, and not all of it is there yet.
    #[inline]
    pub(super) fn take_awaited(
        &mut self,
        rank: Rank,
        header: &Header,
        link: crate::transport::LinkId,
        expected: Option<&mut Expected<'_>>,
        memory: &mut Memory<'_>,
    ) -> Option<bool> {
        let Some(expected) = expected.filter(|expected| expected.came.is_none()) else { return Some(false) };
        let Some(inbound) = self.links.inbound(link) else { return Some(false) };
        let staged = &inbound.staging[inbound.start..inbound.end];
        let body = usize::try_from(header.body_bytes()).ok().and_then(|length| staged.get(..length));
        let Expected { pattern, place, came } = expected;
        match self.endpoint.take(rank, header, pattern, place.len(), body.is_some()) {
            Taken::No => Some(false),
            Taken::Later => None,
            Taken::Yes => {
                let body = body.unwrap_or_default();
                self.stock.put(place, 0, body, memory);
                inbound.start += body.len();
                *came = Some(Envelope::from(header));
                Some(true)
            }
        }
    }
}
