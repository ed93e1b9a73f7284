//! Short messages that somebody waits for: each goes from its link to its place, without an operation for its receive.

use ft_proto::cells::Label;
use ft_proto::endpoint::{Endpoint, Taken};
use ft_proto::matching::{Envelope, Pattern};
use ft_proto::rank::Rank;
use ft_proto::wire::header::Header;

use super::Engine;
use super::lined::copy_of_kept;
use crate::driver::links::Inbound;
use crate::driver::looks::Looks;
use crate::driver::memory::{Memory, Place, Stock};

/// Longer ones are received by operations: they may come in parts, which go straight to their place.
const SHORT_BYTES_MAX: usize = 1 << 10;

/// Whether a receive of so many bytes may be of this kind.
pub(crate) fn is_short(bytes: usize) -> bool {
    bytes <= SHORT_BYTES_MAX
}

/// A message that somebody waits for.
pub(super) struct Expected<'a> {
    pattern: &'a Pattern,
    place: &'a mut Place,
    came: Option<Envelope>,
}

impl Engine {
    /// Receives the next message that `pattern` accepts into `place`, if it is short and comes within so many `looks` at its link, or with this label into one
    /// of its cells.
    pub(in crate::driver) fn receive_within(
        &mut self,
        looks: &mut Looks<'_>,
        (pattern, label): (&Pattern, Option<Label>),
        place: &mut Place,
        memory: &mut Memory<'_>,
    ) -> Option<Envelope> {
        let from = pattern.source? as Rank;
        if !is_short(place.len()) {
            return None;
        }
        let mut expected = Expected { pattern, place, came: None };
        loop {
            let link = self.links.any(from)?;
            let mut glances = looks.glances();
            if let Some(label) = label {
                if let Some(envelope) = self.take((from, link), label, glances, expected.place, memory) {
                    looks.found();
                    return Some(envelope);
                }
                glances = 1;
            }
            // What a look brings may be somebody else's, and ask for an answer.
            if !self.endpoint.may_take(pattern) || self.findings.has_broken() {
                return None;
            }
            if self.links.transport.reads_ahead(link) || self.links.transport.glance(link, glances) {
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
}

impl Expected<'_> {
    /// Puts the payload behind `header` from `rank` where it belongs, if it is what is awaited.
    #[inline]
    pub(super) fn take(
        &mut self,
        rank: Rank,
        header: &Header,
        inbound: &mut Inbound,
        (endpoint, stock): (&mut Endpoint<Place>, &mut Stock),
        memory: &mut Memory<'_>,
    ) -> Taken {
        if self.came.is_some() {
            return Taken::No;
        }
        let staged = &inbound.staging[inbound.start..inbound.end];
        let body = usize::try_from(header.body_bytes()).ok().and_then(|length| staged.get(..length));
        let taken = endpoint.take(rank, header, self.pattern, self.place.len(), body.is_some());
        if taken == Taken::Yes {
            let body = body.unwrap_or_default();
            stock.put(self.place, 0, body, memory);
            inbound.start += body.len();
            self.came = Some(if endpoint.has_lines() {
                delivered(rank, header, body, endpoint)
            } else {
                Envelope::from(header)
            });
        }
        taken
    }
}

/// A message was taken that may cross a recovery line.
#[inline(never)]
fn delivered(rank: Rank, header: &Header, body: &[u8], endpoint: &mut Endpoint<Place>) -> Envelope {
    let envelope = endpoint.came(rank, header);
    if endpoint.has_delivered(&envelope) {
        endpoint.keep(envelope, Place::Kept(body.into()), copy_of_kept);
    }
    envelope
}
