//! Steps of collectives that say few bytes, between ranks of a host: each lies in a cell beside the ring of its link (`ft_proto::cells`) until its receiver takes it,
//! if a cell is free.

use ft_proto::cells::Label;
use ft_proto::endpoint::{LINED_TAG, OpId};
use ft_proto::lines;
use ft_proto::matching::Envelope;
use ft_proto::rank::Rank;
use ft_proto::shared::CELL_BYTES;
use ft_proto::stamp::Mark;

use super::Engine;
use crate::driver::memory::{Memory, Place};
use crate::transport::LinkId;

/// A receive that was posted, and whose message may come into a cell.
pub(super) struct Awaited {
    op: OpId,
    from: Rank,
    label: Label,
}

impl Engine {
    /// Puts what is in a place into a cell of the link to a rank; false if it has to be sent. [`Engine::rouse`] belongs behind it.
    #[inline]
    pub(in crate::driver) fn put(
        &mut self,
        to: Rank,
        label: Label,
        place: &Place,
        memory: &Memory<'_>,
    ) -> bool {
        let Self { links, stock, endpoint, .. } = self;
        if !endpoint.goes_beside(to, label.context) {
            return false;
        }
        let Some(link) = links.outbound(to) else { return false };
        let Some(bytes) = stock.in_one_piece(place, memory) else { return false };
        if !links.transport.put(link, label, bytes) {
            return false;
        }
        self.sent += bytes.len() as u64;
        self.moves += 1;
        self.unroused.push(link);
        true
    }

    /// Wakes who sleeps and has something in a cell; before this rank waits or returns.
    #[inline]
    pub(in crate::driver) fn rouse(&mut self) {
        if !self.unroused.is_empty() {
            self.links.transport.rouse(&self.unroused);
            self.unroused.clear();
        }
    }

    /// Looks so many times for a message in a cell of `link`, and takes it to `place`.
    #[inline]
    pub(super) fn take(
        &mut self,
        (from, link): (Rank, LinkId),
        label: Label,
        times: u32,
        place: &mut Place,
        memory: &mut Memory<'_>,
    ) -> Option<Envelope> {
        let mut bytes = [0; CELL_BYTES];
        match self.links.transport.take(link, label, times, &mut bytes) {
            Ok(None) => None,
            Ok(Some(length)) => {
                let count = length.min(place.len());
                if count > 0 {
                    self.stock.put(place, 0, &bytes[..count], memory);
                }
                self.moves += 1;
                self.links.hear(from, link);
                let envelope = envelope(from, label, length);
                Some(if self.endpoint.has_lines() {
                    self.has_come_beside(envelope, &bytes)
                } else {
                    envelope
                })
            }
            Err(error) => {
                self.findings.broke(from, error.why());
                None
            }
        }
    }

    /// A receive was posted whose message may come into a cell, if it is not there already.
    pub(in crate::driver) fn await_beside(
        &mut self,
        op: OpId,
        from: Rank,
        label: Label,
        memory: &mut Memory<'_>,
    ) {
        if self.links.transport.has_cells() && self.endpoint.is_awaited(op) {
            let awaited = Awaited { op, from, label };
            if !self.receive_beside(&awaited, memory) {
                self.awaited.push(awaited);
            }
        }
    }

    /// Looks for all messages in cells that posted receives wait for; whether one came.
    pub(super) fn look_beside(&mut self, memory: &mut Memory<'_>) -> bool {
        let (mut at, mut moved) = (0, false);
        while at < self.awaited.len() {
            if self.endpoint.repairs() && is_lined(self.awaited[at].label) {
                at += 1; // its memory is that of a call that waits for the end of the repair
                continue;
            }
            let awaited = self.awaited.swap_remove(at);
            if !self.endpoint.is_awaited(awaited.op) {
                continue; // it came through the ring, or will not come any more
            }
            if self.receive_beside(&awaited, memory) {
                moved = true;
                continue;
            }
            // Back to where it was.
            self.awaited.push(awaited);
            let last = self.awaited.len() - 1;
            self.awaited.swap(at, last);
            at += 1;
        }
        moved
    }

    fn receive_beside(&mut self, awaited: &Awaited, memory: &mut Memory<'_>) -> bool {
        let Awaited { op, from, label } = *awaited;
        let mut bytes = [0; CELL_BYTES];
        match self.links.take(from, label, &mut bytes) {
            Ok(None) => false,
            Ok(Some((link, length))) => {
                let envelope = envelope(from, label, length);
                let envelope =
                    if self.endpoint.has_lines() { self.has_come_beside(envelope, &bytes) } else { envelope };
                if let Some(place) = self.endpoint.handle_beside(op, envelope)
                    && length <= place.len()
                {
                    self.stock.put(place, 0, &bytes[..length], memory);
                }
                self.moves += 1;
                self.links.hear(from, link);
                true
            }
            Err(error) => {
                self.findings.broke(from, error.why());
                false
            }
        }
    }
}

/// Whether a message with this label may cross recovery lines.
fn is_lined(Label { context, tag }: Label) -> bool {
    lines::cover(context) && tag & LINED_TAG != 0
}

fn envelope(from: Rank, Label { context, tag }: Label, length: usize) -> Envelope {
    Envelope { context, source: from as u32, tag, mark: Mark::NONE, length: length as u64 }
}
