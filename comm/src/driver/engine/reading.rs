//! Messages that are read from the memory of their sender; see [`ft_proto::endpoint`].

use std::sync::atomic::{Ordering, fence};

use super::Engine;
use crate::driver::memory::{Memory, Place};
use crate::transport::LinkId;
use ft_proto::endpoint::{Fetch, Offer};
use ft_proto::planted;
use ft_proto::rank::Rank;

/// Pieces of a message that are shorter are read together, and copied to their places.
const PIECE_BYTES_MIN: usize = 64 << 10;

/// A shorter message is not worth a reading, even where it has to wait for its receive.
pub(super) const OFFERED_BYTES_MIN: usize = 16 << 10;

impl Engine {
    /// A link to `rank` is open.
    pub(super) fn greet(&mut self, rank: Rank, link: LinkId) {
        if self.links.transport.is_near(link) {
            self.endpoint.handle_near(rank, self.seal.at(), self.seal.offer());
        }
        self.endpoint.handle_link(rank);
    }

    /// Where the payload of a send lies, if it is in one piece and perhaps not sent at once.
    pub(super) fn offer(&mut self, place: &Place, length: usize, memory: &Memory<'_>) -> Option<Offer> {
        if length < OFFERED_BYTES_MIN {
            return None;
        }
        let bytes = self.stock.in_one_piece(place, memory)?;
        Some(Offer { place: bytes.as_ptr() as u64, seal: self.seal.offer() })
    }

    /// A word in the memory of `rank`.
    pub(super) fn word(&mut self, rank: Rank, at: u64) -> Option<u64> {
        let (link, mut bytes) = (self.links.any(rank)?, [0; 8]);
        self.links.transport.read(link, at, &mut bytes).then(|| u64::from_ne_bytes(bytes))
    }

    /// Reads a message into the memory of its receive, piece by piece; true if all of it can be trusted.
    pub(super) fn read(&mut self, fetch: &Fetch, memory: &mut Memory<'_>) -> bool {
        let mut done = 0;
        while done < fetch.length {
            let Some(count) = self.read_piece(fetch, done, memory) else {
                if let Some(place) = self.endpoint.place_mut(fetch.op) {
                    place.skip(done);
                }
                return false;
            };
            done += count;
            self.read += count as u64;
        }
        true
    }

    /// Reads what comes after `done` bytes, and how much it is, if that can be trusted.
    fn read_piece(&mut self, fetch: &Fetch, done: usize, memory: &mut Memory<'_>) -> Option<usize> {
        let link = self.links.any(fetch.from)?;
        let (from, left) = (fetch.offer.place.saturating_add(done as u64), fetch.length - done);
        let place = self.endpoint.place_mut(fetch.op);
        let straight = place.and_then(|place| self.stock.direct(place, done, fetch.length, memory));
        let straight = straight.filter(|bytes| bytes.len() >= PIECE_BYTES_MIN.min(left));
        let is_straight = straight.is_some();
        let into = straight.unwrap_or_else(|| {
            self.packing.resize(PIECE_BYTES_MIN.min(left), 0);
            &mut self.packing
        });
        let count = into.len();
        let is_read = self.links.transport.read(link, from, into);
        fence(Ordering::SeqCst);
        let is_good = is_read && self.word(fetch.from, fetch.seal_at) == Some(fetch.offer.seal);
        if !is_good && !planted::has(planted::IGNORES_SEAL) {
            return None;
        }
        if let Some(place) = self.endpoint.place_mut(fetch.op) {
            match is_straight {
                true => self.stock.landed(place, count, memory),
                false => self.stock.put(place, done, &self.packing[..count], memory),
            }
        }
        Some(count)
    }
}
