//! What a rank leaves its successor on the same host: its checkpoints, in memory that outlives the process.
//!
//! A successor that finds them is in the place of a survivor that holds the same: it reports what the one before would have reported,
//! or less, and has to load its state. So the protocol needs no other rule ([`crate::protocol`]), but that what is noted is never
//! more than what is there:
//!
//! - an epoch is noted as staged when its slots are sealed;
//! - it is noted as committed, or as given up, before the next one is begun, and so before anything is overwritten that was noted;
//! - what is noted is of one generation, and is noted anew when the next one has begun; a successor that comes later finds nothing,
//!   as others may have had the rank meanwhile;
//! - a rank whose memory is to be made again from that of others has nothing noted until it is restored.

use ft_comm::estate::Found;
use ft_comm::{Generation, OnFailure, World};
use serde::{Deserialize, Serialize};

use super::Checkpointer;
use super::placements::Placements;
use crate::buffer::Memory;
use crate::error::CheckpointError;
use crate::layout::GroupLayout;
use crate::placement::Placement;
use crate::protocol::{Ledger, Report};
use crate::scheme::Scheme;
use crate::store::{Store, StoreNote};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Legacy {
    /// Where the checkpoints of this rank lie.
    pub(super) memory: Memory,
    /// The generation of which is noted what there is.
    generation: Generation,
    /// The checkpoints are those of a predecessor, and the state was not loaded from them yet.
    pub(super) is_heir: bool,
}

/// The current placement, and the one to which the checkpoint went that begins anew.
#[derive(Debug, Serialize, Deserialize)]
struct Inventory(Vec<PlaceNote>);

/// A placement.
#[derive(Debug, Serialize, Deserialize)]
struct PlaceNote {
    /// The first epoch in it, if nothing of it was committed then.
    first: Option<u32>,
    /// The hosts over which it is laid.
    hosts: Option<Vec<usize>>,
    /// What is there.
    store: StoreNote,
}

impl Legacy {
    /// That of this rank, if it has any memory that outlives it. Lost ranks have to be replaced, and their checkpoints to be in memory,
    /// or there would be nobody who finds it; without redundancy a loss is to be one. It is for level 0 alone.
    pub(super) fn of(world: &World, scheme: &Scheme, level: u32) -> Self {
        let is_fit = level == 0 && !matches!(scheme, Scheme::None | Scheme::Disk { .. });
        let is_replaced = world.repair_mode() == OnFailure::Rebuild;
        let estate = if is_fit && is_replaced { world.take_estate() } else { None };
        Self {
            memory: Memory::of(estate, world.ready_memory()),
            generation: world.generation(),
            is_heir: false,
        }
    }

    /// What the predecessor has noted: its ledger and its placements, of which `new` makes empty ones, laid as `layout` but for the hosts.
    ///
    /// # Errors
    /// The memory is not there any more, though the others were told that it is.
    pub(super) fn open(
        &mut self,
        layout: &GroupLayout,
        new: impl Fn(GroupLayout) -> Result<Placement, CheckpointError>,
    ) -> Result<Option<(Ledger, Placements)>, CheckpointError> {
        let found = self.memory.estate().and_then(|estate| estate.found().cloned());
        let Some(Found { report, text, .. }) = found else { return Ok(None) };
        let report = Report::from(report);
        if report.knows_nothing() {
            return Ok(None);
        }
        let unreadable =
            || CheckpointError::Unfit("the memory that the process before has left cannot be opened".into());
        let Inventory(notes) = postcard::from_bytes(&text).map_err(|_| unreadable())?;
        let wants = |epoch: u32| epoch > 0 && [report.committed, report.staged].contains(&epoch);
        // A checkpoint that began anew and is committed has taken the place of all before.
        let begins_anew = |first: &Option<u32>| first.is_some_and(|first| first <= report.committed);
        let current = notes.iter().rposition(|note| begins_anew(&note.first)).unwrap_or(0);
        let mut placements = vec![];
        for PlaceNote { first, hosts, store } in &notes[current.min(notes.len())..] {
            let mut placement = new(layout.over(hosts.as_deref())?)?;
            let member = placement.member();
            placement.store = Store::reopen(store, member, &self.memory, wants).ok_or_else(unreadable)?;
            placement.first = first.filter(|first| *first > report.committed);
            placements.push(placement);
        }
        let mut placements = placements.into_iter();
        let mut places = Placements::new(placements.next().ok_or_else(unreadable)?);
        placements.next().into_iter().for_each(|next| places.prepare(next));
        self.is_heir = true;
        Ok(Some((Ledger::heir(report), places)))
    }
}

impl Checkpointer {
    /// Notes how far this rank is; with `contents` what lies where, too: all slots of the epochs that it reports are sealed.
    pub(super) fn note(&self, contents: bool) {
        let text = contents.then(|| self.inventory());
        let Some(mut estate) = self.legacy.memory.estate() else { return };
        let report = u64::from(self.ledger.report());
        let noted = match &text {
            Some(None) => Err(()), // there was no room for it
            Some(Some(text)) => estate.note(self.legacy.generation, report, Some(text)).map_err(|_| ()),
            None => estate.note(self.legacy.generation, report, None).map_err(|_| ()),
        };
        if noted.is_err() {
            estate.forget();
        }
    }

    fn inventory(&self) -> Option<Vec<u8>> {
        drop(self.legacy.memory.estate()?);
        let places =
            [Some(&self.places.current), Some(self.places.target()).filter(|_| self.places.begins_anew())];
        let note = |place: &Placement| {
            let hosts = place.layout.hosts().map(<[usize]>::to_vec);
            Some(PlaceNote { first: place.first, hosts, store: place.store.note()? })
        };
        let notes: Option<Vec<_>> = places.into_iter().flatten().map(note).collect();
        postcard::to_stdvec(&Inventory(notes?)).ok()
    }

    /// A generation has begun, in which this rank `holds` what is restored, or gets it from the others; `contents` have come to it since
    /// the last note.
    pub(super) fn enter(&mut self, generation: Generation, holds: bool, contents: bool) {
        self.legacy.generation = generation;
        if holds {
            self.note(contents);
        } else if let Some(mut estate) = self.legacy.memory.estate() {
            estate.forget();
        }
    }
}
