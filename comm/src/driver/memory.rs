//! Memory of operations: lent by a blocking call as ranges, or owned.

use std::any::Any;
use std::ops::Range;

use crate::plain::Plain;

/// Memory that a blocking call lends to its operations.
pub(crate) struct Memory<'a> {
    pub(crate) read: &'a [u8],
    pub(crate) write: &'a mut [u8],
}

impl Memory<'_> {
    /// For operations that own theirs.
    pub(crate) fn none() -> Memory<'static> {
        Memory { read: &[], write: &mut [] }
    }
}

/// A buffer that an operation owns.
pub(crate) trait Buffer {
    fn bytes(&self) -> &[u8];
    fn bytes_mut(&mut self) -> &mut [u8];
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

impl<T: Plain> Buffer for Vec<T> {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self)
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(self)
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Where the bytes of an operation are.
pub(crate) enum Place {
    Read(Range<usize>),
    Write(Range<usize>),
    Owned(Box<dyn Buffer>),
}

impl Place {
    pub(super) fn bytes<'a>(&'a self, memory: &'a Memory<'_>) -> &'a [u8] {
        match self {
            Self::Read(range) => &memory.read[range.clone()],
            Self::Write(range) => &memory.write[range.clone()],
            Self::Owned(buffer) => buffer.bytes(),
        }
    }

    pub(super) fn bytes_mut<'a>(&'a mut self, memory: &'a mut Memory<'_>) -> &'a mut [u8] {
        match self {
            Self::Read(_) => unreachable!("receives have memory to write to"),
            Self::Write(range) => &mut memory.write[range.clone()],
            Self::Owned(buffer) => buffer.bytes_mut(),
        }
    }
}
