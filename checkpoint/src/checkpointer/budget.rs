//! The most memory that checkpoints may take of a rank, if the program or its user has set a limit.

use std::num::NonZero;

use super::Checkpointer;
use super::staging::Staging;
use crate::error::CheckpointError;
use crate::exchange::GroupComm;
use crate::placement::Placement;
use crate::region::{Protect, StatePart, size};

impl Checkpointer {
    /// From now on a checkpoint that would keep more bytes on a rank than this is refused before it takes them; none: there is no
    /// limit. The same on all ranks. What counts is what [`ParityGroup::kept_bytes`](crate::ParityGroup::kept_bytes) says of two checkpoints of
    /// the variable part of the state and one of the constant part.
    pub fn set_memory_limit(&mut self, bytes: Option<NonZero<u64>>) {
        self.memory_limit = bytes;
    }

    fn check(&self, rank: usize, bytes: usize) -> Result<(), CheckpointError> {
        match self.memory_limit {
            Some(limit) if bytes as u64 > limit.get() => {
                Err(CheckpointError::Memory { rank, bytes: bytes as u64, limit: limit.get() })
            }
            _ => Ok(()),
        }
    }

    /// Whether the copies of the own state alone are within the limit; asked before there are any.
    pub(super) fn check_copies<S: Protect>(&self, state: &mut S, first: bool) -> Result<(), CheckpointError> {
        if self.memory_limit.is_none() {
            return Ok(());
        }
        let constant = match first {
            true => size(state, StatePart::Constant)?,
            false => self.place().store.constant().shard().len(),
        };
        self.check(self.comm.rank(), constant + 2 * size(state, StatePart::Variable)?)
    }

    /// Whether all members of this rank's group are within the limit, with the redundancy that they are about to hold; all of
    /// them come to the same.
    pub(super) fn check_group(&self, staging: &Staging, first: bool) -> Result<(), CheckpointError> {
        let Placement { store, home, .. } = self.place();
        let Some(GroupComm { group, .. }) = home.as_ref().filter(|_| self.memory_limit.is_some()) else {
            return Ok(());
        };
        let lens = |part: StatePart| -> Vec<usize> {
            let known = if part == StatePart::Constant && !first { store.constant().members() } else { &[] };
            let metas = if known.is_empty() { staging.metas_of(group, part) } else { known.to_vec() };
            metas.iter().map(|meta| meta.len as usize).collect()
        };
        let (constant, variable) = (lens(StatePart::Constant), lens(StatePart::Variable));
        group.members.iter().enumerate().try_for_each(|(member, rank)| {
            self.check(*rank, group.kept_bytes(member, &constant) + 2 * group.kept_bytes(member, &variable))
        })
    }
}
