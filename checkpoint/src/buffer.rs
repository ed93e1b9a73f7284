//! Memory of checkpoints: that of the process, or of its estate, which outlives it ([`ft_comm::estate`]).

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ft_comm::ReadyMemory;
use ft_comm::estate::{Estate, Room};

/// Bytes in one of the two.
#[derive(Debug)]
pub(crate) enum Buffer {
    /// Of the process.
    Heap(Vec<u8>),
    /// Of the estate: so many bytes from the start of a room.
    Room(Room, usize),
}

impl Buffer {
    /// Bytes that it may have without other memory.
    pub(crate) fn capacity(&self) -> usize {
        match self {
            Self::Heap(bytes) => bytes.capacity(),
            Self::Room(room, _) => room.len(),
        }
    }

    /// Where it is in the estate, and how long; none if it is not there.
    pub(crate) fn place(&self) -> Option<(u64, u64)> {
        match self {
            Self::Heap(bytes) => bytes.is_empty().then_some((0, 0)),
            Self::Room(room, len) => Some((room.at(), *len as u64)),
        }
    }

    /// The bytes of the process, to be overwritten: other memory, if they were in the estate.
    pub(crate) fn heap(&mut self) -> &mut Vec<u8> {
        if let Self::Room(_, len) = self {
            *self = Self::Heap(Vec::with_capacity(*len));
        }
        match self {
            Self::Heap(bytes) => bytes,
            Self::Room(..) => unreachable!("it was replaced"),
        }
    }
}

impl Default for Buffer {
    fn default() -> Self {
        Self::Heap(Vec::new())
    }
}

impl From<Vec<u8>> for Buffer {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Heap(bytes)
    }
}

/// A copy is memory of the process.
impl Clone for Buffer {
    fn clone(&self) -> Self {
        Self::Heap(self.to_vec())
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Heap(bytes) => bytes,
            Self::Room(room, len) => &room[..*len],
        }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Heap(bytes) => bytes,
            Self::Room(room, len) => &mut room[..*len],
        }
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl AsMut<[u8]> for Buffer {
    fn as_mut(&mut self) -> &mut [u8] {
        self
    }
}

/// Where buffers get their memory from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    estate: Option<Arc<Mutex<Estate>>>,
    ready: ReadyMemory,
}

impl Memory {
    /// That of an estate, as far as there is any; else what is `ready`.
    pub(crate) fn of(estate: Option<Estate>, ready: ReadyMemory) -> Self {
        Self { estate: estate.map(|estate| Arc::new(Mutex::new(estate))), ready }
    }

    /// The estate, if there is one.
    pub(crate) fn estate(&self) -> Option<MutexGuard<'_, Estate>> {
        self.estate.as_ref().map(|estate| estate.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Says to whoever starts processes ahead of a loss what `part` keeps, in lengths of its buffers.
    pub(crate) fn tell(&self, part: u32, lens: impl Iterator<Item = u64>) {
        if self.estate.is_none() {
            self.ready.keeps(part, lens);
        }
    }

    /// Gives `buffer` the length `len`; its bytes are any.
    pub(crate) fn lengthen(&self, buffer: &mut Buffer, len: usize) {
        match buffer {
            Buffer::Room(room, old) if room.len() >= len => *old = len,
            Buffer::Heap(bytes) if bytes.capacity() >= len && (self.estate.is_none() || len == 0) => {
                bytes.resize(len, 0)
            }
            _ => {
                let room = self.estate().and_then(|mut estate| estate.room(len).ok());
                *buffer = room.map_or_else(|| Buffer::Heap(self.heap(len)), |room| Buffer::Room(room, len));
            }
        }
    }

    /// Memory of the process.
    fn heap(&self, len: usize) -> Vec<u8> {
        let mut bytes = self.ready.take(len).unwrap_or_else(|| vec![0; len]);
        bytes.truncate(len);
        bytes.shrink_to_fit(); // large ones stay where they are
        bytes
    }
}
