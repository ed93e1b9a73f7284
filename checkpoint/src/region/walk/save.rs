//! The walk that copies a state out.

use bytemuck::Pod;
use ft_encoders::copy_past_caches;
use postcard::ser_flavors::{Flavor, Slice};
use serde::{Serialize, de::DeserializeOwned};

use super::{LARGE, PIECE, Walk, serde_error};
use crate::changes::Changes;
use crate::crc::{BLOCK, Digest, crc64_nvme};
use crate::region::apart::Apart;
use crate::region::tracked::{Marks, Note};
use crate::region::{ProtectError, ProtectErrorKind, Spread};

/// Copies out, into a shard of the right size, and takes its checksum while it is in the cache.
pub(in crate::region) struct Save<'a> {
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
    pub(in crate::region) fn new(shard: &'a mut [u8], changes: Option<&'a mut Changes>) -> Self {
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
    pub(in crate::region) fn noting(self, before: Vec<Note>) -> Self {
        Self { before, notes: Some(vec![]), ..self }
    }

    pub(in crate::region) fn take_notes(&mut self) -> Vec<Note> {
        self.notes.take().unwrap_or_default()
    }

    /// With doubles apart.
    pub(in crate::region) fn apart(exact: &'a mut [u8], doubles: &'a mut [u8]) -> Self {
        Self { apart: Apart::to(Box::new(Self::new(doubles, None))), ..Self::new(exact, None) }
    }

    /// What saves the doubles that are apart.
    pub(in crate::region) fn take_doubles(&mut self) -> Option<Box<Self>> {
        self.apart.take()
    }

    /// The checksum of what was written.
    pub(in crate::region) fn crc(mut self) -> u64 {
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

    pub(in crate::region) fn left(&self) -> usize {
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
