//! A row of bytes in memory that two processes of a host share, through which one sends and the other receives.
//!
//! A ring is a row of bytes and two positions that only grow: as far as was written (*head*), by the sender, and as far as was
//! read (*tail*), by the receiver. Bytes are there before the head says so, and are out before the tail says so. So a sender that is killed has published
//! whole pieces or nothing, and a receiver never sees what is being written.
//!
//! Who is about to sleep says so in a word of the ring, and looks again; who has published something looks at that word. Between the writing and the
//! looking each has a full fence, so one of the two sees the other, and no wake-up is lost (Dekker's algorithm).
//!
//! The other side is not trusted. What it writes are numbers and bytes: a number is read once, and one that cannot be is the end of the
//! link; bytes are copied out once, and judged by those above.
//!
//! This is the protocol, over whatever memory there is: `ft-comm` has the pages themselves, its simulator such as two processors may see them.

use std::ops::{Deref, DerefMut};

use crate::planted;
use crate::shared::{Nonsense, Shared, Word, wakes};

/// A ring is filled and emptied in so many lumps at least.
const LUMPS: usize = 4;

/// The end of a ring that writes.
#[derive(Debug)]
pub struct Sender<M> {
    memory: M,
    head: u64,
    /// As it was seen last.
    tail: u64,
}

impl<M: Shared> Sender<M> {
    /// In memory that nobody has written to.
    pub fn new(memory: M) -> Self {
        Self { memory, head: 0, tail: 0 }
    }

    /// Bytes that can be written.
    pub fn room(&self) -> usize {
        self.memory.capacity() - (self.head - self.tail) as usize
    }

    /// As [`Sender::room`], after a look at what was read meanwhile.
    ///
    /// # Errors
    /// More was read than was written, or less than before.
    pub fn look(&mut self) -> Result<usize, Nonsense> {
        let tail = self.memory.load(Word::Tail);
        if (tail < self.tail || tail > self.head) && !planted::has(planted::TRUSTS_POSITIONS) {
            return Err(Nonsense);
        }
        self.tail = tail;
        Ok(self.room())
    }

    /// Writes a prefix of `pieces`, as far as there is room; how much of them. The receiver may read while more is written.
    ///
    /// # Errors
    /// As [`Sender::look`].
    pub fn send(&mut self, pieces: &[impl Deref<Target = [u8]>]) -> Result<usize, Nonsense> {
        let (capacity, before) = (self.memory.capacity(), self.head);
        let wanted: usize = pieces.iter().map(|piece| piece.len()).sum();
        let mut room = self.room();
        if room < wanted {
            room = self.look()?;
        }
        for piece in pieces {
            let mut rest = &piece[..piece.len().min(room)];
            room -= rest.len();
            while !rest.is_empty() {
                let at = (self.head % capacity as u64) as usize;
                let (part, behind) = rest.split_at(rest.len().min(capacity - at).min(capacity / LUMPS));
                if planted::has(planted::PUBLISHES_EARLY) {
                    self.memory.store(Word::Head, self.head + part.len() as u64);
                }
                self.memory.write(at, part);
                self.head += part.len() as u64;
                rest = behind;
                if !rest.is_empty() {
                    self.memory.store(Word::Head, self.head);
                }
            }
        }
        self.memory.store(Word::Head, self.head);
        Ok((self.head - before) as usize)
    }

    /// After something was written: whether the receiver is to be woken.
    pub fn must_wake(&self) -> bool {
        if !planted::has(planted::LOOKS_WITHOUT_FENCE) {
            self.memory.fence();
        }
        wakes(&self.memory, Word::ReceiverSleeps)
    }

    /// Says that this side is about to sleep until there is room, or does not any more. A fence and another look belong behind it.
    pub fn sleeps(&self, does: bool) {
        self.memory.store(Word::SenderSleeps, u64::from(does));
    }
}

/// The end of a ring that reads.
#[derive(Debug)]
pub struct Receiver<M> {
    memory: M,
    tail: u64,
    /// As the sender knows it.
    told: u64,
    /// As it was seen last.
    head: u64,
}

impl<M: Shared> Receiver<M> {
    /// In memory that nobody has written to.
    pub fn new(memory: M) -> Self {
        Self { memory, tail: 0, told: 0, head: 0 }
    }

    /// Bytes that can be read, by what was seen.
    pub fn seen(&self) -> usize {
        (self.head - self.tail) as usize
    }

    /// The same after a look.
    ///
    /// # Errors
    /// More was written than there is room for, or less than before.
    pub fn look(&mut self) -> Result<usize, Nonsense> {
        let head = self.memory.load(Word::Head);
        let capacity = self.memory.capacity() as u64;
        let cannot_be = head < self.head || head - self.told > capacity;
        if cannot_be && !planted::has(planted::TRUSTS_POSITIONS) {
            return Err(Nonsense);
        }
        self.head = head;
        Ok(self.seen())
    }

    /// Reads into the front of `pieces`, as far as there is something; how much, and whether the sender is to be woken. It is told of what was read in
    /// lumps: until then it has the rest of the ring.
    ///
    /// # Errors
    /// As [`Receiver::look`].
    pub fn receive(
        &mut self,
        pieces: &mut [impl DerefMut<Target = [u8]>],
    ) -> Result<(usize, bool), Nonsense> {
        let (capacity, before, mut wakes) = (self.memory.capacity(), self.tail, false);
        'pieces: for piece in pieces {
            let mut rest = &mut piece[..];
            while !rest.is_empty() {
                let there = if self.seen() == 0 { self.look()? } else { self.seen() };
                if there == 0 {
                    break 'pieces;
                }
                let at = (self.tail % capacity as u64) as usize;
                let most = there.min(capacity - at).min(capacity / LUMPS);
                let (part, behind) = rest.split_at_mut(rest.len().min(most));
                self.memory.read(at, part);
                self.tail += part.len() as u64;
                rest = behind;
                wakes |= self.tell();
            }
        }
        Ok(((self.tail - before) as usize, wakes))
    }

    /// Tells the sender what was read, if that is much; whether it is to be woken then.
    fn tell(&mut self) -> bool {
        if self.tail - self.told < (self.memory.capacity() / LUMPS) as u64 {
            return false;
        }
        self.told = self.tail;
        self.memory.store(Word::Tail, self.tail);
        self.memory.fence();
        wakes(&self.memory, Word::SenderSleeps)
    }

    /// Says that this side is about to sleep until something is there, or does not any more. A fence and another look belong behind it.
    pub fn sleeps(&self, does: bool) {
        self.memory.store(Word::ReceiverSleeps, u64::from(does));
    }
}

#[cfg(test)]
mod tests;
