//! Collectives and exchanges of few bytes, on the stack of their call: as long as each step is over at once, or its message comes soon, they need
//! no operation, and no memory but what the call lends. What is left then is a step list like any other ([`super::lists`]).

use std::ops::Range;

use ft_proto::cells::Label;
use ft_proto::collective::{Order, Space, Span, Step};
use ft_proto::endpoint::{Mode, OpId, Outcome};
use ft_proto::error::CommError;
use ft_proto::matching::{Envelope, Pattern};
use ft_proto::rank::{Rank, Tag};

use super::engine::{Engine, Leaving, Letter, Sent, Urgency, is_short};
use super::lists::{StepList, wrong};
use super::looks::Looks;
use super::memory::{ActivityId, Extent, Memory, Place};

/// How far a step list went.
#[derive(Default)]
pub(super) struct Walk {
    /// So many of its first steps are done or under way.
    pub(super) steps: usize,
    /// The last of them, if it is under way: a send.
    pub(super) under_way: Option<OpId>,
    /// The list's memory, if it needs some beside what the call lends.
    pub(super) space: Option<ActivityId>,
}

/// What a step has come to.
enum Tried {
    Done,
    UnderWay(OpId),
    /// It has not begun.
    Waits,
}

impl StepList {
    /// Does what can be done with so many `looks` for the messages that it waits for.
    ///
    /// # Errors
    /// A message has not the length that is due.
    pub(super) fn walk(
        &self,
        engine: &mut Engine,
        looks: &mut Looks<'_>,
        memory: &mut Memory<'_>,
    ) -> Result<Walk, CommError> {
        let mut walk = Walk { space: self.space(engine), ..Walk::default() };
        let result = loop {
            if walk.steps == self.steps.len() {
                break Ok(());
            }
            match self.attempt(walk.steps, walk.space, engine, looks, memory) {
                Ok(Tried::Done) => walk.steps += 1,
                Ok(Tried::UnderWay(op)) => {
                    (walk.steps, walk.under_way) = (walk.steps + 1, Some(op));
                    break Ok(());
                }
                Ok(Tried::Waits) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        engine.rouse();
        if let Err(error) = result {
            walk.give_up(engine);
            return Err(error);
        }
        Ok(walk)
    }

    /// Memory for scratch and for what this rank combines alone, if that is short.
    fn space(&self, engine: &mut Engine) -> Option<ActivityId> {
        let known = self.steps.known.filter(|known| known.scratch > 0 || known.has_local)?;
        let bytes = known.scratch * self.element;
        is_short(bytes / self.world.len()).then(|| engine.stock.spaces_with(None, None, bytes, None))
    }

    fn attempt(
        &self,
        at: usize,
        space: Option<ActivityId>,
        engine: &mut Engine,
        looks: &mut Looks<'_>,
        memory: &mut Memory<'_>,
    ) -> Result<Tried, CommError> {
        let step = &self.steps[at];
        match step {
            Step::Fence => Ok(Tried::Done), // nothing is under way
            Step::Send { to, part } => match self.place(at, part, space) {
                Some(place) => Ok(self.send(at, *to, place, engine, memory)),
                None => Ok(Tried::Waits),
            },
            Step::Recv { from, part } if !self.steps.sends_behind(at, self.is_collective()) => {
                let Some(mut place) = self.place(at, part, space) else { return Ok(Tried::Waits) };
                engine.rouse();
                let came = self.receive(at, *from, &mut place, engine, looks, memory)?;
                Ok(if came { Tried::Done } else { Tried::Waits })
            }
            Step::RecvReduce { from, part, order }
                if !self.steps.sends_behind(at, self.is_collective())
                    && is_short(part.len() * self.element)
                    && (part.space == Space::Buffer || space.is_some()) =>
            {
                engine.rouse();
                let mut place = engine.stock.aside(part.len() * self.element);
                let came = self.receive(at, *from, &mut place, engine, looks, memory);
                if let Ok(true) = came {
                    self.combine(&place, part, *order, space, engine, memory);
                }
                engine.stock.reclaim(place);
                Ok(if came? { Tried::Done } else { Tried::Waits })
            }
            Step::Copy { from, to } if let Some(space) = space => {
                engine.stock.local(space, from, to, self.element, None, memory);
                Ok(Tried::Done)
            }
            Step::Reduce { other, part, order } if let Some(space) = space => {
                engine.stock.local(space, other, part, self.element, Some(*order), memory);
                Ok(Tried::Done)
            }
            _ => Ok(Tried::Waits),
        }
    }

    /// Where the part of a step is, if it is in lent memory, or the list has memory.
    fn place(&self, at: usize, part: &Span, space: Option<ActivityId>) -> Option<Place> {
        let layout = self.messages.as_ref().and_then(|messages| messages[at].layout.as_ref());
        let extent =
            layout.map_or_else(|| Extent::Range(self.bytes(part)), |layout| Extent::Layout(layout.clone()));
        match part.space {
            Space::Input => Some(Place::Read(extent)),
            Space::Buffer => Some(Place::Write(extent)),
            Space::Scratch => space.map(|space| Place::Span(space, Space::Scratch, extent)),
        }
    }

    fn bytes(&self, part: &Span) -> Range<usize> {
        part.range.start * self.element..part.range.end * self.element
    }

    fn tag(&self, at: usize) -> Tag {
        self.messages.as_ref().map_or(self.tag, |messages| messages[at].tag)
    }

    fn send(&self, at: usize, to: Rank, place: Place, engine: &mut Engine, memory: &mut Memory<'_>) -> Tried {
        let (to, context, tag) = (self.world[to], self.context, self.tag(at));
        let leaving = engine.leaving(to, (context, tag), &place, memory);
        if leaving == Leaving::Not {
            return Tried::Done;
        }
        let tells_once = self.steps.known.is_some_and(|known| known.tells_once);
        if tells_once
            && leaving == Leaving::Free
            && self.may_come_beside(place.len())
            && engine.put(to, Label { context, tag }, &place, memory)
        {
            return Tried::Done;
        }
        let letter = Letter { to, context, tag, mode: Mode::Standard, urgency: Urgency::Now };
        match engine.begin_due_send(letter, place, memory) {
            Sent::Left(..) => Tried::Done,
            Sent::Begun(op) => Tried::UnderWay(op),
        }
    }

    /// Whether the message of a step has come to its place.
    fn receive(
        &self,
        at: usize,
        from: Rank,
        place: &mut Place,
        engine: &mut Engine,
        looks: &mut Looks<'_>,
        memory: &mut Memory<'_>,
    ) -> Result<bool, CommError> {
        let (due, context, tag) = (place.len(), self.context, self.tag(at));
        let pattern = Pattern { context, source: Some(self.world[from] as u32), tag: Some(tag) };
        let label = self.may_come_beside(due).then_some(Label { context, tag });
        let Some(envelope) = engine.receive_within(looks, (&pattern, label), place, memory) else {
            return Ok(false);
        };
        let error = wrong(outcome(envelope, due), &self.steps[at], due, self.name);
        error.map_or(Ok(true), Err)
    }

    /// Combines what has come aside with its part.
    fn combine(
        &self,
        place: &Place,
        part: &Span,
        order: Order,
        space: Option<ActivityId>,
        engine: &mut Engine,
        memory: &mut Memory<'_>,
    ) {
        match (part.space, space) {
            (Space::Buffer, _) => engine.stock.combine_lent(place, self.bytes(part), order, memory),
            (_, Some(space)) => {
                engine.stock.combine_in(place, space, part.space, self.bytes(part), order, memory);
            }
            (_, None) => unreachable!("it was looked for before the receive"),
        }
    }
}

impl Walk {
    /// Nobody goes on with it.
    #[inline]
    pub(super) fn give_up(self, engine: &mut Engine) {
        if let Some(space) = self.space {
            engine.stock.take_spaces(space);
        }
    }
}

/// What has become of a receive with so much room.
fn outcome(message: Envelope, room: usize) -> Outcome {
    if message.length > room as u64 { Outcome::Truncated { message, room } } else { Outcome::Done(message) }
}
