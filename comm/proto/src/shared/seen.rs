//! The memory of one direction of a link in all the ways in which two processors may see it, and what wakes a sleeper, for tests with `loom`.

use loom::sync::atomic::{AtomicU8, AtomicU64, Ordering, fence as loom_fence};
use loom::sync::{Arc, Condvar, Mutex};

use super::{SLOTS, Shared, WORDS, Word};

/// What a memory may do wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    None,
    /// A number may be seen before the bytes that it stands for.
    PublishesEarly,
    /// Who is about to sleep may miss what is published meanwhile.
    HasNoFence,
}

/// See the module.
pub(crate) struct Seen {
    words: [AtomicU64; WORDS],
    row: [AtomicU8; Self::CAPACITY],
    /// Of each cell the first byte.
    cells: [AtomicU8; SLOTS],
    flaw: Flaw,
}

impl Seen {
    const CAPACITY: usize = 4;
}

impl Shared for Arc<Seen> {
    fn capacity(&self) -> usize {
        Seen::CAPACITY
    }
    fn load(&self, word: Word) -> u64 {
        self.words[word.number()].load(Ordering::Acquire)
    }
    fn store(&self, word: Word, value: u64) {
        let is_early = self.flaw == Flaw::PublishesEarly;
        self.words[word.number()].store(value, if is_early { Ordering::Relaxed } else { Ordering::Release });
    }
    fn fence(&self) {
        if self.flaw != Flaw::HasNoFence {
            loom_fence(Ordering::SeqCst);
        }
    }
    fn read(&self, at: usize, into: &mut [u8]) {
        let row = self.row[at..].iter();
        into.iter_mut().zip(row).for_each(|(into, byte)| *into = byte.load(Ordering::Relaxed));
    }
    fn write(&self, at: usize, from: &[u8]) {
        let row = self.row[at..].iter();
        from.iter().zip(row).for_each(|(from, byte)| byte.store(*from, Ordering::Relaxed));
    }
    fn read_cell(&self, cell: usize, into: &mut [u8]) {
        into.iter_mut().for_each(|into| *into = self.cells[cell].load(Ordering::Relaxed));
    }
    fn write_cell(&self, cell: usize, from: &[u8]) {
        from.iter().for_each(|from| self.cells[cell].store(*from, Ordering::Relaxed));
    }
}

pub(crate) fn seen(flaw: Flaw) -> Arc<Seen> {
    Arc::new(Seen {
        words: std::array::from_fn(|_| AtomicU64::new(0)),
        row: std::array::from_fn(|_| AtomicU8::new(0)),
        cells: std::array::from_fn(|_| AtomicU8::new(0)),
        flaw,
    })
}

/// What wakes a thread: rung before it sleeps, it does not.
#[derive(Default)]
pub(crate) struct Bell(Mutex<bool>, Condvar);

impl Bell {
    pub(crate) fn ring(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_one();
    }

    pub(crate) fn wait(&self) {
        let mut is_rung = self.0.lock().unwrap();
        while !std::mem::take(&mut *is_rung) {
            is_rung = self.1.wait(is_rung).unwrap();
        }
    }
}
