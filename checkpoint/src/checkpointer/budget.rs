//! The most memory that checkpoints may take of a rank, if the program or its user has set a limit.

use std::num::NonZero;

use ft_comm::Rank;

use super::increments::Increments;
use super::under_way::Staging;
use crate::error::CheckpointError;
use crate::exchange::GroupComm;
use crate::placement::Placement;
use crate::region::{Protect, StatePart, size};

/// Bytes that checkpoints may take of a rank; none: there is no limit.
#[derive(Clone, Copy, Default)]
pub(super) struct Budget(pub(super) Option<NonZero<u64>>);

impl Budget {
    fn check(self, rank: Rank, bytes: usize) -> Result<(), CheckpointError> {
        match self.0 {
            Some(limit) if bytes as u64 > limit.get() => {
                Err(CheckpointError::Memory { rank, bytes: bytes as u64, limit: limit.get() })
            }
            _ => Ok(()),
        }
    }

    /// Whether the copies of the state of `rank` alone, so many of its variable part, are within the limit; asked before there are any.
    pub(super) fn check_copies<S: Protect>(
        self,
        place: &Placement,
        rank: Rank,
        state: &mut S,
        first: bool,
        copies: usize,
        increments: &Increments,
    ) -> Result<(), CheckpointError> {
        if self.0.is_none() {
            return Ok(());
        }
        let constant = match first {
            true => size(state, StatePart::Constant)?,
            false => place.store.constant().shard().len(),
        };
        let variable = size(state, StatePart::Variable)?;
        self.check(rank, constant + copies * variable + increments.most(variable))
    }

    /// Whether all members of the group of `place` are within the limit, with as many copies, one or two, and the redundancy that they
    /// are about to hold; all of them come to the same.
    pub(super) fn check_group(
        self,
        place: &Placement,
        staging: &Staging,
        copies: usize,
        increments: &Increments,
    ) -> Result<(), CheckpointError> {
        let Placement { store, home, .. } = place;
        let Some(GroupComm { group, .. }) = home.as_ref().filter(|_| self.0.is_some()) else {
            return Ok(());
        };
        let lens = |part: StatePart| -> Vec<usize> {
            let is_known = part == StatePart::Constant && !staging.first;
            let known = if is_known { store.constant().members() } else { &[] };
            let metas = if known.is_empty() { staging.metas_of(group, part) } else { known.to_vec() };
            metas.iter().map(|meta| meta.len as usize).collect()
        };
        let (constant, variable) = (lens(StatePart::Constant), lens(StatePart::Variable));
        group.members.iter().enumerate().try_for_each(|(member, rank)| {
            let own = variable.get(member).copied().unwrap_or(0);
            let kept = group.kept_bytes(member, &constant) + 2 * group.kept_bytes(member, &variable);
            self.check(*rank, kept - (2 - copies) * own + increments.most(own))
        })
    }
}
