//! Collectives and schedules that do not block their callers and may be under way at a recovery line: each has a number on its communicator, under which a rank that goes back begins it again.

use serde::{Deserialize, Serialize};

use super::*;
use ft_proto::endpoint::LINED_TAG;

/// A [`CollectiveRequest`] or a [`ScheduleRequest`] as a value for the state of a program whose messages may cross checkpoints (`ftrun --lines drain` or `log`), as [`crate::RequestRecord`] is of a
/// [`crate::Request`].
///
/// A program takes the record when it begins the collective, and keeps it in its state, with the arguments of the call, until it has waited for it: checkpoints are taken beside it then. When the
/// program goes back it begins the collective again in its next step, before any other call ([`Communicator::begin_again`], [`Communicator::start_schedule_again`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectiveRecord(Option<u32>);

/// What is under way, as the endpoint knows it until this is dropped.
#[derive(Debug)]
pub(super) struct Numbered {
    comm: Communicator,
    generation: Generation,
    /// The number of its first step list, if it may cross recovery lines, and how many it has.
    first: Option<u32>,
    count: u32,
}

impl Numbered {
    /// So many step lists of a communicator are about to begin.
    pub(super) fn begin(comm: &Communicator, core: &mut Core, count: u32) -> Self {
        let context = comm.shared.context;
        let first = core.driver.engine.is_lined(context).then(|| comm.lined());
        let numbered = Self { comm: comm.clone(), generation: core.driver.age(context), first, count };
        for (context, tag) in numbered.lists() {
            core.driver.engine.begin_collective(context, tag);
        }
        numbered
    }

    /// Contexts and tags of its step lists.
    fn lists(&self) -> impl Iterator<Item = (u32, Tag)> + use<> {
        let context = self.comm.shared.context + 1;
        let numbers = self.first.into_iter().flat_map({
            let count = self.count;
            move |first| (0..count).map(move |more| first.wrapping_add(more))
        });
        numbers.map(move |number| (context, LINED_TAG | number))
    }

    /// Checkpoints are taken beside it from now on.
    pub(super) fn record(&self, core: &mut Core) -> CollectiveRecord {
        for (context, tag) in self.lists() {
            core.driver.engine.record_collective(context, tag);
        }
        CollectiveRecord(self.first)
    }
}

impl Drop for Numbered {
    fn drop(&mut self) {
        let Some(mut core) = self.comm.core.tidy() else { return };
        if core.driver.age(self.comm.shared.context) == self.generation {
            for (context, tag) in self.lists() {
                core.driver.engine.end_collective(context, tag);
            }
        }
    }
}

impl Communicator {
    /// Begins what has this record again.
    pub(super) fn begin_as<R>(
        &self,
        record: &CollectiveRecord,
        begin: impl FnOnce(&Self) -> Result<R, CommError>,
    ) -> Result<R, CommError> {
        if !self.core.enter()?.driver.engine.may_receive_again() {
            return Err(CommError::TooSoon);
        }
        let Some(number) = record.0 else { return begin(self) };
        let next = self.lined();
        self.set_lined(number);
        let begun = begin(self);
        self.set_lined(next);
        begun
    }
}
