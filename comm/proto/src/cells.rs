//! Cells: room for a few messages of few bytes in memory that two processes of a host share, beside a ring ([`crate::ring`]).
//!
//! A step of a collective says little, and is the only one of its kind: no other message of its sender has its [`Label`]. So it needs no place in a stream, no
//! header and no credit. It lies in a cell until whoever waits for it takes it, in any order; if all cells are full, it goes through the
//! ring like any other.
//!
//! A cell is filled before a word says so, and is copied out before another says that it was taken: a sender that is killed has filled it or not. What was taken is told
//! along with the next message the other way, which is in a cache line that the other side reads anyway; if there is none, when two were taken. Who is about to sleep is woken as at the ring.
//!
//! The other side is not trusted, as at the ring. If it says too early that it has taken a message, it overwrites what it is about to read itself.

use crate::planted;
use crate::shared::{CELL_BYTES, Nonsense, SLOTS, Shared, Word, wakes};

/// What a message is for: no other one of its sender has the same in a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// Context of the communicator.
    pub context: u32,
    /// Tag.
    pub tag: u32,
}

impl Label {
    fn word(self) -> u64 {
        u64::from(self.context) << 32 | u64::from(self.tag)
    }
}

/// What one side knows of the two cells with one number.
#[derive(Debug, Default)]
struct Slot {
    /// Messages that were put into the own one, modulo 2^16.
    put: u16,
    /// The last of them was not taken, as far as is known.
    is_full: bool,
    /// Messages that were taken from the other one.
    taken: u16,
    /// Of those, and the one that is there, so many were noticed.
    noticed: u16,
}

/// Both directions of a link's cells, at one of its ends.
///
/// [`Word::Filled`] has, from its low end: how many messages were put into the cell (16 bits), how many were taken from the first and the second cell of the other
/// direction (8 bits each), and the length of the message in bytes (32 bits). [`Word::Taken`] has what was taken, at the same place.
#[derive(Debug)]
pub struct Cells<M> {
    out: M,
    into: M,
    slots: [Slot; SLOTS],
    /// Messages that were taken, and not told of.
    untold: usize,
}

impl<M: Shared> Cells<M> {
    /// In memory that nobody has written to; this side sends through `out`.
    pub fn new(out: M, into: M) -> Self {
        Self { out, into, slots: Default::default(), untold: 0 }
    }

    /// Puts a message into a cell, unless all are full or it is too long; whether it is there. [`Cells::must_wake`] belongs behind it.
    #[inline]
    pub fn put(&mut self, label: Label, bytes: &[u8]) -> bool {
        let Some(cell) = self.free().filter(|_| bytes.len() <= CELL_BYTES) else { return false };
        self.slots[cell].put = self.slots[cell].put.wrapping_add(1);
        let count = u64::from(self.slots[cell].put);
        let word = (bytes.len() as u64) << 32 | self.told() | count;
        if planted::has(planted::PUBLISHES_EARLY) {
            self.out.store(Word::Filled(cell), word);
        }
        self.out.store(Word::Label(cell), label.word());
        self.out.write_cell(cell, bytes);
        self.out.store(Word::Filled(cell), word);
        self.slots[cell].is_full = true;
        self.untold = 0;
        true
    }

    /// A cell that is free.
    fn free(&mut self) -> Option<usize> {
        let is_free = |slot: &Slot| !slot.is_full || planted::has(planted::FILLS_FULL_CELLS);
        if let Some(cell) = self.slots.iter().position(is_free) {
            return Some(cell);
        }
        self.hear(self.out.load(Word::Taken));
        (0..SLOTS).for_each(|cell| self.hear(self.into.load(Word::Filled(cell))));
        self.slots.iter().position(is_free)
    }

    /// What was taken here, as words say it.
    fn told(&self) -> u64 {
        let taken = |cell: usize| u64::from(self.slots[cell].taken as u8);
        taken(0) << 16 | taken(1) << 24
    }

    /// The other side has said what it has taken, maybe a while ago.
    fn hear(&mut self, word: u64) {
        for (cell, slot) in self.slots.iter_mut().enumerate() {
            slot.is_full &= (word >> (16 + 8 * cell)) as u8 != slot.put as u8;
        }
    }

    /// After a message was put: whether the other side is to be woken.
    pub fn must_wake(&self) -> bool {
        if !planted::has(planted::LOOKS_WITHOUT_FENCE) {
            self.out.fence();
        }
        self.wakes()
    }

    /// The same after a fence of the caller's own.
    #[inline]
    pub fn wakes(&self) -> bool {
        wakes(&self.out, Word::ReceiverSleeps)
    }

    /// Takes the message with this label, if it is there: gives its length, and copies as much of it as there is room for.
    ///
    /// # Errors
    /// The other side's numbers cannot be.
    #[inline]
    pub fn take(&mut self, label: Label, into: &mut [u8]) -> Result<Option<usize>, Nonsense> {
        for cell in 0..SLOTS {
            let word = self.into.load(Word::Filled(cell));
            let (count, length) = (word as u16, (word >> 32) as usize);
            let taken = self.slots[cell].taken;
            if count == taken {
                continue;
            }
            let cannot_be = count != taken.wrapping_add(1) || length > CELL_BYTES;
            if cannot_be && !planted::has(planted::TRUSTS_POSITIONS) {
                return Err(Nonsense);
            }
            let fits = self.into.load(Word::Label(cell)) == label.word();
            if !fits && !planted::has(planted::TAKES_ANY_CELL) {
                continue;
            }
            self.hear(word);
            let most = length.min(into.len());
            self.into.read_cell(cell, &mut into[..most]);
            (self.slots[cell].taken, self.slots[cell].noticed) = (count, count);
            self.untold += 1;
            if self.untold == SLOTS {
                self.untold = 0;
                self.into.store(Word::Taken, self.told());
            }
            return Ok(Some(length));
        }
        Ok(None)
    }

    /// Whether there is a message, or nonsense, that was not noticed yet.
    pub fn has_news(&self) -> bool {
        let is_new = |(cell, slot): (usize, &Slot)| {
            let count = self.into.load(Word::Filled(cell)) as u16;
            count != slot.taken && count != slot.noticed
        };
        self.slots.iter().enumerate().any(is_new)
    }

    /// As [`Cells::has_news`], and notices it: whoever takes messages is to be told now, and looks for all that it waits for.
    pub fn notice(&mut self) -> bool {
        let mut is_new = false;
        for (cell, slot) in self.slots.iter_mut().enumerate() {
            let count = self.into.load(Word::Filled(cell)) as u16;
            is_new |= count != slot.taken && count != slot.noticed;
            slot.noticed = count;
        }
        is_new
    }
}

#[cfg(test)]
mod tests;
