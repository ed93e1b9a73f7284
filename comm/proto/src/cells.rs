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

/// Bits of [`Word::Filled`] that are the length of the message; those above are how often the cell was filled.
const LENGTH_BITS: u32 = 16;

/// What one side knows of the two cells with one number. Counts only grow, so one that was written long ago is less than one that matters.
#[derive(Debug, Default)]
struct Slot {
    /// Messages that were put into the own one.
    put: u64,
    /// Of those, so many are known to have been taken.
    gone: u64,
    /// Messages that were taken from the other one.
    taken: u64,
    /// Of those, and the one that is there, so many were noticed.
    noticed: u64,
}

/// Both directions of a link's cells, at one of its ends.
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
        self.slots[cell].put += 1;
        let word = self.slots[cell].put << LENGTH_BITS | bytes.len() as u64;
        if planted::has(planted::PUBLISHES_EARLY) {
            self.out.store(Word::Filled(cell), word);
        }
        self.out.store(Word::Label(cell), label.word());
        for (of, slot) in self.slots.iter().enumerate() {
            self.out.store(Word::Told(cell, of), slot.taken);
        }
        self.out.write_cell(cell, bytes);
        self.out.store(Word::Filled(cell), word);
        self.untold = 0;
        true
    }

    /// A cell that is free.
    fn free(&mut self) -> Option<usize> {
        let is_free = |slot: &Slot| slot.gone >= slot.put || planted::has(planted::FILLS_FULL_CELLS);
        if let Some(cell) = self.slots.iter().position(is_free) {
            return Some(cell);
        }
        for (cell, slot) in self.slots.iter_mut().enumerate() {
            slot.gone = slot.gone.max(self.out.load(Word::Taken(cell)));
        }
        (0..SLOTS).for_each(|cell| self.hear(cell));
        self.slots.iter().position(is_free)
    }

    /// What the other side has said in this cell of what it has taken, maybe a while ago.
    fn hear(&mut self, cell: usize) {
        for (of, slot) in self.slots.iter_mut().enumerate() {
            slot.gone = slot.gone.max(self.into.load(Word::Told(cell, of)));
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
            let Some((count, length)) = self.is_filled(cell) else { continue };
            let cannot_be = count != self.slots[cell].taken + 1 || length > CELL_BYTES;
            if cannot_be && !planted::has(planted::TRUSTS_POSITIONS) {
                return Err(Nonsense);
            }
            let fits = self.into.load(Word::Label(cell)) == label.word();
            if !fits && !planted::has(planted::TAKES_ANY_CELL) {
                continue;
            }
            self.hear(cell);
            let most = length.min(into.len());
            self.into.read_cell(cell, &mut into[..most]);
            (self.slots[cell].taken, self.slots[cell].noticed) = (count, count);
            self.untold += 1;
            if self.untold == SLOTS {
                self.untold = 0;
                for (cell, slot) in self.slots.iter().enumerate() {
                    self.into.store(Word::Taken(cell), slot.taken);
                }
            }
            return Ok(Some(length));
        }
        Ok(None)
    }

    /// How often the other side has filled a cell, and with how many bytes, if that is not as often as it was emptied.
    #[inline]
    fn is_filled(&self, cell: usize) -> Option<(u64, usize)> {
        let word = self.into.load(Word::Filled(cell));
        let count = word >> LENGTH_BITS;
        (count != self.slots[cell].taken).then_some((count, (word as usize) & ((1 << LENGTH_BITS) - 1)))
    }

    /// Whether there is a message that was not noticed yet.
    ///
    /// # Errors
    /// The other side's numbers cannot be.
    pub fn look(&self) -> Result<bool, Nonsense> {
        let mut has_news = false;
        for (cell, slot) in self.slots.iter().enumerate() {
            match self.is_filled(cell) {
                None => {}
                Some((count, _)) if count == slot.taken + 1 => has_news |= count != slot.noticed,
                Some(_) => return Err(Nonsense),
            }
        }
        Ok(has_news)
    }

    /// Whether there is a message, or nonsense, that was not noticed yet, which it is now: whoever takes messages is to be told now, and looks for all that it waits for.
    pub fn notice(&mut self) -> bool {
        let mut has_news = false;
        for cell in 0..SLOTS {
            if let Some((count, _)) = self.is_filled(cell) {
                has_news |= count != std::mem::replace(&mut self.slots[cell].noticed, count);
            }
        }
        has_news
    }
}

#[cfg(test)]
mod tests;
