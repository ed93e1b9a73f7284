//! The visitor and three of its kinds: count, copy out, copy in. The fourth is in `outline.rs`.

use std::any::TypeId;

use bytemuck::Pod;
use serde::{Serialize, de::DeserializeOwned};

use super::apart::{Apart, DOUBLES_MIN};
use super::tracked::Marks;
use super::{Field, Protect, ProtectError, ProtectErrorKind, Spread, StatePart};

mod load;
mod save;

pub(super) use load::Load;
pub(super) use save::Save;

/// What is done to each piece of a state; implemented by size, save, load and outline only, so it is not for users to write.
pub trait Walk {
    /// Visits bytes whose number both sides know: counted, copied out, or overwritten.
    ///
    /// # Errors
    ///
    /// [`ProtectErrorKind::Short`] if the shard ends before.
    fn bytes(&mut self, bytes: &mut [u8]) -> Result<(), ProtectError>;

    /// Visits the bytes of doubles, which may be kept apart from all else.
    ///
    /// # Errors
    ///
    /// Those of [`Walk::bytes`].
    fn doubles(&mut self, bytes: &mut [u8]) -> Result<(), ProtectError> {
        self.bytes(bytes)
    }

    /// Is told before a field what that is to the other ranks; the answer is for [`Walk::leave`].
    fn enter(&mut self, spread: Option<Spread>) -> bool {
        let _ = spread;
        false
    }

    /// Is told after a field what [`Walk::enter`] gave.
    fn leave(&mut self, outer: bool) {
        let _ = outer;
    }

    /// Visits a length and returns the one that counts: `items` itself, or on load the one in the shard.
    ///
    /// `item_bytes` is what one item takes at least, 0 if unknown: a length in the shard for which too few bytes
    /// follow is refused, so memory may be taken for what is returned if `item_bytes` is not 0.
    ///
    /// # Errors
    ///
    /// [`ProtectErrorKind::Short`] if the shard ends before the items would.
    fn length(&mut self, items: usize, item_bytes: usize) -> Result<usize, ProtectError>;

    /// Visits a value through serde and postcard.
    ///
    /// # Errors
    ///
    /// [`ProtectErrorKind::Serde`] with the message of serde or postcard.
    fn serde<T: Serialize + DeserializeOwned>(&mut self, value: &mut T) -> Result<(), ProtectError>;

    /// Returns the number of bytes visited so far.
    fn offset(&self) -> usize;

    /// Visits a field of a state. Errors have its name, and so has who looks into files; `spread` is what it is to the other ranks,
    /// if that is said.
    ///
    /// # Errors
    ///
    /// Those of [`Field::walk`].
    fn field<T: Field>(
        &mut self,
        name: &str,
        spread: Option<Spread>,
        field: &mut T,
    ) -> Result<(), ProtectError>
    where
        Self: Sized,
    {
        let outer = self.enter(spread);
        let walked = field.walk(self).map_err(|error| error.in_field(name));
        self.leave(outer);
        walked
    }

    /// As [`Walk::field`], through serde and postcard.
    ///
    /// # Errors
    ///
    /// Those of [`Walk::serde`].
    fn field_by_serde<T: Serialize + DeserializeOwned>(
        &mut self,
        name: &str,
        spread: Option<Spread>,
        field: &mut T,
    ) -> Result<(), ProtectError>
    where
        Self: Sized,
    {
        let _ = spread;
        self.serde(field).map_err(|error| error.in_field(name))
    }

    /// As [`Walk::field`], for one `part` of a state within the state.
    ///
    /// # Errors
    ///
    /// Those of [`Protect::walk`].
    fn nested<P: Protect>(
        &mut self,
        name: &str,
        spread: Option<Spread>,
        part: StatePart,
        state: &mut P,
    ) -> Result<(), ProtectError>
    where
        Self: Sized,
    {
        let outer = self.enter(spread);
        let walked = state.walk(part, self).map_err(|error| error.in_field(name));
        self.leave(outer);
        walked
    }

    /// Visits a slice of plain data as its bytes; its length is not written.
    ///
    /// # Errors
    ///
    /// Those of [`Walk::bytes`].
    fn plain<T: Pod>(&mut self, items: &mut [T]) -> Result<(), ProtectError> {
        let are_doubles = TypeId::of::<T>() == TypeId::of::<f64>() && items.len() >= DOUBLES_MIN;
        let bytes = bytemuck::cast_slice_mut(items);
        if are_doubles { self.doubles(bytes) } else { self.bytes(bytes) }
    }

    /// As [`Walk::plain`], of a slice of which is known what was written.
    ///
    /// # Errors
    ///
    /// Those of [`Walk::bytes`].
    fn tracked<T: Pod>(&mut self, items: &mut [T], marks: &mut Marks) -> Result<(), ProtectError> {
        let _ = marks;
        self.plain(items)
    }

    /// Visits what the constant part determines: it is as it was, or its default where that part is overwritten.
    fn lasting<T: Default>(&mut self, value: &mut T) {
        let _ = value;
    }

    /// Visits what lies within a value, which may hold others of its own type.
    ///
    /// # Errors
    ///
    /// Those of `within`; [`ProtectErrorKind::Deep`] if values lie in each other more than [`DEPTH_MAX`] deep.
    fn deeper(
        &mut self,
        within: impl FnOnce(&mut Self) -> Result<(), ProtectError>,
    ) -> Result<(), ProtectError>
    where
        Self: Sized,
    {
        if *self.depth() == DEPTH_MAX {
            return Err(ProtectError::new(self.offset(), ProtectErrorKind::Deep));
        }
        *self.depth() += 1;
        let walked = within(self);
        *self.depth() -= 1;
        walked
    }

    /// How deep the walk is in values that lie in each other, for [`Walk::deeper`] to count.
    fn depth(&mut self) -> &mut usize;

    /// Returns the error that says that the bytes just visited are not a valid `what`.
    fn invalid(&self, what: &'static str) -> ProtectError {
        ProtectError::new(self.offset(), ProtectErrorKind::Invalid { what })
    }
}

/// How deep values may lie in each other: bytes that may be anything must not cost the stack of a thread.
pub const DEPTH_MAX: usize = 128;

const LENGTH_BYTES: usize = size_of::<u64>();

pub(super) fn serde_error(offset: usize, error: &postcard::Error) -> ProtectError {
    ProtectError::new(offset, ProtectErrorKind::Serde(error.to_string()))
}

/// Bytes that are copied, and of which the checksum is taken, while they are in the cache.
const PIECE: usize = 256 << 10;

/// Bytes of a slice from which on it is larger than what is worth having in the cache.
const LARGE: usize = 8 << 20;

/// Counts.
#[derive(Default)]
pub(super) struct Size {
    offset: usize,
    depth: usize,
    apart: Apart<usize>,
}

impl Size {
    /// With doubles apart.
    pub(super) fn apart() -> Self {
        Self { apart: Apart::to(0), ..Self::default() }
    }

    /// Bytes of doubles that are apart.
    pub(super) fn doubles(&self) -> usize {
        self.apart.other().copied().unwrap_or(0)
    }
}

impl Walk for Size {
    fn bytes(&mut self, bytes: &mut [u8]) -> Result<(), ProtectError> {
        self.offset += bytes.len();
        Ok(())
    }

    fn doubles(&mut self, bytes: &mut [u8]) -> Result<(), ProtectError> {
        *self.apart.open().unwrap_or(&mut self.offset) += bytes.len();
        Ok(())
    }

    fn enter(&mut self, spread: Option<Spread>) -> bool {
        self.apart.enter(spread)
    }

    fn leave(&mut self, outer: bool) {
        self.apart.leave(outer);
    }

    fn length(&mut self, items: usize, _: usize) -> Result<usize, ProtectError> {
        self.offset += LENGTH_BYTES;
        Ok(items)
    }

    fn serde<T: Serialize + DeserializeOwned>(&mut self, value: &mut T) -> Result<(), ProtectError> {
        let bytes =
            postcard::experimental::serialized_size(value).map_err(|e| serde_error(self.offset, &e))?;
        self.offset += bytes;
        Ok(())
    }

    fn offset(&self) -> usize {
        self.offset + Size::doubles(self)
    }

    fn depth(&mut self) -> &mut usize {
        &mut self.depth
    }
}
