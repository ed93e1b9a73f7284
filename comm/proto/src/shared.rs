//! Memory that two processes of a host share, for one direction of a link: words, a row of bytes ([`crate::ring`]) and cells ([`crate::cells`]).
//!
//! `ft-comm` has the pages themselves, its simulator such as two processors may see them.

/// Cells of each direction: while the message in one was taken, and that was not told yet, the other takes the next.
pub const SLOTS: usize = 2;
/// Bytes that a cell has room for.
pub const CELL_BYTES: usize = 256;
/// Words of a cell.
pub const CELL_WORDS: usize = 2 + SLOTS;
/// Words that a direction of a link has.
pub const WORDS: usize = 4 + SLOTS + SLOTS * CELL_WORDS;

/// A word of one direction of a link. Each has a cache line of its own, but for those of a cell, which are at the front of its first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Bytes that were written since the beginning. The sender writes it.
    Head,
    /// Bytes that were read. The receiver writes it.
    Tail,
    /// Not 0: the receiver sleeps, or is about to. Whoever wakes it takes this back.
    ReceiverSleeps,
    /// Not 0: the sender sleeps until there is room.
    SenderSleeps,
    /// Messages that were taken out of a cell ([`crate::cells`]). The receiver writes it.
    Taken(usize),
    /// How often a cell was filled, and with how much. The sender writes it.
    Filled(usize),
    /// What the message in a cell is for. The sender writes it.
    Label(usize),
    /// In the first cell: messages that were taken out of the second one of the other direction. The sender writes it.
    Told(usize, usize),
}

impl Word {
    /// Its number, below [`WORDS`].
    pub fn number(self) -> usize {
        match self {
            Self::Head => 0,
            Self::Tail => 1,
            Self::ReceiverSleeps => 2,
            Self::SenderSleeps => 3,
            Self::Taken(cell) => 4 + cell,
            Self::Filled(cell) => Self::first_of(cell),
            Self::Label(cell) => Self::first_of(cell) + 1,
            Self::Told(cell, of) => Self::first_of(cell) + 2 + of,
        }
    }

    fn first_of(cell: usize) -> usize {
        4 + SLOTS + cell * CELL_WORDS
    }
}

/// The memory of one direction of a link as both sides see it: a ring, and cells.
pub trait Shared {
    /// Bytes of the row, a power of two.
    fn capacity(&self) -> usize;
    /// What was written before the other side's [`Shared::store`] is seen.
    fn load(&self, word: Word) -> u64;
    /// After what this side has written before.
    fn store(&self, word: Word, value: u64);
    /// What was stored before it is seen by whoever loads after a fence of his own, or the other way round.
    fn fence(&self);
    /// Copies bytes of the row from `at` on, which lie in it.
    fn read(&self, at: usize, into: &mut [u8]);
    /// Writes bytes of the row from `at` on, which lie in it.
    fn write(&self, at: usize, from: &[u8]);
    /// Copies bytes from the front of a cell, [`CELL_BYTES`] at most.
    fn read_cell(&self, cell: usize, into: &mut [u8]);
    /// Writes bytes to the front of a cell, [`CELL_BYTES`] at most.
    fn write_cell(&self, cell: usize, from: &[u8]);
}

/// The other side's numbers cannot be: the shared memory of the link was overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonsense;

/// Whether the other side sleeps, or is about to; then it is to be woken, once. If it sleeps anew by now and this takes that back, it is woken all the same.
pub(crate) fn wakes(memory: &impl Shared, sleeps: Word) -> bool {
    let does = memory.load(sleeps) != 0;
    if does {
        memory.store(sleeps, 0);
    }
    does
}

#[cfg(test)]
pub(crate) mod seen;
