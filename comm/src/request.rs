//! Requests: handles of non-blocking operations, which own their buffers.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;

use crate::core::Core;
use crate::driver::{Memory, Place};
use crate::error::CommError;
use crate::plain::Plain;
use crate::proto::endpoint::{OpId, Outcome};
use crate::rank::{Generation, Rank, Status, Tag};

/// A send or receive under way (`MPI_Request`). It owns its buffer and gives it back when it is waited for.
///
/// Dropped without waiting, a receive that nothing has matched is withdrawn, and other operations finish
/// behind the program's back.
#[must_use = "a request is to be waited for"]
pub struct Request<T: Plain> {
    core: Rc<RefCell<Core>>,
    group: Rc<[Rank]>,
    generation: Generation,
    hint: Option<Rank>,
    /// Context and tag of its message.
    call: (u32, Option<Tag>),
    op: Option<OpId>,
    element: PhantomData<T>,
}

impl<T: Plain> std::fmt::Debug for Request<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request").field("op", &self.op).field("generation", &self.generation).finish()
    }
}

impl<T: Plain> Request<T> {
    pub(crate) fn new(
        core: Rc<RefCell<Core>>,
        group: Rc<[Rank]>,
        generation: Generation,
        hint: Option<Rank>,
        call: (u32, Option<Tag>),
        op: OpId,
    ) -> Self {
        Self { core, group, generation, hint, call, op: Some(op), element: PhantomData }
    }

    fn current(&self) -> Result<OpId, CommError> {
        let now = self.core.borrow().generation();
        match self.op {
            Some(op) if now == self.generation => Ok(op),
            _ => Err(CommError::Revoked { started: self.generation, now }),
        }
    }

    /// Waits until the operation is finished; gives the buffer back, for a receive with what came at its
    /// start and the status of the message.
    ///
    /// # Errors
    /// A failure interrupts it, the message does not fit, or a repair has ended its generation. The buffer
    /// is lost then.
    pub fn wait(mut self) -> Result<(Vec<T>, Status), CommError> {
        let op = self.current()?;
        let mut core = self.core.borrow_mut();
        core.driver.enter("wait", self.call.0, self.call.1);
        let result = core.driver.wait(op, self.hint, &mut Memory::none());
        drop(core);
        self.op = None;
        let (outcome, place) = result?;
        self.unpack(outcome, place)
    }

    /// Whether the operation is finished, after a look at the links: `Ok(Ok(..))` gives what
    /// [`Request::wait`] would, `Ok(Err(self))` gives the request back.
    ///
    /// # Errors
    /// As [`Request::wait`].
    pub fn test(mut self) -> Result<Result<(Vec<T>, Status), Self>, CommError> {
        let op = self.current()?;
        let result = self.core.borrow_mut().driver.test(op);
        match result {
            Ok(Some((outcome, place))) => {
                self.op = None;
                self.unpack(outcome, place).map(Ok)
            }
            Ok(None) => Ok(Err(self)),
            Err(error) => {
                self.op = None;
                Err(error)
            }
        }
    }

    fn unpack(&self, outcome: Outcome, place: Option<Place>) -> Result<(Vec<T>, Status), CommError> {
        let status = status(outcome, &self.group)?;
        let Some(Place::Owned(buffer)) = place else { unreachable!("requests own their buffers") };
        let buffer = buffer.into_any().downcast::<Vec<T>>().expect("the type is the request's");
        Ok((*buffer, status))
    }
}

impl<T: Plain> Drop for Request<T> {
    fn drop(&mut self) {
        if let (Some(op), Ok(mut core)) = (self.op, self.core.try_borrow_mut())
            && core.generation() == self.generation
        {
            core.driver.detach(op);
        }
    }
}

/// The status of a finished operation, with ranks of the communicator `group`.
pub(crate) fn status(outcome: Outcome, group: &[Rank]) -> Result<Status, CommError> {
    let local = |world: u32| group.iter().position(|&rank| rank == world as Rank).unwrap_or(usize::MAX);
    match outcome {
        Outcome::Done(envelope) => {
            Ok(Status { source: local(envelope.source), tag: envelope.tag, bytes: envelope.length as usize })
        }
        Outcome::Truncated { message, room } => Err(CommError::Truncated {
            from: local(message.source),
            message_bytes: message.length as usize,
            buffer_bytes: room,
        }),
    }
}
