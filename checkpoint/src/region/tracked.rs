//! An array that knows what was written of it since it was copied, so that a checkpoint or a restore need not look at the rest.

use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::Pod;

use super::{Array, Field, ProtectError, Walk};
use crate::crc::BLOCK;

/// Numbers for arrays and for copies of them, each used once in a process.
fn next() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// What was written of an array, block by block. A copy of it gets a number, larger than those before; a block that was written has the
/// number of the copy before that. The last block may be shorter than others. So it has changed since a copy if its number is not smaller.
#[derive(Debug)]
pub struct Marks {
    /// Of this array, and no other.
    id: u64,
    written: Vec<u64>,
    /// The number of the last copy; 0 before the first.
    copied: u64,
}

/// What is kept of an array beside a copy of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// Where it is in the copy.
    pub(crate) at: usize,
    pub(crate) len: usize,
    id: u64,
    number: u64,
    /// Checksums of its blocks.
    pub(crate) crcs: Vec<u64>,
}

impl Marks {
    fn new(len: usize) -> Self {
        Self { id: next(), written: vec![0; len.div_ceil(BLOCK)], copied: 0 }
    }

    /// These bytes may be overwritten from now on.
    pub(crate) fn write(&mut self, bytes: Range<usize>) {
        if !bytes.is_empty() {
            self.written[bytes.start / BLOCK..bytes.end.div_ceil(BLOCK)].fill(self.copied);
        }
    }

    pub(crate) fn write_all(&mut self) {
        self.written.fill(self.copied);
    }

    /// Takes down a copy that was just made, to byte `at` of something, with the checksums of its blocks.
    pub(crate) fn note(&mut self, at: usize, len: usize, crcs: Vec<u64>) -> Note {
        self.copied = next();
        Note { at, len, id: self.id, number: self.copied, crcs }
    }

    /// Whether `note` is of this array.
    pub(crate) fn are_of(&self, note: &Note) -> bool {
        self.id == note.id && self.written.len() == note.crcs.len()
    }

    /// Whether a block may have changed since the copy of `note`, which is of this array.
    pub(crate) fn has_changed(&self, block: usize, note: &Note) -> bool {
        self.written[block] >= note.number
    }
}

/// An array whose elements are lent to be changed in ranges, and which takes down which: after a failure a rank that was not lost goes
/// back by what was changed alone, and neither compares nor checks the rest of it. It is worth it where a step changes a small
/// part of a large array.
///
/// It is read as a slice. Ranges are taken down in blocks of 64 KiB.
///
/// ```
/// use ft_checkpoint::{Protect, Tracked};
///
/// #[derive(Default, Protect)]
/// struct State {
///     field: Tracked<f64>,
/// }
///
/// let mut state = State { field: Tracked::from(vec![0.0; 1 << 20]) };
/// state.field.write(10..12).copy_from_slice(&[1.0, 2.0]);
/// assert_eq!(state.field[11], 2.0);
/// ```
///
/// # Memory
///
/// Eight bytes a block here, and as many beside each copy.
///
/// # Damage
///
/// What is not looked at is not checked. A copy that was damaged in memory is found when another rank needs it, or a look for damage
/// comes by it, and not by a restore in which its own rank had nothing to take from there.
#[derive(Debug)]
pub struct Tracked<T> {
    items: Vec<T>,
    marks: Marks,
}

impl<T> Tracked<T> {
    fn bytes(range: &Range<usize>) -> Range<usize> {
        range.start * size_of::<T>()..range.end * size_of::<T>()
    }

    /// Returns these elements, to be changed.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn write(&mut self, range: Range<usize>) -> &mut [T] {
        let items = &mut self.items[range.clone()];
        self.marks.write(Self::bytes(&range));
        items
    }

    /// Returns all elements, to be changed.
    pub fn write_all(&mut self) -> &mut [T] {
        self.marks.write_all();
        &mut self.items
    }

    /// Gives element `index` this value.
    ///
    /// # Panics
    /// If there is none.
    pub fn set(&mut self, index: usize, value: T) {
        self.write(index..index + 1)[0] = value;
    }

    /// Returns the elements alone.
    pub fn into_vec(self) -> Vec<T> {
        self.items
    }
}

impl<T> From<Vec<T>> for Tracked<T> {
    fn from(items: Vec<T>) -> Self {
        Self { marks: Marks::new(size_of_val(&items[..])), items }
    }
}

impl<T> Default for Tracked<T> {
    fn default() -> Self {
        Self::from(Vec::new())
    }
}

/// A copy is another array: whoever puts it in the place of this one is not taken for it.
impl<T: Clone> Clone for Tracked<T> {
    fn clone(&self) -> Self {
        Self::from(self.items.clone())
    }
}

impl<T: PartialEq> PartialEq for Tracked<T> {
    fn eq(&self, other: &Self) -> bool {
        self.items == other.items
    }
}

impl<T> Deref for Tracked<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items
    }
}

/// As a `Vec`.
impl<T: Field + Pod> Field for Tracked<T> {
    fn blank() -> Self {
        Self::default()
    }

    fn walk<W: Walk>(&mut self, walk: &mut W) -> Result<(), ProtectError> {
        let len = walk.length(self.items.len(), T::FIXED_BYTES.max(1))?;
        if len != self.items.len() {
            *self = Self::from(T::blanks(len));
        }
        walk.tracked(&mut self.items, &mut self.marks)
    }

    fn describe(text: &mut String) {
        Vec::<T>::describe(text);
    }

    fn array(&self) -> Option<Array> {
        self.items.array()
    }
}
