//! Messages that are read from the memory of their sender; see [`ft_proto::endpoint`].

use std::sync::atomic::{Ordering, fence};

use super::Engine;
use crate::driver::memory::{Memory, Place};
use crate::transport::LinkId;
use ft_proto::endpoint::{Fetch, Landing, Offer};
use ft_proto::planted;
use ft_proto::rank::Rank;

/// Pieces of a message that are shorter are read together, and copied to their places.
const PIECE_BYTES_MIN: usize = 64 << 10;

/// A shorter message is not worth a reading, even where it has to wait for its receive.
const OFFERED_BYTES_MIN: usize = 16 << 10;

impl Engine {
    /// A link to `rank` is open.
    pub(super) fn greet(&mut self, rank: Rank, link: LinkId) {
        if self.links.transport.is_near(link) {
            self.endpoint.greet(rank, self.seal.at(), self.seal.offer());
        }
    }

    /// Where the payload of a send lies, if it is in one piece and perhaps not sent at once.
    pub(super) fn offer(&mut self, place: &Place, length: usize, memory: &Memory<'_>) -> Option<Offer> {
        if length < OFFERED_BYTES_MIN {
            return None;
        }
        let bytes = self.stock.in_one_piece(place, memory)?;
        Some(Offer { place: bytes.as_ptr() as u64, seal: self.seal.offer() })
    }

    /// Answers greetings, and reads what receives have matched. Receipts leave at once: this rank may compute for long now, and
    /// their receivers wait.
    pub(super) fn read_all(&mut self, memory: &mut Memory<'_>) {
        while let Some(greeting) = self.endpoint.next_greeting() {
            if self.word(greeting.from, greeting.seal_at) == Some(greeting.seal) {
                self.endpoint.can_read(greeting);
            }
        }
        while let Some(fetch) = self.endpoint.next_fetch() {
            let is_whole = self.read(&fetch, memory);
            self.moves += 1;
            self.endpoint.fetched(fetch, is_whole);
            self.flush(fetch.from, memory);
        }
    }

    /// A word in the memory of `rank`.
    fn word(&mut self, rank: Rank, at: u64) -> Option<u64> {
        let (link, mut bytes) = (self.links.any(rank)?, [0; 8]);
        self.links.transport.read(link, at, &mut bytes).then(|| u64::from_ne_bytes(bytes))
    }

    /// Reads a message into the memory of its receive, piece by piece; true if all of it can be trusted.
    fn read(&mut self, fetch: &Fetch, memory: &mut Memory<'_>) -> bool {
        let mut done = 0;
        while done < fetch.length {
            let Some(count) = self.read_piece(fetch, done, memory) else {
                self.stock.skip(fetch.op, done);
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
        let landing = Landing::Op(fetch.op);
        let straight = self.stock.direct(landing, done, fetch.length, memory);
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
        match is_straight {
            true => self.stock.landed(landing, count, memory),
            false => self.stock.put(landing, done, &self.packing[..count], memory),
        }
        Some(count)
    }
}
