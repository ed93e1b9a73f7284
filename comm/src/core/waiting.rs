//! How calls wait. Where only who was lost goes back, a call that a failure has interrupted has the world repaired, and waits on.
//!
//! The repair is done by a layer above, with calls of its own, within the call that waits. So the core is lent to it ([`Door::lend`]): it leaves the call, which touches nothing
//! meanwhile, and comes back to it.

use std::rc::Rc;

use super::{Core, Door};
use crate::driver::{ActivityId, Driver, Letter, Memory, Place, StepList};
use crate::service::alone::Alone;
use crate::transport::null::NullTransport;
use ft_proto::endpoint::{OpId, Outcome};
use ft_proto::error::CommError;
use ft_proto::fault::Faults;
use ft_proto::matching::{Envelope, Pattern};
use ft_proto::rank::Rank;

/// Repairs the world; false if the call that was interrupted is to end.
pub(crate) type Repairs = Rc<dyn Fn() -> Result<bool, CommError>>;

/// A core that a call has lent; when this is dropped the call has it back, also where a panic unwinds: the world has to leave the job by it.
struct Lending<'a> {
    to: &'a mut Core,
    door: Door,
}

impl Drop for Lending<'_> {
    fn drop(&mut self) {
        *self.to = self.door.take_back();
    }
}

impl Core {
    /// From now on `repairs` is called when a failure interrupts a call of the program that waits, and the call waits on then.
    pub(crate) fn set_repairs(&mut self, repairs: Option<(Door, Repairs)>) {
        self.driver.set_patient(repairs.is_some());
        self.repairs = repairs;
    }

    /// Does what waits, through repairs, if what it waits for `outlasts` them.
    #[inline]
    pub(crate) fn through_repairs<T>(
        &mut self,
        outlasts: impl Fn(&Driver) -> bool,
        mut wait: impl FnMut(&mut Driver) -> Result<T, CommError>,
    ) -> Result<T, CommError> {
        loop {
            match wait(&mut self.driver) {
                Err(error) if self.driver.may_wait_on() => {
                    let started = self.generation();
                    self.repair(error)?;
                    if !outlasts(&self.driver) {
                        // No call that has lent memory is left.
                        self.driver.resume_here();
                        return Err(CommError::Expired { started, now: self.generation() });
                    }
                }
                result => return result,
            }
        }
    }

    /// One that takes the place of another.
    pub(super) fn hollow() -> Self {
        let alone = Driver::new(Box::new(NullTransport), Box::new(Alone::default()), 0);
        Self::new(alone, Faults::new(0, vec![]))
    }

    /// # Errors
    /// The world was not repaired, or not for this call: it ends with what has interrupted it, or what was wrong then.
    #[cold]
    fn repair(&mut self, interrupted: CommError) -> Result<(), CommError> {
        let Some((door, repairs)) = self.repairs.clone() else { return Err(interrupted) };
        let call = self.driver.waiting.call();
        self.driver.set_patient(false);
        let core = std::mem::replace(self, Self::hollow());
        let lending = Lending { to: self, door };
        let repaired = lending.door.lend(core, || repairs());
        drop(lending);
        self.driver.set_patient(self.repairs.is_some());
        if !repaired? {
            return Err(interrupted);
        }
        self.driver.engine.enter_lines(true);
        self.driver.resume();
        self.driver.waiting.resume(call);
        Ok(())
    }

    /// Waits until `op` is finished; gives its outcome and its memory back.
    #[inline]
    pub(crate) fn wait(
        &mut self,
        op: OpId,
        hint: Option<Rank>,
        memory: &mut Memory<'_>,
    ) -> Result<(Outcome, Option<Place>), CommError> {
        self.through_repairs(|driver| driver.engine.holds(op), |driver| driver.wait(op, hint, memory))
    }

    /// Sends, and waits until the memory may be changed.
    #[inline]
    pub(crate) fn send_wait(
        &mut self,
        letter: Letter,
        place: Place,
        memory: &mut Memory<'_>,
    ) -> Result<(), CommError> {
        match self.driver.begin_send(letter, place, memory)? {
            None => Ok(()),
            Some(op) => self.wait(op, Some(letter.to), memory).map(|_| ()),
        }
    }

    /// Receives a message, and waits for it: one that is short and comes soon has no operation.
    #[inline]
    pub(crate) fn receive_wait(
        &mut self,
        pattern: Pattern,
        place: Place,
        memory: &mut Memory<'_>,
    ) -> Result<Outcome, CommError> {
        match self.driver.begin_receive(pattern, place, memory)? {
            Ok(outcome) => Ok(outcome),
            Err(op) => {
                let hint = pattern.source.map(|source| source as Rank);
                self.wait(op, hint, memory).map(|(outcome, _)| outcome)
            }
        }
    }

    /// Sends and receives at once, and waits for both.
    pub(crate) fn send_and_receive(
        &mut self,
        letter: Letter,
        sent: Place,
        pattern: Pattern,
        room: Place,
        memory: &mut Memory<'_>,
    ) -> Result<Outcome, CommError> {
        let hint = pattern.source.map(|source| source as Rank);
        // What is long has its receive before it comes, so that it goes straight to its place.
        if !crate::driver::is_short(room.len()) {
            let receive = self.driver.receive(pattern, room, memory)?;
            let send = self.driver.send(letter, sent, memory);
            let send = send.inspect_err(|_| self.driver.engine.abandon(receive, memory))?;
            let received = self.wait(receive, hint, memory);
            let (outcome, _) = received.inspect_err(|_| self.driver.engine.abandon(send, memory))?;
            return self.wait(send, Some(letter.to), memory).map(|_| outcome);
        }
        let send = self.driver.begin_send(letter, sent, memory)?;
        let received = self.receive_wait(pattern, room, memory);
        let abandons = |_: &_| send.into_iter().for_each(|op| self.driver.engine.abandon(op, memory));
        let outcome = received.inspect_err(abandons)?;
        match send {
            Some(op) => self.wait(op, Some(letter.to), memory).map(|_| outcome),
            None => Ok(outcome),
        }
    }

    /// Runs a step list in lent memory to its end.
    #[inline]
    pub(crate) fn run(&mut self, list: StepList, memory: &mut Memory<'_>) -> Result<(), CommError> {
        match self.driver.begin(list, memory)? {
            None => Ok(()),
            Some(id) => {
                self.wait_activity(id, memory)?;
                self.driver.finish_activity(id).map(|_| ())
            }
        }
    }

    /// Waits until a step list is done.
    pub(crate) fn wait_activity(&mut self, id: ActivityId, memory: &mut Memory<'_>) -> Result<(), CommError> {
        self.through_repairs(|driver| driver.lists.holds(id), |driver| driver.wait_activity(id, memory))
    }

    /// Waits until something has moved; for operations that own their memory.
    pub(crate) fn await_change(&mut self) -> Result<(), CommError> {
        let before = self.driver.engine.moves;
        self.through_repairs(|_| true, |driver| driver.await_change_since(before))
    }

    /// Looks at the links once.
    pub(crate) fn look(&mut self) -> Result<(), CommError> {
        self.through_repairs(|_| true, Driver::look)
    }

    /// The first message that `pattern` accepts, after a look at the links.
    pub(crate) fn probe(&mut self, pattern: &Pattern) -> Result<Option<Envelope>, CommError> {
        if let Some(found) = self.driver.replay_found(pattern)? {
            return match found {
                Some(named) => self.probe_until(&named).map(Some),
                None => self.look().map(|()| None),
            };
        }
        self.look()?;
        Ok(self.driver.probe(pattern))
    }

    /// Waits for a message that `pattern` accepts.
    pub(crate) fn probe_wait(&mut self, pattern: &Pattern) -> Result<Envelope, CommError> {
        if !pattern.is_open() {
            return self.probe_until(pattern);
        }
        match self.driver.replay_found(pattern)? {
            Some(Some(named)) => self.probe_until(&named),
            Some(None) => Err(CommError::Diverged),
            None => {
                let found = self.probe_until(pattern)?;
                self.driver.engine.found(pattern.context, Some(&found));
                Ok(found)
            }
        }
    }

    fn probe_until(&mut self, pattern: &Pattern) -> Result<Envelope, CommError> {
        self.through_repairs(|_| true, |driver| driver.probe_until(pattern))
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::rc::Rc;

    use super::*;

    #[test]
    fn a_panic_in_a_repair_leaves_the_core_where_it_belongs() {
        let door = Door::to(Core::hollow());
        let repairs: Rc<dyn Fn() -> Result<bool, CommError>> = Rc::new(|| panic!("a repair that fails"));
        door.set(|core| core.set_repairs(Some((door.clone(), repairs))));
        let repair = || door.enter().unwrap().repair(CommError::Panicked);
        assert!(catch_unwind(AssertUnwindSafe(repair)).is_err());
        assert!(door.open().unwrap().repairs.is_some(), "it is the one that was lent");
        assert_eq!(door.enter().err(), Some(CommError::Panicked));
    }
}
