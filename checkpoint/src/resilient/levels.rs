//! Protection at several levels: checkpoints under a cheap scheme often, and under stronger ones, which survive more, seldom.
//!
//! Each level is a [`Checkpointer`] of its own, with its own copies, redundancy and epochs; they know nothing of each other. The rules of
//! what is restored stand here.
//!
//! - A failure goes back to the first level that survives it. A level that does not has given up what it had.
//! - What a level can only give back with rounding is restored from it, if it is as near as the user wants it; else it does not survive the
//!   failure.
//! - On the others a rank that was lost has nothing any more. So each takes a checkpoint, which begins anew, of what was restored, before
//!   the first step after it; the one before stays until that is committed.
//! - Levels above the first take theirs straight after one of the first level, of the same state. What begins anew (a program, or the
//!   end of a protected run) is taken there before, from the last level to the first: who has committed it on one knows that all above
//!   have it.
//!
//! So what the first level has is as new as anything else, and no level goes back behind the end of a protected run.

use std::num::NonZero;

use ft_comm::{Membership, World};

use super::job::Job;
use super::kept::Kept;
use crate::checkpointer::{Checkpointer, LiveState, Restored};
use crate::error::CheckpointError;
use crate::protection::{Level, MemoryUse, Protection};
use crate::region::Protect;
use crate::stats::Stats;

/// Those above the first.
#[derive(Debug, Default)]
pub(super) struct Levels {
    upper: Vec<Upper>,
    /// The level from which was restored last; 0 is the first.
    source: usize,
    /// Something was restored, and these have had no checkpoint of it yet.
    pub(super) are_due: bool,
}

#[derive(Debug)]
struct Upper {
    checkpointer: Checkpointer,
    every: NonZero<u64>,
}

impl Levels {
    pub(super) fn new(world: &World, protection: &Protection) -> Result<Self, CheckpointError> {
        let Protection { levels, memory_use, checksum_limit, .. } = protection;
        let upper = |(number, level): (u32, &Level)| {
            let mut checkpointer = Checkpointer::on_level(world, level.scheme.clone(), number)?;
            checkpointer.set_saves_memory(*memory_use == MemoryUse::Least);
            checkpointer.set_checksum_limit(*checksum_limit);
            Ok(Upper { checkpointer, every: level.every })
        };
        let upper = (1..).zip(levels).map(upper).collect::<Result<_, CheckpointError>>()?;
        Ok(Self { upper, source: 0, are_due: false })
    }

    /// A failure was noticed: checkpoints under way are given up.
    pub(super) fn interrupt(&mut self) -> Result<(), CheckpointError> {
        self.upper.iter_mut().try_for_each(|upper| upper.checkpointer.report().map(|_| ()))
    }

    /// Takes a checkpoint of `state` on the levels for which `is_due` says so, given how often they have one; what it is
    /// `anew` has its constant part.
    fn protect<S: Protect>(
        &mut self,
        world: &World,
        state: &mut S,
        anew: bool,
        is_due: impl Fn(NonZero<u64>) -> bool,
    ) -> Result<(), CheckpointError> {
        for Upper { checkpointer, .. } in self.upper.iter_mut().rev().filter(|upper| is_due(upper.every)) {
            if anew {
                checkpointer.begin_anew(world)?;
            }
            checkpointer.checkpoint(world, state)?;
        }
        Ok(())
    }

    /// Adds to what the first level has cost what these have, by the same account `of` each.
    pub(super) fn add_to(&self, stats: Stats, of: impl Fn(&Checkpointer) -> Stats) -> Stats {
        self.upper.iter().fold(stats, |stats, upper| stats.with_level(of(&upper.checkpointer)))
    }

    /// A repair has ended.
    pub(super) fn begin_account(&mut self) {
        self.upper.iter_mut().for_each(|upper| upper.checkpointer.begin_account());
    }
}

impl Job {
    /// The level from which was restored last, or the first one.
    pub(super) fn source(&self) -> &Checkpointer {
        match self.levels.source.checked_sub(1) {
            None => &self.checkpointer,
            Some(at) => &self.levels.upper[at].checkpointer,
        }
    }

    /// Protects what begins anew on the levels above the first.
    pub(super) fn protect_above<S: Protect>(&mut self, kept: &mut Kept<S>) -> Result<(), CheckpointError> {
        self.levels.protect(&self.world, kept, true, |_| true)?;
        self.levels.are_due = false;
        Ok(())
    }

    /// Protects a state on the levels above the first that have one with checkpoint `number` of that.
    pub(super) fn protect_due<S: Protect>(
        &mut self,
        kept: &mut Kept<S>,
        number: u32,
    ) -> Result<(), CheckpointError> {
        let is_due = |every: NonZero<u64>| u64::from(number).is_multiple_of(every.get());
        if !self.levels.upper.iter().any(|upper| is_due(upper.every)) {
            return Ok(());
        }
        self.checkpointer.wait(&self.world)?;
        self.levels.protect(&self.world, kept, false, is_due)
    }

    /// After a repair: all go back to the first level that survives what was lost, as [`Checkpointer::restore_where`] does it.
    /// `Nothing`: nothing was committed on any. Collective.
    pub(super) fn restore<S: Protect>(
        &mut self,
        repair: &Membership,
        (mut state, live): (Option<&mut Kept<S>>, LiveState),
        is_here: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Restored, CheckpointError> {
        let repairs = self.repairs(repair)?;
        for (upper, repair) in self.levels.upper.iter_mut().zip(&repairs[1..]) {
            upper.checkpointer.settle_first(&self.world, repair, state.as_deref_mut())?;
        }
        let mut beyond = None;
        for (at, repair) in repairs.iter().enumerate() {
            let checkpointer = match at.checked_sub(1) {
                None => &mut *self.checkpointer,
                Some(at) => &mut self.levels.upper[at].checkpointer,
            };
            let state = (state.as_deref_mut(), live);
            match checkpointer.restore_where(&self.world, repair, state, is_here) {
                Ok(Restored::Nothing) => {}
                Ok(restored) => {
                    self.pass_by_others(at, &repairs)?;
                    return Ok(restored);
                }
                Err(
                    error @ (CheckpointError::BeyondTolerance(_)
                    | CheckpointError::Unsound { .. }
                    | CheckpointError::Inexact { .. }),
                ) => beyond = beyond.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        self.levels.source = 0;
        beyond.map_or(Ok(Restored::Nothing), Err)
    }

    /// The repair as each level has to see it: with what all ranks have on it.
    fn repairs(&self, repair: &Membership) -> Result<Vec<Membership>, CheckpointError> {
        let mine: Vec<u64> = self.levels.upper.iter().map(|upper| upper.checkpointer.told()).collect();
        let mut all = vec![0; mine.len() * self.world.size()];
        if !mine.is_empty() {
            self.world.comm().allgather(&mine, &mut all)?;
        }
        let above = (0..mine.len()).map(|at| {
            let reports = all.iter().skip(at).step_by(mine.len()).copied().collect();
            Membership { reports, ..repair.clone() }
        });
        Ok(std::iter::once(repair.clone()).chain(above).collect())
    }

    /// All were restored from level `source`.
    fn pass_by_others(&mut self, source: usize, repairs: &[Membership]) -> Result<(), CheckpointError> {
        let upper = self.levels.upper.iter_mut().map(|upper| &mut upper.checkpointer);
        let all = std::iter::once(&mut *self.checkpointer).chain(upper).zip(repairs).enumerate();
        for (at, (checkpointer, repair)) in all.filter(|(at, _)| *at != source) {
            checkpointer.pass_by(&self.world, &repair.reports, at > source)?;
        }
        self.levels.source = source;
        self.levels.are_due = repairs.len() > 1;
        Ok(())
    }

    /// Whether ranks have moved, so that some level is to be laid over other hosts.
    pub(super) fn owes_layout(&self) -> bool {
        self.checkpointer.owes_layout()
            || self.levels.upper.iter().any(|upper| upper.checkpointer.owes_layout())
    }

    /// Whether the first level has nothing, as a stronger one has served.
    pub(super) fn has_fallen_back(&self) -> bool {
        self.levels.source > 0 && !self.checkpointer.has_committed()
    }
}
