//! Collectives and exchanges of few bytes, on the stack of their call: as long as each step is over at once, or its message comes soon, they need
//! no operation, and no memory but what the call lends. What is left then is a step list like any other ([`super::lists`]).

use ft_proto::collective::{Space, Span, Step, hazard};
use ft_proto::endpoint::{Mode, OpId, Outcome};
use ft_proto::error::CommError;
use ft_proto::matching::Pattern;
use ft_proto::rank::{Rank, Tag};

use super::engine::{Engine, Letter, Sent, Urgency, is_short};
use super::lists::{StepList, wrong};
use super::looks::Looks;
use super::memory::{Extent, Memory, Place};

/// How far a step list went.
#[derive(Default)]
pub(super) struct Walk {
    /// So many of its first steps are done or under way.
    pub(super) steps: usize,
    /// The last of them, if it is under way: a send.
    pub(super) under_way: Option<OpId>,
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
        let mut walk = Walk::default();
        while walk.steps < self.steps.len() {
            match self.attempt(walk.steps, engine, looks, memory)? {
                Tried::Done => walk.steps += 1,
                Tried::UnderWay(op) => return Ok(Walk { steps: walk.steps + 1, under_way: Some(op) }),
                Tried::Waits => break,
            }
        }
        Ok(walk)
    }

    fn attempt(
        &self,
        at: usize,
        engine: &mut Engine,
        looks: &mut Looks<'_>,
        memory: &mut Memory<'_>,
    ) -> Result<Tried, CommError> {
        let step = &self.steps[at];
        let message = self.messages.as_ref().map(|messages| &messages[at]);
        let tag = message.map_or(self.tag, |message| message.tag);
        let bytes = |part: &Span| part.range.start * self.element..part.range.end * self.element;
        let extent = |part: &Span| match message.and_then(|message| message.layout.as_ref()) {
            Some(layout) => Extent::Layout(layout.clone()),
            None => Extent::Range(bytes(part)),
        };
        match step {
            Step::Fence => Ok(Tried::Done), // nothing is under way
            Step::Send { to, part } if part.space != Space::Scratch => {
                let place = match part.space {
                    Space::Input => Place::Read(extent(part)),
                    _ => Place::Write(extent(part)),
                };
                let (to, context) = (self.world[*to], self.context);
                let letter = Letter { to, context, tag, mode: Mode::Standard, urgency: Urgency::Now };
                Ok(match engine.begin_send(letter, place, memory) {
                    Sent::Left(..) => Tried::Done,
                    Sent::Begun(op) => Tried::UnderWay(op),
                })
            }
            Step::Recv { from, part } | Step::RecvReduce { from, part, .. }
                if part.space == Space::Buffer && !self.sends_behind(at) =>
            {
                let mut place = match step {
                    Step::RecvReduce { .. } if is_short(part.range.len() * self.element) => {
                        engine.stock.aside(part.range.len() * self.element)
                    }
                    Step::RecvReduce { .. } => return Ok(Tried::Waits),
                    _ => Place::Write(extent(part)),
                };
                let due = place.len();
                let came = engine.receive_within(looks, &self.pattern(*from, tag), &mut place, memory);
                let error = came.and_then(|envelope| wrong(Outcome::Done(envelope), step, due, self.name));
                match step {
                    Step::RecvReduce { part, order, .. } if came.is_some() && error.is_none() => {
                        engine.stock.combine_lent(&place, bytes(part), *order, memory);
                    }
                    _ => {}
                }
                engine.stock.reclaim(place);
                match (came, error) {
                    (_, Some(error)) => Err(error),
                    (Some(_), None) => Ok(Tried::Done),
                    (None, None) => Ok(Tried::Waits),
                }
            }
            _ => Ok(Tried::Waits),
        }
    }

    /// What a message of this list from a rank of its communicator is matched by.
    fn pattern(&self, from: Rank, tag: Tag) -> Pattern {
        Pattern { context: self.context, source: Some(self.world[from] as u32), tag: Some(tag) }
    }

    /// Whether behind a receive is a send that may leave before that has come.
    fn sends_behind(&self, at: usize) -> bool {
        let (receive, behind) = (&self.steps[at], &self.steps[at + 1..]);
        let next = behind.iter().find(|step| !matches!(step, Step::Recv { .. } | Step::RecvReduce { .. }));
        let waits = |send| self.is_collective() && hazard::must_wait(send, std::iter::once(receive));
        next.is_some_and(|step| matches!(step, Step::Send { .. }) && !waits(step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sends_behind(steps: &[Step], is_exchange: bool) -> bool {
        let message = || super::super::lists::Message { tag: 0, layout: None };
        let list = StepList {
            name: "test",
            steps: steps.into(),
            world: vec![0, 1, 2].into(),
            context: 1,
            tag: 0,
            messages: is_exchange.then(|| steps.iter().map(|_| message()).collect()),
            element: 1,
            apply: None,
        };
        list.sends_behind(0)
    }

    /// Both sides would wait for each other, if each waited before it sent.
    #[test]
    fn a_receive_is_not_waited_for_before_a_send_that_does_not_need_it() {
        let receive = |from: Rank, at: usize| Step::recv(from, at..at + 4);
        let send = |to: Rank, part: Span| Step::Send { to, part };
        let (there, input) = (Span::from(0..4), Span::input(0..4));
        assert!(sends_behind(&[receive(1, 0), send(1, input.clone())], false));
        assert!(!sends_behind(&[receive(1, 0), send(2, there.clone())], false), "it passes on what comes");
        assert!(sends_behind(&[receive(1, 0), receive(2, 4), send(1, input.clone())], false));
        assert!(sends_behind(&[receive(1, 0), send(2, there)], true), "steps of an exchange need nothing");
        assert!(!sends_behind(&[receive(1, 0), receive(2, 4)], true));
        assert!(!sends_behind(&[receive(1, 0), Step::Fence, send(1, input)], false));
    }
}
