//! The disk of the model: sets of files as [`crate::disk`] writes, completes and removes them.

use std::collections::BTreeMap;

use super::Content;

/// What a shard file holds, by rank, and what the manifest says of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Set {
    files: Vec<Option<Content>>,
    manifest: Option<Content>,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Files {
    ranks: usize,
    sets: BTreeMap<u32, Set>,
}

impl Files {
    pub(super) fn new(ranks: usize) -> Self {
        Self { ranks, sets: BTreeMap::new() }
    }

    /// As `Disk::stage`: over the file of two epochs before.
    pub(super) fn stage(&mut self, rank: usize, content: Content) {
        if let Some(old) = content.epoch.checked_sub(2).and_then(|old| self.sets.get_mut(&old)) {
            old.files[rank] = None;
        }
        let nothing = Set { files: vec![None; self.ranks], manifest: None };
        self.sets.entry(content.epoch).or_insert(nothing).files[rank] = Some(content);
    }

    /// As `Disk::complete` on rank 0.
    pub(super) fn complete(&mut self, content: Content) {
        self.sets.get_mut(&content.epoch).expect("all have staged it").manifest = Some(content);
        self.sets.retain(|epoch, _| epoch + 1 >= content.epoch);
    }

    pub(super) fn is_complete(&self, content: Content) -> bool {
        self.sets.get(&content.epoch).is_some_and(|set| set.manifest == Some(content))
    }

    /// What all files of `epoch` hold, if they are what the manifest says.
    pub(super) fn whole(&self, epoch: u32) -> Option<Content> {
        let set = self.sets.get(&epoch)?;
        set.manifest.filter(|content| set.files.iter().all(|file| *file == Some(*content)))
    }

    /// As `Disk::newest`; 0: there is none.
    pub(super) fn newest(&self) -> u32 {
        self.sets.keys().rev().copied().find(|epoch| self.whole(*epoch).is_some()).unwrap_or(0)
    }

    pub(super) fn has_newer_than(&self, epoch: u32) -> bool {
        self.sets.keys().any(|newer| *newer > epoch)
    }

    /// As `Disk::give_up_after` on rank 0.
    pub(super) fn give_up_after(&mut self, epoch: u32) {
        self.sets.retain(|newer, _| *newer <= epoch);
    }
}
