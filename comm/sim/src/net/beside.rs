//! Memory between two simulated processes of one host, as two processors see it: what one stores the other sees later, in that order, unless there
//! is a fence between (total store order: Owens, Sarkar, Sewell, A better x86 memory model, TPHOLs 2009).

use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use ft_proto::cells::{Cells, Label};
use ft_proto::ring::{Receiver, Sender};
use ft_proto::shared::{CELL_BYTES, Nonsense, SLOTS, Shared, WORDS, Word};

/// A ring has so many bytes at least and at most, as powers of two.
const CAPACITIES: (u32, u32) = (8, 14);

/// What a processor has stored and the other one does not see yet.
#[derive(Debug)]
enum Store {
    Word(Word, u64),
    Bytes(usize, Vec<u8>),
    Cell(usize, Vec<u8>),
}

#[derive(Debug)]
struct Memory {
    words: [u64; WORDS],
    /// The row of the ring.
    row: Vec<u8>,
    cells: [[u8; CELL_BYTES]; SLOTS],
    /// By side: the one that sends is 0.
    unseen: [VecDeque<Store>; 2],
    random: Pcg64,
}

impl Memory {
    /// The first `count` stores of a side are seen.
    fn let_through(&mut self, side: usize, count: usize) {
        for store in self.unseen[side].drain(..count) {
            match store {
                Store::Word(word, value) => self.words[word.number()] = value,
                Store::Bytes(at, bytes) => self.row[at..at + bytes.len()].copy_from_slice(&bytes),
                Store::Cell(cell, bytes) => self.cells[cell][..bytes.len()].copy_from_slice(&bytes),
            }
        }
    }

    /// Some of what a side has stored is seen by now.
    fn let_some_through(&mut self, side: usize) {
        let most = self.unseen[side].len();
        let count = self.random.random_range(0..=most);
        self.let_through(side, count);
    }
}

/// One side of a ring's memory.
#[derive(Clone, Debug)]
struct View {
    memory: Arc<Mutex<Memory>>,
    side: usize,
}

impl View {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The process is killed: it has stored all, or was about to store some of it.
    fn die(&self) {
        let memory = &mut *self.memory();
        memory.let_some_through(self.side);
        memory.unseen[self.side].clear();
    }

    /// Both positions, and what is said of the cells, are any numbers from now on.
    fn overwrite(&self) {
        let memory = &mut *self.memory();
        for word in [Word::Head, Word::Tail, Word::Taken(0), Word::Filled(0), Word::Told(1, 0)] {
            memory.words[word.number()] = memory.random.random();
        }
    }
}

impl Shared for View {
    fn capacity(&self) -> usize {
        self.memory().row.len()
    }

    fn load(&self, word: Word) -> u64 {
        let memory = &mut *self.memory();
        memory.let_some_through(1 - self.side);
        let own = memory.unseen[self.side].iter().rev().find_map(|store| match store {
            Store::Word(stored, value) if *stored == word => Some(*value),
            _ => None,
        });
        own.unwrap_or(memory.words[word.number()])
    }

    fn store(&self, word: Word, value: u64) {
        self.memory().unseen[self.side].push_back(Store::Word(word, value));
    }

    fn fence(&self) {
        let memory = &mut *self.memory();
        memory.let_through(self.side, memory.unseen[self.side].len());
    }

    fn read(&self, at: usize, into: &mut [u8]) {
        into.copy_from_slice(&self.memory().row[at..at + into.len()]);
    }

    fn write(&self, at: usize, from: &[u8]) {
        self.memory().unseen[self.side].push_back(Store::Bytes(at, from.to_vec()));
    }

    fn read_cell(&self, cell: usize, into: &mut [u8]) {
        into.copy_from_slice(&self.memory().cells[cell][..into.len()]);
    }

    fn write_cell(&self, cell: usize, from: &[u8]) {
        self.memory().unseen[self.side].push_back(Store::Cell(cell, from.to_vec()));
    }
}

/// Whether somebody who sleeps was woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    No,
    UnderWay,
    Heard,
}

/// One process's end of both rings and the cells.
#[derive(Debug)]
struct Side {
    out: Sender<View>,
    into: Receiver<View>,
    cells: Cells<View>,
    views: [View; 2],
    call: Call,
    /// It has written bytes, and has not looked yet whether somebody sleeps.
    is_sending: bool,
}

/// The rings and the cells of a connection, one and a few each way.
#[derive(Debug)]
pub(super) struct Beside {
    sides: [Side; 2],
}

impl Beside {
    pub(super) fn new(random: &mut Pcg64) -> Self {
        let mut memory = || {
            let capacity = 1 << random.random_range(CAPACITIES.0..=CAPACITIES.1);
            let random = Pcg64::seed_from_u64(random.random());
            let unseen = [VecDeque::new(), VecDeque::new()];
            let (words, row, cells) = ([0; WORDS], vec![0; capacity], [[0; CELL_BYTES]; SLOTS]);
            Arc::new(Mutex::new(Memory { words, row, cells, unseen, random }))
        };
        let lanes = [memory(), memory()];
        let side = |side: usize| {
            let view =
                |lane: usize| View { memory: Arc::clone(&lanes[lane]), side: usize::from(lane != side) };
            let (out, into) = (Sender::new(view(side)), Receiver::new(view(1 - side)));
            let cells = Cells::new(view(side), view(1 - side));
            Side { out, into, cells, views: [view(0), view(1)], call: Call::No, is_sending: false }
        };
        Self { sides: [side(0), side(1)] }
    }

    /// Writes a prefix of `pieces`; how many bytes of them. [`Beside::must_wake`] belongs behind it.
    pub(super) fn send(&mut self, side: usize, pieces: &[IoSlice<'_>]) -> Result<usize, Nonsense> {
        self.sides[side].is_sending = true;
        self.sides[side].out.send(pieces)
    }

    /// After something was sent: whether the other side is to be woken.
    pub(super) fn must_wake(&mut self, side: usize) -> bool {
        self.sides[side].is_sending = false;
        self.sides[side].out.must_wake()
    }

    /// Puts a message into a cell; whether it is there. [`Beside::must_rouse`] belongs behind it.
    pub(super) fn put(&mut self, side: usize, label: Label, bytes: &[u8]) -> bool {
        let is_put = self.sides[side].cells.put(label, bytes);
        self.sides[side].is_sending |= is_put;
        is_put
    }

    /// Whether a side has sent something, and has not looked yet whether the other one sleeps.
    pub(super) fn is_sending(&self, side: usize) -> bool {
        self.sides[side].is_sending
    }

    /// After a message was put: whether the other side is to be woken.
    pub(super) fn must_rouse(&mut self, side: usize) -> bool {
        self.sides[side].is_sending = false;
        self.sides[side].cells.must_wake()
    }

    /// Takes a message out of its cell.
    pub(super) fn take(
        &mut self,
        side: usize,
        label: Label,
        into: &mut [u8],
    ) -> Result<Option<usize>, Nonsense> {
        self.sides[side].cells.take(label, into)
    }

    /// Whether a message has come into a cell since the last call.
    pub(super) fn notices(&mut self, side: usize) -> bool {
        self.sides[side].cells.notice()
    }

    /// How many bytes were received, and whether the other side is to be woken.
    pub(super) fn receive(
        &mut self,
        side: usize,
        pieces: &mut [IoSliceMut<'_>],
    ) -> Result<(usize, bool), Nonsense> {
        self.sides[side].into.receive(pieces)
    }

    /// Whether something can be received, or the link is of no use.
    pub(super) fn has_come(&mut self, side: usize) -> bool {
        self.sides[side].into.seen() > 0 || self.sides[side].into.look() != Ok(0)
    }

    /// Whether something can be sent, or the link is of no use.
    pub(super) fn has_room(&mut self, side: usize) -> bool {
        self.sides[side].out.room() > 0 || self.sides[side].out.look() != Ok(0)
    }

    /// One side is about to sleep, and waits for room or not, or is awake. [`Beside::fence`] and another look belong behind it.
    pub(super) fn sleeps(&mut self, side: usize, does: bool, writing: bool) {
        let side = &mut self.sides[side];
        side.into.sleeps(does);
        side.out.sleeps(does && writing);
        if !does && side.call == Call::Heard {
            side.call = Call::No;
        }
    }

    pub(super) fn fence(&self, side: usize) {
        self.sides[side].views.iter().for_each(Shared::fence);
    }

    /// A call is on its way to a side that sleeps; false if one is already.
    pub(super) fn call(&mut self, side: usize) -> bool {
        let call = &mut self.sides[side].call;
        *call == Call::No && {
            *call = Call::UnderWay;
            true
        }
    }

    /// The call is there.
    pub(super) fn hear(&mut self, side: usize) {
        self.sides[side].call = Call::Heard;
    }

    /// Whether a side was called since it was awake last.
    pub(super) fn is_called(&self, side: usize) -> bool {
        self.sides[side].call == Call::Heard
    }

    /// Whether nothing wakes a side that sleeps, although there are bytes or messages for it.
    pub(super) fn is_forgotten(&mut self, side: usize) -> bool {
        let is_called = self.sides[side].call != Call::No || self.sides[1 - side].is_sending;
        let there = &mut self.sides[side];
        !is_called && (there.into.look().is_ok_and(|bytes| bytes > 0) || there.cells.look() == Ok(true))
    }

    /// The process at a side is killed.
    pub(super) fn die(&mut self, side: usize) {
        self.sides[side].views.iter().for_each(View::die);
    }

    /// The process at a side writes nonsense into all that both share.
    pub(super) fn overwrite(&mut self, side: usize) {
        self.sides[side].views.iter().for_each(View::overwrite);
    }
}
