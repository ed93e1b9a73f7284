//! The door to the core: every call of a rank goes through it, one at a time.
//!
//! Calls run code of the program: operations of reductions, computations of schedules. If that panics and the program catches
//! the panic around its call, step lists and operations are left in the middle, with memory that was lent for that call only. So
//! a panic that unwinds through the door closes it for good: later calls are refused, and the first of them ends the
//! job. A panic that is not caught ends the process, which is a failure like any other.
//!
//! A call may lend the core ([`Door::lend`]): then the calls of whom it is lent to go through the same door.

use std::cell::{Ref, RefCell, RefMut};
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::thread::panicking;

use super::Core;
use crate::fork::Origin;
use ft_proto::error::CommError;
use ft_proto::wire::control::ToArbiter;

const NESTED: &str = "code that a call of this rank runs makes a call itself";

/// See the module; clones lead to the same core.
#[derive(Clone)]
pub(crate) struct Door(Rc<Rooms>);

struct Rooms {
    core: RefCell<Core>,
    /// The core, if a call has lent it.
    lent: RefCell<Option<Core>>,
    /// The process that has joined the job: in one that was forked from it nobody passes.
    origin: Origin,
}

impl Drop for Rooms {
    fn drop(&mut self) {
        if self.origin.is_elsewhere() {
            // Its threads are not here, and links and shared memory are the rank's: nothing of it
            // is to be closed.
            std::mem::forget(std::mem::replace(self.core.get_mut(), Core::hollow()));
            std::mem::forget(self.lent.get_mut().take());
        }
    }
}

impl Rooms {
    fn borrow_mut(&self) -> Option<RefMut<'_, Core>> {
        match self.core.try_borrow_mut() {
            Ok(core) => Some(core),
            Err(_) => self.borrow_lent_mut(),
        }
    }

    #[cold]
    fn borrow_lent_mut(&self) -> Option<RefMut<'_, Core>> {
        RefMut::filter_map(self.lent.try_borrow_mut().ok()?, Option::as_mut).ok()
    }

    fn borrow(&self) -> Option<Ref<'_, Core>> {
        match self.core.try_borrow() {
            Ok(core) => Some(core),
            Err(_) => Ref::filter_map(self.lent.try_borrow().ok()?, Option::as_ref).ok(),
        }
    }
}

impl Door {
    pub(crate) fn to(core: Core) -> Self {
        let origin = Origin::here();
        Self(Rc::new(Rooms { core: RefCell::new(core), lent: RefCell::new(None), origin }))
    }

    /// Lends the core of a call, which leaves it alone, to `work`. [`Door::take_back`] gives it back.
    pub(crate) fn lend<T>(&self, core: Core, work: impl FnOnce() -> T) -> T {
        *self.0.lent.borrow_mut() = Some(core);
        work()
    }

    /// The core that was lent.
    ///
    /// # Panics
    /// None was.
    pub(crate) fn take_back(&self) -> Core {
        self.0.lent.borrow_mut().take().expect("it was lent, and nobody but this call takes it")
    }

    /// For a call.
    ///
    /// # Errors
    /// [`CommError::Nested`], [`CommError::Panicked`], [`CommError::Forked`].
    pub(crate) fn enter(&self) -> Result<Inside<'_>, CommError> {
        self.pass().ok_or_else(|| self.refusal())
    }

    /// The same without an error, which is long: what it gives need not go through memory. None: [`Door::refusal`] says why.
    #[inline(always)]
    pub(crate) fn pass(&self) -> Option<Inside<'_>> {
        if self.0.origin.is_elsewhere() {
            return None;
        }
        let core = self.0.borrow_mut()?;
        core.driver.calls.count();
        if core.is_torn() { None } else { Some(Inside { core, unwinds: panicking() }) }
    }

    /// Why nobody can pass. The first who asks behind a panic ends the job.
    #[cold]
    pub(crate) fn refusal(&self) -> CommError {
        if self.0.origin.is_elsewhere() {
            return CommError::Forked;
        }
        match self.0.borrow_mut() {
            Some(mut core) => {
                core.give_up();
                CommError::Panicked
            }
            None => CommError::Nested,
        }
    }

    /// To tidy up behind a call; not where that is of no use any more.
    pub(crate) fn tidy(&self) -> Option<Inside<'_>> {
        self.open().filter(|inside| !inside.is_torn())
    }

    /// For a setting, which is of no use where the door is closed.
    ///
    /// # Panics
    /// Within a call.
    pub(crate) fn set(&self, set: impl FnOnce(&mut Core)) {
        if self.0.origin.is_elsewhere() {
            return;
        }
        let mut inside = self.open().expect(NESTED);
        if !inside.is_torn() {
            set(&mut inside);
        }
    }

    /// Says something to the launcher; a process that was forked from the rank says nothing in its
    /// name.
    ///
    /// # Panics
    /// Within a call.
    pub(crate) fn submit(&self, message: ToArbiter) {
        if !self.0.origin.is_elsewhere() {
            self.peek().driver.submit(message);
        }
    }

    /// Whatever has happened in this process; not within a call.
    pub(crate) fn open(&self) -> Option<Inside<'_>> {
        if self.0.origin.is_elsewhere() {
            return None;
        }
        let core = self.0.borrow_mut()?;
        Some(Inside { core, unwinds: panicking() })
    }

    /// For a look.
    ///
    /// # Errors
    /// [`CommError::Nested`], [`CommError::Forked`].
    pub(crate) fn read(&self) -> Result<Ref<'_, Core>, CommError> {
        if self.0.origin.is_elsewhere() {
            return Err(CommError::Forked);
        }
        self.0.borrow().ok_or(CommError::Nested)
    }

    /// The same, where no error can be told.
    ///
    /// # Panics
    /// Within a call.
    pub(crate) fn peek(&self) -> Ref<'_, Core> {
        self.0.borrow().expect(NESTED)
    }

    /// See [`crate::Communicator::guard`].
    pub(crate) fn guard(&self) -> Result<Guard, CommError> {
        self.enter()?;
        Ok(Guard { door: self.clone(), unwinds: panicking() })
    }
}

/// A call under way.
pub(crate) struct Inside<'a> {
    core: RefMut<'a, Core>,
    /// It was made by a destructor while a panic unwinds already.
    unwinds: bool,
}

impl Deref for Inside<'_> {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.core
    }
}

impl DerefMut for Inside<'_> {
    fn deref_mut(&mut self) -> &mut Core {
        &mut self.core
    }
}

impl Drop for Inside<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if panicking() && !self.unwinds {
            self.core.tear();
        }
    }
}

/// A call of a layer above, which consists of several of this crate and runs code of the program between them: a panic that unwinds
/// while it lives does what one in a call does.
#[must_use = "it guards as long as it lives"]
pub struct Guard {
    door: Door,
    unwinds: bool,
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard").finish_non_exhaustive()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if panicking() && !self.unwinds {
            self.door.open().into_iter().for_each(|mut inside| inside.tear());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fork::tests::holds_in_child;

    #[test]
    fn nobody_passes_in_a_forked_child() {
        let door = Door::to(Core::hollow());
        assert!(holds_in_child(|| {
            door.set(|_| unreachable!("it is another process"));
            matches!(door.enter().err(), Some(CommError::Forked))
                && matches!(door.read().err(), Some(CommError::Forked))
                && matches!(door.guard().err(), Some(CommError::Forked))
                && door.pass().is_none()
                && door.tidy().is_none()
                && door.open().is_none()
        }));
        assert!(door.enter().is_ok());
    }
}
