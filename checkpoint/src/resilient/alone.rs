//! Ranks that are lost go back alone (`--recovery local`): the others go on where they are, and their calls outlast the repair.
//!
//! A failure finds a rank in a call of its step, or between two steps. In a call the repair is made there ([`Aide`]): what it needs of the job is lent for the length of the step.
//! Between steps it is made by the job as ever, and nothing is restored but the lost. Both do the same, in the same order, so ranks meet in it wherever they are:
//!
//! 1. The world is repaired, and each rank says whether it can stay where it is. If one cannot, all go back.
//! 2. The committed checkpoint is made whole again, with the shards of the lost.
//! 3. All tell each other what has come of their messages (`ft_comm::World::go_on_from_line`).

use std::cell::{Cell, RefCell};
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use ft_comm::{CommError, Membership, Rank, World};

use super::activity;
use super::kept::Kept;
use super::lines::Drawing;
use super::pacing::Pacing;
use crate::checkpointer::{Checkpointer, LiveState, Restored};
use crate::error::CheckpointError;

/// What a rank says after a repair.
mod word {
    /// All have to go back: it is at no place where it could stay.
    pub(super) const GOES_BACK: u8 = 0;
    /// It stays where it is.
    pub(super) const STAYS: u8 = 1;
    /// It has nothing yet, and needs to be restored.
    pub(super) const IS_NEW: u8 = 2;
}

/// So many repairs without a checkpoint between them leave ranks where they are. While somebody does again what a lost rank had done no checkpoint can be taken, and the more there is to do again
/// the longer that takes: where failures are denser than that all go back, as they lose less then.
const REPAIRS_MAX: u32 = 3;

/// Something that may be lent.
#[derive(Debug)]
pub(super) struct Held<T>(Option<Box<T>>);

const LENT: &str = "it is lent for the length of a step only";

impl<T> Held<T> {
    pub(super) fn new(value: T) -> Self {
        Self(Some(Box::new(value)))
    }

    fn lend(&mut self) -> Self {
        Self(self.0.take())
    }
}

impl<T> Deref for Held<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().expect(LENT)
    }
}

impl<T> DerefMut for Held<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_deref_mut().expect(LENT)
    }
}

/// What a repair in a call of a step needs of the job.
#[derive(Debug)]
struct Lent {
    checkpointer: Held<Checkpointer>,
    pacing: Held<Pacing>,
    drawing: Held<Drawing>,
}

/// What a repair within a call has left to the job.
#[derive(Debug)]
pub(super) enum Left {
    /// The world is repaired, and all go back.
    Repaired(Membership),
    /// Something is wrong that no repair mends.
    Wrong(CheckpointError),
}

/// Repairs the world within a call. See the module.
#[derive(Debug, Default)]
pub(super) struct Aide {
    lent: RefCell<Option<Lent>>,
    left: RefCell<Option<Left>>,
    /// This rank does again what the lost one had done.
    replays: Cell<bool>,
    /// Steps since it began with that.
    again: Cell<u64>,
    /// It was not possible that only the lost go back.
    all_go_back: Cell<bool>,
    /// The checkpoint that was committed at the last repair, and how many repairs there were since.
    since: Cell<(u32, u32)>,
}

impl Aide {
    /// What [`World::set_repairs`] calls.
    pub(super) fn repairs(self: &Rc<Self>, world: &Rc<World>) -> Rc<dyn Fn() -> Result<bool, CommError>> {
        let (aide, world) = (self.clone(), Rc::downgrade(world));
        Rc::new(move || match world.upgrade() {
            Some(world) => aide.repair(&world),
            None => Ok(false),
        })
    }

    /// A step begins: what a repair needs is lent until it ends.
    pub(super) fn lend(
        &self,
        checkpointer: &mut Held<Checkpointer>,
        pacing: &mut Held<Pacing>,
        drawing: &mut Held<Drawing>,
    ) {
        let (checkpointer, pacing, drawing) = (checkpointer.lend(), pacing.lend(), drawing.lend());
        *self.lent.borrow_mut() = Some(Lent { checkpointer, pacing, drawing });
    }

    /// It has ended.
    pub(super) fn take_back(
        &self,
        checkpointer: &mut Held<Checkpointer>,
        pacing: &mut Held<Pacing>,
        drawing: &mut Held<Drawing>,
    ) {
        if let Some(lent) = self.lent.borrow_mut().take() {
            (*checkpointer, *pacing, *drawing) = (lent.checkpointer, lent.pacing, lent.drawing);
        }
    }

    /// What the last repair has left, if it could not help.
    pub(super) fn left(&self) -> Option<Left> {
        self.left.borrow_mut().take()
    }

    /// From now on this rank does again what the lost one had done, or nothing.
    pub(super) fn set_replays(&self, replays: bool) {
        self.replays.set(replays);
        self.again.set(0);
    }

    /// Whether this rank does again what the lost one had done.
    pub(super) fn replays(&self) -> bool {
        self.replays.get()
    }

    /// After a step: how many steps were done again, when that is over.
    pub(super) fn has_caught_up(&self, world: &World) -> Result<Option<u64>, CommError> {
        if !self.replays.get() {
            return Ok(None);
        }
        if world.is_replaying()? {
            self.again.set(self.again.get() + 1);
            return Ok(None);
        }
        self.replays.set(false);
        Ok(Some(self.again.get()))
    }

    /// A failure has interrupted a call. Whether it goes on.
    fn repair(&self, world: &World) -> Result<bool, CommError> {
        let mut lent = self.lent.borrow_mut();
        let Some(lent) = lent.as_mut() else { return Ok(false) };
        loop {
            let error = match self.attempt(world, lent) {
                Ok(None) => return Ok(true),
                Ok(Some(repair)) => {
                    *self.left.borrow_mut() = Some(Left::Repaired(repair));
                    world.gives_way()?;
                    return Ok(false);
                }
                Err(error) => error,
            };
            match world.check() {
                Err(failure) if failure.is_failure() => {}
                Err(ended) => return Err(ended),
                Ok(()) => {
                    *self.left.borrow_mut() = Some(Left::Wrong(error));
                    world.gives_way()?;
                    return Ok(false);
                }
            }
        }
    }

    /// Repairs once. The repair, if all have to go back.
    fn attempt(&self, world: &World, lent: &mut Lent) -> Result<Option<Membership>, CheckpointError> {
        world.activity(activity::WAITING);
        lent.pacing.fail();
        let report = lent.checkpointer.report()?;
        world.account(lent.checkpointer.account().to_bytes());
        let repair = world.repair(report)?;
        lent.checkpointer.begin_account();
        let (_, staged) = lent.checkpointer.held();
        let Some(lost) = self.who_goes_back(world, &lent.checkpointer, true, false)? else {
            return Ok(Some(repair));
        };
        world.activity(activity::REBUILDING);
        let nothing = (None::<&mut Kept<()>>, LiveState::Stays);
        let restored = lent.checkpointer.restore_where(world, &repair, nothing, &|_| false)?;
        self.go_on(world, &mut lent.checkpointer, &mut lent.drawing, (restored, staged), &lost)?;
        lent.pacing.recall(world)?;
        world.account(lent.checkpointer.account().to_bytes());
        if !self.replays.get() {
            world.resumed(0);
        }
        world.activity(activity::COMPUTING);
        Ok(None)
    }

    /// The ranks that go back alone; none if all do. This rank `stays` where it is, or has nothing yet, or neither. Collective over the ranks that compute.
    pub(super) fn who_goes_back(
        &self,
        world: &World,
        checkpointer: &Checkpointer,
        stays: bool,
        is_new: bool,
    ) -> Result<Option<Vec<Rank>>, CommError> {
        let (committed, _) = checkpointer.held();
        let (before, repairs) = self.since.get();
        let repairs = if before == committed { repairs + 1 } else { 1 };
        self.since.set((committed, repairs));
        let mine = match (stays && !self.all_go_back.get() && repairs <= REPAIRS_MAX, is_new) {
            (true, _) => word::STAYS,
            (false, true) => word::IS_NEW,
            (false, false) => word::GOES_BACK,
        };
        let mut all = vec![0; world.size()];
        world.comm().allgather(&[mine], &mut all)?;
        let new: Vec<Rank> = (0..all.len()).filter(|rank| all[*rank] == word::IS_NEW).collect();
        // What came out is known to so many others as may be lost at once, and no more.
        let is_known = new.len() <= checkpointer.losses_max();
        let is_possible = all.contains(&word::STAYS) && !all.contains(&word::GOES_BACK) && is_known;
        if !is_possible {
            self.all_go_back.set(false);
        }
        Ok(is_possible.then_some(new))
    }

    /// Goes on where this rank is, as the `lost` go back to what was `restored`. `staged` is what this rank had of a line when it was interrupted.
    pub(super) fn go_on(
        &self,
        world: &World,
        checkpointer: &mut Checkpointer,
        drawing: &mut Drawing,
        (restored, staged): (Restored, u32),
        lost: &[Rank],
    ) -> Result<(), CheckpointError> {
        let is_committed = matches!(restored, Restored::Epoch(epoch) if epoch == staged);
        drawing.go_on(checkpointer.gave_up() && !is_committed);
        let goes_on = world.go_on_from_line(is_committed, lost)?;
        self.require(world, goes_on && !checkpointer.owes_fresh())?;
        checkpointer.stays();
        Ok(())
    }

    /// If it is not possible that only the lost go back, all do, after another repair. The same on all ranks.
    pub(super) fn require(&self, world: &World, is_possible: bool) -> Result<(), CheckpointError> {
        if is_possible {
            return Ok(());
        }
        self.all_go_back.set(true);
        world.gives_way()?;
        Ok(world.check()?)
    }
}
