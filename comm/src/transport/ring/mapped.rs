//! The memory of a link, for both directions: a file without a name that two processes have mapped.
//!
//! The first page has the words of both rings, each on a line of its own, and the cells, each behind its words; behind it are the two rows of bytes.
//!
//! # Safety
//!
//! What the `unsafe` here rests on:
//! - A [`Mapped`] is one mapping of its own, of as many bytes as the file has, until it is dropped; nobody else unmaps it.
//! - The file can become neither shorter nor longer: it is sealed, and [`Mapped::open`] takes no other.
//! - No reference to its bytes exists. Words are touched as atomics only; bytes of a row are copied by [`Half::read`] and [`Half::write`], which stay
//!   within the row, those of a cell by [`Half::read_cell`] and [`Half::write_cell`], which stay within the cell. Of these, the two sides copy different ones at any time, as long as both keep to the
//!   protocols of `ft_proto::ring` and `ft_proto::cells`. If the other process
//!   does not, what is copied is any bytes, which is what they are taken for.
//! - A [`Half`] is used by one [`ft_proto::ring::Sender`], one [`ft_proto::ring::Receiver`] or one [`ft_proto::cells::Cells`].
#![expect(
    unsafe_code,
    reason = "memory of two processes has no safe interface; what it saves is in ARCHITECTURE, decision 55"
)]

use std::io;
use std::os::fd::OwnedFd;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{self, AtomicU64, Ordering};

use nix::sys::resource::Resource;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

use crate::limits;
use ft_proto::shared::{CELL_BYTES, CELL_WORDS, SLOTS, Shared, WORDS, Word};

/// Name of the files, for those who look into `/proc`.
const NAME: &str = "ftrun-ring";
/// Bytes before the rows.
const WORDS_BYTES: usize = 4096;
/// From one word to the next: two lines, as processors fetch lines in pairs.
const WORD_STRIDE: usize = 128;
/// From the words of the first ring to those of the second.
const RING_STRIDE: usize = 1024;
/// Where the cells begin, from one to the next, and from the first direction's to those of the second. The words of a cell are before its bytes.
const CELLS_AT: usize = 2 * RING_STRIDE;
const CELL_STRIDE: usize = 384;
const CELLS_STRIDE: usize = 1024;
const CELL_WORDS_BYTES: usize = CELL_WORDS * size_of::<u64>();
const _: () = assert!(
    CELL_WORDS_BYTES + CELL_BYTES <= CELL_STRIDE
        && SLOTS * CELL_STRIDE <= CELLS_STRIDE
        && CELLS_AT + 2 * CELLS_STRIDE <= WORDS_BYTES
        && (WORDS - SLOTS * CELL_WORDS) * WORD_STRIDE <= RING_STRIDE
);
/// A row has so many bytes at least, and at most.
const CAPACITIES: [usize; 2] = [4096, 1 << 20];

/// See the module.
#[derive(Debug)]
pub(super) struct Mapped {
    start: NonNull<u8>,
    capacity: usize,
}

// SAFETY: it is memory that any thread may touch, in the ways that the module names.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// New memory for two rows of `capacity` bytes, and its file.
    pub(super) fn create(capacity: usize) -> io::Result<(Self, OwnedFd)> {
        let bytes = (WORDS_BYTES + 2 * capacity) as u64;
        // The system kills who makes a file longer than it may be.
        if limits::of(Resource::RLIMIT_FSIZE).is_some_and(|most| most < bytes) {
            return Err(rustix::io::Errno::FBIG.into());
        }
        let file = rustix::fs::memfd_create(NAME, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        rustix::fs::ftruncate(&file, bytes)?;
        rustix::fs::fcntl_add_seals(&file, SEALS)?;
        Ok((Self::open(&file)?, file))
    }

    /// Memory that another process has made.
    pub(super) fn open(file: &OwnedFd) -> io::Result<Self> {
        let is_sealed = rustix::fs::fcntl_get_seals(file)?.contains(SEALS);
        let rows = rustix::fs::fstat(file)?.st_size - WORDS_BYTES as i64;
        let capacity = usize::try_from(rows).unwrap_or(0) / 2;
        let [least, most] = CAPACITIES;
        let fits = capacity.is_power_of_two() && (least..=most).contains(&capacity) && rows % 2 == 0;
        if !is_sealed || !fits {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "no memory for rings"));
        }
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory in use.
        let start = unsafe { rustix::mm::mmap(ptr::null_mut(), bytes_of(capacity), access, flags, file, 0) }?;
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))?;
        Ok(Self { start, capacity })
    }

    /// Bytes of each row.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }
}

/// Nobody makes the file shorter or longer, not even who has made it.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Bytes of the memory with two rows of `capacity` bytes.
pub(super) fn bytes_of(capacity: usize) -> usize {
    WORDS_BYTES + 2 * capacity
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's own, and nothing points into it that outlives it.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), bytes_of(self.capacity)) };
    }
}

/// One of the two rings.
#[derive(Debug)]
pub(super) struct Half {
    /// Keeps what the pointers point to.
    memory: Arc<Mapped>,
    words: NonNull<u8>,
    cells: NonNull<u8>,
    row: NonNull<u8>,
}

// SAFETY: as `Mapped`, of which it is a part.
unsafe impl Send for Half {}

impl Half {
    /// The first or the second ring of `memory`.
    pub(super) fn new(memory: Arc<Mapped>, is_second: bool) -> Self {
        let second = usize::from(is_second);
        // SAFETY: words and cells of both directions lie in the first page, and both rows behind it.
        let (words, cells, row) = unsafe {
            (
                memory.start.add(second * RING_STRIDE),
                memory.start.add(CELLS_AT + second * CELLS_STRIDE),
                memory.start.add(WORDS_BYTES + second * memory.capacity),
            )
        };
        Self { memory, words, cells, row }
    }

    /// All of it, to look at it from another side.
    #[cfg(test)]
    pub(super) fn memory(&self) -> &Arc<Mapped> {
        &self.memory
    }

    #[inline]
    fn word(&self, word: Word) -> &AtomicU64 {
        let at = match word {
            Word::Filled(cell) => self.cell_word(cell, 0),
            Word::Label(cell) => self.cell_word(cell, 1),
            Word::Told(cell, of) => self.cell_word(cell, 2 + of),
            // SAFETY: the other words lie in the first page.
            word => unsafe { self.words.add(word.number() * WORD_STRIDE) },
        };
        // SAFETY: it is aligned to 8 bytes and mapped for as long as `memory` is kept; all access is atomic.
        unsafe { at.cast().as_ref() }
    }

    #[inline]
    fn cell_word(&self, cell: usize, number: usize) -> NonNull<u8> {
        assert!(number < CELL_WORDS, "there are so many");
        // SAFETY: so it is one of the words at the front of the cell.
        unsafe { self.cell(cell).add(number * size_of::<u64>()) }
    }

    /// Where the words of a cell are.
    #[inline]
    fn cell(&self, cell: usize) -> NonNull<u8> {
        assert!(cell < SLOTS, "there are so many");
        // SAFETY: so it lies in the first page.
        unsafe { self.cells.add(cell * CELL_STRIDE) }
    }
}

impl Shared for Half {
    fn capacity(&self) -> usize {
        self.memory.capacity
    }

    #[inline]
    fn load(&self, word: Word) -> u64 {
        self.word(word).load(Ordering::Acquire)
    }

    #[inline]
    fn store(&self, word: Word, value: u64) {
        self.word(word).store(value, Ordering::Release);
    }

    #[inline]
    fn fence(&self) {
        fence();
    }

    #[inline]
    fn read(&self, at: usize, into: &mut [u8]) {
        assert!(at <= self.memory.capacity && into.len() <= self.memory.capacity - at, "it lies in the row");
        // SAFETY: so it does; `into` is no part of it.
        unsafe { ptr::copy_nonoverlapping(self.row.as_ptr().add(at), into.as_mut_ptr(), into.len()) }
    }

    #[inline]
    fn write(&self, at: usize, from: &[u8]) {
        assert!(at <= self.memory.capacity && from.len() <= self.memory.capacity - at, "it lies in the row");
        // SAFETY: so it does; `from` is no part of it.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), self.row.as_ptr().add(at), from.len()) }
    }

    #[inline]
    fn read_cell(&self, cell: usize, into: &mut [u8]) {
        assert!(into.len() <= CELL_BYTES, "it lies in the cell");
        // SAFETY: so it does, behind the words; `into` is no part of it.
        unsafe {
            let from = self.cell(cell).add(CELL_WORDS_BYTES);
            ptr::copy_nonoverlapping(from.as_ptr(), into.as_mut_ptr(), into.len());
        }
    }

    #[inline]
    fn write_cell(&self, cell: usize, from: &[u8]) {
        assert!(from.len() <= CELL_BYTES, "it lies in the cell");
        // SAFETY: so it does, behind the words; `from` is no part of it.
        unsafe {
            let into = self.cell(cell).add(CELL_WORDS_BYTES);
            ptr::copy_nonoverlapping(from.as_ptr(), into.as_ptr(), from.len());
        }
    }
}

/// A fence for all memory.
#[inline]
pub(super) fn fence() {
    atomic::fence(Ordering::SeqCst);
}

#[cfg(test)]
mod tests {
    use std::io::{IoSlice, IoSliceMut};

    use super::super::{Receiver, Sender};
    use super::*;
    use ft_proto::cells::{Cells, Label};

    /// Memory of this process alone, which Miri knows; it is never given back.
    fn leaked(capacity: usize) -> Arc<Mapped> {
        let pages = vec![[0_u64; 512]; bytes_of(capacity) / 4096].leak();
        let memory = Arc::new(Mapped { start: NonNull::from(pages).cast(), capacity });
        std::mem::forget(Arc::clone(&memory));
        memory
    }

    /// Two threads that really run at the same time. Miri sees to it that none reads what the other writes.
    #[test]
    fn two_threads_pass_bytes_on() {
        let capacity = 4096;
        let memory = leaked(capacity);
        let (mut sender, mut receiver) =
            (Sender::new(Half::new(Arc::clone(&memory), true)), Receiver::new(Half::new(memory, true)));
        let text: Vec<u8> = (0..3 * capacity + 7).map(|at| (at * 31 / 7) as u8).collect();
        let due = text.clone();
        let thread = std::thread::spawn(move || {
            let mut rest = &text[..];
            while !rest.is_empty() {
                let (first, second) = rest.split_at(rest.len().min(100));
                let pieces = [IoSlice::new(first), IoSlice::new(&second[..second.len().min(300)])];
                let count = sender.send(&pieces).unwrap();
                sender.must_wake();
                rest = &rest[count..];
                std::thread::yield_now();
            }
        });
        let mut got: Vec<u8> = Vec::new();
        while got.len() < due.len() {
            let (mut one, mut two) = ([0; 50], [0; 500]);
            let mut pieces = [IoSliceMut::new(&mut one), IoSliceMut::new(&mut two)];
            let (count, _) = receiver.receive(&mut pieces).unwrap();
            got.extend_from_slice(&[&one[..], &two[..]].concat()[..count]);
            std::thread::yield_now();
        }
        assert_eq!(got, due);
        thread.join().unwrap();
    }

    /// The same for cells: what is in one is not touched while it is read.
    #[test]
    fn two_threads_exchange_messages_in_cells() {
        let memory = leaked(4096);
        let half = |second| Half::new(Arc::clone(&memory), second);
        let (mut here, mut there) =
            (Cells::new(half(false), half(true)), Cells::new(half(true), half(false)));
        let exchange = |end: &mut Cells<Half>, own: u32, other: u32| {
            for number in 0..100_u32 {
                let label = Label { context: 1, tag: number };
                let say = |of: u32| [(number * of) as u8; 40];
                while !end.put(label, &say(own)) {
                    std::thread::yield_now();
                }
                end.must_wake();
                let mut into = [0; 40];
                while end.take(label, &mut into).unwrap().is_none() {
                    std::thread::yield_now();
                }
                assert_eq!(into, say(other));
            }
        };
        let thread = std::thread::spawn(move || exchange(&mut there, 3, 5));
        exchange(&mut here, 5, 3);
        thread.join().unwrap();
    }
}
