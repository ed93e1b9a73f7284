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
use ft_proto::error::CommError;

const NESTED: &str = "code that a call of this rank runs makes a call itself";

/// See the module; clones lead to the same core.
#[derive(Clone)]
pub(crate) struct Door(Rc<Rooms>);

struct Rooms {
    core: RefCell<Core>,
    /// The core, if a call has lent it.
    lent: RefCell<Option<Core>>,
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
        Self(Rc::new(Rooms { core: RefCell::new(core), lent: RefCell::new(None) }))
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
    /// [`CommError::Nested`], [`CommError::Panicked`].
    pub(crate) fn enter(&self) -> Result<Inside<'_>, CommError> {
        self.pass().ok_or_else(|| self.refusal())
    }

    /// The same without an error, which is long: what it gives need not go through memory. None: [`Door::refusal`] says why.
    #[inline(always)]
    pub(crate) fn pass(&self) -> Option<Inside<'_>> {
        let core = self.0.borrow_mut()?;
        core.driver.calls.count();
        if core.is_torn() { None } else { Some(Inside { core, unwinds: panicking() }) }
    }

    /// Why nobody can pass. The first who asks behind a panic ends the job.
    #[cold]
    pub(crate) fn refusal(&self) -> CommError {
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
        let mut inside = self.open().expect(NESTED);
        if !inside.is_torn() {
            set(&mut inside);
        }
    }

    /// Whatever has happened; not within a call.
    pub(crate) fn open(&self) -> Option<Inside<'_>> {
        let core = self.0.borrow_mut()?;
        Some(Inside { core, unwinds: panicking() })
    }

    /// For a look.
    ///
    /// # Errors
    /// [`CommError::Nested`].
    pub(crate) fn read(&self) -> Result<Ref<'_, Core>, CommError> {
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
