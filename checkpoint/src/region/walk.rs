//! The visitor and three of its kinds: count, copy out, copy in. The fourth is in `outline.rs`.

use std::any::TypeId;

use bytemuck::Pod;
use ft_encoders::copy_past_caches;
use postcard::ser_flavors::{Flavor, Slice};
use serde::{Serialize, de::DeserializeOwned};

use crate::changes::Changes;
use crate::crc::{BLOCK, Digest, crc64_nvme};

use super::apart::{Apart, DOUBLES_MIN};
use super::tracked::{Marks, Note};
use super::{Field, Protect, ProtectError, ProtectErrorKind, Spread, StatePart};

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

/// Copies out, into a shard of the right size, and takes its checksum while it is in the cache.
pub(super) struct Save<'a> {
    shard: &'a mut [u8],
    offset: usize,
    depth: usize,
    digest: Digest,
    /// The first bytes are in the digest.
    digested: usize,
    /// What differs from what was in the shard, if that is wanted; the checksum is theirs then.
    changes: Option<&'a mut Changes>,
    /// What was noted beside what was in the shard.
    before: Vec<Note>,
    /// What is to be noted, if anything is.
    notes: Option<Vec<Note>>,
    apart: Apart<Box<Self>>,
}

impl<'a> Save<'a> {
    pub(super) fn new(shard: &'a mut [u8], changes: Option<&'a mut Changes>) -> Self {
        let digest = Digest::new();
        Self {
            shard,
            offset: 0,
            depth: 0,
            digest,
            digested: 0,
            changes,
            before: vec![],
            notes: None,
            apart: Apart::default(),
        }
    }

    /// Notes what there is of arrays that know what was written of them; `before` was noted beside what is in the shard.
    pub(super) fn noting(self, before: Vec<Note>) -> Self {
        Self { before, notes: Some(vec![]), ..self }
    }

    pub(super) fn take_notes(&mut self) -> Vec<Note> {
        self.notes.take().unwrap_or_default()
    }

    /// With doubles apart.
    pub(super) fn apart(exact: &'a mut [u8], doubles: &'a mut [u8]) -> Self {
        Self { apart: Apart::to(Box::new(Self::new(doubles, None))), ..Self::new(exact, None) }
    }

    /// What saves the doubles that are apart.
    pub(super) fn take_doubles(&mut self) -> Option<Box<Self>> {
        self.apart.take()
    }

    /// The checksum of what was written.
    pub(super) fn crc(mut self) -> u64 {
        if let Some(changes) = self.changes {
            return changes.crc();
        }
        self.digest.update(&self.shard[self.digested..self.offset]);
        self.digest.finalize()
    }

    /// Says that the next `count` bytes are written.
    fn advance(&mut self, count: usize) {
        self.offset += count;
        if self.offset - self.digested >= PIECE {
            self.digest.update(&self.shard[self.digested..self.offset]);
            self.digested = self.offset;
        }
    }

    pub(super) fn left(&self) -> usize {
        self.shard.len() - self.offset
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), ProtectError> {
        let left = self.left();
        if bytes.len() > left {
            let kind = ProtectErrorKind::Short { wanted: bytes.len() as u64, left };
            return Err(ProtectError::new(self.offset, kind));
        }
        if let Some(changes) = &mut self.changes {
            changes.put(self.offset, bytes, &mut self.shard[self.offset..][..bytes.len()]);
            self.offset += bytes.len();
            return Ok(());
        }
        if bytes.len() < LARGE {
            self.shard[self.offset..][..bytes.len()].copy_from_slice(bytes);
            self.advance(bytes.len());
            return Ok(());
        }
        // A copy that is larger than the caches is written past them; then the original is what is in the cache.
        self.digest.update(&self.shard[self.digested..self.offset]);
        for piece in bytes.chunks(PIECE) {
            self.digest.update(piece);
            copy_past_caches(piece, &mut self.shard[self.offset..][..piece.len()]);
            self.offset += piece.len();
        }
        self.digested = self.offset;
        Ok(())
    }
}

impl Save<'_> {
    /// Block by block, each with its checksum; what is as it was in the shard is checked and left alone where that is to be renewed.
    fn put_blocks(&mut self, bytes: &[u8], marks: &Marks) -> Result<Vec<u64>, ProtectError> {
        let (at, is_large) = (self.offset, bytes.len() >= LARGE);
        let before = self.before.iter().position(|note| note.at == at && marks.are_of(note));
        let before = before.map(|index| self.before.swap_remove(index));
        let mut crcs = Vec::with_capacity(bytes.len().div_ceil(BLOCK));
        if self.changes.is_none() {
            self.digest.update(&self.shard[self.digested..self.offset]);
        }
        for (block, piece) in bytes.chunks(BLOCK).enumerate() {
            let there = &self.shard[self.offset..][..piece.len()];
            let is_same = |note: &&Note| {
                let is_renewed = self.changes.is_some() && !marks.has_changed(block, note);
                is_renewed && crc64_nvme(there) == note.crcs[block]
            };
            let same = before.as_ref().filter(is_same);
            let crc = match (same, &mut self.changes) {
                (Some(note), Some(changes)) => {
                    changes.skip(self.offset, piece.len(), note.crcs[block]);
                    note.crcs[block]
                }
                (None, Some(changes)) => {
                    changes.put(self.offset, piece, &mut self.shard[self.offset..][..piece.len()]);
                    crc64_nvme(piece)
                }
                (_, None) => {
                    let crc = crc64_nvme(piece);
                    self.digest.skip(crc, piece.len());
                    let copy = &mut self.shard[self.offset..][..piece.len()];
                    if is_large {
                        copy_past_caches(piece, copy)
                    } else {
                        copy.copy_from_slice(piece)
                    }
                    crc
                }
            };
            self.offset += piece.len();
            crcs.push(crc);
        }
        self.digested = self.offset;
        Ok(crcs)
    }
}

impl Walk for Save<'_> {
    fn tracked<T: Pod>(&mut self, items: &mut [T], marks: &mut Marks) -> Result<(), ProtectError> {
        let (bytes, at) = (bytemuck::cast_slice(items), self.offset);
        // A slice that is too long is an error there.
        if self.notes.is_none() || bytes.len() > self.left() {
            return self.plain(items);
        }
        let crcs = self.put_blocks(bytes, marks)?;
        let note = marks.note(at, bytes.len(), crcs);
        self.notes.iter_mut().for_each(|notes| notes.push(note.clone()));
        Ok(())
    }

    fn bytes(&mut self, bytes: &mut [u8]) -> Result<(), ProtectError> {
        self.put(bytes)
    }

    fn doubles(&mut self, bytes: &mut [u8]) -> Result<(), ProtectError> {
        match self.apart.open() {
            Some(other) => other.put(bytes),
            None => self.put(bytes),
        }
    }

    fn enter(&mut self, spread: Option<Spread>) -> bool {
        self.apart.enter(spread)
    }

    fn leave(&mut self, outer: bool) {
        self.apart.leave(outer);
    }

    fn length(&mut self, items: usize, _: usize) -> Result<usize, ProtectError> {
        self.put(&(items as u64).to_ne_bytes())?;
        Ok(items)
    }

    fn serde<T: Serialize + DeserializeOwned>(&mut self, value: &mut T) -> Result<(), ProtectError> {
        if self.changes.is_some() {
            let bytes = postcard::to_extend(value, Vec::new()).map_err(|e| serde_error(self.offset, &e))?;
            return self.put(&bytes);
        }
        let written = postcard::serialize_with_flavor::<T, Counted<'_>, usize>(
            value,
            Counted { slice: Slice::new(&mut self.shard[self.offset..]), bytes: 0 },
        )
        .map_err(|e| serde_error(self.offset, &e))?;
        self.advance(written);
        Ok(())
    }

    fn offset(&self) -> usize {
        self.offset + self.apart.other().map_or(0, |other| other.offset)
    }

    fn depth(&mut self) -> &mut usize {
        &mut self.depth
    }
}

/// Postcard's slice with a count, because the slice alone gives its bytes back and not their number.
struct Counted<'a> {
    slice: Slice<'a>,
    bytes: usize,
}

impl Flavor for Counted<'_> {
    type Output = usize;

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.bytes += 1;
        self.slice.try_push(byte)
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.bytes += bytes.len();
        self.slice.try_extend(bytes)
    }

    fn finalize(self) -> postcard::Result<usize> {
        Ok(self.bytes)
    }
}

/// Copies in, from bytes that may be anything, and takes their checksum while they are in the cache.
pub(super) struct Load<'a> {
    shard: &'a [u8],
    offset: usize,
    depth: usize,
    /// Whether what is right already is left alone. To compare costs no more than to write, which reads the memory too, but
    /// for memory that nobody has touched.
    spares: bool,
    digest: Digest,
    /// The first bytes are in the digest.
    digested: usize,
    /// What was noted beside the shard when it was copied from this state.
    notes: &'a [Note],
    /// Bytes behind this one may not need a look.
    bound: usize,
    apart: Apart<Box<Self>>,
}

/// Bytes that are compared before they are copied.
const COMPARED: usize = 4 << 10;

impl<'a> Load<'a> {
    pub(super) fn new(shard: &'a [u8], spares: bool) -> Self {
        let digest = Digest::new();
        let (notes, bound) = (&[][..], shard.len());
        Self {
            shard,
            offset: 0,
            depth: 0,
            spares,
            digest,
            digested: 0,
            notes,
            bound,
            apart: Apart::default(),
        }
    }

    /// With what was noted beside the shard.
    pub(super) fn by_notes(self, notes: &'a [Note]) -> Self {
        let mut load = Self { notes, ..self };
        load.see_bound();
        load
    }

    /// Up to the next array of which something was noted.
    fn see_bound(&mut self) {
        let next = self.notes.iter().map(|note| note.at).find(|at| *at > self.offset);
        self.bound = next.unwrap_or(self.shard.len());
    }

    /// With doubles apart.
    pub(super) fn apart(exact: &'a [u8], doubles: &'a [u8], spares: bool) -> Self {
        Self { apart: Apart::to(Box::new(Self::new(doubles, spares))), ..Self::new(exact, spares) }
    }

    /// What loads the doubles that are apart.
    pub(super) fn take_doubles(&mut self) -> Option<Box<Self>> {
        self.apart.take()
    }

    pub(super) fn left(&self) -> usize {
        self.shard.len() - self.offset
    }

    /// The checksum of the whole shard, as [`ShardMeta::of`](crate::ShardMeta::of) has it.
    pub(super) fn crc(mut self) -> u64 {
        self.digest_to(self.shard.len());
        self.digest.finalize()
    }

    fn digest_to(&mut self, end: usize) {
        while self.digested < end {
            let piece = &self.shard[self.digested..][..PIECE.min(self.bound.max(end) - self.digested)];
            self.digest.update(piece);
            self.digested += piece.len();
        }
    }

    fn check(&self, wanted: u64, left: usize) -> Result<(), ProtectError> {
        if wanted > left as u64 {
            return Err(ProtectError::new(self.offset, ProtectErrorKind::Short { wanted, left }));
        }
        Ok(())
    }
}

impl Walk for Load<'_> {
    fn tracked<T: Pod>(&mut self, items: &mut [T], marks: &mut Marks) -> Result<(), ProtectError> {
        let (bytes, at) = (bytemuck::cast_slice_mut::<T, u8>(items), self.offset);
        let is_here = |note: &&Note| note.at == at && note.len == bytes.len() && marks.are_of(note);
        let note = self.notes.iter().find(is_here).filter(|_| self.spares);
        let Some(note) = note.filter(|_| bytes.len() <= self.left()) else {
            marks.write_all();
            self.see_bound();
            return self.plain(items);
        };
        self.digest_to(at);
        for (block, piece) in bytes.chunks_mut(BLOCK).enumerate() {
            let (start, len) = (self.offset, piece.len());
            self.bound = start + len;
            if marks.has_changed(block, note) {
                marks.write(start - at..start - at + len);
                self.bytes(piece)?;
                self.digest_to(self.offset);
            } else {
                self.digest.skip(note.crcs[block], len);
                (self.offset, self.digested) = (start + len, start + len);
            }
        }
        self.see_bound();
        Ok(())
    }

    fn bytes(&mut self, bytes: &mut [u8]) -> Result<(), ProtectError> {
        self.check(bytes.len() as u64, self.left())?;
        for piece in bytes.chunks_mut(PIECE) {
            let end = self.offset + piece.len();
            self.digest_to(end);
            let from = &self.shard[self.offset..end];
            if self.spares {
                let pages = piece.chunks_mut(COMPARED).zip(from.chunks(COMPARED));
                pages.filter(|(is, due)| is != due).for_each(|(is, due)| is.copy_from_slice(due));
            } else {
                piece.copy_from_slice(from);
            }
            self.offset = end;
        }
        Ok(())
    }

    fn doubles(&mut self, bytes: &mut [u8]) -> Result<(), ProtectError> {
        match self.apart.open() {
            Some(other) => other.bytes(bytes),
            None => self.bytes(bytes),
        }
    }

    fn lasting<T: Default>(&mut self, value: &mut T) {
        *value = T::default();
    }

    fn enter(&mut self, spread: Option<Spread>) -> bool {
        self.apart.enter(spread)
    }

    fn leave(&mut self, outer: bool) {
        self.apart.leave(outer);
    }

    fn length(&mut self, _: usize, item_bytes: usize) -> Result<usize, ProtectError> {
        let mut raw = [0; LENGTH_BYTES];
        self.bytes(&mut raw)?;
        let items = u64::from_ne_bytes(raw);
        let apart = self.apart.other().map_or(0, |other| other.left());
        self.check(items.saturating_mul(item_bytes as u64), self.left() + apart)?;
        usize::try_from(items).map_err(|_| self.invalid("length"))
    }

    fn serde<T: Serialize + DeserializeOwned>(&mut self, value: &mut T) -> Result<(), ProtectError> {
        let bytes = &self.shard[self.offset..];
        let (loaded, rest) = postcard::take_from_bytes(bytes).map_err(|e| serde_error(self.offset, &e))?;
        *value = loaded;
        self.offset = self.shard.len() - rest.len();
        Ok(())
    }

    fn offset(&self) -> usize {
        self.offset + self.apart.other().map_or(0, |other| other.offset)
    }

    fn depth(&mut self) -> &mut usize {
        &mut self.depth
    }
}
