//! The check of collective calls (`ftrun --check`): before each one all ranks tell all others what they call, with
//! which count and root, so that a mismatch is an error that names both sides, and no hang.

use super::collectives::Call;
use super::*;
use crate::driver::{ActivityId, Own};
use ft_proto::collective::allgather_dissemination;

/// The calls that can be told apart.
const CALLS: [&str; 14] = [
    "barrier",
    "bcast",
    "reduce",
    "allreduce",
    "scan",
    "exscan",
    "reduce_scatter",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "allgather",
    "alltoall",
    "alltoallv",
];
/// Numbers that say what a rank calls: call, count + 1, root + 1, bytes of an element, 1 if it
/// refuses the arguments.
const WORDS: usize = 5;

/// A check under way.
#[derive(Debug)]
pub(super) struct Check {
    pub(super) id: ActivityId,
}

impl Communicator {
    /// Waits for the check of a blocking call, if calls are checked.
    pub(super) fn await_check(&self, core: &mut Core, check: Option<Check>) -> Result<(), CommError> {
        match check {
            Some(check) => {
                core.wait_activity(check.id, &mut Memory::none())?;
                self.verdict(core, check)
            }
            None => Ok(()),
        }
    }

    /// Starts the check of a call, if calls are checked. A rank that refuses the arguments of its
    /// own call makes no other part of it.
    pub(super) fn begin_check<T: Plain>(
        &self,
        core: &mut Core,
        call: &Call,
        refuses: bool,
    ) -> Result<Option<Check>, CommError> {
        if !core.checks_calls {
            return Ok(None);
        }
        let number = CALLS.iter().position(|name| *name == call.name).unwrap_or(CALLS.len());
        let plus_one = |value: Option<usize>| value.map_or(0, |value| value as u64 + 1);
        let element = size_of::<T>() as u64;
        let mine = [number as u64, plus_one(call.count), plus_one(call.root), element, u64::from(refuses)];
        let starts: Vec<usize> = (0..=self.size()).map(|rank| rank * WORDS).collect();
        let mut all = vec![0u64; self.size() * WORDS];
        all[self.rank() * WORDS..][..WORDS].copy_from_slice(&mine);
        let steps = allgather_dissemination(self.rank(), self.size(), &starts);
        let list = self.list::<u64>(core, "check", steps);
        let buffer = Some(Box::new(all) as _);
        let id = core.driver.start(list, Own { buffer, ..Own::default() }, &mut Memory::none())?;
        Ok(Some(Check { id }))
    }

    /// What a finished check has found.
    pub(super) fn verdict(&self, core: &mut Core, check: Check) -> Result<(), CommError> {
        let (_, all) = core.driver.finish_activity(check.id)?;
        let all: Vec<u64> = crate::request::own(all);
        let words: Vec<&[u64]> = all.chunks_exact(WORDS).collect();
        let me = self.rank();
        match words.iter().position(|theirs| *theirs != words[me]) {
            None => Ok(()),
            // All ranks say the same: rank 0 against the first that differs from it.
            Some(_) => {
                let other = words.iter().position(|theirs| *theirs != words[0]).unwrap_or(me);
                let (first, second) = (describe(words[0]), describe(words[other]));
                Err(CommError::Mismatch(format!("rank 0 calls {first}, rank {other} calls {second}")))
            }
        }
    }
}

fn describe(words: &[u64]) -> String {
    let name = CALLS.get(words[0] as usize).copied().unwrap_or("another collective");
    let count = words[1].checked_sub(1).map(|count| format!(" of {count} elements of {} bytes", words[3]));
    let root = words[2].checked_sub(1).map(|root| format!(" with root {root}"));
    let refuses = if words[4] > 0 { " with arguments that it refuses" } else { "" };
    format!("{name}{}{}{refuses}", count.unwrap_or_default(), root.unwrap_or_default())
}
