//! Exchanges: many messages at once between lent buffers, planned once and run as often as wanted (persistent
//! communication, MPI 4.1, section 3.9).

use std::marker::PhantomData;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::messages::extent;
use super::*;
use crate::driver::{ActivityId, Buffers, Message as StepMessage, Own, StepList, is_short};
use ft_proto::layout::Layout;

/// A message of an exchange: a part of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The rank it goes to or comes from.
    pub peer: Rank,
    /// Tag of the message.
    pub tag: Tag,
    /// Elements of the buffer.
    pub range: Range<usize>,
}

/// A message of a [`Plan`]: elements of a buffer in any [`Layout`].
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// The rank it goes to or comes from.
    pub peer: Rank,
    /// Tag of the message.
    pub tag: Tag,
    /// Elements of the buffer.
    pub layout: Layout,
}

impl From<Part> for Piece {
    fn from(Part { peer, tag, range }: Part) -> Self {
        Self { peer, tag, layout: Layout::contiguous(range) }
    }
}

/// An exchange that is checked and laid out once (`MPI_Send_init` and `MPI_Recv_init`, all messages together), as a
/// halo exchange wants it.
#[derive(Clone, Debug)]
pub struct Plan<T: Plain> {
    comm: Communicator,
    steps: Rc<[Step]>,
    messages: Rc<[StepMessage]>,
    /// Elements that the buffers must have: to send from, to receive into.
    room: (usize, usize),
    element: PhantomData<T>,
}

impl Communicator {
    /// Exchanges parts of buffers with any number of ranks at once, as a halo exchange does: every part of
    /// `sends` leaves from `out`, every part of `recvs` arrives in `buf`, each as one message. Lengths must agree
    /// on both sides; parts of `recvs` must not overlap.
    ///
    /// # Errors
    /// A failure, a rank that does not exist, or a message of another length ([`CommError::Count`],
    /// [`CommError::Truncated`]).
    pub fn exchange<T: Plain>(
        &self,
        out: &[T],
        sends: &[Part],
        buf: &mut [T],
        recvs: &[Part],
    ) -> Result<(), CommError> {
        let mut parts = vec![];
        for Part { peer, tag, range } in recvs {
            self.world(*peer)?;
            parts.push((Step::recv(*peer, range.clone()), StepMessage { tag: *tag, layout: None }));
        }
        for Part { peer, tag, range } in sends {
            self.world(*peer)?;
            let step = Step::send(*peer, ft_proto::collective::Span::input(range.clone()));
            parts.push((step, StepMessage { tag: *tag, layout: None }));
        }
        let (steps, messages) = in_order(parts, size_of::<T>());
        let end = |parts: &[Part]| parts.iter().map(|part| part.range.end).max().unwrap_or(0);
        let room = (end(sends), end(recvs));
        let plan = Plan { comm: self.clone(), steps, messages, room, element: PhantomData };
        plan.run(out, buf)
    }

    /// Plans an exchange: every piece of `sends` leaves from the one buffer, every piece of `recvs` arrives in the
    /// other, each as one message. Pieces of `recvs` must not overlap.
    ///
    /// # Errors
    /// A rank does not exist, or a piece to receive names an element twice.
    pub fn plan<T: Plain>(&self, sends: &[Piece], recvs: &[Piece]) -> Result<Plan<T>, CommError> {
        let mut parts = vec![];
        let sends = sends.iter().map(|piece| (piece, false));
        for (Piece { peer, tag, layout }, received) in recvs.iter().map(|piece| (piece, true)).chain(sends) {
            self.world(*peer)?;
            let whole = layout.end();
            let (range, layout) = match extent::<T>(layout, whole, received)? {
                Extent::Range(_) if layout.is_empty() => (0..0, None),
                Extent::Range(_) => (layout.piece(0), None),
                Extent::Layout(bytes) => (0..whole, Some(bytes)),
            };
            let step = match received {
                true => Step::recv(*peer, range),
                false => Step::send(*peer, ft_proto::collective::Span::input(range)),
            };
            parts.push((step, StepMessage { tag: *tag, layout }));
        }
        let (steps, messages) = in_order(parts, size_of::<T>());
        let end = |received: bool| {
            let ends = steps.iter().filter_map(|step| match step {
                Step::Recv { part, .. } if received => Some(part.range.end),
                Step::Send { part, .. } if !received => Some(part.range.end),
                _ => None,
            });
            ends.max().unwrap_or(0)
        };
        let room = (end(false), end(true));
        let (comm, element) = (self.clone(), PhantomData);
        Ok(Plan { comm, steps, messages, room, element })
    }
}

/// The steps of an exchange in the order in which they begin: where all that comes is short, it is received at once when all has left; else receives come
/// first, so that what is long goes straight to its place. Messages of one rank and tag keep their order, by which they are matched.
pub(super) fn in_order<M>(mut parts: Vec<(Step, M)>, element_bytes: usize) -> (Rc<[Step]>, Rc<[M]>) {
    let receives = |step: &Step| matches!(step, Step::Recv { .. });
    let comes_short = |step: &Step| match step {
        Step::Recv { part, .. } => is_short(part.len() * element_bytes),
        _ => true,
    };
    let sends_first = parts.iter().all(|(step, _)| comes_short(step));
    parts.sort_by_key(|(step, _)| receives(step) == sends_first);
    let (steps, messages): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    (steps.into(), messages.into())
}

impl<T: Plain> Plan<T> {
    fn list(&self) -> StepList {
        StepList {
            name: "exchange",
            steps: self.steps.clone().into(),
            world: self.comm.members().world.clone(),
            context: self.comm.shared.context,
            tag: 0,
            messages: Some(self.messages.clone()),
            element: size_of::<T>(),
            apply: None,
        }
    }

    fn fits(&self, out: usize, buf: usize) -> Result<(), CommError> {
        if out < self.room.0 || buf < self.room.1 {
            let (send, receive) = self.room;
            let text =
                format!("an exchange of {send} and {receive} elements over buffers of {out} and {buf}");
            return Err(CommError::Count(text));
        }
        Ok(())
    }

    /// Exchanges the pieces of `out` for those of `buf`, and returns when all have been sent and received.
    ///
    /// # Errors
    /// As [`Communicator::exchange`]; the buffers are too short ([`CommError::Count`]).
    pub fn run(&self, out: &[T], buf: &mut [T]) -> Result<(), CommError> {
        self.fits(out.len(), buf.len())?;
        let core = &mut *self.comm.core.enter()?;
        self.comm.enter(core)?;
        core.driver.waiting.enter("exchange", self.comm.shared.context, None);
        let mut memory = Memory::of(bytemuck::cast_slice(out), bytemuck::cast_slice_mut(buf));
        core.run(self.list(), &mut memory)
    }

    /// Starts the exchange with buffers that it owns (`MPI_Startall`).
    ///
    /// # Errors
    /// As [`Plan::run`]; later ones are returned by [`PlanRequest::wait`].
    pub fn start(&self, out: Vec<T>, buf: Vec<T>) -> Result<PlanRequest<T>, CommError> {
        self.fits(out.len(), buf.len())?;
        let core = &mut *self.comm.core.enter()?;
        self.comm.enter(core)?;
        let own = Own { input: Some(Box::new(out)), buffer: Some(Box::new(buf)), combine: None };
        let id = core.driver.start(self.list(), own, &mut Memory::none())?;
        Ok(PlanRequest {
            under_way: UnderWay::new(&self.comm, core.driver.age(self.comm.shared.context), id),
            element: PhantomData,
        })
    }

    /// Starts the exchange again that was under way at the checkpoint to which this rank goes back, with buffers as those of then. What was sent does not leave again. It has a record, as before.
    ///
    /// # Errors
    /// As [`Plan::start`]; [`CommError::TooSoon`]: this rank is not in a step.
    pub fn start_again(&self, _: &PlanRecord, out: Vec<T>, buf: Vec<T>) -> Result<PlanRequest<T>, CommError> {
        if !self.comm.core.enter()?.driver.engine.may_receive_again() {
            return Err(CommError::TooSoon);
        }
        let request = self.start(out, buf)?;
        request.record()?;
        Ok(request)
    }
}

/// A [`PlanRequest`] as a value for the state of a program whose messages may cross checkpoints (`ftrun --lines drain` or `log`), as [`crate::RequestRecord`] is of a [`crate::Request`].
///
/// A program takes the record when it starts the exchange, and keeps it in its state, with what it sends, until it has waited for it: checkpoints are taken beside it then. When the program goes
/// back it plans the exchange again in `rebuild`, and starts it in its next step, before any other call ([`Plan::start_again`]); several in the order in which they were started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRecord(());

/// An exchange under way. Dropped without being waited for, it ends behind the program's back.
#[must_use = "a request is to be waited for"]
#[derive(Debug)]
pub struct PlanRequest<T: Plain> {
    under_way: UnderWay,
    element: PhantomData<T>,
}

impl<T: Plain> PlanRequest<T> {
    /// Waits until all messages have been sent and received; gives both buffers back.
    ///
    /// # Errors
    /// A failure, a message of another length, or a repair has come between.
    pub fn wait(self) -> Result<(Vec<T>, Vec<T>), CommError> {
        let (out, buf) = self.under_way.wait("exchange")?;
        Ok((crate::request::own(out), crate::request::own(buf)))
    }

    /// The request as a value; from now on checkpoints are taken beside it.
    ///
    /// # Errors
    /// As [`PlanRequest::wait`].
    pub fn record(&self) -> Result<PlanRecord, CommError> {
        self.under_way.record().map(PlanRecord)
    }

    /// Whether [`PlanRequest::wait`] would return at once, after a look at the links.
    ///
    /// # Errors
    /// As [`PlanRequest::wait`].
    pub fn is_done(&self) -> Result<bool, CommError> {
        self.under_way.is_done()
    }
}

/// A step list with memory of its own. Dropped, it ends behind the program's back.
#[derive(Debug)]
pub(super) struct UnderWay {
    comm: Communicator,
    generation: Generation,
    id: Option<ActivityId>,
}

impl UnderWay {
    pub(super) fn new(comm: &Communicator, generation: Generation, id: ActivityId) -> Self {
        Self { comm: comm.clone(), generation, id: Some(id) }
    }

    /// Waits for its end, in a call of this name; gives its memory.
    pub(super) fn wait(mut self, name: &'static str) -> Result<Buffers, CommError> {
        let core = &mut *self.comm.core.enter()?;
        let now = core.driver.age(self.comm.shared.context);
        let id = match self.id.take() {
            Some(id) if now == self.generation => id,
            _ => return Err(CommError::Expired { started: self.generation, now }),
        };
        core.driver.waiting.enter(name, self.comm.shared.context, None);
        core.wait_activity(id, &mut Memory::none())?;
        core.driver.finish_activity(id)
    }

    /// For a call while it is under way.
    pub(super) fn enter(&self) -> Result<Inside<'_>, CommError> {
        let core = self.comm.core.enter()?;
        let now = core.driver.age(self.comm.shared.context);
        match self.id {
            Some(_) if now == self.generation => Ok(core),
            _ => Err(CommError::Expired { started: self.generation, now }),
        }
    }

    /// Checkpoints are taken beside it from now on.
    fn record(&self) -> Result<(), CommError> {
        let mut core = self.enter()?;
        self.id.into_iter().for_each(|id| core.driver.lists.record(id));
        Ok(())
    }

    pub(super) fn is_done(&self) -> Result<bool, CommError> {
        let core = &mut *self.comm.core.enter()?;
        let context = self.comm.shared.context;
        match core.replays(context)? {
            Some(0) => return Ok(false),
            Some(_) => {
                let waits = |id| core.wait_activity(id, &mut Memory::none());
                return self.id.map_or(Ok(()), waits).map(|()| true);
            }
            None => core.look()?,
        }
        let is_done = self.id.is_none_or(|id| core.driver.lists.is_done(id));
        core.driver.engine.note(context, u32::from(is_done));
        Ok(is_done)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let (Some(id), Some(mut core)) = (self.id, self.comm.core.tidy())
            && core.driver.age(self.comm.shared.context) == self.generation
        {
            core.driver.detach_activity(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_proto::collective::Span;

    /// The steps and tags of an exchange with two receives of one rank and tag, and two sends.
    fn order(lengths: [usize; 2]) -> Vec<(char, usize, Tag)> {
        let message = |tag| StepMessage { tag, layout: None };
        let parts = vec![
            (Step::recv(1, 0..lengths[0]), message(1)),
            (Step::send(1, Span::input(0..4000)), message(3)),
            (Step::recv(1, 0..lengths[1]), message(2)),
            (Step::send(1, Span::input(0..1)), message(4)),
        ];
        let (steps, messages) = in_order(parts, 8);
        let both = steps.iter().zip(messages.iter());
        both.map(|(step, message)| match step {
            Step::Recv { part, .. } => ('r', part.len(), message.tag),
            Step::Send { part, .. } => ('s', part.len(), message.tag),
            _ => panic!("an exchange sends and receives"),
        })
        .collect()
    }

    #[test]
    fn short_messages_are_received_after_all_has_left_and_none_changes_places_with_its_like() {
        let sends = [('s', 4000, 3), ('s', 1, 4)];
        assert_eq!(order([7, 8]), [sends[0], sends[1], ('r', 7, 1), ('r', 8, 2)]);
        for lengths in [[7, 200], [200, 7], [300, 200]] {
            let receives = [('r', lengths[0], 1), ('r', lengths[1], 2)];
            assert_eq!(order(lengths), [receives[0], receives[1], sends[0], sends[1]]);
        }
    }
}
