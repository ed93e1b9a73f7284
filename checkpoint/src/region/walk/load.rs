//! The walk that copies a state in.

use bytemuck::Pod;
use serde::{Serialize, de::DeserializeOwned};

use super::{LENGTH_BYTES, PIECE, Walk, serde_error};
use crate::crc::{BLOCK, Digest};
use crate::region::apart::Apart;
use crate::region::tracked::{Marks, Note};
use crate::region::{ProtectError, ProtectErrorKind, Spread};

/// Copies in, from bytes that may be anything, and takes their checksum while they are in the cache.
pub(in crate::region) struct Load<'a> {
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
    pub(in crate::region) fn new(shard: &'a [u8], spares: bool) -> Self {
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
    pub(in crate::region) fn by_notes(self, notes: &'a [Note]) -> Self {
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
    pub(in crate::region) fn apart(exact: &'a [u8], doubles: &'a [u8], spares: bool) -> Self {
        Self { apart: Apart::to(Box::new(Self::new(doubles, spares))), ..Self::new(exact, spares) }
    }

    /// What loads the doubles that are apart.
    pub(in crate::region) fn take_doubles(&mut self) -> Option<Box<Self>> {
        self.apart.take()
    }

    pub(in crate::region) fn left(&self) -> usize {
        self.shard.len() - self.offset
    }

    /// The checksum of the whole shard, as [`ShardMeta::of`](crate::ShardMeta::of) has it.
    pub(in crate::region) fn crc(mut self) -> u64 {
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
