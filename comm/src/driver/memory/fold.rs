//! Arriving bytes that are combined with a part piece by piece, while they are in the cache.

use std::ops::Range;

use slotmap::SlotMap;

use super::{ActivityId, FOLD_BYTES, ListMemory, Memory, Scratch};
use ft_proto::collective::{Order, Space};

/// See the module.
pub(crate) struct Fold {
    activity: ActivityId,
    space: Space,
    /// What is left to combine.
    range: Range<usize>,
    element: usize,
    order: Order,
    staging: Scratch,
    /// Bytes at the front of the staging memory that have come.
    held: usize,
    /// Bytes at the front of the payload that have come already, another way.
    pub(super) skip: usize,
    /// All that has come, if it is wanted as it was.
    pub(super) kept: Option<Vec<u8>>,
}

impl Fold {
    pub(super) fn new(
        activity: ActivityId,
        space: Space,
        range: Range<usize>,
        element: usize,
        order: Order,
        staging: Scratch,
    ) -> Self {
        Self { activity, space, range, element, order, staging, held: 0, skip: 0, kept: None }
    }

    pub(super) fn len(&self) -> usize {
        self.range.len()
    }

    pub(super) fn into_staging(self) -> Scratch {
        self.staging
    }

    /// Bytes from which on they are combined.
    fn piece(&self) -> usize {
        FOLD_BYTES.min(self.range.len()).max(self.element)
    }

    /// Memory for the next of so many bytes.
    pub(super) fn room(&mut self, rest: usize) -> &mut [u8] {
        let end = self.piece().min(self.held + rest);
        &mut self.staging.bytes_mut()[self.held..end]
    }

    /// So many bytes were put into the room.
    pub(super) fn landed(
        &mut self,
        count: usize,
        spaces: &mut SlotMap<ActivityId, ListMemory>,
        memory: &mut Memory<'_>,
    ) {
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(&self.staging.bytes()[self.held..self.held + count]);
        }
        self.held += count;
        if self.held < self.piece() {
            return;
        }
        let whole = self.held / self.element * self.element;
        let target = self.range.start..self.range.start + whole;
        if let Some(spaces) = spaces.get_mut(self.activity) {
            spaces.combine(self.space, target, &self.staging.bytes()[..whole], self.order, memory);
        }
        self.range.start += whole;
        self.staging.bytes_mut().copy_within(whole..self.held, 0);
        self.held -= whole;
    }

    /// Takes the next bytes.
    pub(super) fn put(
        &mut self,
        mut bytes: &[u8],
        spaces: &mut SlotMap<ActivityId, ListMemory>,
        memory: &mut Memory<'_>,
    ) {
        while !bytes.is_empty() {
            let room = self.room(bytes.len());
            let (now, later) = bytes.split_at(room.len());
            room.copy_from_slice(now);
            self.landed(now.len(), spaces, memory);
            bytes = later;
        }
    }
}
